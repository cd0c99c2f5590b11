"""A system's table in the forms of `switchpoint export`, byte for byte."""

from functools import lru_cache
from typing import NamedTuple

from dashboard.query import UnknownError
from dashboard.snapshot import Snapshot, snapshot
from tuner.export import forms
from tuner.export.choices import VendorError
from tuner.export.mpi_library import FAMILIES
from tuner.models.fitting import last_fitted
from tuner.store.store import Store

_KEPT = 16  # files for MPI libraries


class Form(NamedTuple):
    """A form of exported tables. use: the lines for a shell that switch it on."""

    title: str
    file: str
    mimetype: str = "text/plain"
    use: tuple[str, ...] = ()


FORMS = {
    "table": Form(
        "Switchpoint table",
        "switchpoint.table",
        use=("export SWITCHPOINT_TABLE=$PWD/switchpoint.table",),
    ),
    "header": Form("C header", "switchpoint_table.h"),
    "json": Form("JSON", "switchpoint.json", "application/json"),
    "openmpi": Form(
        "Open MPI rules",
        "rules.conf",
        use=(
            "export OMPI_MCA_coll_tuned_use_dynamic_rules=1",
            "export OMPI_MCA_coll_tuned_dynamic_rules_filename=$PWD/rules.conf",
        ),
    ),
    "mpich": Form(
        "MPICH selection",
        "selection.json",
        "application/json",
        use=("head -2 selection.json  # names the variables to set",),
    ),
    "intelmpi": Form(
        "Intel MPI settings",
        "settings.sh",
        use=("SWITCHPOINT_PROCS=8; . ./settings.sh  # for a job of 8 processes",),
    ),
}


def exported(store: Store, system: str, form: str) -> str:
    """Return the text that `switchpoint export` writes; `UnknownError` says why there is none."""
    compute = _for_library if form in FAMILIES else _text
    return compute(snapshot(store), system, form)


@lru_cache(maxsize=_KEPT)
def _for_library(now: Snapshot, system: str, form: str) -> str:
    """Return a form that asks the library for its algorithms; the result is cached."""
    return _text(now, system, form)


def _text(now: Snapshot, system: str, form: str) -> str:
    table = now.store.table(system)
    if table is None:
        raise UnknownError("This system has no table yet: run `switchpoint tune`.")
    try:
        return forms.export(table, form, last_fitted(now.store, system))
    except (forms.ExportError, VendorError) as error:
        raise UnknownError(str(error)) from error

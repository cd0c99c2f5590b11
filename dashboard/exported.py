"""A system's table in the forms of `switchpoint export`, byte for byte."""

from dashboard.query import UnknownError
from dashboard.rules import omission
from dashboard.snapshot import cached_table, kept
from tuner.export import forms
from tuner.export.choices import VendorError
from tuner.models.fitting import last_fitted
from tuner.selection.off import OffError
from tuner.store.store import Store

_KEPT = 16  # files for MPI libraries


def exported(store: Store, system: str, form: str) -> str:
    """Return the text that `switchpoint export` writes. Raise UnknownError if there is none."""
    compute = _for_library if forms.FORMS[form].is_of_mpi else _text
    return compute(store, system, form)


@kept(_KEPT)
def _for_library(store: Store, system: str, form: str) -> str:
    """Return the text of a form that queries the MPI library; the result is cached."""
    return _text(store, system, form)


def _text(store: Store, system: str, form: str) -> str:
    table = cached_table(store, system)
    if table is None:
        raise UnknownError("This system has no table yet: run `switchpoint tune`.")
    try:
        return forms.export(
            table, form, last_fitted(store, system), omission=omission(store, system)
        )
    except (forms.ExportError, OffError, VendorError) as error:
        raise UnknownError(str(error)) from error

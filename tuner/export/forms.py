"""The forms in which tables are exported, one module per form, and their writing to files."""

import os
from dataclasses import replace
from pathlib import Path

from tuner import atomic
from tuner.domain.tables import Table
from tuner.errors import SwitchpointError
from tuner.export import document, header, intelmpi, mpich, openmpi, table
from tuner.export.choices import NoneBestError, VendorError
from tuner.machine.systems import Place
from tuner.models.system import SystemModel
from tuner.selection import off
from tuner.selection.next_step import measuring_more, with_options, without_rules

FORMS = {
    "table": table.FORM,
    "header": header.FORM,
    "json": document.FORM,
    "openmpi": openmpi.FORM,
    "han": openmpi.HAN,
    "mpich": mpich.FORM,
    "ch4": mpich.CH4,
    "intelmpi": intelmpi.FORM,
}


class ExportError(SwitchpointError):
    """Error raised when a table cannot be written; the message says why and what to do."""


def export(
    of: Table,
    form: str,
    model: SystemModel | None = None,
    place: Place | None = None,
    omission: str = "",
) -> str:
    """Return a table as text in one of FORMS.

    Methods that are off are left out of forms whose readers ignore SWITCHPOINT_OFF. place: where it
    was measured, for commands in errors that are printed here. omission: what it lacks of its
    launches, by `tuning.omission`.

    Raises:
        ExportError: it has no rules, or all their methods are off.
        OffError: what SWITCHPOINT_OFF lists cannot be off.
        VendorError: it cannot serve the MPI library.
    """
    off.check()
    if not of.rules:
        step = without_rules(of, omission, place)
        raise ExportError(f"the table of {of.provenance.system} has no rules; {step}")
    if not FORMS[form].knows_off:
        of = replace(of, rules=[rule for rule in of.rules if not off.is_off_here(rule.method)])
    if not of.rules:
        raise ExportError(
            f"every rule of the table of {of.provenance.system} names a method that is off: "
            f"{off.VARIABLE}={os.environ[off.VARIABLE]}"
        )
    try:
        return FORMS[form].render(of, model)
    except NoneBestError as error:
        command = with_options(measuring_more(of, place=place)[-1], error.alone)
        raise VendorError(
            f"{error}; to compare only the library's algorithms: `{command}`"
        ) from error


def write(
    of: Table,
    form: str,
    path: Path,
    model: SystemModel | None = None,
    place: Place | None = None,
    omission: str = "",
) -> None:
    """Write a table to a file atomically. Raise what `export` raises."""
    text = export(of, form, model, place, omission)
    try:
        atomic.write(path, text)
    except OSError as error:
        raise ExportError(f"{path}: cannot be written: {error.strerror}") from error

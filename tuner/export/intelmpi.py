"""Intel MPI's settings, the environment variables I_MPI_ADJUST_*.

The library numbers its algorithms and names none: `vendor:environment=3` is its preset 3. A setting
gives presets to ranges of sizes, which it counts as we do. Conditions on process counts, which the
manual has too, are not used: 2021.18 was seen not to hold to them. So settings are for jobs of one
process count.
"""

from typing import Any

from tuner.domain.tables import Table
from tuner.export.choices import AlgorithmFrom, Choices, VendorError, choices_of
from tuner.export.form import Form
from tuner.export.mpi_library import version_for
from tuner.export.text import render
from tuner.models.system import SystemModel

SERIES = "2021."
"""Versions whose settings are known."""

SIZE_MOST = 2**31 - 1


def _settings(table: Table) -> dict[str, Any]:
    """Return the values of the settings' template. Raise VendorError, also without any setting."""
    version = version_for(table.provenance.mpi_library, "intelmpi")
    if not version.startswith(SERIES):
        raise VendorError(f"Intel MPI {version} is not known to read settings as 2021 does")
    choices = choices_of(table)
    jobs: dict[int, dict[str, str]] = {}
    for operation, by_procs in sorted(choices.intervals.items()):
        for procs, intervals in by_procs.items():
            if value := _setting(choices, operation, procs, intervals):
                jobs.setdefault(procs, {})[f"I_MPI_ADJUST_{operation.upper()}"] = value
    if not jobs:
        raise VendorError(
            "Intel MPI's settings cannot say anything of this table: " + "; ".join(choices.left_out)
        )
    return {"version": version, "jobs": dict(sorted(jobs.items())), "left_out": choices.left_out}


def _setting(choices: Choices, operation: str, procs: int, intervals: list[AlgorithmFrom]) -> str:
    """Return `preset:first-last;…` over all sizes; "" when no setting can express the intervals."""
    names = [interval.algorithm for interval in intervals]
    wrong = next((name for name in names if name is not None and not name.isdigit()), None)
    if wrong is not None:
        choices.leave_out(operation, procs, f"{wrong} is no number of a preset")
        return ""
    if None in names:
        choices.leave_out(
            operation,
            procs,
            "a setting for some sizes changes the others too: none can be left to the library",
        )
        return ""
    lows = [interval.low for interval in intervals]
    lasts = [low - 1 for low in lows[1:]] + [SIZE_MOST]
    return ";".join(
        f"{name}:{low}-{min(last, SIZE_MOST)}"
        for name, low, last in zip(names, lows, lasts, strict=True)
        if low <= SIZE_MOST
    )


def _text(table: Table, model: SystemModel | None) -> str:
    return render("intelmpi.sh.j2", table, **_settings(table))


FORM = Form(
    "Intel MPI settings",
    "settings.sh",
    _text,
    use=("SWITCHPOINT_PROCS=8; . ./settings.sh  # for a job of 8 processes",),
    is_of_mpi=True,
)

"""Intel MPI's settings, the environment variables I_MPI_ADJUST_*.

The library numbers its algorithms without names: `vendor:environment=3` is its preset 3. A setting
assigns presets to ranges of sizes, defined as ours. The manual also has conditions on process
counts; they are not used, because 2021.18 was seen to ignore them. So each setting is for jobs of
one process count.
"""

from typing import Any

from tuner.domain.operations import BY_ENVIRONMENT, COLLECTIVES
from tuner.domain.tables import Rule, Table
from tuner.export.choices import SIZE_MOST, Choices, Counts, VendorError, choices_of
from tuner.export.form import Form
from tuner.export.mpi_library import version_for
from tuner.export.text import render
from tuner.units import is_digits

SERIES = "2021."
"""Versions whose settings are supported."""


CAUTION = (
    "the environment chose these presets, and no launch proved that the library obeys it: "
    "`switchpoint check table THIS_FILE` does"
)


def _is_by_environment(rule: Rule) -> bool:
    return rule.operation in COLLECTIVES and rule.method.startswith(BY_ENVIRONMENT)


def _settings(table: Table) -> dict[str, Any]:
    """Return the values of the settings' template. Raise VendorError, also if none is left."""
    version = version_for(table.provenance.mpi_library, "intelmpi")
    if not version.startswith(SERIES):
        raise VendorError(f"Intel MPI {version} is not supported: only settings of 2021 are known")
    choices = choices_of(table, by_environment=True)
    jobs: dict[int, dict[str, str]] = {}
    for operation, of_operation in sorted(choices.counts.items()):
        for counts in of_operation:
            if value := _setting(choices, operation, counts):
                for procs in counts.whole:
                    jobs.setdefault(procs, {})[f"I_MPI_ADJUST_{operation.upper()}"] = value
    if not jobs:
        raise VendorError(
            "Intel MPI's settings cannot express any rule of this table: "
            + "; ".join(choices.left_out)
        )
    return {
        "version": version,
        "jobs": dict(sorted(jobs.items())),
        "names": sorted({name for settings in jobs.values() for name in settings}),
        "exported": choices.exported,
        "cautions": [CAUTION] if any(_is_by_environment(rule) for rule in table.rules) else [],
        "left_out": choices.left_out,
    }


def _setting(choices: Choices, operation: str, counts: Counts) -> str:
    """Return `preset:first-last;…` up to SIZE_MOST, or the one preset for all sizes.

    "" if no setting can express the intervals.
    """
    names = [interval.algorithm for interval in counts.intervals]
    wrong = next((name for name in names if name is not None and not is_digits(name)), None)
    if wrong is not None:
        choices.leave_out(operation, counts, f"{wrong} is not the number of a preset")
        return ""
    if None in names:
        choices.leave_out(
            operation,
            counts,
            "a setting for some sizes changes the others too, so none can be left to the library",
        )
        return ""
    intervals = choices.fitting(operation, counts)
    if len(intervals) > 1:
        intervals[-1] = intervals[-1]._replace(high=SIZE_MOST)
    for interval in intervals:
        choices.keep(operation, counts, interval)
    if len(intervals) == 1:
        return f"{intervals[0].algorithm}"
    return ";".join(f"{its.algorithm}:{its.low}-{its.high}" for its in intervals)


FORM = Form(
    "Intel MPI settings",
    "settings.sh",
    lambda table, model: render("intelmpi.sh.j2", table, **_settings(table)),
    use=("SWITCHPOINT_PROCS=8; . ./settings.sh  # for a job of 8 processes",),
    is_of_mpi=True,
)

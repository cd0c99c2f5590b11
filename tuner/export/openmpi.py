"""Open MPI's rules files: the algorithms of `tuned`, and where version 5 leaves calls to them.

On several nodes the component `han` of version 5 comes before `tuned`, which has the algorithms. So
a second file names the component for each size that the first has an algorithm for.
"""

from typing import Any

from tuner.domain.operations import OF_TWO, REDUCTIONS
from tuner.domain.tables import Table
from tuner.export.choices import Choices, Counts, VendorError, choices_of
from tuner.export.form import Form
from tuner.export.mpi_library import Algorithm, installation, openmpi_algorithms, version_for
from tuner.export.text import render

SERIES = ("4.", "5.")
"""Versions that read this format; both number the operations in the same way."""

NUMBERS = {
    "allgather": 0,
    "allgatherv": 1,
    "allreduce": 2,
    "alltoall": 3,
    "alltoallv": 4,
    "barrier": 6,
    "bcast": 7,
    "gather": 9,
    "reduce": 11,
    "reduce_scatter_block": 13,
    "scatter": 15,
}

BY_HAN = ("allgather", "allreduce", "barrier", "bcast", "gather", "reduce", "scatter")

TOTALS = ("allgather", "alltoall", "reduce_scatter_block")
"""Operations whose size in Open MPI is that of all ranks' blocks; ours is one block."""

COMPONENTS = ("adapt", "sm", "xhc", "acoll", "ucc")
"""Components that are algorithms as a whole; docs/how-to/tune-the-mpi-library.md says why no file
names one."""

SIZED_BY_SEND = ("allgather", "allgatherv", "alltoall")
"""Operations whose size is that of the send arguments: 0 in calls in place that give none."""

MOST_BYTES = 2**63 - 1
"""The largest size that a file may hold."""

CAUTION = (
    "Open MPI does not check whether an algorithm keeps the order of operands: {} may be wrong "
    "with operations that do not commute"
)


def _rules_file(table: Table) -> dict[str, Any]:
    """Return the values of a rules file's template. Raise VendorError."""
    version = version_for(table.provenance.mpi_library, "openmpi")
    if not version.startswith(SERIES):
        raise VendorError(
            f"Open MPI {version} is not supported: only rules files of 4 and 5 are known"
        )
    choices = choices_of(table)
    algorithms = openmpi_algorithms(installation("openmpi", version))
    operations = [
        {
            "name": operation,
            "number": NUMBERS[operation],
            "sizes": _sizes(choices, operation, counts, algorithms.get(operation, {})),
        }
        for operation, counts in sorted(choices.counts.items(), key=lambda i: NUMBERS[i[0]])
    ]
    reductions = [operation for operation in REDUCTIONS if operation in choices.counts]
    return {
        "version": version,
        "has_han": version.startswith("5."),
        "operations": operations,
        "cautions": [CAUTION.format(" and ".join(reductions))] if reductions else [],
        "exported": choices.exported,
        "left_out": choices.left_out,
    }


def _sizes(
    choices: Choices, operation: str, counts: list[Counts], algorithms: dict[str, Algorithm]
) -> list[dict[str, Any]]:
    """Return entries for all process counts with choices, between those for the library's choice.

    An entry is valid up to the next one; the first is also valid for fewer processes.
    """
    sizes: list[dict[str, Any]] = [{"procs": 1, "messages": _OWN}]
    for each in counts:
        for first, last in each.spans(operation in TOTALS):
            if sizes[-1]["procs"] == first:
                sizes.pop()
            messages = _messages(choices, operation, each, first, algorithms)
            sizes.append({"procs": first, "messages": messages})
            sizes.append({"procs": last + 1, "messages": _OWN})
    return sizes


_OWN: list[dict[str, Any]] = [
    {"low": 0, "bytes": 0, "number": 0, "fan_out": 0, "name": "the library's choice"}
]


def _messages(
    choices: Choices, operation: str, counts: Counts, procs: int, algorithms: dict[str, Algorithm]
) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    scale = procs if operation in TOTALS else 1
    for interval in choices.fitting(operation, counts, scale, MOST_BYTES):
        name = interval.algorithm
        if name is not None and name not in algorithms:
            reason = f"the library has no algorithm {name}"
            if name in COMPONENTS:
                reason = f"{name} is a component, which is used for all sizes or for none"
            choices.leave_out(operation, counts, reason)
            name = None
        elif name == OF_TWO and (counts.procs, counts.most) != (2, 2):
            choices.leave_out(operation, counts, f"{name} is for two processes")
            name = None
        chosen = {} if name is None else algorithms[name]._asdict() | {"name": name}
        low = interval.low
        if operation in SIZED_BY_SEND and low == 0 and chosen and len(counts.intervals) > 1:
            messages.append(_OWN[0])
            low = 1
        messages.append(_OWN[0] | chosen | {"low": low * scale, "bytes": low})
        choices.keep(operation, counts, interval._replace(algorithm=name))
    return messages


def _han_text(table: Table) -> str:
    values = _rules_file(table)
    operations = [each for each in values["operations"] if each["name"] in BY_HAN]
    if not (values["has_han"] and operations):
        raise VendorError(
            f"Open MPI {values['version']} needs no rules of its component han for this table: "
            f"only {', '.join(BY_HAN)} of version 5 do"
        )
    return render("han.rules.j2", table, **values | {"operations": operations})


FORM = Form(
    "Open MPI rules",
    "rules.conf",
    lambda table, model: render("openmpi.rules.j2", table, **_rules_file(table)),
    use=(
        "export OMPI_MCA_coll_tuned_use_dynamic_rules=1",
        "export OMPI_MCA_coll_tuned_dynamic_rules_filename=$PWD/rules.conf",
    ),
    is_of_mpi=True,
)

HAN = Form(
    "Open MPI 5 rules of han",
    "han.conf",
    lambda table, model: _han_text(table),
    use=(
        f"switchpoint export --format openmpi --output {FORM.file}",
        *FORM.use,
        "export OMPI_MCA_coll_han_use_dynamic_file_rules=1",
        "export OMPI_MCA_coll_han_dynamic_rules_filename=$PWD/han.conf",
    ),
    is_of_mpi=True,
)

"""MPICH's selection files, which two variables name.

Each replaces a whole built-in selection, so it is that selection with added branches for the tuned
process counts. Each branch falls back to the library's own choice where the tuned algorithm was not
measured, because the library does not check whether a selected algorithm is applicable. So inferred
rules have none that it keeps for powers of two processes, except for these, and no rule has one for
calls in place.

One file has algorithms. The device ch4 composes some operations of others on part of the ranks, or
runs other code on a node; the other file makes it run the algorithms of the first in place of that.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from tuner.domain.operations import REDUCTIONS
from tuner.domain.tables import Table
from tuner.export.choices import Choices, Counts, VendorError, choices_of
from tuner.export.form import Form
from tuner.export.mpi_library import installation, mpich_selections, version_for
from tuner.export.text import render
from tuner.machine.mpi import Mpi

TOTALS = ("allgather", "allgatherv", "reduce_scatter_block")
"""Operations whose size in MPICH is that of all ranks' blocks; the others have our sizes."""

PARAMETRIC = ("tree", "recexch", "k_", "recursive_multiplying", "ccl")
"""Parts of the names of algorithms whose parameters the file would have to state."""

PARTS = ("barrier", "bcast", "reduce", "allreduce")
"""Operations of which others are composed, on communicators of a node or of one rank of each."""

_PARTIAL = ("comm_hierarchy=node", "comm_hierarchy=node_roots")
PAGE_BYTES = 4096  # the library reads up to a NUL, which follows the text only in a partial page

Tree = dict[str, Any]


class _Range(NamedTuple):
    """The library's names of algorithms from numbers of bytes on, for a range of process counts.

    None leaves the choice to the library.
    """

    first: int
    last: int
    sizes: list[tuple[int, str | None]]


class _Names(NamedTuple):
    """The library's names of algorithms, and those that it itself selects in some cases alone."""

    every: set[str]
    of_powers_of_two: set[str]
    in_place: set[str]


def _values(table: Table) -> dict[str, Any]:
    """Return the values of the template of both files. Raise VendorError."""
    version = version_for(table.provenance.mpi_library, "mpich")
    choices = choices_of(table)
    mpi = installation("mpich", version)
    algorithms, compositions, every = mpich_selections(mpi)
    conditions = ("comm_size=pow2", "is_sendbuf_inplace=yes")
    names = _Names(every, *(_only_below(each, algorithms) for each in conditions))
    composed = []
    for operation, counts in choices.counts.items():
        if _own(algorithms, operation) is None:
            raise VendorError(f"{mpi}: its selection has no {operation} for intracommunicators")
        obeyed = [each for each in counts if _is_distinct(choices, mpi, operation, each)]
        ranges = [
            each
            for each in _ranges(choices, operation, obeyed, names)
            if any(name for _, name in each.sizes)
        ]
        _change(algorithms, operation, ranges)
        if ranges and (whole := _uncomposed(compositions, operation)):
            composed.append(operation)
            _change(compositions, operation, ranges, whole)
    return {
        "version": version,
        "algorithms": algorithms,
        "compositions": compositions,
        "composed": composed,
        "exported": choices.exported,
        "left_out": choices.left_out,
    }


def _own(selection: Tree, operation: str) -> Tree | None:
    """Return what the library selects of an operation on intracommunicators."""
    branch: Tree = selection.get(f"collective={operation}", {})
    return branch.get("comm_type=intra")


def _uncomposed(compositions: Tree, operation: str) -> str | None:
    """Return the composition that runs the selected algorithm, None if there is no other.

    It is the one of communicators without a hierarchy of nodes, for which the last branches are.
    """
    leaves = [*_leaves(_own(compositions, operation) or {})]
    return leaves[-1] if len(set(leaves)) > 1 else None


def _leaves(tree: Tree) -> Iterator[str]:
    for key, below in tree.items():
        yield from _leaves(below) if below else [key]


def _padded(text: str) -> str:
    """Return a text that does not fill its last page: the library would read beyond it."""
    return text if len(text.encode()) % PAGE_BYTES else text + "\n"


def _only_below(condition: str, selection: Tree) -> set[str]:
    """Return the algorithms that the library itself selects under a condition alone."""
    found: dict[bool, set[str]] = {True: set(), False: set()}

    def visit(tree: Tree, within: bool) -> None:
        for key, below in tree.items():
            if key.startswith("algorithm="):
                found[within].add(key.partition("=")[2])
            visit(below, within or key == condition)

    visit(selection, False)
    return found[True] - found[False]


def _is_distinct(choices: Choices, mpi: Mpi, operation: str, counts: Counts) -> bool:
    """Return whether the library can tell the communicator from one of composed operations."""
    nodes, ppn = counts.layout
    if mpi.major < 5 or operation not in PARTS or nodes == 1 or ppn > 1:
        return True
    reason = "with one process on each node it looks like a part of a composed operation"
    choices.leave_out(operation, counts, reason)
    return False


def _ranges(
    choices: Choices, operation: str, counts: list[Counts], names: _Names
) -> Iterator[_Range]:
    for each in counts:
        for first, last in each.spans(operation in TOTALS):
            scale = first if operation in TOTALS else 1
            sizes = []
            for interval in choices.fitting(operation, each, scale):
                name = _known(choices, operation, each, interval.algorithm, names)
                algorithm = name and interval.algorithm
                choices.keep(operation, each, interval._replace(algorithm=algorithm))
                sizes.append((interval.low * scale, name))
            yield _Range(first, last, sizes)


def _known(
    choices: Choices, operation: str, counts: Counts, name: str | None, names: _Names
) -> str | None:
    """Return the library's name of an algorithm; None leaves the choice to the library."""
    if name is None:
        return None
    if any(part in name for part in PARAMETRIC):
        choices.leave_out(operation, counts, f"{name} has parameters, which are not exported")
        return None
    kind = operation.capitalize()
    known = [f"MPIR_{kind}_{scope}_{name}" for scope in ("intra", "allcomm")]
    algorithm = next((candidate for candidate in known if candidate in names.every), None)
    if algorithm is None:
        choices.leave_out(operation, counts, f"the library has no algorithm {name}")
    elif algorithm in names.in_place:
        choices.leave_out(operation, counts, f"the library has {name} for calls in place only")
        return None
    elif algorithm in names.of_powers_of_two and counts.inferred and not counts.is_power_of_two:
        return None
    return algorithm


def _change(
    selection: Tree, operation: str, ranges: list[_Range], composition: str | None = None
) -> None:
    """Add branches to a selection: with the algorithms, or one composition for all of them."""
    branch = selection[f"collective={operation}"]
    own: Tree = branch["comm_type=intra"]
    tree: Tree = {}
    for first, last, sizes in ranges:
        leaves = [(low, name and (composition or f"algorithm={name}")) for low, name in sizes]
        tree.setdefault(f"comm_size<={first - 1}", own)
        tuned = _by_size(operation, leaves, own)
        if operation in PARTS and composition is None:
            tuned = dict.fromkeys(_PARTIAL, own) | {"comm_hierarchy=any": tuned}
        tree[f"comm_size<={last}"] = tuned
    branch["comm_type=intra"] = tree | {"comm_size=any": own}


def _by_size(operation: str, leaves: list[tuple[int, str | None]], own: Tree) -> Tree:
    """Return the choices by size, below the library's own conditions on communicators.

    It reads these another way if they are below those on sizes: there 8 is less than 8.
    """
    if all(key.startswith("comm_") for key in own):
        return {key: _by_size(operation, leaves, below) for key, below in own.items()}
    measure = "total_msg_size" if operation in TOTALS else "avg_msg_size"
    keys = [*(f"{measure}<{low}" for low, _ in leaves[1:]), f"{measure}=any"]
    tuned = {
        key: own if leaf is None else {leaf: {}}
        for key, (_, leaf) in zip(keys, leaves, strict=True)
    }
    return _conditional(operation, tuned if len(tuned) > 1 else tuned[keys[0]], own)


def _conditional(operation: str, tuned: Tree, own: Tree) -> Tree:
    """Return the tuned choice for calls like the measured ones, the library's own for others."""
    if operation in ("alltoall", "alltoallv"):
        return {"is_sendbuf_inplace=yes": own, "is_sendbuf_inplace=no": tuned}
    if operation not in REDUCTIONS:
        return tuned
    if operation != "reduce_scatter_block":  # the library can check neither for it
        # Algorithms that scatter the vector need an element for every process.
        whole = {"count<pow2": own, "count=any": tuned}
        tuned = {"is_op_built_in=yes": whole, "is_op_built_in=no": own}
    return {"is_commutative=yes": tuned, "is_commutative=no": own}


def _text_of(table: Table, which: str) -> str:
    values = _values(table)
    composed = values["composed"]
    if which == "compositions" and not composed:
        raise VendorError("MPICH composes no operation that the table has an algorithm for")
    if which == "compositions":
        exported = [rule for rule in values["exported"] if rule.operation in composed]
        values |= {"composed": [], "exported": exported, "left_out": []}
    document = json.dumps(values[which], indent=1)
    return _padded(render("mpich.json.j2", table, **values, which=which, document=document))


FORM = Form(
    "MPICH selection",
    "selection.json",
    lambda table, model: _text_of(table, "algorithms"),
    use=("export MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=$PWD/selection.json",),
    is_of_mpi=True,
)

CH4 = Form(
    "MPICH selection of ch4",
    "ch4.json",
    lambda table, model: _text_of(table, "compositions"),
    use=(
        f"switchpoint export --format mpich --output {FORM.file}",
        *FORM.use,
        "export MPIR_CVAR_CH4_COLL_SELECTION_TUNING_JSON_FILE=$PWD/ch4.json",
    ),
    is_of_mpi=True,
)

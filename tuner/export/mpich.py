"""MPICH's selection file, which MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE names.

It replaces the whole built-in selection, so it is that selection with added branches for the tuned
process counts. Each branch falls back to the library's own choice where the tuned algorithm was not
measured, because the library does not check whether a selected algorithm is applicable. So inferred
rules have none that it keeps for powers of two processes, except for these.

On a node the library may switch to other code after some calls; the environment prevents that.
"""

import json
from typing import Any

from tuner.domain.tables import Table
from tuner.export.choices import Choices, Counts, VendorError, choices_of
from tuner.export.form import Form
from tuner.export.mpi_library import installation, mpich_selection, version_for
from tuner.export.text import render
from tuner.models.system import SystemModel

TOTALS = ("allgather", "allgatherv", "reduce_scatter_block")
"""Operations whose size in MPICH is that of all ranks' blocks; the others have our sizes."""

REDUCTIONS = ("reduce", "allreduce", "reduce_scatter_block")
PARAMETRIC = ("tree", "recexch", "k_", "recursive_multiplying", "ccl")
"""Parts of the names of algorithms whose parameters the file would have to state."""

PAGE_BYTES = 4096  # the library reads up to a NUL, which follows the text only in a partial page

Tree = dict[str, Any]


def _selection_file(table: Table) -> dict[str, Any]:
    """Return the values of a selection file's template. Raise VendorError."""
    version = version_for(table.provenance.mpi_library, "mpich")
    choices = choices_of(table)
    mpi = installation("mpich", version)
    selection, names = mpich_selection(mpi)
    special = _of_powers_of_two(selection)
    for operation, counts in choices.counts.items():
        branch = selection.get(f"collective={operation}", {})
        own = branch.get("comm_type=intra")
        if own is None:
            raise VendorError(f"{mpi}: its selection has no {operation} for intracommunicators")
        branch["comm_type=intra"] = _by_procs(choices, operation, counts, own, names, special)
    device = {f"MPIR_CVAR_{name.upper()}_DEVICE_COLLECTIVE": "0" for name in choices.counts}
    return {
        "version": version,
        "environment": {"MPIR_CVAR_DEVICE_COLLECTIVES": "percoll"} | device,
        "document": json.dumps(selection, indent=1),
        "exported": choices.exported,
        "left_out": choices.left_out,
    }


def _padded(text: str) -> str:
    """Return a text that does not fill its last page: the library would read beyond it."""
    return text if len(text.encode()) % PAGE_BYTES else text + "\n"


def _of_powers_of_two(selection: Tree) -> set[str]:
    """Return the algorithms that the library itself selects for powers of two processes alone."""
    found: dict[bool, set[str]] = {True: set(), False: set()}

    def visit(tree: Tree, within: bool) -> None:
        for key, below in tree.items():
            if key.startswith("algorithm="):
                found[within].add(key.partition("=")[2])
            visit(below, within or key == "comm_size=pow2")

    visit(selection, False)
    return found[True] - found[False]


def _by_procs(
    choices: Choices,
    operation: str,
    counts: list[Counts],
    own: Tree,
    names: set[str],
    special: set[str],
) -> Tree:
    tree: Tree = {}
    for each in counts:
        usable = names if each.procs.bit_count() == 1 or not each.inferred else names - special
        for first, last in each.apart(operation in TOTALS):
            tree.setdefault(f"comm_size<={first - 1}", own)
            sizes = _by_size(choices, operation, each, first, own, usable)
            tree[f"comm_size<={last}"] = _guarded(operation, sizes, own)
    tree["comm_size=any"] = own
    return tree


def _by_size(
    choices: Choices, operation: str, counts: Counts, procs: int, own: Tree, names: set[str]
) -> Tree:
    scale, measure = 1, "avg_msg_size"
    if operation in TOTALS:
        scale, measure = procs, "total_msg_size"
    intervals = choices.fitting(operation, counts, scale)
    leaves = []
    for interval in intervals:
        name = _known(choices, operation, counts, interval.algorithm, names)
        choices.keep(operation, counts, interval._replace(algorithm=name and interval.algorithm))
        leaves.append({f"algorithm={name}": {}} if name else own)
    if len(leaves) == 1:
        return leaves[0]
    ends = [f"{measure}<{interval.low * scale}" for interval in intervals[1:]]
    return dict(zip([*ends, f"{measure}=any"], leaves, strict=True))


def _known(
    choices: Choices, operation: str, counts: Counts, name: str | None, names: set[str]
) -> str | None:
    """Return the library's name of an algorithm; None leaves the choice to the library."""
    if name is None:
        return None
    if any(part in name for part in PARAMETRIC):
        choices.leave_out(operation, counts, f"{name} has parameters, which are not exported")
        return None
    kind = operation.capitalize()
    known = [f"MPIR_{kind}_{scope}_{name}" for scope in ("intra", "allcomm")]
    algorithm = next((candidate for candidate in known if candidate in names), None)
    if algorithm is None:
        choices.leave_out(operation, counts, f"the library has no algorithm {name}")
    return algorithm


def _guarded(operation: str, tuned: Tree, own: Tree) -> Tree:
    """Return the tuned choice for calls like the measured ones, the library's own for others."""
    if operation == "alltoall":
        return {"is_sendbuf_inplace=yes": own, "is_sendbuf_inplace=no": tuned}
    if operation not in REDUCTIONS:
        return tuned
    if operation != "reduce_scatter_block":  # the library can check neither for it
        # Algorithms that scatter the vector need an element for every process.
        whole = {"count<pow2": own, "count=any": tuned}
        tuned = {"is_op_built_in=yes": whole, "is_op_built_in=no": own}
    return {"is_commutative=yes": tuned, "is_commutative=no": own}


def _text(table: Table, model: SystemModel | None) -> str:
    return _padded(render("mpich.json.j2", table, **_selection_file(table)))


FORM = Form(
    "MPICH selection",
    "selection.json",
    _text,
    "application/json",
    use=("head -2 selection.json  # names the variables to set",),
    is_of_mpi=True,
)

"""The common parts of a table's text forms: its provenance, notes, and evidence in words."""

from typing import Any

import templates
from tuner.domain.operations import COLLECTIVES, FOREIGN
from tuner.domain.tables import Point, Provenance, Rule, Table
from tuner.selection import soaks, trust
from tuner.selection.evidence import SOME_FILLED, certainty, have_filled, verdict
from tuner.selection.next_step import summary
from tuner.units import counted


def render(template: str, table: Table, **values: Any) -> str:
    """Return the text of a template, which also gets the table's provenance and notes."""
    return templates.render(
        template,
        provenance=_provenance(table.provenance),
        notes=[
            *trust.notes(table.provenance),
            *_of_soaks(table),
            *filter(None, [certainty(rule.evidence for rule in table.rules)]),
            summary(table),
        ],
        **values,
    )


def evidence(point: Point) -> str:
    """Return the evidence for a point in words, with its place."""
    case = point.case
    launches = counted(point.launches, "launch", "launches")
    where = f"at {case.bytes} B, {launches} of {case.pattern}"
    if case.operation not in COLLECTIVES:
        where += " and its like"  # all patterns of a degree class count
    if case.layout.oversubscribed:
        where += ", oversubscribed"
    return f"{point.status}: {verdict(point)}, {where}"


def lender_of(provenance: Provenance) -> str:
    """Return the system of a borrowed table, "" for one of its own system."""
    return provenance.system if provenance.borrowed_for else ""


def with_reasons(table: Table) -> list[tuple[Rule, str]]:
    """Return each rule with its evidence in words."""
    executions, lender = soaks.executions(table), lender_of(table.provenance)
    return [
        (rule, reason(rule, executions, lender, filled))
        for rule, filled in zip(table.rules, have_filled(table), strict=True)
    ]


def reason(
    rule: Rule,
    executions: dict[tuple[str, str, int, int], int],
    lender: str = "",
    filled: bool = False,
) -> str:
    """Return a rule's evidence in words; executions: in soaks (tuner/selection/soaks.py).

    A rule is marked as inferred, as borrowed from a lender, and where some sizes are filled.
    """
    said = evidence(rule.evidence)
    layout = rule.evidence.case.layout
    if rule.inferred:
        said = f"inferred from {layout.nodes} x {layout.ppn}, {said}"
    if lender:
        said = f"borrowed from {lender}, {said}"
    if filled:
        said += f"; {SOME_FILLED}"
    soaked = executions.get((rule.operation, rule.method, layout.nodes, layout.ppn))
    if soaked is not None:
        said += f"; soaked {soaked} times" if soaked else "; not soaked"
    return said


def _of_soaks(table: Table) -> list[str]:
    its = table.provenance
    return [borrowed_note(its)] if its.borrowed_for else soaks.notes(table)


def borrowed_note(provenance: Provenance) -> str:
    """Return for whom a table is borrowed, and whether its soaks carry over."""
    if provenance.soaks:
        soaked = "soaks carry over, as MPI library and version are the same"
    else:
        soaked = "soaks do not carry over: none was with this version of this MPI library"
    return f"all rules are borrowed for {provenance.borrowed_for}; {soaked}"


def _provenance(provenance: Provenance) -> dict[str, str]:
    """Return the provenance that the text forms show, in their order."""
    campaigns = provenance.campaigns
    named = " ".join(campaigns)
    if len(campaigns) > _NAMED_CAMPAIGNS:
        named = f"{campaigns[0]} to {campaigns[-1]} ({len(campaigns)})"
    shown = {
        "system": f"{provenance.name} {provenance.environment} ({provenance.system})",
        "mpi": provenance.mpi_library,
        "compiler": provenance.compiler,
        "cpu": _cpu(provenance),
        "campaign": named,
        "launches": provenance.launches,
        "commit": provenance.commit,
        "date": provenance.date,
        "switchpoint": provenance.version,
    }
    return {key: _or_unknown(value) for key, value in shown.items()}


def _or_unknown(value: Any) -> str:
    """Return a value as text, unless nothing of it can be printed: the library refuses that."""
    text = str(value)
    return text if any(c.isprintable() and not c.isspace() for c in text) else "unknown"


_NAMED_CAMPAIGNS = 8


def _cpu(provenance: Provenance) -> str:
    if provenance.name.startswith(FOREIGN):  # their number is not recorded
        return provenance.cpu_model
    return f"{_or_unknown(provenance.cpu_model)}, {provenance.cores} cores"

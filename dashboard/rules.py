"""A stored table for the pages: the rules that apply to a case, and each rule in words."""

import math
from typing import Any

import numpy as np
import pandas as pd

from dashboard.choice import systems_of
from dashboard.frames import described
from dashboard.snapshot import cached_table, kept
from tuner.domain.cases import DegreeClass
from tuner.domain.flat import columns, flat
from tuner.domain.tables import Rule
from tuner.machine.systems import node_cores
from tuner.selection import match, off, tuning
from tuner.selection.evidence import SOME_FILLED, have_filled, verdict
from tuner.selection.kriging import are_oversubscribed
from tuner.selection.next_step import without_rules
from tuner.store.store import Store
from tuner.units import degree_text, span_text

_INTERVALS = ("mmax", "mavg", "bytes")


@kept(32)
def of_table(store: Store, system: str) -> pd.DataFrame:
    """Return a system's rules, with speed-ups, and the verdict on each in words; cached."""
    table = cached_table(store, system)
    rows = []
    if table is not None:
        its = table.provenance
        crowded = are_oversubscribed(table, node_cores(its.name, its.cpu_model, its.cores))
        marks = zip(have_filled(table), crowded, strict=True)
        for rule, (filled, oversubscribed) in zip(table.rules, marks, strict=True):
            more = f"; {SOME_FILLED}" * filled
            said = {"inferred": rule.inferred, "verdict": verdict(rule.evidence, "×") + more}
            said |= {"is_oversubscribed": oversubscribed}  # not its evidence alone
            rows.append({"system": system} | flat(rule) | said)
    names = dict.fromkeys(["system", *columns(Rule), "inferred", "is_oversubscribed", "verdict"])
    return with_speedup(pd.DataFrame(rows, columns=list(names)).drop(columns="ratios"))


@kept(32)
def omission(store: Store, system: str) -> str:
    """Return what a system's table lacks of its launches; "" if nothing, or without a table."""
    table = cached_table(store, system)
    launches = int(described(systems_of(store), system)["launches"])
    return tuning.omission(store, table, launches) if table else ""


def omission_text(store: Store, system: str) -> str:
    """Return `omission` as a sentence that says what to run; "" if nothing is lacking."""
    its = omission(store, system)
    return f"This table {its}; run `switchpoint tune` to make it anew." if its else ""


def missing(store: Store, system: str) -> str:
    """Return what to run where a system's table has no rules, or there is none; "" for others."""
    table = cached_table(store, system)
    if table is None:
        return "Run `switchpoint tune`."
    if not table.rules:
        return f"The table has no rules; {without_rules(table, omission(store, system))}."
    return ""


def with_speedup(rules: pd.DataFrame) -> pd.DataFrame:
    """Return the rules with `speedup`, `speedup_low`, `speedup_high`: 1 / (time / default's time).

    Open ends of intervals become infinite.
    """
    ends = {f"{name}_low": -math.inf for name in _INTERVALS}
    ends |= {f"{name}_high": math.inf for name in _INTERVALS}
    ratios = rules[["ratio", "ratio_low", "ratio_high"]].astype(float)
    return rules.assign(
        **{name: rules[name].astype(float).fillna(end) for name, end in ends.items()},
        speedup=1 / ratios["ratio"],
        speedup_low=1 / ratios["ratio_high"],
        speedup_high=1 / ratios["ratio_low"],
    )


def selected_intervals(rules: pd.DataFrame, case: pd.Series) -> pd.DataFrame:
    """Return the rules that a table selects for a case: at each size, the first that matches.

    Rules for methods that are off at this site are skipped.

    rules: by `of_table`, in order of priority. case: operation, nodes, ppn, mmax, mavg.
    """
    rules = rules[rules["operation"] == case["operation"]]
    rules = rules[~rules["method"].map(off.is_off_here).astype(bool)]
    fields = (rules[name].tolist() for name in Rule._fields if name != "evidence")
    degree_class = DegreeClass(*(case[name] for name in DegreeClass._fields))
    steps = match.by_size(
        [Rule._make((*map(_finite, row), None)) for row in zip(*fields, strict=True)], degree_class
    )
    selected = rules.iloc[[step.rule for step in steps]].reset_index(drop=True)
    return selected.assign(
        bytes_low=np.array([step.low for step in steps], float),
        bytes_high=np.array([step.high for step in steps], float),
    )


def _finite(value: Any) -> Any:
    return None if value in (-math.inf, math.inf) else value


def size_range(rules: pd.DataFrame) -> tuple[float, float]:
    """Return the sizes at which a table changes its choice, with room around them, in bytes."""
    ends = [*rules["bytes_low"], *rules["bytes_high"]]
    finite = [end for end in ends if math.isfinite(end) and end > 0]
    return (min([64.0, *finite]) / 4, max([2.0**18, *finite]) * 4)


def case_text(rule: Any) -> str:
    """Return the case of a rule without its sizes: operation, layout, degree."""
    nodes, ppn = span_text(rule.nodes_low, rule.nodes_high), span_text(rule.ppn_low, rule.ppn_high)
    layout = f"{nodes} node{'s' if nodes != '1' else ''} × {ppn}"
    degree = degree_text((rule.mmax_low, rule.mmax_high), (rule.mavg_low, rule.mavg_high))
    marks = ["oversubscribed"] * bool(rule.is_oversubscribed) + ["inferred"] * bool(rule.inferred)
    return ", ".join(filter(None, [rule.operation, layout, *marks, degree]))

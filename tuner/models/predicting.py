"""Predictions for patterns by their specs, and against the cells of the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from tuner.domain.cases import COLD, STAGGERED
from tuner.domain.operations import RULED_OPERATIONS, by_memory
from tuner.errors import SwitchpointError
from tuner.inputs.matrices.gallery import write_matrix
from tuner.inputs.matrices.market import MatrixError, Pattern, read_pattern, stem
from tuner.inputs.matrices.ownership import RULES, Ownership
from tuner.inputs.matrices.partition import ownership, read_parts
from tuner.inputs.structure.halo import Halo, halo
from tuner.inputs.structure.methods import MethodError, method
from tuner.inputs.structure.patterns import PatternError
from tuner.inputs.structure.patterns import pattern as generated
from tuner.models import collectives, discovery, exchange, predict
from tuner.models.closed_forms import ClosedForm
from tuner.models.predict import Predictor
from tuner.models.system import SystemModel
from tuner.models.validation import Validation, share_close, validate

if TYPE_CHECKING:
    import pandas as pd

MOST_PROCS = 1 << 14
"""The most processes of a measured case that is predicted: raw files may name any number."""

MOST_ITEMS = 1 << 20
"""The most items of its messages."""

_CASE = ["operation", "pattern", "procs", "nodes", "ppn", "oversubscribed", "sync"]


@dataclass(frozen=True)
class PatternCase:
    """An operation on a pattern and a layout; the pattern of a collective is not used."""

    operation: str
    pattern: str
    procs: int
    ppn: int


@dataclass(frozen=True)
class CasePrediction:
    """A case of a campaign with its prediction, or the reason for none."""

    case: PatternCase
    validation: Validation | None
    reason: str = ""

    @property
    def why_none(self) -> str:
        """Return why nothing is predicted; "" if something is."""
        if self.validation is not None and self.validation.errors:
            return ""
        return self.reason or "none of its methods has a formula"


def share_close_of(outcomes: Sequence[CasePrediction]) -> float | None:
    """Return the share of close predictions of all cases together, None without any."""
    found = [outcome.validation for outcome in outcomes if outcome.validation]
    errors = [error for validation in found for error in validation.errors]
    return share_close(errors) if errors else None


def predictor(model: SystemModel, case: PatternCase, specs: list[str] | None = None) -> Predictor:
    """Return the predictor of the methods of a case, or of the named ones.

    Raise ModelError, PatternError, MatrixError, MethodError.
    """
    return _predictor(model, case, specs, _halo)


def _predictor(
    model: SystemModel,
    case: PatternCase,
    specs: list[str] | None,
    messages_of: Callable[[str, int], Halo],
) -> Predictor:
    if case.operation in collectives.FORMULAS:
        return predict.of_collective(model, case.operation, case.procs, case.ppn, specs)
    messages = messages_of(case.pattern, case.procs)
    of = predict.of_exchange if case.operation == "exchange" else predict.of_discovery
    return of(model, messages, case.ppn, specs)


def closed_forms(model: SystemModel, case: PatternCase) -> list[ClosedForm]:
    """Return the papers' closed forms of an exchange's methods; raises as `predictor` does."""
    return predict.closed_forms_of(model, _halo(case.pattern, case.procs), case.ppn)


def _matrix_of(spec: str) -> tuple[str, str] | None:
    """Return file and partition of `matrix:FILE,part=PARTITION`, None for other patterns.

    Raise PatternError.
    """
    family, _, rest = spec.partition(":")
    if family != "matrix":
        return None
    name, mark, by = rest.partition(",part=")
    if not name or (mark and not by) or ",part=" in by:
        raise PatternError(f"{spec}: write matrix:FILE or matrix:FILE,part=PARTITION")
    return name, by or "contiguous"


def _halo(spec: str, procs: int) -> Halo:
    matrix = _matrix_of(spec)
    if matrix is None:
        return generated(spec, procs)
    name, by = matrix
    rows = _rows(Path(name))
    return halo(rows, ownership(Path(name), rows, by, procs))


def _stored_halo(spec: str, procs: int) -> Halo:
    """Return the messages of a pattern that a raw file names, which may be anyone's.

    Its matrix is an example, whatever file has that name, and its partition one by rule or a file
    in the working directory: nothing else is read, and nothing is written.
    """
    matrix = _matrix_of(spec)
    if matrix is None:
        return generated(spec, procs, MOST_ITEMS)
    name, by = matrix
    rows = _example(name)
    if by in RULES:
        return halo(rows, RULES[by](rows.shape[0], procs))
    return halo(rows, Ownership(procs, read_parts(Path(Path(by).name), rows.shape[0], procs)))


def _rows(path: Path) -> Pattern:
    """Return the pattern of a file, or of the example of its name if there is no such file."""
    return read_pattern(path) if path.exists() else _example(str(path))


def _example(file: str) -> Pattern:
    """Return the pattern of a matrix that the checks can measure, of which campaigns keep the name.

    Raise MatrixError.
    """
    try:
        with TemporaryDirectory() as scratch:
            return read_pattern(write_matrix(stem(Path(file)), Path(scratch)))
    except ValueError as error:
        raise MatrixError(f"{file}: neither a file to read here nor an example of pyamg") from error


def outcomes(model: SystemModel, cells: pd.DataFrame) -> Iterator[CasePrediction]:
    """Yield the model's predictions for the cells of `Store.cells`, case by case.

    Operations without formulas, products, cold caches and ranks that arrived apart are left out.
    Nodes are assumed to have `ppn` ranks each, and the last one what is left.
    """
    for _, rows in cells.groupby(_CASE):
        fields = rows.iloc[0].to_dict()
        if fields["operation"] not in RULED_OPERATIONS or fields["sync"].endswith(
            (COLD, STAGGERED)
        ):
            continue
        case = PatternCase(*(fields[name] for name in ("operation", "pattern", "procs", "ppn")))
        if fields["oversubscribed"]:
            yield CasePrediction(case, None, "more ranks than cores, which the models do not cover")
            continue
        if case.procs > MOST_PROCS:
            yield CasePrediction(case, None, f"more than {MOST_PROCS} ranks")
            continue
        if fields["nodes"] != -(-case.procs // case.ppn):
            yield CasePrediction(case, None, "nodes that are not filled one after the other")
            continue
        keys = zip(rows["method"], rows["size_bytes"].tolist(), strict=True)
        measured = dict(zip(keys, rows["median_s"].tolist(), strict=True))
        specs = predictable(case, sorted(set(rows["method"])))
        try:
            its = _predictor(model, case, specs, _stored_halo)
            yield CasePrediction(case, validate(its, measured))
        except SwitchpointError as error:
            yield CasePrediction(case, None, str(error))


def predictable(case: PatternCase, specs: Sequence[str]) -> list[str]:
    """Return the methods that have a formula and can run on the case's layout."""
    return [spec for spec in specs if _is_predictable(case, spec)]


def _is_predictable(case: PatternCase, spec: str) -> bool:
    if case.operation in collectives.FORMULAS:
        return collectives.formula(case.operation, spec, case.procs, case.ppn) is not None
    try:
        known = (
            discovery.formula(spec, case.procs)
            if case.operation == "discovery"
            else method(exchange.sent_as(spec), case.procs)
        )
    except MethodError:
        return False
    return known is not None and _has_layout(case, spec)


def _has_layout(case: PatternCase, spec: str) -> bool:
    """Return whether there are the nodes that a method of an exchange or discovery is for."""
    if case.operation == "exchange":
        return exchange.has_layout(spec, case.procs, case.ppn)
    several = case.procs > case.ppn
    if spec == "shared":
        return not several
    if by_memory(spec):
        return several and case.ppn > 1
    return several or "find=" not in spec

"""Comparison of predictions with measurements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from tuner.models.parameter import NotIdentified
from tuner.models.predict import Predictor, SwitchPoint

CLOSE = 0.15
"""A prediction that is off by no more than this share of the measured time is close."""

_LEAST_METHODS = 3  # least number for an order to mean anything


@dataclass(frozen=True, slots=True)
class Error:
    """The error of one method at one size."""

    method: str
    size_bytes: int
    measured_s: float
    predicted_s: float

    @property
    def signed(self) -> float:
        """Return the excess of the prediction, as a share of the measured time."""
        return self.predicted_s / self.measured_s - 1


@dataclass(frozen=True)
class Validation:
    """Predictions of one pattern on one layout. Switch points are among the predicted methods."""

    errors: list[Error]
    not_predicted: dict[str, str] = field(default_factory=dict)  # reasons by method
    rank_correlation: float | None = None  # Spearman's, of methods, mean over sizes
    predicted_switches: list[SwitchPoint] = field(default_factory=list)
    measured_switches: list[SwitchPoint] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)  # by size, of following the prediction

    @property
    def close(self) -> float:
        """Return the share of predictions that are close."""
        return share_close(self.errors)


def share_close(errors: Sequence[Error]) -> float:
    """Return the share of predictions, of one at least, within CLOSE of the measured times."""
    return sum(abs(error.signed) <= CLOSE for error in errors) / len(errors)


def validate(predictor: Predictor, measured: Mapping[tuple[str, int], float]) -> Validation:
    """Compare predictions with measured seconds by method and size, for predicted methods."""
    sizes = sorted({size for _, size in measured})
    errors: list[Error] = []
    reasons: dict[str, str] = {}
    correlations: list[float] = []
    best: list[tuple[int, str, str]] = []
    losses: list[float] = []
    for size in sizes:
        of_size: list[Error] = []
        for method, predicted_s in predictor.times(size).items():
            if isinstance(predicted_s, NotIdentified):
                reasons[method] = predicted_s.reason
            elif (method, size) in measured:
                of_size.append(Error(method, size, measured[method, size], predicted_s))
        if not of_size:
            continue
        errors += of_size
        if len(of_size) >= _LEAST_METHODS:
            correlations += _spearman(of_size)
        predicted = min(of_size, key=lambda error: error.predicted_s)
        fastest = min(of_size, key=lambda error: error.measured_s)
        best.append((size, predicted.method, fastest.method))
        losses.append(predicted.measured_s / fastest.measured_s - 1)
    return Validation(
        errors=errors,
        not_predicted=reasons,
        rank_correlation=float(np.mean(correlations)) if correlations else None,
        predicted_switches=_switches([(size, predicted) for size, predicted, _ in best]),
        measured_switches=_switches([(size, fastest) for size, _, fastest in best]),
        losses=losses,
    )


def _spearman(errors: list[Error]) -> list[float]:
    """Return the rank correlation, where equals share the mean; nothing where all are equal."""
    times = np.array([(error.predicted_s, error.measured_s) for error in errors]).T
    over = np.sign(times[:, :, None] - times[:, None, :]).sum(axis=2)
    spread = np.sqrt((over**2).sum(axis=1).prod())
    return [float((over[0] * over[1]).sum() / spread)] if spread else []


def _switches(best: list[tuple[int, str]]) -> list[SwitchPoint]:
    """Return the switches at the geometric midpoints between sizes with different methods."""
    return [
        SwitchPoint(round((low * high) ** 0.5), before, after)
        for (low, before), (high, after) in pairwise(best)
        if before != after
    ]

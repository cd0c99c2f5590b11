"""Methods against the default: the logarithm of time / time of the default, with its error.

Launches (tuner/selection/pairing.py) are weighted by their variance, and variances are pooled over
the cells of a system (docs/explanation/statistics.md). The module does no input or output.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Self, TypeVar

import numpy as np

from tuner import stats
from tuner.domain.cases import Case, Layout
from tuner.domain.operations import BY_ENVIRONMENT
from tuner.domain.records import Cell
from tuner.machine.simulation import machines
from tuner.selection import pooling
from tuner.selection.pairing import Key, MethodPair, pairs_of
from tuner.selection.trust import Allocation, Trust
from tuner.stats import Bools, Floats, Integers

POOLED_ROUNDS = 12
"""The rounds that the noise of all cells of a cluster counts for, beside a cell's own."""

APART_S = 3600
"""Seconds between two allocations that count as different ones."""

T = TypeVar("T")

UNKNOWN = math.log(1000)
"""The half of an interval from which on a logarithm is not known at all."""

_SURE = 0.9
"""The probability that the share of variance between series is no more than is assumed."""


class Contrast(NamedTuple):
    """The logarithm of a method's time over the default's, its standard error and its freedom.

    `noise` is the variance of a round, `between` that between launches. Without enough data the
    error is infinite. `allocations` is the number of those, an hour apart, whose means have the
    sign of the whole; 0 where no batch system allocates. Times of simulated machines are `exact`:
    the least and the largest of the logarithms bound their mean.
    """

    mean: float
    error: float
    freedom: float
    launches: int
    rounds: int
    noise: float = 0.0
    between: float = 0.0
    allocations: int = 0
    exact: tuple[float, float] | None = None

    def bounds(self, error_level: float) -> tuple[float, float]:
        """Return two bounds, each of which is wrong with the probability `error_level`."""
        if self.exact:
            return self.exact
        if self.freedom <= 0 or not math.isfinite(self.error):
            return -math.inf, math.inf
        reach = stats.student(self.freedom, 1 - error_level) * self.error
        if not reach < UNKNOWN:
            return -math.inf, math.inf
        return self.mean - reach, self.mean + reach


class _Cluster(NamedTuple):
    """A set of launches that share the variance between launches."""

    operation: str
    layout: Layout
    sync: str
    by_environment: bool

    @classmethod
    def of(cls, pair: MethodPair) -> Self:
        """Return the cluster of a method's launches."""
        case = pair.case
        return cls(
            case.operation, case.layout, case.sync, pair.key.method.startswith(BY_ENVIRONMENT)
        )


class _Levels(NamedTuple):
    """The key of each series, the method and cluster of each key, and the cluster of those."""

    keys: Integers
    methods: Integers
    clusters: Integers


class _Series(NamedTuple):
    """The conditions of launches beside the method: pattern, and nodes with their neighbours."""

    key: Key
    procs: int  # of an uneven layout, fewer than those of its place
    pattern: str
    allocation: str


def contrasts_of(cells: Sequence[Cell], trust: Trust) -> dict[Key, Contrast]:
    """Return all methods of one system against their defaults, where they share launches."""
    pairs = list(pairs_of(cells, trust))
    if not pairs:
        return {}
    if machines.is_simulated(cells[0].key.system):
        return dict(_exact(pairs, trust.dates))
    return dict(_estimated(pairs, trust.allocations))


def _exact(pairs: Iterable[MethodPair], dates: Mapping[int, str]) -> Iterator[tuple[Key, Contrast]]:
    """Yield the contrasts of times that every launch repeats: those of a case's last campaign."""
    of_key: dict[Key, dict[Case, MethodPair]] = defaultdict(dict)
    for pair in sorted(pairs, key=lambda its: max(dates.get(each, "") for each in its.launches)):
        of_key[pair.key][pair.case] = pair
    for key, its in of_key.items():
        logs = np.concatenate([pair.values for pair in its.values()])
        rounds = sum(int(pair.rounds.sum()) for pair in its.values())
        ends = float(logs.min()), float(logs.max())
        yield key, Contrast(float(logs.mean()), 0.0, math.inf, len(logs), rounds, exact=ends)


def _estimated(
    pairs: Sequence[MethodPair], allocations: Mapping[int, Allocation]
) -> Iterator[tuple[Key, Contrast]]:
    """Yield the contrasts, whose variances are pooled over all cells of the system.

    A series is the launches of one method with one pattern in one allocation; a contrast has one or
    more. Launches that are alone in their allocations are one series: all that differs between
    allocations is in their scatter.
    """
    keys, key_of_pair = _numbered([pair.key for pair in pairs])
    name_of = {launch: its.name for launch, its in allocations.items()}
    places = [
        _Series(pair.key, pair.case.layout.procs, pair.case.pattern, name_of.get(launch, ""))
        for pair in pairs
        for launch in pair.launches
    ]
    count = Counter(places)
    series, of_series = _numbered(
        [its if count[its] > 1 else its._replace(allocation="") for its in places]
    )
    of_key = {pair.key: _Cluster.of(pair) for pair in pairs}
    clusters, cluster_of_key = _numbered([of_key[key] for key in keys])
    numbers = {key: number for number, key in enumerate(keys)}
    key_of_series = np.array([numbers[its.key] for its in series], np.int64)
    values, rounds, spreads, weights = (
        np.concatenate([getattr(pair, name) for pair in pairs])
        for name in ("values", "rounds", "spreads", "weights")
    )
    key_of = key_of_series[of_series]
    noise = _noise(spreads, rounds, key_of, cluster_of_key)
    # The variance of a median, relative to that of one sample: π/2n for many.
    known = noise[key_of] / (1 + 2 / math.pi * (rounds - 1))
    between = _shared(values, known, of_series, weights, cluster_of_key[key_of])
    precisions = weights / (known + between)
    means, squares, precision = pooling.weighted(values, precisions, of_series)
    residual = pooling.sums(squares, key_of_series)
    launches = np.bincount(key_of)
    freedom = (launches - np.bincount(key_of_series)).astype(float)
    prior = pooling.prior_of(residual, freedom, cluster_of_key)
    variance = pooling.moderated(residual, freedom, prior)[key_of_series] / precision
    # The cells of a launch share its effects, so that only launches add to what is known of them.
    independent = {
        (cluster, launch)
        for pair, cluster in zip(pairs, cluster_of_key[key_of_pair].tolist(), strict=True)
        for launch in pair.launches
    }
    freedom = np.minimum(freedom + prior.freedom, len(independent) - len(clusters))
    methods, method_of_key = _numbered(
        [(cluster, key.method) for cluster, key in zip(cluster_of_key.tolist(), keys, strict=True)]
    )
    cluster_of_method = np.array([cluster for cluster, _ in methods], np.int64)
    levels = _Levels(key_of_series, method_of_key, cluster_of_method)
    several = np.bincount(of_series) > 1
    variance, freedom = _with_series(means, variance, several, freedom, levels)
    mean, _, weight = pooling.weighted(means, 1 / variance, key_of_series)
    total = pooling.sums(rounds, key_of).astype(int)
    shared = pooling.sums(between, key_of) / launches
    jobs, of_job = _numbered([(its.key, its.allocation) for its in places])
    of_jobs, _, _ = pooling.weighted(values, precisions, of_job)
    of_keys = dict(zip(keys, mean.tolist(), strict=True))
    confirmed = _confirmed(of_keys, dict(zip(jobs, of_jobs.tolist(), strict=True)), allocations)
    columns = (mean, 1 / np.sqrt(weight), freedom, launches, total, noise, shared, confirmed)
    for key, *row in zip(keys, *(column.tolist() for column in columns), strict=True):
        yield key, Contrast(*row)


def _confirmed(
    of_keys: Mapping[Key, float],
    of_jobs: Mapping[tuple[Key, str], float],
    allocations: Mapping[int, Allocation],
) -> Integers:
    """Return in how many allocations, apart in time, the mean of each key has its sign."""
    agreeing: dict[Key, set[str]] = defaultdict(set)
    for (key, name), job_mean in of_jobs.items():
        if name and job_mean * of_keys[key] > 0:
            agreeing[key].add(name)
    began = {its.name: its.began for its in sorted(allocations.values(), reverse=True)}
    return np.array([_apart_in_time([began[name] for name in agreeing[key]]) for key in of_keys])


def _apart_in_time(times: Collection[datetime]) -> int:
    """Return how many times there are, those within APART_S after one that counts left out."""
    counted: list[datetime] = []
    for time in sorted(times):
        if not counted or (time - counted[-1]).total_seconds() >= APART_S:
            counted.append(time)
    return len(counted)


def _numbered(names: Sequence[T]) -> tuple[list[T], Integers]:
    """Return the distinct names in their order, and the number of each one given."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return list(numbers), np.array([numbers[name] for name in names], np.int64)


def _noise(spreads: Floats, rounds: Integers, of_key: Integers, clusters: Integers) -> Floats:
    """Return the variance of a round of each key; where rounds are few, mostly its cluster's."""
    some = np.isfinite(spreads)
    counted = pooling.sums(rounds[some], of_key[some], len(clusters))
    squares = pooling.sums(rounds[some] * spreads[some] ** 2, of_key[some], len(clusters))
    own = np.divide(squares, counted, out=np.zeros_like(squares), where=counted > 0)
    usual = np.array(
        [
            np.median(own[here]) if (here := (clusters == cluster) & (counted > 0)).any() else 0.0
            for cluster in range(clusters.max() + 1)
        ]
    )
    pooled: Floats = (squares + POOLED_ROUNDS * usual[clusters]) / (counted + POOLED_ROUNDS)
    return pooled


def _with_series(
    means: Floats, variance: Floats, several: Bools, freedom: Floats, levels: _Levels
) -> tuple[Floats, Floats]:
    """Return the variance of each series' mean, and the freedom of each key's, among all series.

    `variance` and `freedom` are those among the series' own launches. What differs between series
    is estimated like what differs between launches: shared by a cluster, from which methods
    deviate. The freedom is Satterthwaite's (1946), with the largest share that it may have, as few
    series often look alike by chance.
    """
    from scipy import special

    key_of, methods = levels.keys, levels.methods
    method_of, count = methods[key_of], len(levels.clusters)
    # A single launch shows an effect of its own rather than of its pattern, or of its allocation.
    spare = pooling.sums(np.maximum(pooling.sums(several, key_of) - 1, 0), methods)
    counted = several | (spare[method_of] == 0)
    weights = counted.astype(float)
    whole = variance + _shared(means, variance, key_of, weights, levels.clusters[method_of])
    kept, groups = np.unique(key_of[counted], return_inverse=True)
    _, squares, _ = pooling.weighted(means[counted], 1 / whole[counted], groups)
    beyond_one = np.bincount(groups) - 1
    # The sizes of a method share its series, so that together they count as one.
    sizes = np.maximum(pooling.sums(beyond_one > 0, methods[kept], count), 1)
    squares = pooling.sums(squares, methods[kept], count) / sizes
    own = pooling.sums(beyond_one, methods[kept], count) / sizes
    prior = pooling.prior_of(squares, own, levels.clusters)
    # Methods share the default: with effects that correlate by a third, n count as 10n/(n + 9).
    others = pooling.sums(own > 0, levels.clusters)[levels.clusters] - 1
    borrowed = np.minimum(prior.freedom, own * 9 * others / (others + 10))
    some = own > 0
    known = np.where(some, own + borrowed, 1.0)
    scale = np.where(some, (squares + borrowed * prior.variance) / known, 1.0)
    usual = np.where(several & ~some[method_of], variance + pooling.SMALLEST**2, whole)
    most = some * scale * known / (2 * special.gammaincinv(known / 2, 1 - _SURE))
    upper = pooling.sums(np.maximum(variance, most[method_of] * usual), key_of)
    within = pooling.sums(variance, key_of)
    share = 1 - np.divide(within, upper, out=np.ones_like(upper), where=within < upper)
    with np.errstate(divide="ignore"):
        both = 1 / (share**2 / known[methods] + (1 - share) ** 2 / freedom)
    found = np.maximum(np.maximum(variance, scale[method_of] * usual), pooling.SMALLEST**2)
    return found, np.where(share > 0, both, freedom)


def _shared(
    values: Floats, variances: Floats, groups: Integers, weights: Floats, clusters: Integers
) -> Floats:
    """Return the variance of values within groups beside `variances`, one for each cluster."""
    found = np.zeros(len(values))
    for cluster in range(clusters.max() + 1):
        here = clusters == cluster
        found[here] = pooling.between(values[here], variances[here], groups[here], weights[here])
    return found

"""A symmetric pattern whose rows have given numbers of entries, and lie on a plane.

Rows are points of a periodic square, numbered along a curve that passes near ones soon after each
other (Morton's). Of the partners of a row with d entries, which would fill the _REACH * d rows
around it, those outside of the nearest v rows become fewer as v to the power of -tail: Rent's rule
for circuits. Dense rows lie together, and have partners at all distances.
"""

import numpy as np

from tuner.inputs.matrices.market import Indices
from tuner.stats import Floats

_REACH = 2
_REPEATED = 0.1  # share of repeated pairs from which on partners are not left to chance
_ROUNDS = 30
_WIDER = 1.25  # the growth of the distances from round to round
_CENTRES = 2  # places around which dense rows lie
_DENSE = 4.0  # times the mean of entries
_DENSE_TAIL = -0.5
_BITS = 26  # bits of a coordinate
_HALVES = (
    (16, 0x0000FFFF0000FFFF),
    (8, 0x00FF00FF00FF00FF),
    (4, 0x0F0F0F0F0F0F0F0F),
    (2, 0x3333333333333333),
    (1, 0x5555555555555555),
)


def lower_triangle(degrees: Indices, tail: float, rng: np.random.Generator) -> Indices:
    """Return rows and columns of the entries on and below the diagonal, which is full.

    `degrees` decrease. The few pairs without a place are dropped.
    """
    count = len(degrees)
    left = degrees - 1
    points = rng.random((count, 2))
    points = points[np.argsort(_along_curve(points))]
    place = _around_centres(count, rng)
    areas = np.empty(count)
    areas[place] = _REACH * degrees / count
    chosen = int(np.count_nonzero(left * float(left[0]) > _REPEATED * max(left.sum(), 1)))
    tails = np.where(left > _DENSE * left.mean(), _DENSE_TAIL, tail)
    pairs = [np.arange(count) * (count + 1)]  # codes: row x count + column
    pairs.append(_choose(left, tails[:chosen], place, points[place], areas[place], rng))
    rows = np.repeat(place[chosen:], left[chosen:])
    pairs.append(_meet(rows, points, areas, tail, pairs[1], rng))
    codes = np.concatenate(pairs)
    codes.sort()
    return np.array(np.divmod(codes, count))


def _code(a: Indices, b: Indices, count: int) -> Indices:
    """Return a number for the pair, below the diagonal."""
    return np.maximum(a, b) * count + np.minimum(a, b)


def _along_curve(points: Floats) -> Indices:
    """Return the places of points along the curve."""
    found = np.zeros(len(points), dtype=np.int64)
    for axis in (0, 1):
        bits = (points[:, axis] * (1 << _BITS)).astype(np.int64)
        for shift, mask in _HALVES:
            bits = (bits | bits << shift) & mask
        found |= bits << axis
    return found


def _around_centres(count: int, rng: np.random.Generator) -> Indices:
    """Return the place of each row: dense ones at the centres, the others behind them."""
    order = np.argsort(np.arange(count) % min(_CENTRES, count), kind="stable")
    place = np.empty(count, dtype=np.int64)
    place[order] = (np.arange(count) + rng.integers(count)) % count
    return place


def _choose(
    left: Indices,
    tails: Floats,
    place: Indices,
    points: Floats,
    areas: Floats,
    rng: np.random.Generator,
) -> Indices:
    """Give the first rows, one for each of `tails`, all their partners, from the rows after them.

    Rows are drawn in proportion to their missing partners, which `left` counts down, and by their
    distance.
    """
    found = [np.empty(0, dtype=np.int64)]
    for row, tail in enumerate(tails.tolist()):
        later = row + 1 + np.flatnonzero(left[row + 1 :])
        missing = int(left[row])
        if 0 < missing < len(later):
            away = np.abs(points[later] - points[row])
            # The maximum of each row of two takes many times as long as that of two columns.
            sides = 2 * np.maximum(*np.minimum(away, 1 - away).T)
            beyond = np.maximum(sides**2 / areas[row], 1)
            # The least of exponential times with these rates are a weighted draw.
            times = rng.standard_exponential(len(later)) * beyond ** (1 + tail) / left[later]
            later = later[np.argpartition(times, missing)[:missing]]
        else:
            later = later[:missing]
        left[later] -= 1
        left[row] = 0
        found.append(_code(place[row], place[later], len(left)))
    return np.concatenate(found)


def _meet(
    rows: Indices,
    points: Floats,
    areas: Floats,
    tail: float,
    taken: Indices,
    rng: np.random.Generator,
) -> Indices:
    """Pair rows: each goes to somewhere around its point, and meets the next one along the curve.

    `rows` has each row once for every partner that it misses.
    """
    count = len(points)
    found = np.empty(0, dtype=np.int64)
    taken = np.sort(taken)
    nearest = areas / 4  # two that meet have both gone up to half a side
    for _ in range(_ROUNDS):
        reached = nearest[rows] * rng.random(len(rows)) ** (-1 / tail)
        sides = np.sqrt(np.minimum(reached, 1))
        steps = sides[:, None] * (rng.random((len(rows), 2)) - 0.5)
        # The curve is moved each time, as some near points are far apart along it.
        order = np.argsort(_along_curve((points[rows] + steps + rng.random(2)) % 1))
        rows = rows[order[: len(order) // 2 * 2]]
        first, second = rows[::2], rows[1::2]
        codes = _code(first, second, count)
        good = first != second
        codes, at = np.unique(codes, return_index=True)
        fresh = good[at] & ~np.isin(codes, found, assume_unique=True)
        fresh &= ~np.isin(codes, taken, assume_unique=True)
        kept = np.zeros(len(first), dtype=np.bool_)
        kept[at[fresh]] = True
        found = np.concatenate((found, codes[fresh]))
        rows = np.concatenate((first[~kept], second[~kept]))
        if len(rows) < 2:
            break
        nearest *= _WIDER
    return found

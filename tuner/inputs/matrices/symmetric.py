"""A symmetric pattern whose rows have given numbers of entries."""

import numpy as np

from tuner.inputs.matrices.market import Indices

_CROWDED = 0.1  # share of repeated pairs from which on partners are not left to chance
_DRAWS = 4
_ROUNDS = 30
_WINDOW = 20  # mean degrees: the distance of the partners of ordinary rows from the diagonal


def lower_triangle(degrees: Indices, local: bool, rng: np.random.Generator) -> Indices:
    """Return rows and columns of the entries on and below the diagonal, which is full.

    `degrees` decrease. Rows with many entries are paired with rows all over the matrix, the others
    with neighbours when `local`, as in a mesh, or with any row, as in a network. The few pairs
    without a place are dropped.
    """
    count = len(degrees)
    left = degrees - 1
    place = rng.permutation(count)
    crowded = int(np.count_nonzero(left * float(left[0]) > _CROWDED * max(left.sum(), 1)))
    pairs = [np.arange(count) * (count + 1)]  # codes: row x count + column
    pairs.append(_meet_anybody(left, crowded, place, rng))
    rows = np.repeat(place[crowded:], left[crowded:])
    window = _WINDOW * float(degrees.mean()) if local else float(count)
    pairs.append(_meet_near(rows, count, window, pairs[1], rng))
    codes = np.concatenate(pairs)
    codes.sort()
    return np.array(np.divmod(codes, count))


def _code(a: Indices, b: Indices, count: int) -> Indices:
    """Return a number for the pair, below the diagonal."""
    return np.maximum(a, b) * count + np.minimum(a, b)


def _meet_anybody(left: Indices, crowded: int, place: Indices, rng: np.random.Generator) -> Indices:
    """Give the first `crowded` rows all their partners, drawn from the rows after them.

    Rows are drawn in proportion to their missing partners, which `left` counts down.
    """
    found = [np.empty(0, dtype=np.int64)]
    wanted = left.copy()
    ends = np.cumsum(wanted)
    for row in range(crowded):
        partners = _draw(left, wanted, ends, row, rng)
        left[partners] -= 1
        left[row] = 0
        found.append(_code(place[row], place[partners], len(left)))
    return np.concatenate(found)


def _draw(
    left: Indices, wanted: Indices, ends: Indices, row: int, rng: np.random.Generator
) -> Indices:
    """Return distinct partners for `row`, drawn from later rows by their own missing partners.

    Rows are drawn by their original number (which `ends` sums up), and kept by the share of it
    that is still missing: this avoids a look at all rows, if most draws are kept.
    """
    missing = int(left[row])
    chosen = np.empty(0, dtype=np.int64)
    for _ in range(_DRAWS):
        if missing == 0 or 4 * missing > min(len(left) - row, ends[-1] - ends[row]):
            break
        drawn = rng.integers(ends[row], ends[-1], 3 * (missing - len(chosen)) + 16)
        rows = np.searchsorted(ends, drawn, side="right")
        rows = rows[rng.random(len(rows)) * wanted[rows] < left[rows]]
        chosen = np.unique(np.concatenate((chosen, rows)))
        if len(chosen) >= missing:
            return rng.permutation(chosen)[:missing]
    return _draw_exactly(left, row, missing, rng)


def _draw_exactly(left: Indices, row: int, missing: int, rng: np.random.Generator) -> Indices:
    """Return such partners by a look at all rows."""
    open_rows = row + 1 + np.flatnonzero(left[row + 1 :])
    if missing >= len(open_rows) or missing == 0:
        return open_rows[:missing]
    # The least of exponential times with these rates are a weighted draw without replacement.
    times = rng.standard_exponential(len(open_rows)) / left[open_rows]
    return open_rows[np.argpartition(times, missing)[:missing]]


def _meet_near(
    rows: Indices, count: int, window: float, taken: Indices, rng: np.random.Generator
) -> Indices:
    """Pair rows that are at most about a window apart.

    `rows` has each row once for every partner that it misses.
    """
    found = np.empty(0, dtype=np.int64)
    taken = np.sort(taken)
    for _ in range(_ROUNDS):
        order = np.argsort(rows + rng.uniform(0, window, len(rows)))
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
        window = min(2 * window, float(count))
    return found

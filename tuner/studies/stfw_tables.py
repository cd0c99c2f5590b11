"""Tables 2 and 3 of the paper on store-and-forward with ours, and findings on scaling."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from math import exp, log

from tuner.studies.findings import Finding
from tuner.studies.stfw import StfwRow

ENTRY_S = 14.5e-9
"""Local time of a product for each entry: the rest of table 2 beside communication at 64."""

_MESSAGES, _GAIN = 1.15, 1.25  # the paper's and ours agree within these factors


@dataclass(frozen=True)
class Scheme:
    """Geometric means over matrices; missing values, as some of the paper, are None.

    Times are in seconds; `dims` 1 is direct.
    """

    procs: int
    dims: int
    mmax: float
    mavg: float
    vavg_words: float
    buffer_kib: float | None
    time_s: float | None
    headered_s: float | None
    predicted_s: float | None

    @property
    def shown_s(self) -> float:
        """Return the measured or simulated time, otherwise the predicted one."""
        time_s = self.predicted_s if self.time_s is None else self.time_s
        assert time_s is not None  # noqa: S101 - the paper has all, and the model too
        return time_s


@dataclass(frozen=True)
class Pair:
    """A scheme as found here, and as the paper has it."""

    ours: Scheme
    paper: Scheme | None


def published(table: str, system: str = "") -> dict[tuple[int, int], Scheme]:
    """Return table 2, or 3 of one system, by ranks and dimensions."""
    text = files("tuner.studies").joinpath(f"papers/stfw_{table}.csv").read_text("utf-8")
    found = {}
    for row in csv.DictReader(text.splitlines()):
        if system and row["system"] != system:
            continue
        key = int(row["K"]), 1 if row["scheme"] == "BL" else int(row["scheme"][len("STFW") :])
        mmax, mavg, vavg = (float(row[name]) for name in ("mmax", "mavg", "vavg_words"))
        buffer = float(row["buffer_kib"]) if "buffer_kib" in row else None
        found[key] = Scheme(
            *key, mmax, mavg, vavg, buffer, float(row["comm_us"]) * 1e-6, None, None
        )
    return found


def means(rows: Sequence[StfwRow], paper: dict[tuple[int, int], Scheme]) -> list[Pair]:
    """Return geometric means over matrices, beside the paper's."""
    keys = sorted({(row.procs, row.dims) for row in rows})
    return [Pair(_mean(rows, *key), paper.get(key)) for key in keys]


def _mean(rows: Sequence[StfwRow], procs: int, dims: int) -> Scheme:
    those = [row for row in rows if (row.procs, row.dims) == (procs, dims)]
    return Scheme(
        procs,
        dims,
        geometric([row.mmax for row in those]),
        geometric([row.mavg for row in those]),
        geometric([row.vavg_words for row in those]),
        geometric([row.buffer_kib for row in those]),
        _known([row.simulated_s for row in those]),
        _known([row.headered_s for row in those]),
        geometric([row.predicted_s for row in those]),
    )


def geometric(values: Sequence[float]) -> float:
    """Return the geometric mean; values of nothing count as one in 10^9."""
    return exp(sum(log(max(value, 1e-9)) for value in values) / len(values))


def _known(values: Sequence[float | None]) -> float | None:
    found = [value for value in values if value is not None]
    return geometric(found) if len(found) == len(values) else None


def findings(pairs: Sequence[Pair]) -> Iterator[Finding]:
    """Yield the findings on orderings and factors of the tables."""
    for procs in sorted({pair.ours.procs for pair in pairs}):
        those = [pair for pair in pairs if pair.ours.procs == procs]
        if those[0].paper is not None:
            yield from _of_procs(procs, those)


def _of_procs(procs: int, pairs: Sequence[Pair]) -> Iterator[Finding]:
    direct, its = pairs[0].ours, pairs[0].paper
    if its is not None:
        mmax, mavg = direct.mmax / its.mmax, direct.mavg / its.mavg
        yield Finding(
            f"{procs}: ranks send as many messages with BL",
            max(mmax, 1 / mmax, mavg, 1 / mavg) <= _MESSAGES,
            f"mmax {mmax:.2f} and mavg {mavg:.2f} times the paper's",
        )
    ours = {pair.ours.dims: pair.ours.shown_s for pair in pairs}
    paper = {pair.paper.dims: pair.paper.shown_s for pair in pairs if pair.paper}
    slower = [f"STFW{dims}" for dims in paper if ours[dims] > ours[1]]
    yield Finding(
        f"{procs}: every STFW is faster than BL", not slower, ", ".join(slower) or "all are"
    )
    best, best_paper = _best(ours, paper), _best(paper, paper)
    gain, wanted = ours[1] / ours[best], paper[1] / paper[best_paper]
    yield Finding(
        f"{procs}: the best STFW gains a factor of {wanted:.2f} over BL, at STFW{best_paper}",
        wanted / _GAIN <= gain <= wanted * _GAIN,
        f"{gain:.2f} at STFW{best}",
    )
    volumes = [
        (pair.ours.vavg_words / pairs[0].ours.vavg_words)
        / (pair.paper.vavg_words / pairs[0].paper.vavg_words)
        for pair in pairs[1:]
        if pair.paper and pairs[0].paper
    ]
    off = max(max(volumes), 1 / min(volumes))
    yield Finding(
        f"{procs}: volumes grow with dimensions as in the paper",
        off <= _GAIN,
        f"within a factor of {off:.2f}",
    )


def _best(times: dict[int, float], known: dict[int, float]) -> int:
    """Return the fastest STFW of those that the paper has."""
    return min((dims for dims in known if dims > 1), key=times.__getitem__)


@dataclass(frozen=True)
class Scaling:
    """Products with one matrix, by ranks in seconds: with BL, and with the fastest STFW."""

    matrix: str
    direct_s: dict[int, float]
    stfw_s: dict[int, float]

    @property
    def direct_until(self) -> int:
        """Return the number of ranks beyond which BL gains nothing."""
        return min(self.direct_s, key=self.direct_s.__getitem__)

    @property
    def stfw_until(self) -> int:
        """Return the number of ranks beyond which STFW gains nothing."""
        return min(self.stfw_s, key=self.stfw_s.__getitem__)


def scaling(rows: Sequence[StfwRow]) -> list[Scaling]:
    """Return the times of figure 8.

    A time is the exchange plus that of a Blue Gene/Q core for each entry of the busiest rank.
    """
    found: dict[str, Scaling] = {}
    for row in rows:
        each = found.setdefault(row.matrix, Scaling(row.matrix, {}, {}))
        product_s = row.time_s + row.most_entries * ENTRY_S
        times = each.direct_s if row.dims == 1 else each.stfw_s
        times[row.procs] = min(times.get(row.procs, product_s), product_s)
    return list(found.values())


def scaling_finding(products: Sequence[Scaling]) -> Finding:
    """Return the finding on matrices on which BL stops scaling."""
    most = max(max(each.direct_s) for each in products)
    stopped = [each for each in products if each.direct_until < most]
    rescued = [each for each in stopped if each.stfw_until > each.direct_until]
    names = ", ".join(each.matrix for each in rescued)
    return Finding(
        "STFW keeps scaling on matrices where BL does not",
        bool(stopped) and 2 * len(rescued) > len(stopped),
        f"BL stops before {most} on {len(stopped)} of {len(products)}, STFW later on "
        f"{len(rescued)}: {names}",
    )

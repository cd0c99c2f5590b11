"""Points that a table decides from, what is chosen of cells, and where a table comes from."""

from collections.abc import Iterable

from hypothesis import strategies as st

from tuner.domain.cases import Case, Layout
from tuner.domain.records import Cell
from tuner.domain.tables import Point, Provenance, Ratio, Rule
from tuner.selection.decisions import decide
from tuner.selection.rules import compile_rules

PROVENANCE = Provenance(
    system="local-cpu-mpich-1f00ba",
    name="local:cpu",
    environment="mpich",
    mpi_library='MPICH "Version": 5.0.2\n */ int broken;',
    mpi_standard="4.1",
    compiler="gcc 12.2.0",
    cpu_model="Synthetic CPU",
    cores=2,
    campaigns=["20261121T034500Z"],
    launches=5,
    samples=1000,
    commit="0123abc",
    date="2026-11-21T03:45:00Z",
    version="0.1.0",
)

METHODS = st.sampled_from(["direct", "neighbor", "stfw:dims=2"])


def point(
    method: str = "direct",
    size: int = 8,
    degree: tuple[int, float] = (6, 5.5),
    status: str | None = None,
    ratio: float = 0.5,
    operation: str = "exchange",
) -> Point:
    its = Ratio(method, ratio, ratio * 0.9, ratio * 1.1, 0.05)
    return Point(
        campaign="A",
        case=Case(
            operation, "random:degree=6,seed=1", Layout(8, 1, 8, False), "window", size, size
        ),
        mmax=degree[0],
        mavg=degree[1],
        method=method,
        status=status or ("equal" if method == "direct" else "faster"),
        challenger=method,
        ratio=ratio,
        ratio_low=its.low,
        ratio_high=its.high,
        launches=5,
        level=0.95,
        ratios=() if method == "direct" else (its,),
    )


def on(point: Point, nodes: int, ppn: int, over: bool = False) -> Point:
    """Return the point, measured on another layout."""
    layout = Layout(nodes * ppn, nodes, ppn, over)
    return point._replace(case=point.case._replace(layout=layout))


def select(cells: Iterable[Cell]) -> tuple[list[Rule], list[Point]]:
    """Return the rules of one system's cells, in order of priority, and the points behind them."""
    points = decide(cells)
    return compile_rules(points), points

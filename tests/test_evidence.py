"""Decisions in words, and what to do next."""

from dataclasses import replace

import pytest

from tests.decisions import PROVENANCE, point
from tuner.domain.tables import Point, Table
from tuner.paths import CHECKOUT
from tuner.selection.evidence import certainty, settlement, verdict
from tuner.selection.next_step import next_step, summary

OPEN = point("direct", status="open")._replace(challenger="neighbor", may_lose=0.6, more_s=30.0)
FILLED = OPEN._replace(filled=True, may_lose=0.9)
SETTLED = point("neighbor", 1024)


def table(*points: Point, **provenance: object) -> Table:
    return Table(replace(PROVENANCE, **provenance), [], list(points))  # type: ignore[arg-type]


def test_a_filled_size_is_not_called_faster_while_its_method_waits_for_a_soak() -> None:
    waits = point("direct", status="unsoaked")._replace(challenger="neighbor")
    filled = waits._replace(filled=True, ratio_high=1.2, more_launches=2, more_s=3.0)
    assert verdict(waits) == "direct; neighbor is 1.82 to 2.22 x faster but waits for its soak"
    assert verdict(filled) == "direct; neighbor, as at other sizes or layouts, waits for its soak"
    found = settlement([waits, filled])
    assert (found.settled, found.filled, found.more_s) == (1, 1, 3.0)


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ([point("neighbor")], "the interval holds with 95 %"),
        (
            [point("neighbor"), point("direct", status="default")._replace(level=0.999967)],
            "intervals hold with 95 to 99.99 %",
        ),
        (
            [point("neighbor"), point("neighbor")._replace(level=None)],
            "intervals hold with 95 %; those by size are ranges, which have no level",
        ),
        ([point("direct"), OPEN, FILLED], ""),
        ([OPEN._replace(filled=True, method="neighbor")], "the interval holds with 95 %"),
        ([point("neighbor")._replace(ratio_low=0.5, ratio_high=0.5)], ""),
    ],
)
def test_intervals_in_words_have_their_level(points: list[Point], said: str) -> None:
    assert certainty(points) == said


def test_what_is_settled_ends_with_the_command_that_goes_on() -> None:
    assert summary(table(OPEN, FILLED, SETTLED, environment="openmpi")) == (
        "settled: 1 of 3 sizes, 1 more filled; an open one may lose up to 60 % (exchange of 8 B on "
        "8 processes); next: settle 1 open and 1 filled sizes (about 60 s more): "
        "`switchpoint run --environment openmpi`"
    )


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("local:cpu", "switchpoint run --environment mpich"),
        ("published", "switchpoint run --environment mpich --anonymous-as published"),
        ("virtual-nodes:tcp-1gbit", "switchpoint run --system nodes --environment mpich"),
        (
            "virtual-nodes:tcp-100mbit",
            "switchpoint nodes up --rate 100mbit && "
            "switchpoint run --system nodes --environment mpich",
        ),
        ("hpc:long", "switchpoint run --config hpc.py --environment mpich"),
        (
            "simulated:fat",
            f"SWITCHPOINT_SIMULATE=fat switchpoint run --config {CHECKOUT}/checks/config/",
        ),
    ],
)
@pytest.mark.parametrize(("more_s", "minutes"), [(190.0, ""), (234.1, "--minutes 6")])
def test_an_open_size_is_measured_on_its_own_system_for_long_enough(
    name: str, command: str, more_s: float, minutes: str
) -> None:
    cpu = "simulated" if name.startswith("simulated") else "Synthetic CPU"
    step = next_step(table(OPEN._replace(more_s=more_s), name=name, cpu_model=cpu))
    assert step.lines[-1].startswith(command)
    partition = " -- --system=hpc:long" if name == "hpc:long" else ""
    assert step.lines[-1].removesuffix(partition).partition(" --minutes")[2] == minutes[9:]
    assert step.lines[-1].endswith(minutes + partition)
    assert f"`{step.lines[-1]}`" in str(step)


GATHER = OPEN._replace(case=OPEN.case._replace(operation="gather"))
HERE = point("neighbor", 64, status="faster in this allocation")


@pytest.mark.parametrize(
    ("points", "provenance", "said"),
    [
        ([SETTLED], {}, "use the table: `switchpoint export --system local-cpu-mpich-1f00ba "),
        ([SETTLED, FILLED], {}, "use the table: `switchpoint export "),
        (
            [SETTLED, HERE],
            {},
            "measure again in another allocation, an hour later, to confirm what is faster in "
            "this one: `switchpoint run ",
        ),
        (
            [OPEN, HERE],
            {},
            "settle 1 open size (about 30 s more) in another allocation, an hour later: ",
        ),
        (
            [OPEN, point("direct", status="unsoaked")],
            {},
            "soak the faster methods that wait: `switchpoint soak --system local-cpu-mpich-",
        ),
        (
            [point("direct", status="unsoaked")],
            {"name": "hpc:long", "system": "hpc-long-mpich-1f00ba"},
            "soak the faster methods that wait: `switchpoint soak --system hpc-long-mpich-1f00ba "
            "--config hpc.py`",
        ),
        (
            [point("direct", status="unsoaked")],
            {"name": "published"},
            "soak the faster methods that wait: `switchpoint run --environment mpich "
            "--anonymous-as published`",
        ),
        (
            [OPEN],
            {"disturbed": 0.5},
            "measure again while nothing else runs: `switchpoint run --environment mpich`",
        ),
        (
            [OPEN._replace(case=OPEN.case._replace(sync="window-cold"))],
            {},
            "settle 1 open size (about 30 s more): "
            "`switchpoint run --environment mpich -- --setvar cache=cold`",
        ),
        (
            [OPEN, GATHER],
            {},
            "settle 2 open sizes (about 60 s more): `switchpoint run --environment mpich -- "
            r"--name '^exchange|collective.*kind=(gather)\b'`",
        ),
        (
            [SETTLED, GATHER._replace(case=GATHER.case._replace(sync="window-cold"))],
            {"name": "hpc:long"},
            "settle 1 open size (about 30 s more): `switchpoint run --config hpc.py --environment "
            "mpich -- --system=hpc:long --setvar cache=cold --name "
            r"'collective.*kind=(gather)\b'`",
        ),
        ([OPEN], {"borrowed_for": "here"}, "measure the system itself: `switchpoint run`"),
        ([], {}, "measure methods with their default, as rules compare with it: `switchpoint run"),
    ],
)
def test_the_next_step_is_the_most_useful(
    points: list[Point], provenance: dict[str, object], said: str
) -> None:
    assert str(next_step(table(*points, **provenance))).startswith(f"next: {said}")

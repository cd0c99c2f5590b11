"""Reports of mpiP: what is read of them, and what they leave unknown."""

import re
from io import BytesIO
from pathlib import Path

import pytest

from tests.cli import fail, succeed
from tuner.advice import document, mix, recorded
from tuner.advice.profile import Profile, ProfileError, Shape

REPORT = Path(__file__).parent / "data" / "app.2.1234.1.mpiP"
TEXT = REPORT.read_text()
DETAILS = TEXT.index("-" * 75 + "\n@--- Callsite Time statistics")


def parse(text: str) -> Profile:
    """Return the calls in a report with this text."""
    return recorded.parse(BytesIO(text.encode()))


def test_calls_are_those_of_all_call_sites_with_one_size() -> None:
    its = recorded.read(REPORT)
    assert (its.program, its.procs, its.seconds, its.finalized) == ("app", 2, 1.0, True)
    calls = {each.shape: each for each in its.calls}
    bcast = calls[Shape("Bcast", 2, 1, 2, 64)]
    assert (bcast.count, bcast.spread_s) == (500, None)
    assert (bcast.seconds, bcast.own_s) == (pytest.approx(0.4), pytest.approx(0.35))
    assert Shape("Allreduce", 2, 1, 2, 16384) in calls  # which is printed as 1.638e+04
    assert its.bound_s == pytest.approx(0.5 + 0.009 + 0.001)  # with calls that are not judged
    assert calls[Shape("Barrier", 2, 1, 2, 1)].count == 2


def test_what_a_report_leaves_unknown_is_said() -> None:
    its = document.advice(mix.mix(recorded.read(REPORT), None))
    said = {call.call: call.evidence for call in its.calls if not call.procs}
    unknown = "not judged: communicator or size unknown"
    assert said.pop("Waitall").startswith("not dispatched: messages and waiting")
    assert said == {"Gather": unknown, "Alltoall": unknown}  # of other sizes; without a size
    assert not {"Gather", "Alltoall"} & {shape.call for shape in its.to_measure}
    text = succeed("advise", "--profile", REPORT)
    assert "collectives are taken to be of all 2 processes" in text
    assert "some communicators of MPI_Gather have other numbers of processes" in text


def test_an_alltoallv_without_a_size_is_not_judged() -> None:
    its = document.advice(mix.mix(parse(re.sub(r"\bAlltoall\b", "Alltoallv", TEXT)), None))
    (said,) = (call.evidence for call in its.calls if call.call == "Alltoallv")
    assert said == "not judged: communicator or size unknown"


def test_calls_that_are_not_judged_or_need_a_promise_may_gain() -> None:
    others = re.sub(r"\b(Allreduce|Gather|Alltoall|Barrier)\b", "Scan", TEXT)
    unknown = others.replace("71.6          0 -        7", "71.6          8 -       15")
    for text, call, why in (
        (unknown, "Bcast", "none; calls are not judged, as their communicator or size is unknown"),
        (others, "Alltoallv", "none; its calls need a promise"),
        (others, "Neighbor_alltoallv", "none; its calls need a promise"),
        (others, "Scatterv", "none; its calls need a promise"),
    ):
        its = document.advice(mix.mix(parse(text.replace("Bcast", call)), None))
        assert its.bound_s == pytest.approx(0.35)
        lines = [*document.summary(its)]
        assert any(why in line for line in lines), lines


def test_without_details_the_twenty_longest_call_sites_are_read() -> None:
    its = parse(TEXT[:DETAILS])
    assert "only the twenty call sites" in its.notes[1] and "truncated" in its.notes[2]
    first = its.calls[0]
    assert (first.shape, first.count) == (Shape("Bcast", 2, 1, 2, 64), 500)
    assert first.seconds == first.own_s == pytest.approx(0.4)


@pytest.mark.parametrize("cov", ["    COV", ""])
def test_reports_of_versions_that_do_not_count_calls_are_read(cov: str) -> None:
    older = re.sub(r"(\n[A-Z].* MPI%) {6}Count    COV", rf"\1{cov}", TEXT[:DETAILS], count=1)
    last = "   -nan" if cov else ""
    older = re.sub(r"(\n[A-Z]\w+ +\d [\d. ]*\.\d\d) +\d+   \d\.\d\d(?=\n)", rf"\1{last}", older)
    its = parse(older)
    calls = {each.shape.call: each for each in its.calls}
    assert calls["Bcast"].count == 500 and calls["Bcast"].seconds == pytest.approx(0.4)
    assert calls["Barrier"].count == 0 and calls["Barrier"].seconds == pytest.approx(0.001)
    assert any("counts only calls with a size" in note for note in its.notes)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("MPI Task Assignment", "Another", "where each process runs"),
        ("   1      0.999       0.54    54.05\n", "", "times of some processes"),
        ("     0.75    0.375  30.03", "      nan    0.375  30.03", "line 82 is not of mpiP"),
        ("Bcast                1    0    400", "Bcast                1    -    400", "line 81"),
        ("Bcast                1    0    400", "Bcast                1    0    4_0", "line 81"),
        ("Bcast                1    0    400", "Bcast                1", "line 81"),
        ("Bcast                1    0    400", "\x1b[31m             1    0    400", r"\x1b[31m"),
        (TEXT[TEXT.index("@ Command") :], "", "where each process runs"),
    ],
)
def test_what_is_no_report_is_one_line(tmp_path: Path, old: str, new: str, why: str) -> None:
    assert old in TEXT
    with pytest.raises(ProfileError):
        parse(TEXT.replace(old, new))
    path = tmp_path / "app.mpiP"
    path.write_text(TEXT.replace(old, new))
    assert why in fail("advise", "--profile", path)


def test_the_preloads_report_is_no_profile() -> None:
    with pytest.raises(ProfileError, match="record a profile"):
        parse("switchpoint: 3 rules; calls on rank 0 of operations with a rule:\n")

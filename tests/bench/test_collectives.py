"""The figures of the comparison of collectives, from raw samples."""

import json
import math
from pathlib import Path

import pytest

from tests.bench.collectives import Trial, Verdict, read_trials

ROUNDS = range(1, 41)


def trial(directory: Path, factor: float, selected: str) -> Trial:
    """Three drifting launches; `auto` takes `factor` times as long as the default."""
    paths = []
    for launch in range(3):
        drift = [1e-5 * (launch + 1) * 1.1**number for number in ROUNDS]
        cases = {"vendor": drift, "auto": [factor * time_s for time_s in drift]}
        cases["auto"] = cases["auto"][:-5]  # measured in fewer rounds
        records = [
            {"record": "case", "method": method, "size_bytes": 64, "samples_s": times_s}
            | {"round": list(ROUNDS)[: len(times_s)]}
            | ({"selected": selected} if method == "auto" else {})
            for method, times_s in cases.items()
        ]
        lines = [{"record": "header"}, *records, {"record": "end"}]
        paths.append(directory / f"{launch}.jsonl")
        paths[-1].write_text("".join(json.dumps(line) + "\n" for line in lines))
    (size, read), *more = read_trials(paths).items()
    assert (size, read.selected, more) == (64, selected, [])
    return read


def test_ratios_are_paired_within_rounds(tmp_path: Path) -> None:
    low, middle, high = map(
        math.exp, sorted(trial(tmp_path, 0.5, "ring").log_ratio("auto", "vendor"))
    )
    assert low == pytest.approx(0.5)
    assert middle == pytest.approx(0.5)
    assert high == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("factor", "selected", "held", "words"),
    [
        (0.8, "ring", True, "bcast                1.25 times as fast"),
        (1.1, "ring", False, "clearly slower than the default: bcast at 64 B"),
        (1.1, "vendor", True, "all operations       1.00 times as fast"),  # the default itself
    ],
)
def test_the_bar_is_held_where_the_choice_is_not_slower(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    factor: float,
    selected: str,
    held: bool,
    words: str,
) -> None:
    verdict = Verdict()
    verdict.add("bcast", 64, trial(tmp_path, factor, selected))
    assert verdict.conclude() is held
    assert words in capsys.readouterr().out

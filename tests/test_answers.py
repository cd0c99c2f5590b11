"""Programs that are asked: what they print, and why they do not answer."""

import pytest

from tuner.errors import SwitchpointError
from tuner.machine.processes import UnansweredError, answer


def test_a_program_that_does_not_answer_is_named() -> None:
    with pytest.raises(UnansweredError, match=r"^no-such-program cannot be started: "):
        answer(["no-such-program"], 1)
    with pytest.raises(SwitchpointError, match=r"^the nap did not end within 0\.2 s$"):
        answer(["sleep", "60"], 0.2, SwitchpointError, what="the nap")


def test_any_bytes_are_an_answer() -> None:
    assert answer(["printf", r"\377"], None).stdout == r"\xff"

"""The pictures of who sends to whom, against what the library sends."""

from __future__ import annotations

import re

import pytest

from tuner.domain.operations import COLLECTIVES, RULED_OPERATIONS
from tuner.paths import CHECKOUT

from .conftest import Kernels, in_turn
from .senders import COMMAND, Event, Message, drawing, image, messages, pictures

SILENT = {
    "exchange": {"lent", "neighbor", "alltoallv"},
    "discovery": {"shared"},
    "collective": {"shared", "vendor"},
}
"""They send nothing, or only the MPI library knows what."""


def check_picture(kernels: Kernels, operation: str) -> None:
    drawn = drawing(operation, pictures(kernels, operation))
    same = drawn == image(operation).read_text("utf-8")
    assert same, f"{image(operation)} is not what is sent; draw it: {COMMAND} {operation}"


def test_a_picture_shows_what_is_sent(kernels: Kernels) -> None:
    check_picture(kernels, "allgather")


@pytest.mark.check
@pytest.mark.parametrize(
    ("kernels", "operation"), list(in_turn(RULED_OPERATIONS)), indirect=["kernels"]
)
def test_pictures_show_what_is_sent(kernels: Kernels, operation: str) -> None:
    check_picture(kernels, operation)


def test_every_method_has_a_picture_or_a_reason_for_none() -> None:
    registry = (CHECKOUT / "kernels" / "methods" / "methods.def").read_text()
    kinds = {"exchange": ["exchange"], "discovery": ["discovery"], "collective": COLLECTIVES}
    for kind, operations in kinds.items():
        names = set(re.findall(rf"METHOD\(swp_{kind}_(\w+)\)", registry))
        assert names > SILENT[kind]
        drawn = "".join(image(operation).read_text("utf-8") for operation in operations)
        assert set(re.findall(r'class="title">(\w+)(?=[:<])', drawn)) == names - SILENT[kind], kind


def test_a_step_is_one_more_than_those_received_before() -> None:
    first, second = Event("send", 1, 0, ()), Event("send", 2, 0, ())
    relay = [[first], [Event("receive", 0, 0, ()), second], [Event("receive", 1, 0, ())]]
    assert messages(relay) == {Message(0, 1, 1, False), Message(1, 2, 2, False)}
    at_once = [[first], [second, Event("receive", 0, 0, ())], [Event("receive", 1, 0, ())]]
    assert messages(at_once) == {Message(0, 1, 1, False), Message(1, 2, 1, False)}
    assert {each.step for each in messages(relay, with_steps=False)} == {0}


def test_a_collective_comes_after_what_its_ranks_received() -> None:
    bcast, reduce = Event("Bcast", 0, 0, (0, 1)), Event("Reduce", 2, 0, (1, 2))
    assert messages([[bcast], [bcast, reduce], [reduce]]) == {
        Message(0, 1, 1, True),
        Message(1, 2, 2, True),
    }


def test_a_receive_that_nobody_sends_is_a_fault() -> None:
    with pytest.raises(AssertionError, match="nobody sends"):
        messages([[Event("receive", 1, 0, ())], []])

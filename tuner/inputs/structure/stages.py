"""The messages of a method, stage by stage, from which its time is predicted."""

from typing import NamedTuple

import numpy as np

from tuner.inputs.matrices.market import Indices
from tuner.inputs.structure.halo import Halo
from tuner.inputs.structure.methods import Method
from tuner.inputs.structure.traffic import Traffic


class MessageStage(NamedTuple):
    """The messages of one stage; it begins when those of the stage before have arrived."""

    sender: Indices
    receiver: Indices
    items: Indices

    @property
    def most_sent(self) -> int:
        """Return the most items that one rank sends."""
        return int(np.bincount(self.sender, self.items).max(initial=0))

    @property
    def most_moved(self) -> int:
        """Return the most items that one rank sends or receives."""
        return max(self.most_sent, int(np.bincount(self.receiver, self.items).max(initial=0)))


class _KeptMessages(Traffic):
    def __init__(self, halo: Halo, ppn: int) -> None:
        super().__init__(halo, ppn)
        self.kept: list[MessageStage] = []

    def add_stage(self, sender: Indices, receiver: Indices, items: Indices) -> None:
        """Keep the messages."""
        super().add_stage(sender, receiver, items)
        self.kept.append(MessageStage(sender, receiver, items))


def stages(method: Method, halo: Halo, ppn: int) -> list[MessageStage]:
    """Return the messages of every stage of a method."""
    traffic = method.count(halo, ppn, _KeptMessages)
    assert isinstance(traffic, _KeptMessages)  # noqa: S101 - the kind that was asked for
    return traffic.kept

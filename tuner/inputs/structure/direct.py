"""The messages of the method `direct` (BL of Selvitopi & Aykanat, SC'19)."""

from collections.abc import Iterator

from tuner.inputs.structure.halo import Halo
from tuner.inputs.structure.traffic import MessageStage


def direct(halo: Halo, ppn: int) -> Iterator[MessageStage]:
    """Yield all messages at once."""
    yield MessageStage(halo.source, halo.destination, halo.items)

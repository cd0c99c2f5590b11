"""Counts of the method `direct` (BL of Selvitopi & Aykanat, SC'19)."""

from tuner.inputs.structure.halo import Halo
from tuner.inputs.structure.traffic import Traffic


def direct(halo: Halo, ppn: int, kind: type[Traffic] = Traffic) -> Traffic:
    """Count each message at once."""
    traffic = kind(halo, ppn)
    traffic.add_stage(halo.source, halo.destination, halo.items)
    return traffic

"""Expected times of measurements, for estimates and plans."""

START_S = 0.5
"""Seconds that a launch takes beside what its raw file records."""

OVERHEAD = 4.0
"""Ratio of the seconds that a sample takes, with start and buffers, to those that it counts."""

SAMPLE_S = 2e-5
"""Seconds that a sample takes at least, even of the shortest execution."""

RUN_MINUTES = 4.2
"""Minutes that `switchpoint run` takes unless others are given, with the soaks of the winners."""

SOAKS_SHARE = 0.22
"""The share of these minutes that is kept for the soaks."""


def wall_of_sample_s(seconds: float) -> float:
    """Return the seconds that a sample takes, of which so many count."""
    return OVERHEAD * seconds + SAMPLE_S

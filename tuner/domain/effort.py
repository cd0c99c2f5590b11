"""What measurements take, as foreseen by estimates and plans before it was measured."""

START_S = 0.5
"""Seconds that a launch takes beside what its raw file records."""

OVERHEAD = 4.0
"""Ratio of the seconds that a sample takes, with start and buffers, to those that it counts."""

"""Switchpoint's tuner: from raw benchmark files to a table of the fastest methods."""

__version__ = "0.1.0"

"""Methods that a site does not use, as the library reads them (docs/reference/table.md)."""

from __future__ import annotations

import os
import re

VARIABLE = "SWITCHPOINT_OFF"
"""Of the environment: methods by name or spec, separated by spaces or semicolons."""


def is_off(method: str, listed: str) -> bool:
    """Return whether a method's spec is off by the text of the variable."""
    words = set(re.split(r"[ ;]+", listed))
    return method in words or method.partition(":")[0] in words


def is_off_here(method: str) -> bool:
    """Return whether a method's spec is off by the environment."""
    return is_off(method, os.environ.get(VARIABLE, ""))

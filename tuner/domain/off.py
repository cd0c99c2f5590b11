"""Methods that a site does not use, as the library reads them (docs/reference/table.md)."""

import os
import re

VARIABLE = "SWITCHPOINT_OFF"
"""Environment variable that lists methods by name or spec, separated by spaces or semicolons."""


def is_off(method: str, listed: str) -> bool:
    """Return whether the text of the variable switches a method's spec off."""
    words = set(re.split(r"[ ;]+", listed))
    return method in words or method.partition(":")[0] in words


def is_off_here(method: str) -> bool:
    """Return whether the environment switches a method's spec off."""
    return is_off(method, os.environ.get(VARIABLE, ""))

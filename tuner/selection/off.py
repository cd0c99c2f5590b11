"""Methods that a site does not use, as the library reads them (docs/reference/table.md)."""

import os
import re

VARIABLE = "SWITCHPOINT_OFF"
"""Environment variable that lists methods by name or spec, separated by spaces or semicolons."""

NODE_MEMORY = "node-memory"
"""Word of the list that stands for all methods that take memory of the node."""


def takes_node_memory(method: str) -> bool:
    """Return whether plans by a method's spec take memory of the node."""
    name, _, parameters = method.partition(":")
    return name in {"shared", "lent"} or "node=shared" in parameters.split(",")


def is_off(method: str, listed: str) -> bool:
    """Return whether the text of the variable switches a method's spec off."""
    words = set(re.split(r"[ ;]+", listed))
    meant = method in words or method.partition(":")[0] in words
    return meant or (NODE_MEMORY in words and takes_node_memory(method))


def is_off_here(method: str) -> bool:
    """Return whether the environment switches a method's spec off."""
    return is_off(method, os.environ.get(VARIABLE, ""))

"""Methods that a site does not use, as the library reads them (docs/reference/table.md)."""

import os
import re
from collections.abc import Sequence

from tuner.domain.operations import DEFAULT_METHODS, is_named, takes_node_memory
from tuner.errors import SwitchpointError

VARIABLE = "SWITCHPOINT_OFF"
"""Environment variable that lists methods by name or spec, separated by spaces or semicolons."""

NODE_MEMORY = "node-memory"
"""Word of the list that stands for all methods that take memory of the node."""

_SPEC = re.compile(r"[a-z0-9_]+(:[a-z]+=[^,]+(,[a-z]+=[^,]+)*)?")


class OffError(SwitchpointError):
    """Error raised for a list of methods that the library refuses too; the message says why."""


def is_off(method: str, listed: str) -> bool:
    """Return whether the text of the variable switches a method's spec off."""
    words = _words(listed)
    return is_named(method, words) or (NODE_MEMORY in words and takes_node_memory(method))


def is_off_here(method: str) -> bool:
    """Return whether the environment switches a method's spec off."""
    return is_off(method, _listed_here())


def switched_off(methods: Sequence[str]) -> dict[str, str]:
    """Return the environment in which methods are off too; nothing without any."""
    return {VARIABLE: " ".join([_listed_here(), *methods]).strip()} if methods else {}


def check() -> None:
    """Raise OffError if the environment lists a fallback, or what is no spec of a method."""
    for word in sorted(_words(_listed_here())):
        if word in DEFAULT_METHODS.values():
            raise OffError(
                f"{VARIABLE}: {word} cannot be off: it is the method that others fall back to"
            )
        if word != NODE_MEMORY and not _SPEC.fullmatch(word):
            raise OffError(
                f"{VARIABLE}: no method {word!r}; separate methods by spaces or semicolons"
            )


def _listed_here() -> str:
    return os.environ.get(VARIABLE, "")


def _words(listed: str) -> set[str]:
    return {*re.split(r"[ ;]+", listed)} - {""}

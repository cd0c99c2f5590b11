"""The description of a kind of records."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tuner.domain.records import Header


class UnusableError(ValueError):
    """Error raised when a line is well-formed but cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of records; `name` is its tag, its table, and the operation of its launches.

    `of_line` returns the record of a line, a named tuple whose nested values are the columns of the
    table; the first field is its key, which is unique in a launch. It raises UnusableError.
    """

    name: str
    line: type[Any]
    of_line: Callable[[Any, Header], Any]
    samples: Callable[[Any], int] = lambda record: 0  # of kinds that count executions

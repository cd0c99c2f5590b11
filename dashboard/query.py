"""The state of a page, as the query of a short URL.

Each page has one dataclass of its parameters. External text becomes such an object only through
`parse`, which rejects values that no link of ours contains; an empty value means "the default".
"""

import re
from collections.abc import Sequence
from dataclasses import Field, dataclass, field, fields
from functools import cache
from typing import Any, Self
from urllib.parse import parse_qsl, quote

from tuner.domain.records import SYNC

WORD = r"[a-z][a-z0-9_]{0,30}"
# Nodes and processes on each; pages that distinguish more layouts add all processes and more.
LAYOUT = rf"([0-9]{{1,10}}@)?(?P<shape>[0-9]{{1,10}}x[0-9]{{1,10}})(-{SYNC})?(-over)?"
INTEGER = r"[0-9]{1,19}"

CARRIED = "k"
"""The key of links that carry a choice to another page, where values that it lacks give way."""

_MOST_CARRIED = 16
_LAYOUT = re.compile(LAYOUT)


class MalformedError(ValueError):
    """Error raised for a malformed query; the response is 400."""


class UnknownError(LookupError):
    """Error raised for a well-formed value that the store does not hold; the response is 404."""


class UnmeasuredError(UnknownError):
    """Error raised where a store holds nothing of the kind that a page shows."""


def parameter(key: str, pattern: str | Sequence[str], label: str = "") -> Any:
    """Return a field of a `Query` with its short name in the URL and the pattern of its values.

    pattern: or the words of which a value is one.
    label: the label of its select on a page; empty for none.
    """
    words = () if isinstance(pattern, str) else tuple(pattern)
    compiled = re.compile("|".join(map(re.escape, words)) if words else str(pattern))
    metadata = {"key": key, "pattern": compiled, "words": words, "label": label}
    return field(default="", metadata=metadata)


@dataclass(frozen=True)
class Query:
    """The parameters of a page; subclasses add the fields."""

    def __post_init__(self) -> None:
        """Raise MalformedError for values that do not match their patterns."""
        for name, key, pattern in _parameters(fields(self)):
            value = getattr(self, name)
            if not isinstance(value, str):
                raise MalformedError(f"{name} must be text")
            if value and not pattern.fullmatch(value):
                raise MalformedError(f"{key} {self._expected(name)}")

    def _expected(self, name: str) -> str:
        (words,) = (each.metadata["words"] for each in fields(self) if each.name == name)
        return f"must be one of {', '.join(words)}" if words else "is malformed"

    @classmethod
    def parse(cls, search: str) -> Self:
        """Return a query from `?key=value&…`. Raise MalformedError for a wrong key or value."""
        names = {key: name for name, key, _ in _parameters(fields(cls))}
        values: dict[str, str] = {}
        for key, value in _pairs(search, len(names)):
            if key not in names or names[key] in values:
                raise MalformedError("a parameter of the query is unknown or given twice")
            values[names[key]] = value
        return cls(**values)

    @classmethod
    def carried(cls, search: str) -> Self | None:
        """Return what a link from another page says that this page has; None for other links."""
        pairs = dict(_pairs(search, _MOST_CARRIED))
        if pairs.pop(CARRIED, "") != "1":
            return None
        values = {}
        for name, key, pattern in _parameters(fields(cls)):
            value = pairs.get(key, "")
            values[name] = value if pattern.fullmatch(value) else ""
        return cls(**values)

    def search(self) -> str:
        """Return the query of a URL, `?` included; empty when all values are default."""
        given = [(key, getattr(self, name)) for name, key, _ in _parameters(fields(self))]
        text = "&".join(f"{key}={quote(value, safe=':=,@/')}" for key, value in given if value)
        return f"?{text}" if text else ""


class PageQuery(Query):
    """The parameters of a page with filters: one is the system, wherever its field stands."""

    system: str


def _pairs(search: str, most: int) -> list[tuple[str, str]]:
    """Return the keys and values of a query. Raise MalformedError if it is none."""
    try:
        return parse_qsl(
            search.removeprefix("?"),
            keep_blank_values=True,
            strict_parsing=search not in ("", "?"),
            errors="strict",
            max_num_fields=most,
        )
    except ValueError as error:
        raise MalformedError("the query is malformed") from error


@cache
def _parameters(of: tuple[Field[Any], ...]) -> list[tuple[str, str, re.Pattern[str]]]:
    """Return for each field its name, its key in the URL, and the pattern of its values."""
    return [(each.name, each.metadata["key"], each.metadata["pattern"]) for each in of]


def choose(options: list[str], wanted: str, what: str, *, strict: bool) -> str:
    """Return `wanted` if it is an option, else the first option.

    strict: for a link, a wanted value that is not an option raises `UnknownError`. Otherwise, for a
    filter whose value another filter made invalid, it is replaced: a layout by the first with its
    nodes and processes, which another page may have written in its own way.
    """
    if wanted in options:
        return wanted
    if wanted and strict:
        raise UnknownError(f"The store holds no {what} {wanted!r} here.")
    if not options:
        raise UnmeasuredError(f"The store holds no {what} here: run `switchpoint run`.")
    shape = _shape(wanted)
    return next((each for each in options if shape and _shape(each) == shape), options[0])


def _shape(value: str) -> str:
    found = _LAYOUT.fullmatch(value)
    return found["shape"] if found else ""

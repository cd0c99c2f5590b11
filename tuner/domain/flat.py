"""Nested records as flat rows, the form of keys in the store, frames and documents."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar, get_type_hints

R = TypeVar("R", bound=NamedTuple)


def is_record(kind: Any) -> bool:
    """Return whether a type is one of records, whose fields are flat in documents."""
    return isinstance(kind, type) and hasattr(kind, "_fields")


@cache
def columns(kind: type[NamedTuple]) -> tuple[str, ...]:
    """Return the names of a record's fields, those of nested records in their place."""
    found: list[str] = []
    for name, its in get_type_hints(kind).items():
        found += columns(its) if is_record(its) else [name]
    return tuple(found)


def values(record: NamedTuple) -> Iterator[Any]:
    """Yield the values of `columns`."""
    for value in record:
        if is_record(type(value)):
            yield from values(value)
        else:
            yield value


def flat(record: NamedTuple) -> dict[str, Any]:
    """Return the values by the names of `columns`."""
    return dict(zip(columns(type(record)), values(record), strict=True))


def take(kind: type[R], row: Iterator[Any]) -> R:
    """Return the record whose `values` come next in a row; truth values may be numbers."""
    return kind(*[taker(row) for taker in _takers(kind)])


@cache
def _takers(kind: type[NamedTuple]) -> list[Callable[[Iterator[Any]], Any]]:
    """Return a function for each field that takes its value from a row."""
    return [
        partial(take, its) if is_record(its) else _truth if its is bool else next
        for its in get_type_hints(kind).values()
    ]


def _truth(row: Iterator[Any]) -> bool:
    return bool(next(row))

"""Stamps, by which links hold what the store had of their systems when they were made."""

import re
from collections.abc import Collection, Iterable
from hashlib import sha256

from dashboard.query import Query
from dashboard.snapshot import kept
from tuner.store.store import Store

_STAMPED = re.compile(r"(?P<link>.*)[?&]v=(?P<stamp>[0-9]{1,9}-[0-9a-f]{8})")


def named_by(query: Query) -> list[str]:
    """Return the systems that a query names."""
    return [name for key in ("system", "other_system") if (name := getattr(query, key, ""))]


def stamped(store: Store, query: Query, systems: Iterable[str]) -> str:
    """Return the link of a query, with the stamp of what the store has of some systems now."""
    link = query.search()
    return f"{link}{'&' if link else '?'}v={_stamp(store, frozenset(systems))}"


def split(search: str) -> tuple[str, str]:
    """Return a link without its stamp, and the stamp, or ""."""
    found = _STAMPED.fullmatch(search)
    return (found["link"], found["stamp"]) if found else (search, "")


def difference(store: Store, systems: Iterable[str], made: str) -> str:
    """Return how the store differs from a stamp of the systems, or "" if it does not."""
    now = _stamp(store, frozenset(systems))
    if made in ("", now):
        return ""
    before, after = (int(each.partition("-")[0]) for each in (made, now))
    if before == after:
        return "The number of launches is the same, but the launches or the table differ."
    return f"It had {before} launches of what is shown, and has {after} now."


@kept(64)
def _stamp(store: Store, systems: Collection[str]) -> str:
    """Return the number of launches, and a digest of these and of the tables' origins."""
    launches = [each for each in store.launches().values() if each.system in systems]
    held = sorted(each.content for each in launches)
    for system in sorted(systems):
        if its := store.provenance(system):  # as few fields as say which table it is
            origin = (its.system, its.date, its.commit, its.campaigns, its.required_executions)
            held.append(repr(origin))
    return f"{len(launches)}-{sha256(repr(held).encode()).hexdigest()[:8]}"

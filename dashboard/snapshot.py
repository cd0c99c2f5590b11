"""A store in the current state of its file: results may be cached until the file changes."""

from dataclasses import dataclass, field
from functools import lru_cache

from tuner.domain.tables import Table
from tuner.store.store import Store


@dataclass(frozen=True)
class Snapshot:
    """An argument for cached functions. Snapshots of the same unchanged file are equal.

    The store is only open during the call that computes.
    """

    state: tuple[str, int, int, int]
    store: Store = field(compare=False)


def snapshot(store: Store) -> Snapshot:
    """Return the snapshot of an open store."""
    status = store.path.stat()
    state = (str(store.path), status.st_mtime_ns, status.st_size, status.st_ino)
    return Snapshot(state, store)


def table_of(store: Store, system: str) -> Table | None:
    """Return the table of a system, None when it has none; cached, as most pages show it."""
    return _table(snapshot(store), system)


@lru_cache(maxsize=32)
def _table(now: Snapshot, system: str) -> Table | None:
    return now.store.table(system)

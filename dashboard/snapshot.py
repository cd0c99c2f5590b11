"""A store in the current state of its file: results may be cached until the file changes."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from tuner.domain.tables import Table
from tuner.store.database import MissingStoreError, StoreError
from tuner.store.store import Store

P = ParamSpec("P")
R = TypeVar("R")

_files: WeakKeyDictionary[Store, int] = WeakKeyDictionary()
"""The number of each open store's file: an open file stays the old one where it is replaced."""


@dataclass(frozen=True)
class Snapshot:
    """An argument for cached functions. Snapshots of the same unchanged file are equal.

    The store is only open during the call that computes.
    """

    state: tuple[str, int, int, int]
    store: Store = field(compare=False)


def opened(path: Path, busy_timeout_s: float) -> Store:
    """Return a store that is open for reading. Raise StoreError."""
    file = _status(path).st_ino  # before, so that one that is replaced meanwhile differs
    store = Store.open(path, readonly=True, busy_timeout_s=busy_timeout_s)
    _files[store] = file
    return store


def snapshot(store: Store) -> Snapshot:
    """Return the snapshot of an open store. Raise StoreError if its file is another by now."""
    status = _status(store.path)
    if _files.setdefault(store, status.st_ino) != status.st_ino:
        raise StoreError(f"{store.path}: was replaced while it was read; try again")
    state = (str(store.path), status.st_mtime_ns, status.st_size, status.st_ino)
    return Snapshot(state, store)


def _status(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except FileNotFoundError as error:
        raise MissingStoreError(path) from error
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error


def kept(
    most: int,
) -> Callable[[Callable[Concatenate[Store, P], R]], Callable[Concatenate[Store, P], R]]:
    """Return a decorator that caches the `most` last results until the store's file changes.

    All callers share the results, and may not change them.
    """

    def decorate(compute: Callable[Concatenate[Store, P], R]) -> Callable[Concatenate[Store, P], R]:
        @lru_cache(maxsize=most)
        def of_snapshot(now: Snapshot, *args: P.args, **kwargs: P.kwargs) -> R:
            return compute(now.store, *args, **kwargs)

        @wraps(compute)
        def of_store(store: Store, /, *args: P.args, **kwargs: P.kwargs) -> R:
            return of_snapshot(snapshot(store), *args, **kwargs)

        return of_store

    return decorate


@kept(32)
def table_of(store: Store, system: str) -> Table | None:
    """Return the table of a system, None when it has none; cached, as most pages show it."""
    return store.table(system)

"""A store in the current state of its file: results may be cached until the file changes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from typing import Concatenate, ParamSpec, TypeVar

from tuner.domain.tables import Table
from tuner.store.database import MissingStoreError, StoreError
from tuner.store.store import Store

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Snapshot:
    """An argument for cached functions. Snapshots of the same unchanged file are equal.

    The store is only open during the call that computes.
    """

    state: tuple[str, int, int, int]
    store: Store = field(compare=False)


def snapshot(store: Store) -> Snapshot:
    """Return the snapshot of an open store. Raise StoreError if its file is another by now."""
    try:
        status = store.path.stat()
    except FileNotFoundError as error:
        raise MissingStoreError(store.path) from error
    except OSError as error:
        raise StoreError(f"{store.path}: cannot be read: {error.strerror}") from error
    if store.inode not in (0, status.st_ino):
        raise StoreError(f"{store.path}: was replaced while it was read; try again")
    state = (str(store.path), status.st_mtime_ns, status.st_size, status.st_ino)
    return Snapshot(state, store)


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

        last: list[Snapshot] = []

        @wraps(compute)
        def of_store(store: Store, /, *args: P.args, **kwargs: P.kwargs) -> R:
            now = snapshot(store)
            if last != [now]:
                of_snapshot.cache_clear()
                last[:] = [now]
            return of_snapshot(now, *args, **kwargs)  # type: ignore[arg-type]  # all are hashable

        return of_store

    return decorate


@kept(32)
def cached_table(store: Store, system: str) -> Table | None:
    """Return the table of a system, None when it has none; cached, as most pages show it."""
    return store.table(system)

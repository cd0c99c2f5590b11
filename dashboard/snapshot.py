"""A store in the current state of its file: results may be cached until the file changes."""

from dataclasses import dataclass, field

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

"""Results that are kept until the store's file changes."""

import gc
import os
import weakref
from collections import Counter
from pathlib import Path

import pytest

from dashboard.snapshot import cached_table, kept
from tuner.store.database import StoreError
from tuner.store.store import Store


def test_results_of_earlier_states_of_a_store_are_dropped(tmp_path: Path) -> None:
    """A server runs for months, and each ingest makes another state."""
    computed: list[weakref.ref[Counter[str]]] = []

    @kept(64)
    def compute(store: Store) -> Counter[str]:
        result = Counter[str]()
        computed.append(weakref.ref(result))
        return result

    path = tmp_path / "switchpoint.db"
    Store.open(path).close()
    for time_s in range(3):
        os.utime(path, (time_s, time_s))
        with Store.open(path, readonly=True) as store:
            assert compute(store) is compute(store)
    gc.collect()
    assert [each() is not None for each in computed] == [False, False, True]


def test_results_of_a_store_that_was_replaced_are_not_kept(tmp_path: Path, database: Path) -> None:
    """They would be taken for those of the new file."""
    path, other = tmp_path / "switchpoint.db", tmp_path / "other.db"
    path.write_bytes(database.read_bytes())
    Store.open(other).close()
    with Store.open(path, readonly=True, busy_timeout_s=0) as store:
        other.replace(path)
        with pytest.raises(StoreError, match="was replaced while it was read"):
            cached_table(store, "any")
        path.unlink()
        with pytest.raises(StoreError, match="no store there"):
            cached_table(store, "any")

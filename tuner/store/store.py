"""The store: one SQLite file, with a class for each group of its tables."""

from tuner.store.cells import Cells
from tuner.store.launches import Launches
from tuner.store.records import Records
from tuner.store.tables import Tables


class Store(Launches, Cells, Records, Tables):
    """An open store with its tables. Use it as a context manager, or close it."""

"""What pages tell of soaks: how often a method was executed before it is chosen."""

from collections.abc import Iterable

from tuner import soaks
from tuner.records import DEFAULT_METHODS, Soaked
from tuner.soaks import Method
from tuner.store import Store


class Standing:
    """How methods of a system came out of their soaks."""

    def __init__(self, of_system: Iterable[Soaked]) -> None:
        self._known: dict[Method, Soaked] = {(its.operation, its.method): its for its in of_system}

    def text(self, operation: str, method: str) -> str:
        """In words; "" of the default, which needs none."""
        its = self._known.get((operation, method))
        if its is not None and its.failure:
            return "failed its soak"
        if method == DEFAULT_METHODS[operation]:
            return ""
        return f"soaked {its.executions:,} times" if its and its.executions else "not soaked"


def of_table(store: Store, system: str) -> Standing:
    """As the table knew them when it was made."""
    table = store.table(system)
    return Standing(table.provenance.soaks if table else ())


def of_now(store: Store, system: str) -> Standing:
    """As they are by now."""
    return Standing(soaks.verdicts(store.soaks(system)))

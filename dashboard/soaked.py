"""What pages tell of soaks: how often a method was executed before it is chosen."""

from collections.abc import Iterable

from tuner.operations import DEFAULT_METHODS
from tuner.selection import soaks
from tuner.selection.soaks import Method
from tuner.store import Store
from tuner.tables import Soaked


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
    provenance = store.provenance(system)
    return Standing(provenance.soaks if provenance else ())


def of_now(store: Store, system: str) -> Standing:
    """As they are by now."""
    return Standing(soaks.verdicts(store.soaks(system)))

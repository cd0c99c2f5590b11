"""Soaks as the pages show them: how often a method was executed."""

from collections.abc import Iterable

from dashboard.snapshot import kept
from tuner.domain.operations import DEFAULT_METHODS
from tuner.domain.tables import Soaked
from tuner.machine.simulation import machines
from tuner.selection import tuning
from tuner.selection.soaks import SoakedMethod
from tuner.store.store import Store


class SoakResults:
    """The results of the soaks of a system's methods."""

    def __init__(self, system: str, of_system: Iterable[Soaked]) -> None:
        self._needed = not machines.is_simulated(system)
        self._known: dict[SoakedMethod, Soaked] = {
            (its.operation, its.method): its for its in of_system
        }

    def text(self, operation: str, method: str, nodes: int, ppn: int) -> str:
        """Return the soak on a layout in words, or the failure of the method on any.

        "" if none is needed: for the default, on a simulated machine.
        """
        its = self._known.get((operation, method))
        if its is not None and its.failure:
            return "failed its soak"
        if method == DEFAULT_METHODS[operation] or not self._needed:
            return ""
        places = its.places if its else ()
        count = sum(at.executions for at in places if (at.nodes, at.ppn) == (nodes, ppn))
        return f"soaked {count:,} times" if count else "not soaked"


def of_table(store: Store, system: str) -> SoakResults:
    """Return the soaks known when the table was made."""
    provenance = store.provenance(system)
    return SoakResults(system, provenance.soaks if provenance else ())


def of_now(store: Store, system: str) -> SoakResults:
    """Return the soaks known now."""
    return SoakResults(system, outcomes(store, system))


@kept(32)
def outcomes(store: Store, system: str) -> list[Soaked]:
    """Return the outcomes for a system's soaked methods; cached, as many views show them."""
    return tuning.outcomes(store, system)

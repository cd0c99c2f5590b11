"""The command that measures a system in texts that name `switchpoint run`."""

import re
from typing import Any

from dashboard.choice import systems_of
from dashboard.frames import described
from tuner.domain.operations import FOREIGN
from tuner.machine.simulation import machines
from tuner.selection import next_step
from tuner.store.store import Store

_RUN = "`switchpoint run"


def measuring_lines(system: dict[str, Any]) -> list[str]:
    """Return the lines for a shell that measure a system of `Store.systems` again."""
    return next_step.measuring_lines(system["name"], system["environment"], system["cpu_model"])


def with_own_commands(text: str, store: Store, system: str) -> str:
    """Return a text in which each `switchpoint run` is the one that measures a system."""
    if _RUN not in text:
        return text
    its = described(systems_of(store), system)
    if its["name"].startswith(FOREIGN) and f"{_RUN} -- " in text:
        return "PICO does not measure this."
    if machines.is_simulated(its["name"]) and "--tag=" in text:
        return "Simulated machines do not measure this."
    *_, line = measuring_lines(its)
    of_reframe = re.sub(
        rf"{_RUN} -- ([^`]*)", lambda found: f"`{next_step.with_options(line, found[1])}", text
    )
    return of_reframe.replace(f"{_RUN}`", f"`{line}`")

"""The commands that measure a system, as far as this machine knows them."""

from shlex import quote
from typing import Any

from dashboard.choice import SIMULATED, systems_of, unreal
from tuner.campaign.reframe import CHECKS
from tuner.store.store import Store

_RUN = "`switchpoint run"


def measuring(system: dict[str, Any]) -> list[str]:
    """Return the lines for a shell that measure a system of `Store.systems` again."""
    kind = unreal(system["name"], system["cpu_model"])
    environment = f" --environment {quote(system['environment'])}"
    if kind == SIMULATED:
        machine = system["name"].rpartition(":")[2]
        config = "--config checks/config/simulated.py"
        return [f"SWITCHPOINT_SIMULATE={quote(machine)} switchpoint run {config}"]
    if kind:
        return [f"switchpoint run --system nodes{environment}"]
    site, of_partition, _ = system["name"].partition(":")
    if site == "local" or not of_partition:
        return [f"switchpoint run{environment}"]
    here = {path.stem: path for path in (CHECKS / "config").glob("*.py")}
    if site in here:
        return [f"switchpoint run --config {quote(str(here[site]))}{environment}"]
    file = quote(f"{site}.py")
    return [
        f"# {file}: the configuration of {site}, which `switchpoint site init` writes there",
        f"switchpoint run --config {file}{environment}",
    ]


def with_own_commands(text: str, store: Store, system: str) -> str:
    """Return a text in which each `switchpoint run` is the one that measures a system."""
    if _RUN not in text:
        return text
    rows = systems_of(store).set_index("system")
    *_, line = measuring(rows.loc[system].to_dict())
    return text.replace(_RUN, f"`{line}")

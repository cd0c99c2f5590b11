"""A site's ReFrame configuration: detected and chosen values, written by templates/site.py.j2."""

import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import templates
from tuner import atomic
from tuner.errors import SwitchpointError
from tuner.machine.sites.environments import Environment, reframe_name
from tuner.machine.sites.schedulers import Partition, Scheduler
from tuner.units import is_digits


class SiteError(SwitchpointError):
    """Error raised when a configuration cannot be made; the message says why and what to do."""


@dataclass(frozen=True)
class SiteConfiguration:
    """The contents of a configuration."""

    name: str
    hostnames: str  # a pattern of the login nodes' names
    scheduler: Scheduler
    partitions: Sequence[Partition]
    modules_system: str
    environments: Sequence[Environment]
    account: str = ""
    max_nodes: int | None = None  # None: all of a partition

    def text(self) -> str:
        """Return the configuration as Python."""
        return templates.render(
            "site.py.j2",
            name=self.name,
            hostnames=self.hostnames,
            modules_system=self.modules_system,
            scheduler=self.scheduler,
            partitions=[self._partition(partition) for partition in self.partitions],
            environments=self.environments,
        )

    def write(self, path: Path, replace: bool = False) -> None:
        """Write the configuration. Raise SiteError when there is one already."""
        if path.exists() and not (replace or atomic.is_stdout(path)):
            raise SiteError(f"{path}: already exists; --force replaces it")
        atomic.write(path, self.text())

    def _partition(self, partition: Partition) -> dict[str, Any]:
        options = [option.format(partition=partition.name) for option in self.scheduler.access]
        if self.account and self.scheduler.account:
            options.append(self.scheduler.account.format(account=self.account))
        return {
            "name": reframe_name(partition.name),
            "access": options,
            "shape": partition.shape,
            "max_nodes": min(partition.nodes, self.max_nodes or partition.nodes),
        }


def host_pattern() -> str:
    """Return a pattern of the names of hosts like this one: login[0-9]+ for login3."""
    parts = re.split(r"([0-9]+)", socket.gethostname().split(".")[0])
    return "".join("[0-9]+" if is_digits(part) else re.escape(part) for part in parts)


def host_stem() -> str:
    """Return this host's name without domain and trailing numbers."""
    return reframe_name(re.sub(r"[-0-9]+$", "", socket.gethostname().split(".")[0]))

"""Orders: what campaigns were to measure, kept beside the logs to find and resume partial ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tuner import atomic
from tuner.campaign.reframe import Call
from tuner.errors import SwitchpointError
from tuner.paths import results_directory
from tuner.rawfile import keeping


class OrderError(SwitchpointError):
    """Error raised when it is unknown what a campaign was to measure; the message says why."""


@dataclass(frozen=True)
class Order:
    """A campaign as it was requested."""

    campaign: str
    request: Call
    budget_s: float  # of a launch
    launches: int  # of all jobs
    stage: Path  # where jobs run

    @property
    def done(self) -> int:
        """Return the number of launches whose raw files are among the results."""
        return len(keeping.of_campaign(self.campaign))

    def __str__(self) -> str:
        counted = f"{self.done} of {self.launches} launches"
        if self.done >= self.launches:
            return f"campaign {self.campaign} has all {counted}"
        rest = f"`switchpoint run --resume {self.campaign}` measures the rest"
        return f"campaign {self.campaign} is partial: {counted}; {rest}"

    def write(self) -> None:
        """Write the order unless it exists."""
        path = _path(self.campaign)
        if not path.exists():
            atomic.write(path, json.dumps(asdict(self), indent=1, default=str) + "\n")


def read(campaign: str) -> Order:
    """Return the order of a campaign.

    Raises:
        OrderError: there is none, or it cannot be read.
    """
    path = _path(campaign)
    try:
        content = json.loads(path.read_text())
        request = content["request"]
        return Order(
            campaign=content["campaign"],
            request=Call(Path(request["config"]), request["selection"], request["variables"]),
            budget_s=content["budget_s"],
            launches=content["launches"],
            stage=Path(content["stage"]),
        )
    except FileNotFoundError as error:
        known = ", ".join(order.campaign for order in partial()) or "none"
        raise OrderError(f"no campaign {campaign} to resume; partial campaigns: {known}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise OrderError(f"{path}: no order of a campaign: {error!r}") from error


def partial() -> Iterator[Order]:
    """Yield the orders of campaigns with some of their launches, the oldest first."""
    for path in sorted(_path("").parent.glob(f"*{_SUFFIX}")):
        order = read(path.name.removesuffix(_SUFFIX))
        if 0 < order.done < order.launches:
            yield order


_SUFFIX = ".order.json"


def _path(campaign: str) -> Path:
    return results_directory() / "logs" / f"{campaign}{_SUFFIX}"

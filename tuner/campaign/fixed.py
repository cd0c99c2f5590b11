"""Campaigns whose launches are all known before they start: one batch."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from rich.console import Console

from tuner.campaign import reframe
from tuner.campaign.batch import Batch
from tuner.campaign.durations import BUILD_S, JOB_S, LEAST_LAUNCH_S, MOST_SOAKS_S, SOAKS_S
from tuner.campaign.order import FIXED, FixedOrder
from tuner.campaign.reframe import NOTHING, Call, Job, Session
from tuner.campaign.soaking import SoakRequest
from tuner.domain.effort import START_S
from tuner.machine.nodes import launch as virtual
from tuner.machine.simulation import machines
from tuner.rawfile import keeping

TIME_BUDGET = "time budget"  # swpbench's reason


@dataclass(frozen=True)
class FixedCampaign:
    """A campaign with the same number of launches for each job, which share its time."""

    order: FixedOrder
    planned: Session = NOTHING  # the missing launches
    file: ClassVar[dict[str, str]] = {}  # none of interest to programs

    @classmethod
    def make(cls, call: Call, planned: Session, seconds: float) -> FixedCampaign:
        """Return a campaign of the jobs of a dry run of a call, which names it."""
        name = call.variables["campaign"]
        systems = sorted({job.system for job in planned.jobs})
        call = replace(call, env=call.env | machines.naming(systems))
        where = str(planned.stage), systems, virtual.count(systems)
        order = FixedOrder(name, call, 0.0, planned.launches, *where)
        spare_s = seconds - cls(order, planned).expected_s
        budget_s = round(max(spare_s / planned.launches, LEAST_LAUNCH_S), 2)
        call = replace(call, variables=call.variables | {"budget_s": str(budget_s)})
        return cls(msgspec.structs.replace(order, call=call, budget_s=budget_s), planned)

    @property
    def config(self) -> Path:
        """Return ReFrame's configuration file."""
        return self.order.call.config

    @property
    def systems(self) -> list[str]:
        """Return ReFrame's systems on which it was begun, if they are known."""
        return self.order.systems

    @property
    def jobs(self) -> list[Job]:
        """Return the jobs with missing launches."""
        return self.planned.wanted

    @property
    def expected_s(self) -> float:
        """Return the campaign's seconds if every launch uses its whole budget, with soaks."""
        launches_s = self.planned.launches * (self.order.budget_s + START_S)
        builds = len({(job.system, job.environment) for job in self.jobs})
        return builds * BUILD_S + len(self.jobs) * JOB_S + launches_s + SOAKS_S

    def resume(self) -> FixedCampaign:
        """Return the campaign with its missing launches, if any.

        Raises:
            DispatchError: ReFrame cannot plan it.
        """
        if self.order.done >= self.order.launches:
            return self
        planned = reframe.dry_run(self.order.call).clear()
        launches = self.order.done + planned.launches  # of other layouts, perhaps
        return FixedCampaign(msgspec.structs.replace(self.order, launches=launches), planned)

    def document(self) -> dict[str, Any]:
        """Return what would run as a document for programs."""
        return {
            "launches": self.planned.launches,
            "budget_s": self.order.budget_s,
            "expected_s": self.expected_s,
            "jobs": [asdict(job) for job in self.planned.jobs],
        }

    def run(self, console: Console) -> list[Path]:
        """Measure the missing launches, and return all raw files, which are then in the store.

        Raises:
            DispatchError: a job failed, or did not run; the finished launches are kept.
            KeyboardInterrupt, SystemExit: interrupted or terminated; finished launches are kept.
        """
        order = self.order
        if self.planned.launches:
            FIXED.save(order, FIXED.path_of(order.campaign))
            batch = Batch(
                *(order.campaign, "measuring", order.call, self.planned),
                # ReFrame may find other jobs than at first.
                order.done + self.planned.launches,
                self.expected_s,
            )
            session = batch.run(console)
            _show_left_out(keeping.of_campaign(order.campaign), console)
            batch.require_all(session)
            session.clear()
        return keeping.of_campaign(order.campaign)

    def soak_request(self, required: int) -> SoakRequest:
        """Return the request for soaks of the winners."""
        systems = self.systems or [job.system for job in self.planned.jobs]
        return SoakRequest.of(self.order.call, systems, required, MOST_SOAKS_S)


def _show_left_out(raw_files: list[Path], console: Console) -> None:
    """Print how many cases launches left out, and why, the most frequent reason first."""
    skipped = (case for path in raw_files for case in keeping.end_record(path).skipped)
    for reason, count in Counter(case.reason for case in skipped).most_common():
        advice = "; raise `--minutes`, or use an idle machine" if reason == TIME_BUDGET else ""
        console.print(f"left out: {count} cases: {reason}{advice}")

"""Both kinds of campaigns of `switchpoint run`, found by the order of an earlier run.

Both have the members with which a campaign is resumed, shown, run and soaked.
"""

import re
from dataclasses import replace
from pathlib import Path

from tuner.campaign import reframe
from tuner.campaign.fixed import FixedCampaign
from tuner.campaign.order import FIXED, PLANS, OrderError, begun_elsewhere, partial_campaigns
from tuner.campaign.planned import PlannedCampaign
from tuner.campaign.plans import MOST_LAUNCHES, Budget
from tuner.campaign.reframe import Call
from tuner.domain.records import NAME
from tuner.files import shown
from tuner.machine.simulation import machines
from tuner.paths import campaign_name, new_campaign

AnyCampaign = FixedCampaign | PlannedCampaign

LAUNCHES = 6
"""Launches of a fixed campaign, unless others are asked for: six settle most sizes."""


def make(
    call: Call, budget: Budget, launches: int | None, *, only_shown: bool = False
) -> AnyCampaign:
    """Return a campaign over the jobs that ReFrame would run by a call: a race, if any can race.

    Unless it is only shown, its name is reserved.

    Raises:
        DispatchError: nothing would run, or not everything that was asked for.
        OrderError: the budget does not suit, or several partitions would have one name, or a
            simulated machine another one.
    """
    name = campaign_name() if only_shown else new_campaign()
    call = replace(call, variables={"campaign": name, **call.variables})
    fixed = {"launches": str(launches or LAUNCHES)}
    # Campaigns set budgets later; any here makes the dry run refuse another's, as of -S budget_s.
    wanted = replace(call, variables=call.variables | fixed | {"budget_s": "0.001"})
    session = reframe.dry_run(wanted, strict=True).clear()
    partitions = sorted({job.system for job in session.wanted})
    if "system_name" in call.variables:
        if any(map(machines.is_simulated, partitions)):
            # Whether results are simulated is seen by the name of their system.
            raise OrderError("--anonymous-as: simulated machines have no host names to leave out")
        if len(partitions) > 1:
            raise OrderError(
                f"--anonymous-as names one partition, not {', '.join(partitions)}; select one, as "
                f"by `-- --system={partitions[0]}`"
            )
    if any(job.races for job in session.wanted):
        return PlannedCampaign.make(call, session, budget, launches or MOST_LAUNCHES)
    if budget.share:
        raise OrderError(
            "a budget in % needs a race, but none of the selected checks races: use --minutes"
        )
    return FixedCampaign.make(
        replace(call, variables=call.variables | fixed), session, budget.seconds
    )


def find(name: str) -> AnyCampaign:
    """Return the named campaign, whose order says what is executed.

    Raises:
        OrderError: no such campaign, an invalid name, an unreadable order, or another machine
            has begun it.
    """
    if re.fullmatch(NAME, name):
        if (path := PLANS.path_of(name)).is_file():
            return _named(name, PlannedCampaign.load(path), path)
        if (path := FIXED.path_of(name)).is_file():
            return _named(name, FixedCampaign(FIXED.load(path)), path)
    known = ", ".join(partial_campaigns(only_readable=True)) or "none"
    raise OrderError(f"no campaign {name} to resume; partial campaigns: {known}")


def _named(name: str, campaign: AnyCampaign, path: Path) -> AnyCampaign:
    """Return a campaign whose order has its name and that began here. Raise OrderError."""
    if campaign.order.campaign != name:
        raise OrderError(f"{shown(path)}: the order of campaign {campaign.order.campaign}")
    if other := begun_elsewhere(name, campaign.systems):
        raise OrderError(f"campaign {name} began on another machine, {other}; resume it there")
    return campaign

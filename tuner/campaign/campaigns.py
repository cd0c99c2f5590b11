"""Both kinds of campaigns of `switchpoint run`, found by the order of an earlier run.

Both have the members with which a campaign is resumed, shown, run and soaked.
"""

from tuner.campaign.fixed import FixedCampaign
from tuner.campaign.order import FIXED, PLANS, OrderError, partial
from tuner.campaign.planned import PlannedCampaign

AnyCampaign = FixedCampaign | PlannedCampaign


def find(name: str) -> AnyCampaign:
    """Return the named campaign. Raise OrderError when there is none, or it is unreadable."""
    if (path := PLANS.path_of(name)).is_file():
        return PlannedCampaign.load(path)
    if (path := FIXED.path_of(name)).is_file():
        return FixedCampaign(FIXED.load(path))
    known = ", ".join(order.campaign for order in partial()) or "none"
    raise OrderError(f"no campaign {name} to resume; partial campaigns: {known}")

"""Exchanges whose receivers know their senders: seeded random, hub, and a real matrix's halo."""

import reframe as rfm
from reframe.core.builtins import parameter

from checks.campaign import CampaignCheck


@rfm.simple_test
class exchange(CampaignCheck):
    """Every exchange method, in randomised rounds."""

    descr = "exchange methods"
    operation = "exchange"
    pattern = parameter(
        ["random:degree=6,seed=1", "hub:hubs=2,seed=1", "matrix:bar"], loggable=True
    )

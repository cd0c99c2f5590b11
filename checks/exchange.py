"""The check of exchanges whose receivers know their senders: random, hub, and matrix halos."""

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

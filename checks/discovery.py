"""The check of exchanges whose receivers do not know their senders."""

import reframe as rfm
from reframe.core.builtins import parameter

from checks.campaign import CampaignCheck


@rfm.simple_test
class discovery(CampaignCheck):
    """Every discovery method, in randomised rounds."""

    descr = "discovery methods"
    operation = "discovery"
    pattern = parameter(["random:degree=6,seed=1", "hub:hubs=2,seed=1"], loggable=True)

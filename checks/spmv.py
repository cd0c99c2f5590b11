"""The check of products of a real matrix with one and eight vectors, over every exchange method."""

import reframe as rfm
from reframe.core.builtins import parameter

from checks.campaign import CampaignCheck


@rfm.simple_test
class spmv(CampaignCheck):
    """Whole products, and the exchange and the local part of each on their own."""

    descr = "sparse products over exchange methods"
    operation = "spmv"
    pattern = parameter(["matrix:bar"], loggable=True)

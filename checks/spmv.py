"""The check of products of a real matrix and one or eight vectors, with every exchange method."""

import reframe as rfm
from reframe.core.builtins import parameter

from checks.campaign import CampaignCheck


@rfm.simple_test
class spmv(CampaignCheck):
    """Whole products, and their exchange and local part alone."""

    descr = "sparse products with exchange methods"
    operation = "spmv"
    pattern = parameter(["matrix:bar"], loggable=True)
    tags = set()  # no tables are made of it

"""Collectives, which have blocks in the place of a pattern."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from checks.campaign import CampaignCheck
from tuner.records import COLLECTIVES

# What applications call most; the others are measured where they are asked for by name.
MOST_CALLED = ("bcast", "allreduce")


@rfm.simple_test
class collective(CampaignCheck):
    """Every method of one collective, in randomised rounds."""

    descr = "collective methods"
    kind = parameter(list(COLLECTIVES), loggable=True)
    pattern = variable(str, value="blocks")
    tags = set()

    @run_after("init")
    def set_operation(self):
        """The operation is the parameter here."""
        self.operation = self.kind
        if self.is_first:
            self.tags = self.tags | {"tuning"}

    @property
    def is_first(self) -> bool:
        """Of nine operations, two."""
        return self.kind in MOST_CALLED

"""The check of the overlap of communication and computation."""

import reframe as rfm
from reframe.core.builtins import parameter

from checks.campaign import CampaignCheck


@rfm.simple_test
class overlap(CampaignCheck):
    """The data of `switchpoint show overlap`: many small messages, a few large ones, a product."""

    descr = "overlap of communication and computation"
    # Computing takes no time on a simulated processor.
    valid_systems = ["+mpi -simulated"]
    command = "overlap"
    operation = "overlap"
    pattern = parameter(
        ["ft:rows=32,elements=512", "ft:rows=1,elements=16384", "spmv:rows=4096,nonzeros=64"],
        loggable=True,
    )
    scale = parameter(["1_node", "2_nodes"], loggable=True)
    tags = {"overlap"}

    def measured_options(self, number: int, pattern: str) -> dict[str, str]:
        """Return options for all amounts of computation; the pattern includes the sizes."""
        return {
            "--pattern": pattern,
            "--methods": self.methods,
            "--budget": f"{self.budget_s:g}",
            "--seed": str(number + 1),
        }

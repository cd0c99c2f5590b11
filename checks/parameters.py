"""The check of the models' parameters: probes between pairs of ranks, on a node and between two."""

import reframe as rfm
from reframe.core.builtins import parameter

from checks.campaign import CampaignCheck


@rfm.simple_test
class parameters(CampaignCheck):
    """The probes from which `switchpoint fit` finds LogGP and max-rate parameters."""

    descr = "probes of the parameters of models"
    # A simulated clock stands still while a rank polls it, and for what a rank computes.
    valid_systems = ["+mpi -simulated"]
    command = "probe"
    operation = "probe"
    pattern = parameter(["pairs"], loggable=True)
    scale = parameter(["1_node", "2_nodes"], loggable=True)
    tags = {"parameters"}

    @property
    def launch_limit_s(self) -> float:
        """Return the limit in seconds; probes take 40 s a launch at 1 Gbit/s."""
        return 180

    def measured_options(self, number: int, pattern: str) -> dict[str, str]:
        """Return the sizes; a launch has no other budget than the number of samples."""
        return {"--sizes": self.sizes or "1:1M:x2", "--max-samples": "30"}

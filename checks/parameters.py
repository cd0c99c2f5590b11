"""The check of model parameters: probes between pairs of ranks, on a node and between nodes."""

import reframe as rfm
from reframe.core.builtins import parameter

from checks.campaign import CampaignCheck


@rfm.simple_test
class parameters(CampaignCheck):
    """The probes to which `switchpoint fit` fits LogGP and max-rate parameters."""

    descr = "probes of model parameters"
    # A simulated clock stands still while a rank polls it, and while a rank computes.
    valid_systems = ["+mpi -simulated"]
    command = "probe"
    operation = "probe"
    pattern = parameter(["pairs"], loggable=True)
    scale = parameter(["1_node", "2_nodes"], loggable=True)
    tags = {"parameters"}

    def launch_limit_s(self, number: int) -> float:
        """Return the limit in seconds; probes take 40 s a launch at 1 Gbit/s."""
        return 180

    def measured_options(self, number: int, pattern: str) -> dict[str, str]:
        """Return the sizes and the number of samples, which is the only budget of a launch."""
        return {"--sizes": self.sizes or "1:1M:x2", "--max-samples": "30"}

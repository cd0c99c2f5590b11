"""The check of collectives, which have blocks instead of a pattern."""

import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from checks.campaign import CampaignCheck
from tuner.domain.operations import BY_ENVIRONMENT, COLLECTIVES, MOST_CALLED


@rfm.simple_test
class collective(CampaignCheck):
    """Every method of one collective, in randomised rounds."""

    descr = "collective methods"
    kind = parameter(list(COLLECTIVES), loggable=True)
    pattern = variable(str, value="blocks")
    # Names, separated by commas, of algorithms that only the MPI library's environment selects.
    # After each launch, each of them gets a launch of the same number, which is not interleaved.
    apart = variable(str, value="")
    tags = set()

    @run_after("init")
    def set_operation(self) -> None:
        """Set the operation from the parameter."""
        self.operation = self.kind
        if self.kind in MOST_CALLED:
            self.tags = self.tags | {"tuning"}

    @property
    def runs(self) -> int:
        """Return the number of launches, including those of the algorithms in `apart`."""
        return super().runs * (1 + len(self.by_environment))

    @property
    def interleaved(self) -> bool:
        """Return whether no algorithm has launches of its own."""
        return not self.by_environment

    @property
    def by_environment(self) -> list[str]:
        """Return the names in `apart`."""
        return [name for name in self.apart.split(",") if name]

    def measured_options(self, number: int, pattern: str) -> dict[str, str]:
        """Return options for all methods, or for the algorithm in `apart` that a launch has."""
        launch, turn = divmod(number, 1 + len(self.by_environment))
        options = super().measured_options(launch, pattern) | {"--launch": str(launch)}
        if turn:
            options["--methods"] = BY_ENVIRONMENT + self.by_environment[turn - 1]
        return options

    @property
    def is_first(self) -> bool:
        """Return whether this is one of the two operations that represent all collectives."""
        return self.kind in MOST_CALLED[:2]

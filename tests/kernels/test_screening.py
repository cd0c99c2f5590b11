"""The screening of what the library proposes for a race, of which it refuses some on a layout."""

import re

import pytest

from tests.kernels.benchrun import SWPBENCH
from tests.kernels.conftest import Kernels
from tests.round_machine import machine, pair
from tuner.campaign import launches, screening
from tuner.campaign.plans import PlannedCase, RacePlan
from tuner.domain.operations import COLLECTIVES, DEFAULT_METHODS, RULED_OPERATIONS
from tuner.machine.mpi import launch

BY_NODES = "twolevel|.*(levels|global)=|nap.*node="
ON_ONE = "shared|lent"
REFUSED = {
    (1, 1): BY_NODES,
    (2, 2): BY_NODES,
    (3, 3): f"{BY_NODES}|nap.*find=",
    (8, 8): f"{BY_NODES}|nap.*find=",
    (2, 1): f"{BY_NODES}|{ON_ONE}",
    (8, 1): f"{BY_NODES}|{ON_ONE}",
    (3, 2): f"{ON_ONE}|.*(leaders|levels|global)=",
    (8, 2): f"{ON_ONE}|.*leaders=4",
    (8, 4): ON_ONE,
}
"""By processes and those of a node, what the library refuses of the methods that it proposes."""


@pytest.mark.parametrize("operation", RULED_OPERATIONS)
def test_no_method_that_cannot_run_takes_the_place_of_another(
    kernels: Kernels, operation: str
) -> None:
    start = launch(kernels.mpi, 1, build=kernels.build)
    specs = launches.specs(start, kernels.build / SWPBENCH, {procs for procs, _ in REFUSED})
    model = machine(on_node=pair(), off_node=pair(10))
    pattern = "blocks" if operation in COLLECTIVES else "random:degree=2"
    for (procs, ppn), of_refused in REFUSED.items():
        case = PlannedCase("local:cpu", "mpi", operation, pattern, "", procs, ppn, [1, 65536])
        if operation == "exchange" and ppn > 1:  # there `shared` is for several nodes, too
            of_refused = of_refused.replace(ON_ONE, "lent")
        order = screening.ranked(model, case, specs[operation, procs])
        assert sorted(order) == sorted(specs[operation, procs])
        refused = [spec for spec in order if re.match(of_refused, spec)]
        assert order[len(order) - len(refused) :] == refused
        assert {*order}.difference(screening.runnable(case, order)) == {*refused}
        plan = RacePlan("20261121T034500Z", "", 600, [case], in_job=True)
        screening.choose(plan, [0], specs, lambda: screening.Known(model), {}, {})
        methods = plan.cases[0].methods or plan.cases[0].offered  # none stands for all
        assert len(methods) <= screening.MOST_RIVALS + 1
        assert DEFAULT_METHODS[operation] in methods

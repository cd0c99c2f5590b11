"""The methods that a race looks at first."""

from pathlib import Path

import pytest

from tests import probes
from tests.synthetic_plan import SyntheticMachine
from tests.test_predict import machine
from tuner.campaign import looks
from tuner.campaign.plans import Plan
from tuner.models import collectives, predict
from tuner.models.system import SystemModel

SPECS = collectives.methods("bcast", 16, 16)


def plan() -> Plan:
    return SyntheticMachine((), lambda *case: 0.0, "bcast").plan((16,))


def test_the_default_and_the_likeliest_of_many_methods_are_looked_at() -> None:
    specs = [*SPECS, "vendor:algorithm=linear", "vendor:algorithm=binomial", "vendor:algorithm=?"]
    assert len(specs) > looks.MOST_RIVALS + 1
    order = looks.ranked(machine(), plan().cases[0], specs)
    assert sorted(order) == sorted(specs)
    assert order[0] == "vendor"
    for size in plan().cases[0].sizes:
        best = predict.of_collective(machine(), "bcast", 16, 16, specs).best(size)
        assert best in order[: looks.MOST_RIVALS + 1]
    chosen = plan()
    looks.choose(chosen, [0], {("bcast", 16): specs}, machine)
    assert chosen.cases[0].methods == sorted(order[: looks.MOST_RIVALS + 1])


def test_few_methods_are_all_looked_at_without_a_probe() -> None:
    few = plan()
    looks.choose(few, [0], {("bcast", 16): SPECS[: looks.MOST_RIVALS + 1]}, no_probe)
    assert few.cases[0].methods == []


def no_probe() -> SystemModel:
    pytest.fail("a probe was made")


def test_a_probe_gives_parameters(tmp_path: Path) -> None:
    sizes = [4**power for power in range(11)]
    spec = probes.ProbeCampaign(probes.LAPTOP, sizes, launches=1, samples=12)
    (raw,) = probes.write(tmp_path, spec)
    model = looks.model_of(raw)
    assert looks.ranked(model, plan().cases[0], SPECS)[0] == "vendor"

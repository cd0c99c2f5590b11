"""What the library estimates by the model of a table is what `tuner.models` predicts.

Every method of the registry has a formula in both.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.halos import Messages, halo_of
from tests.kernels.benchrun import SWPBENCH
from tests.kernels.conftest import Kernels, in_turn
from tuner.domain.operations import COLLECTIVES, NO_DATA, NO_DATA_BYTES, RULED_OPERATIONS
from tuner.export.model_lines import model_lines
from tuner.inputs.structure.halo import Halo
from tuner.inputs.structure.methods import standard_specs
from tuner.models import collectives, discovery, exchange, predict
from tuner.models.loggp import LogGP
from tuner.models.loggp import LogGPProtocol as LogGPProtocol
from tuner.models.maxrate import MaxRate, Rates
from tuner.models.maxrate import RateProtocol as MaxRateProtocol
from tuner.models.parameter import Estimate, NotIdentified, Parameter
from tuner.models.system import PairModel, ProbedLayout, SystemModel

UNKNOWN = NotIdentified("not measured")
RELATIVE = 1e-9  # the table has ten digits of what is derived from parameters
EXACT = 1e-12
DYNAMIC = {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1"}  # so that Open MPI names its algorithms


class RandomParameters:
    """Random parameters."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)

    def _about(self, value: float) -> float:
        """Return a number of ten digits, as tables have."""
        return float(f"{value * np.exp(self._random.normal(0, 1)):.10g}")

    def _parameter(self, value: float) -> Parameter:
        found = self._about(value)
        return UNKNOWN if self._random.random() < 0.2 else Estimate(found, found, found)

    def _ends(self) -> list[int | None]:
        ends = self._random.choice(600, self._random.integers(0, 4), replace=False)
        return [*sorted(int(end) + 1 for end in ends), None]

    def _protocol(self, up_to: int | None) -> LogGPProtocol:
        send, receive, gap = (self._parameter(each) for each in (4e-7, 3e-7, 5e-7))
        return LogGPProtocol(
            from_bytes=1,
            up_to_bytes=up_to,
            alpha=UNKNOWN,
            beta=UNKNOWN,
            latency=UNKNOWN,
            overhead_send=send,
            overhead_receive=receive,
            gap=gap,
            gap_per_byte=self._parameter(1e-9),
            alpha_s=self._about(2e-6),
            beta_s=self._about(2e-9),
            loaded_gap=self._parameter(6e-7),
            loaded_gap_per_byte=self._parameter(2e-9),
            loaded_alpha=self._parameter(3e-6),
            loaded_beta=self._parameter(4e-9),
        )

    def _rates(self, up_to: int | None) -> MaxRateProtocol:
        of_one, most = self._about(4e8), int(self._random.integers(2, 6))
        b_inj = float(self._random.uniform(-0.9, 2) * of_one / (most - 1))
        rates = Rates(
            alpha_s=1e-6,
            b_max=None if self._random.random() < 0.2 else of_one,
            b_inj=b_inj,
            b_node=None if self._random.random() < 0.5 else self._about(9e8),
            most_processes=most,
        )
        return MaxRateProtocol(1, up_to, *(UNKNOWN,) * 4, rates)

    def _pair(self, *, swept: bool) -> PairModel:
        return PairModel(
            layout=ProbedLayout(1, 2, False, 1),
            loggp=LogGP([self._protocol(end) for end in self._ends()], 0.1),
            maxrate=MaxRate([self._rates(end) for end in self._ends()], 0.1) if swept else UNKNOWN,
            synchronous=self._parameter(1e-6),
        )

    def model(self) -> SystemModel:
        """Return a model of pairs on a node and between nodes."""
        pairs = {"on_node": self._pair(swept=False), "off_node": self._pair(swept=True)}
        memory = self._parameter(1e-9), self._parameter(5e-10)
        return SystemModel("a", "b", 1, pairs, *memory)

    def exchange(self, procs: int, density: float) -> Halo:
        """Return random messages of random items."""
        messages: Messages = {
            (a, b): set(map(int, self._random.integers(0, 20, self._random.integers(1, 12))))
            for a in range(procs)
            for b in range(procs)
            if a != b and self._random.random() < density
        }
        return halo_of(messages, procs)


def estimates(
    kernels: Kernels,
    directory: Path,
    model: SystemModel,
    halo: Halo,
    ppn: int,
    item_bytes: int,
    specs: Sequence[str] = (),
) -> tuple[dict[str, dict[str, float]], list[str]]:
    """Return seconds by operation and method, and what `auto` planned for each operation.

    Collectives have these specs too, and blocks of `item_bytes`.
    """
    table, exchange = directory / "a.table", directory / "exchange"
    table.write_text("\n".join(["switchpoint-table 1", *model_lines(model), ""]))
    lines = [f"{item_bytes} {len(halo.source)}"]
    for message, (source, destination) in enumerate(
        zip(halo.source.tolist(), halo.destination.tolist(), strict=True)
    ):
        slots = halo.slots[halo.first[message] : halo.first[message + 1]] - halo.begins[source]
        lines.append(" ".join(map(str, [source, destination, len(slots), *slots.tolist()])))
    exchange.write_text("\n".join(lines))
    arguments = [str(table), str(exchange), str(ppn), *specs]
    done = kernels.run("tests/swp_estimate", arguments, halo.procs, DYNAMIC)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, dict[str, float]] = {operation: {} for operation in RULED_OPERATIONS}
    for operation, spec, seconds in re.findall(r"^(\w+) (\S+) ([-+.e\d]+)$", done.stdout, re.M):
        if operation in found:
            found[operation][spec] = float(seconds)
    return found, re.findall(r"^auto: (.*)$", done.stdout, re.M)


@pytest.mark.parametrize(
    ("procs", "ppn"), [(1, 1), (2, 1), (3, 3), (5, 2), (8, 3), (8, 4), (12, 4)]
)
def test_exchanges_are_estimated_as_they_are_predicted(
    any_kernels: Kernels, tmp_path: Path, procs: int, ppn: int
) -> None:
    machine = RandomParameters(procs * 16 + ppn)
    model, halo = machine.model(), machine.exchange(procs, 0.4)
    item_bytes = 900 if procs == 12 else 7  # some messages do not fit the slots of `shared`
    found, autos = estimates(any_kernels, tmp_path, model, halo, ppn, item_bytes)
    shared = ["shared"] if exchange.has_layout("shared", procs, ppn) else []
    specs = [*shared, *found["exchange"]]
    times = predict.of_exchange(model, halo, ppn, specs).times(item_bytes)
    predicted = {spec: time_s for spec, time_s in times.items() if isinstance(time_s, float)}
    assert found["exchange"] == pytest.approx(predicted, rel=RELATIVE, abs=1e-30)
    assert set(predicted) >= set(standard_specs(procs))
    assert ("shared" in predicted) == (ppn > 1)
    assert ("nap:node=shared" in predicted) == (procs > ppn > 1)
    best = min(predicted, key=lambda spec: predicted[spec])
    chosen = best if predicted["direct"] > 1.15 * predicted[best] else "direct"
    assert autos[0].startswith(f"exchange {chosen},")
    assert f"estimated {predicted[chosen]:.3g} s" in autos[0]


@pytest.mark.parametrize(("procs", "ppn"), [(2, 2), (5, 5), (7, 3), (8, 4), (12, 3)])
def test_discoveries_are_estimated_as_they_are_predicted(
    any_kernels: Kernels, tmp_path: Path, procs: int, ppn: int
) -> None:
    """The hints describe this pattern in full: each rank sends as much to each other."""
    model = RandomParameters(procs).model()
    if procs > ppn:  # hints do not say who is on the node: all pairs cost the same here
        model.pairs["on_node"] = model.pairs["off_node"]
    pairs = ((a, b) for a in range(procs) for b in range(procs) if a != b)
    halo = halo_of({pair: {0, 1} for pair in pairs}, procs)
    found, autos = estimates(any_kernels, tmp_path, model, halo, ppn, item_bytes=8)
    specs = sorted({"shared", *discovery.methods(procs, ppn)})
    predicted = {
        spec: time_s
        for spec, time_s in predict.of_discovery(model, halo, ppn, specs).times(8).items()
        if isinstance(time_s, float)
    }
    estimated = {
        spec.partition(":barrier")[0]: time_s for spec, time_s in found["discovery"].items()
    }
    if procs == ppn:
        assert estimated == pytest.approx(predicted, rel=RELATIVE)
    else:  # so what is delivered on the node leaves it in the library's estimate
        assert sorted(estimated) == sorted(predicted)
        del (
            predicted["pex"],
            estimated["pex"],
        )  # which does not receive one by one, as the others do
        for spec in [spec for spec in estimated if re.match("shared|stfw|nap|put", spec)]:
            assert estimated.pop(spec) == pytest.approx(predicted.pop(spec), rel=RELATIVE)
        gaps = {spec: predicted[spec] - predicted["pcx"] for spec in predicted}
        assert {spec: estimated[spec] - estimated["pcx"] for spec in estimated} == pytest.approx(
            gaps, rel=1e-6, abs=1e-12
        )
    assert "estimated" in autos[1]


LIMITS = [
    *("bruck:radix=1", "bruck:radix=64", "bruck:radix=65", "bruck:radix=1024", "bruck:radix=1025"),
    *("bruck:global=2", "bruck:radix=2,global=1", "bruck:radix=3,global=5", "bruck:,global=2"),
    *("bruck:radix=2global=2", "bruck:levels=2", "bruck:levels=3", "bruck:radix=3,levels=2"),
    *("knomial:radix=2", "knomial:radix=3", "knomial:radix=64", "knomial:radix=65"),
    *("multiplying:radix=2", "multiplying:radix=3", "multiplying:radix=65"),
    *("chain:segment=15", "chain:segment=16", "chain:segment=1073741825"),
    *("bine", "bine:grid=1", "bine:grid=2", "bine:grid=2x4", "bine:grid=3x4", "bine:grid=x"),
    *("orthogonal:grid=8", "orthogonal:grid=1x8", "orthogonal:grid=2x4", "orthogonal:grid=4x3"),
    *("orthogonal:dims=1", "orthogonal:dims=2", "orthogonal:dims=31"),
    *("twolevel", "twolevel:node=shared", "twolevel:leaders=0", "twolevel:leaders=1025"),
    *("twolevel:leaders=1", "twolevel:leaders=2", "twolevel:leaders=3", "twolevel:leaders=4"),
    *("twolevel:node=shared,leaders=2", "twolevel:node=shared,leaders=4"),
    *("twolevel:node=mpi", "twolevel:node=mpi,leaders=2", "twolevel:leaders=2,leaders=4"),
    *("twolevel:", "bruck:radix=2,radix=8", "vendor:environment=linear,algorithm=linear"),
    *("shared", "pairwise", "scatter_allgather:allgather=star"),
]
"""Specs that the library takes for some operations and layouts, or for none."""

LAYOUTS = [(1, 1, 8), (2, 2, 100), (3, 3, 70000), (5, 2, 37), (6, 3, 64), (8, 8, 1000), (12, 4, 50)]
LARGE = pytest.param("mpich", (32, 8, 300), marks=pytest.mark.check)


@pytest.mark.parametrize(("kernels", "layout"), [*in_turn(LAYOUTS), LARGE], indirect=["kernels"])
def test_collectives_are_estimated_as_they_are_predicted(
    kernels: Kernels, tmp_path: Path, layout: tuple[int, int, int]
) -> None:
    """By all methods, but none that the library refuses, and by the algorithms of any library."""
    procs, ppn, size_bytes = layout
    machine = RandomParameters(procs)
    model, halo = machine.model(), machine.exchange(procs, 0.2)
    names = sorted(
        {*collectives.ALIASES, *(name for of in collectives.OTHERS.values() for name in of)}
    )
    algorithms = [f"vendor:algorithm={name}" for name in [*names, "magic"]]
    found, _ = estimates(kernels, tmp_path, model, halo, ppn, size_bytes, [*algorithms, *LIMITS])
    for operation in COLLECTIVES:
        if procs > ppn:  # on one machine: these nodes share memory
            found[operation].pop("shared", None)
        specs = list(found[operation])
        known = {spec for spec in LIMITS if collectives.formula(operation, spec, procs, ppn)}
        assert known == {*LIMITS} & {*specs}
        counted_bytes = NO_DATA_BYTES if operation in NO_DATA else size_bytes
        predicted = predict.of_collective(model, operation, procs, ppn, specs).times(counted_bytes)
        assert found[operation] == pytest.approx(predicted, rel=EXACT, abs=1e-30)
        assert set(specs) >= {*algorithms}
        own = {spec for spec in specs if not spec.startswith("vendor:")}
        assert own | {*LIMITS} == {*collectives.methods(operation, procs, ppn), *LIMITS}


def test_every_method_has_a_formula(kernels: Kernels, tmp_path: Path) -> None:
    """The library has one, and so have the models."""
    model = RandomParameters(1).model()
    known = {
        scope: replace(pair, synchronous=Estimate(1, 1, 1)) for scope, pair in model.pairs.items()
    }
    halo = halo_of({(rank, (rank + 1) % 8): {0} for rank in range(8)}, 8)
    found, _ = estimates(kernels, tmp_path, replace(model, pairs=known), halo, 4, 8)
    listed = kernels.run_alone(SWPBENCH, "list").stdout
    registry = set(re.findall(r"^(\w+) *\t(\w+)", listed, re.MULTILINE))
    assert {operation for operation, _ in registry} == set(RULED_OPERATIONS)
    estimated = {
        (operation, spec.partition(":")[0]) for operation, specs in found.items() for spec in specs
    }
    assert estimated == registry
    for operation, specs in found.items():
        if operation in COLLECTIVES:
            specs.pop("shared", None)  # which is for one node
            predictor = predict.of_collective(model, operation, 8, 4, list(specs))
        else:
            of = predict.of_exchange if operation == "exchange" else predict.of_discovery
            predictor = of(model, halo, 4, list(specs))
        assert set(predictor.times(8)) == set(specs)

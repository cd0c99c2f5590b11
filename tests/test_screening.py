"""The methods that the first launch of a case takes."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests import probes
from tests.decisions import on, point
from tests.round_machine import machine
from tests.synthetic_plan import SyntheticMachine
from tests.test_catalogue import lender, packed
from tuner.campaign import screening
from tuner.campaign.plans import RacePlan
from tuner.catalogue import shelf
from tuner.domain.tables import Ratio
from tuner.models import collectives, predict

SPECS = collectives.methods("bcast", 16, 16)


def plan() -> RacePlan:
    return SyntheticMachine((), lambda *case: 0.0, "bcast").plan((16,))


def test_the_default_and_the_likeliest_of_many_methods_are_screened() -> None:
    specs = [*SPECS, "vendor:algorithm=linear", "vendor:algorithm=binomial", "vendor:algorithm=?"]
    assert len(specs) > screening.MOST_RIVALS + 1
    order = screening.ranked(machine(), plan().cases[0], specs)
    assert sorted(order) == sorted(specs)
    assert order[0] == "vendor"
    for size in plan().cases[0].sizes:
        best = predict.of_collective(machine(), "bcast", 16, 16, specs).best(size)
        assert best in order[: screening.MOST_RIVALS + 1]
    chosen = plan()
    screening.choose(chosen, [0], {("bcast", 16): specs}, lambda: screening.Known(machine()), {})
    assert chosen.cases[0].methods == sorted(order[: screening.MOST_RIVALS + 1])


def test_methods_that_gained_on_a_like_system_are_screened_first() -> None:
    specs = [*SPECS, "vendor:algorithm=?"]
    default, *rivals = screening.ranked(machine(), plan().cases[0], specs)
    gained = point(default, operation="bcast")._replace(ratios=(Ratio(rivals[-1], 0.5),))
    crowded = on(gained, 1, 16, over=True)  # which says nothing of ranks with cores
    first = rivals[: screening.MOST_RIVALS]
    for its, expected in ((gained, [rivals[-1], *first[:-1]]), (crowded, first)):
        known, chosen = screening.Known(machine(), [its]), plan()
        screening.choose(chosen, [0], {("bcast", 16): specs}, lambda known=known: known, {})
        assert chosen.cases[0].methods == sorted([default, *expected])


def test_few_methods_are_all_screened_without_a_probe() -> None:
    few = plan()
    screening.choose(few, [0], {("bcast", 16): SPECS[: screening.MOST_RIVALS + 1]}, no_probe, {})
    assert few.cases[0].methods == []


def test_a_user_names_methods_singly_or_by_their_families() -> None:
    its = plan()
    words = ["chain", "knomial:radix=5", "binomial"]
    its.cases[0] = replace(its.cases[0], methods=words)
    screening.choose(its, [0], {("bcast", 16): [*SPECS, "vendor:algorithm=linear"]}, no_probe, {})
    chains = {spec for spec in SPECS if spec.startswith("chain")}
    assert len(chains) > 1
    assert its.cases[0].methods == sorted({"vendor", "knomial:radix=5", "binomial", *chains})


def no_probe() -> screening.Known:
    pytest.fail("a probe was made")


def test_a_probe_gives_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    sizes = [4**power for power in range(11)]
    spec = probes.ProbeCampaign(probes.LAPTOP, sizes, launches=1, samples=12)
    (raw,) = probes.write(tmp_path, spec)
    known = screening.known_by(raw)
    assert screening.ranked(known.model, plan().cases[0], SPECS)[0] == "vendor"
    assert not known.points
    shelf.directory(tmp_path / "s.db").mkdir()
    same = lender(name=known.model.system)  # a machine of the same make
    same = same._replace(points=[its for its in same.points if its.case.layout.ppn == 8])
    crowded = [its for its in lender().points if its.case.layout.oversubscribed]
    empty = same._replace(points=crowded)
    # On 16 it is crowded there, and not here.
    for bundle, layouts in ((lender(), {4, 8}), (empty, {4, 8}), (same, {8})):
        kept = shelf.directory(tmp_path / "s.db") / f"{bundle.provenance.system}.bundle"
        kept.write_bytes(packed(bundle))
        assert {its.case.layout.ppn for its in screening.known_by(raw).points} == layouts

"""The methods that the first launch of a case takes."""

import io
import math
from dataclasses import replace
from itertools import chain
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from tests import probes
from tests.decisions import on, point
from tests.round_machine import machine
from tests.synthetic_plan import SyntheticMachine
from tests.test_campaigns import CASE, NAME, PLAN
from tests.test_catalogue import lender, packed
from tuner.campaign import plan_state, reframe, screening
from tuner.campaign.order import PLANS
from tuner.campaign.planned import PlannedCampaign
from tuner.campaign.planning import next_batch
from tuner.campaign.plans import SCREENING, RacePlan
from tuner.campaign.standings import known_methods, unscreened_before
from tuner.catalogue import shelf
from tuner.commands.printing.campaign import show_campaign, show_plan
from tuner.domain.tables import Ratio
from tuner.models import collectives, predict
from tuner.models.fitting import FittingError
from tuner.rawfile.ingest import ingest

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
    screening.choose(
        chosen, [0], {("bcast", 16): specs}, lambda: screening.Known(machine()), {}, {}
    )
    assert chosen.cases[0].methods == sorted(order[: screening.MOST_RIVALS + 1])


def test_methods_that_gained_on_a_like_system_are_screened_first() -> None:
    specs = [*SPECS, "vendor:algorithm=?"]
    default, *rivals = screening.ranked(machine(), plan().cases[0], specs)
    gained = point(default, operation="bcast")._replace(ratios=(Ratio(rivals[-1], 0.5),))
    crowded = on(gained, 1, 16, over=True)  # which says nothing of ranks with cores
    first = rivals[: screening.MOST_RIVALS]
    for its, expected in ((gained, [rivals[-1], *first[:-1]]), (crowded, first)):
        known, chosen = screening.Known(machine(), [its]), plan()
        screening.choose(chosen, [0], {("bcast", 16): specs}, lambda known=known: known, {}, {})
        assert chosen.cases[0].methods == sorted([default, *expected])


def test_what_cannot_run_on_a_layout_takes_no_place_and_is_not_left() -> None:
    its, on_nodes = plan(), ["twolevel", "twolevel:leaders=2", "twolevel:leaders=4"]
    fit = SPECS[: screening.MOST_RIVALS + 1]
    screening.choose(its, [0], {("bcast", 16): [*fit, *on_nodes]}, no_probe, {}, {})
    assert (its.cases[0].offered, its.unscreened) == (fit, {})


def test_a_further_campaign_screens_two_more_and_what_is_new() -> None:
    specs = [*SPECS, "vendor:algorithm=new"]
    rest = screening.ranked(machine(), plan().cases[0], SPECS)[-4:]
    further, last = plan(), plan()
    known = screening.Known(machine())
    of_bcast, tried = {("bcast", 16): specs}, {0: {*SPECS} - {*rest}}
    screening.choose(further, [0], of_bcast, lambda: known, tried, {0: {*rest, "gone"}})
    assert further.unscreened == {"bcast": sorted(rest[2:])}
    assert {*further.cases[0].methods} == {*specs} - {*rest[2:]}
    tried = {0: {*SPECS} - {*rest[2:]}}
    screening.choose(last, [0], of_bcast, no_probe, tried, {0: rest[2:]})
    assert (last.cases[0].methods, last.unscreened) == ([], {})


def test_the_likeliest_are_screened_where_campaigns_measured_few_that_were_asked_for() -> None:
    specs = [*SPECS, *(f"vendor:algorithm={number}" for number in range(4))]
    its, known = plan(), screening.Known(machine())
    default, asked, *rest = screening.ranked(machine(), its.cases[0], specs)
    tried = {0: {default, asked}}
    screening.choose(its, [0], {("bcast", 16): specs}, lambda: known, tried, {})
    assert its.unscreened == {"bcast": sorted(rest[screening.MOST_RIVALS :])}


def test_a_further_campaign_whose_probe_fails_screens_only_what_is_new() -> None:
    specs = [*SPECS, "vendor:algorithm=new"]
    new, further = plan(), plan()
    earlier = {0: SPECS[:-4]}, {0: SPECS[-4:]}
    for its, tried, unscreened in ((new, {}, {}), (further, *earlier)):
        with pytest.raises(FittingError):
            screening.choose(its, [0], {("bcast", 16): specs}, failed_probe, tried, unscreened)
    assert new.cases[0].methods == []
    assert further.unscreened == {"bcast": sorted(SPECS[-4:])}


@pytest.mark.parametrize("asked", [False, True])
def test_in_time_each_method_is_screened(
    asked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, also where the library then refuses it; a user's words need not wait."""
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    monkeypatch.setattr(plan_state, "of_this_machine", lambda systems, **_: systems)
    specs = [*SPECS[:12], *(f"vendor:algorithm={number}" for number in range(6))]
    of_bcast = SyntheticMachine(
        tuple(specs), lambda name, *_: math.inf if name.endswith("=4") else 1e-5, "bcast"
    )
    screened = []
    for day in range(1, 5):
        its = replace(plan(), campaign=f"202611{day:02}T034500Z")
        if asked and day == 2:
            its.cases[0] = replace(its.cases[0], methods=specs)
        before = plan_state.known(its)
        earlier = known_methods(its, before), unscreened_before(its, before)
        known = screening.Known(machine())
        screening.choose(its, [0], {("bcast", 16): specs}, lambda known=known: known, *earlier)
        batch = next_batch(its, its.turns[0], before)
        assert batch is not None
        its.batches.append(batch)
        PLANS.save(its, PLANS.path_of(its.campaign))
        files = [of_bcast.run(tmp_path, its, task) for task in batch.tasks]
        ingest(tmp_path / "switchpoint.db", files)
        screened += [{*batch.tasks[0].methods} - {"vendor"}] * (batch.stage == SCREENING)
    assert [len(its) for its in screened] == ([12, 5] if asked else [12, 2, 2, 1])
    assert sorted(chain(*screened)) == sorted({*specs} - {"vendor"})


def test_methods_that_were_not_screened_are_said_with_what_measures_them(results: Path) -> None:
    offered = ["vendor", "ring", "chain", *(f"vendor:algorithm={name}" for name in "abcd")]
    few = CASE | {"methods": ["vendor", "chain"], "offered": ["vendor", "ring", "chain"]}
    many = CASE | {"operation": "alltoall", "methods": ["vendor", "chain"], "offered": offered}
    whole = CASE | {"operation": "reduce", "offered": offered}
    plan = PLAN | {"config": str(reframe.CONFIGS["local"]), "in_job": True}
    order = msgspec.convert(plan | {"cases": [few, many, whole]}, RacePlan)
    planned, out = PlannedCampaign(order, PLANS.path_of(NAME)), Console(file=io.StringIO())
    planned._show_end(out)
    said = out.file.getvalue().splitlines()
    assert said[1].startswith("not measured: bcast by ring, alltoall by 5 methods, which the ")
    show_campaign(planned, out)
    command = "-- '--name=collective.*kind=(bcast)\\b' --setvar=methods=ring`\n"
    what = "not measured: bcast by 1 method, which the models rank last; to measure: "
    assert f"\n{what}`switchpoint run --environment mpich {command}" in out.file.getvalue()
    advice, of_advice = replace(order, for_advice=True), Console(file=io.StringIO())
    show_plan(advice, [], of_advice)
    assert (
        f"\n{what.removesuffix('to measure: ')}`switchpoint advise` again"
        in of_advice.file.getvalue()
    )
    assert "setvar" not in of_advice.file.getvalue()
    order.cases[:2] = order.cases[2:]
    planned._show_end(out)
    assert "not measured" not in out.file.getvalue().splitlines()[-1]


def test_few_methods_are_all_screened_without_a_probe() -> None:
    few = plan()
    screening.choose(
        few, [0], {("bcast", 16): SPECS[: screening.MOST_RIVALS + 1]}, no_probe, {}, {}
    )
    assert few.cases[0].methods == []


def test_a_user_names_methods_singly_or_by_their_families() -> None:
    its = plan()
    words = ["chain", "knomial:radix=5", "binomial"]
    its.cases[0] = replace(its.cases[0], methods=words)
    screening.choose(
        its, [0], {("bcast", 16): [*SPECS, "vendor:algorithm=linear"]}, no_probe, {}, {}
    )
    chains = {spec for spec in SPECS if spec.startswith("chain")}
    assert len(chains) > 1
    assert its.cases[0].methods == sorted({"vendor", "knomial:radix=5", "binomial", *chains})


def no_probe() -> screening.Known:
    pytest.fail("a probe was made")


def failed_probe() -> screening.Known:
    raise FittingError("no parameters")


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

"""Whatever was measured, nothing printed is NaN, infinite, or of the wrong sign."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import probes, raw, synthetic
from tests.cli import call
from tests.conftest import by_day
from tuner.rawfile.ingest import ingest

SHAPES = ("true", "constant", "shrinking", "random", "swapped")
QUANTITIES = ("prtt", "mutual", "receive", "prtt_synchronous", "copy", "reduce")
SPOILT = (float("nan"), float("inf"), -1e-6, 0.0)
NO_SATURATION = {"off_node": (probes.TrueProtocol(np.inf, 2e-6, 5e-7, 8e-7, 1e-9, b_inj=5e8),)}
PATTERN = ("random:degree=3,seed=1", 3, 3.0)


@dataclass(frozen=True)
class SenselessCampaign:
    """Probes, what the times of each quantity look like, and one time in so many that is none."""

    probes: probes.ProbeCampaign
    shapes: dict[str, str]
    spoilt: float
    of_every: int


def campaigns() -> st.SearchStrategy[SenselessCampaign]:
    sizes = st.one_of(
        st.just(probes.OCTAVES),
        st.lists(st.sampled_from(probes.OCTAVES), min_size=1, max_size=6, unique=True),
    )
    measured = st.builds(
        probes.ProbeCampaign,
        truth=st.sampled_from([probes.CLUSTER, probes.LAPTOP | NO_SATURATION, probes.LAPTOP]),
        sizes=sizes.map(sorted),
        pairs=st.sampled_from([(1,), (1, 2), (1, 2, 3, 4, 8)]),
        launches=st.sampled_from([1, 2, 3]),
        samples=st.sampled_from([1, 5]),
        noise=st.sampled_from([probes.Noise(0, 0), probes.Noise(), probes.Noise(0.4, 0.25)]),
        synchronous_s=st.sampled_from([0.0, 1.5e-6]),
        seed=st.integers(0, 1000),
    )
    shapes = st.fixed_dictionaries({each: st.sampled_from(SHAPES) for each in QUANTITIES})
    return st.builds(
        SenselessCampaign,
        measured,
        shapes,
        st.sampled_from(SPOILT),
        st.sampled_from([3, 50, 10**9]),
    )


def shaped_s(
    shape: str, probe: dict[str, Any], true_s: float, random: np.random.Generator
) -> float:
    """Return a time of a shape; "swapped" swaps the rates of one process and of a further one."""
    size = max(probe["size_bytes"], 1)
    pairs = probe.get("pairs", 1)
    return {
        "true": true_s,
        "constant": 2e-6,
        "shrinking": 1e-3 / size,
        "random": 10 ** random.uniform(-9, 3),
        "swapped": 1e-6 + size / 1e11 * (100 if pairs == 1 else 1 / pairs),
    }[shape]


def write(directory: Path, campaign: SenselessCampaign) -> None:
    """Write as `probes.write` does, with times as the campaign has them."""
    spec = campaign.probes
    random = np.random.default_rng(spec.seed)
    for launch in range(spec.launches):
        records: list[dict[str, Any]] = []
        for number, (probe, true_s) in enumerate(probes.probes(spec, launch)):
            time_s = shaped_s(campaign.shapes.get(probe["quantity"], "true"), probe, true_s, random)
            samples = probes.noisy(random, max(time_s, 1e-9), spec.samples, spec.noise).tolist()
            if number % campaign.of_every == campaign.of_every - 1:
                samples[-1] = campaign.spoilt
            records.append({"record": "probe"} | probe | {"samples_s": samples})
        raw.write_launch(directory / f"probe-{launch}.jsonl", probes.header(spec, launch), records)


def numbers(document: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Yield all numbers of a JSON document, by the names of their fields."""
    if isinstance(document, dict):
        yield from chain.from_iterable(numbers(value, key) for key, value in document.items())
    elif isinstance(document, list):
        yield from chain.from_iterable(numbers(value, name) for value in document)
    elif isinstance(document, float | int):
        yield name, document


def check(*command: str | Path) -> Any:
    """Return what the command prints as JSON; None where it fails with a message."""
    for options in ((), ("--json",)):
        result = call(*command, *options)
        assert result.exit_code in (0, 1), result.output
        words = re.split(r"[^a-z]+", result.output.lower())
        assert not {"nan", "inf", "infinity", "traceback"} & set(words), result.output
        if result.exit_code:
            assert result.stderr.startswith("Error: "), result.output
            return None
    return json.loads(result.stdout)


def is_sensible(document: Any) -> None:
    for model in document:
        for pair in model["pairs"].values():
            protocols = [pair["loggp"].get("protocols", []), pair["maxrate"].get("protocols", [])]
            for protocol in chain(*protocols):
                for name, parameter in protocol.items():
                    if isinstance(parameter, dict) and parameter.get("type") == "estimate":
                        assert parameter["low"] <= parameter["value"] <= parameter["high"]
                        assert name == "b_inj" or parameter["low"] > 0, (name, parameter)
                assert protocol.get("alpha_s", 0) >= 0
                assert protocol.get("beta_s", 0) >= 0


def nothing_is_senseless(campaign: SenselessCampaign) -> None:
    with TemporaryDirectory() as scratch:
        directory = Path(scratch)
        database = directory / "s.db"
        write(directory, campaign)
        methods = synthetic.Campaign(
            name="20261122T000000Z",
            patterns=(PATTERN,),
            procs=(8,),
            cores=64,
            sizes=(8, 4096),
            methods=("direct", "stfw:dims=2", "stfw:dims=3"),
            times=lambda method, size: 1e-5,
            launches=1,
            samples=3,
        )
        synthetic.write(directory, methods)
        ingest(database, [directory])
        fitted = check("fit", "--database", database)
        if fitted is None:
            return
        is_sensible(fitted)
        is_sensible(check("show", "models", "--database", database) or [])
        for options in (
            ("--op", "exchange", "--pattern", PATTERN[0]),
            ("--op", "discovery", "--pattern", PATTERN[0]),
            ("--op", "overlap", "--pattern", "ft:rows=4,elements=64"),
            ("--op", "reduce"),
        ):
            document = check("predict", *options, "--procs", "16", "--ppn", "8", "--sizes", "8,1M",
                             "--database", database)  # fmt: skip
            assert all(value >= 0 for name, value in numbers(document) if name.endswith("_s"))
        check("check", "model", "--database", database)


@pytest.mark.parametrize("examples", by_day([8], [400]))
def test_nothing_is_senseless(examples: int) -> None:
    drawing = settings(max_examples=examples, derandomize=examples == 8)
    drawing(given(campaigns())(nothing_is_senseless))()

"""`swpbench probe`: what it measures, and that it can be ingested and fitted."""

from pathlib import Path

import pytest

from tests.kernels.benchrun import SWPBENCH
from tests.kernels.conftest import Kernels
from tuner.domain.cases import ProbeKey
from tuner.models.fitting import fit
from tuner.models.loggp import LogGP
from tuner.models.parameter import Estimate
from tuner.rawfile import reading
from tuner.rawfile.ingest import ingest
from tuner.rawfile.kinds.probe import KIND
from tuner.store.store import Store


def probe(kernels: Kernels, out: Path, procs: int, *options: str) -> tuple[int, str]:
    """Return the status, and what the ranks wrote to stderr."""
    done = kernels.run(SWPBENCH, ["probe", "--out", str(out), *options], procs)
    return done.returncode, done.stderr


@pytest.mark.parametrize("procs", [2, 3])
def test_every_probe_is_measured_at_every_size(
    any_kernels: Kernels, tmp_path: Path, procs: int
) -> None:
    out = tmp_path / "o.jsonl"
    status, stderr = probe(any_kernels, out, procs, "--sizes", "1,8,65536", "--max-samples", "5")
    assert status == 0, stderr
    file = reading.read(out)
    assert file.problems == []
    assert file.complete
    assert {*map(KIND.samples, file.records)} == {5}
    keys = {each.key._replace(delay_s=float(each.key.delay_s > 0)) for each in file.records}
    for size in (1, 8, 65536):
        for quantity, messages, delay_s in (
            *(("prtt", 1, 0.0), ("prtt", 16, 0.0), ("prtt", 16, 1.0)),
            *(("prtt_synchronous", 1, 0.0), ("mutual", 1, 0.0), ("mutual", 16, 0.0)),
            ("copy", 1, 0.0),
        ):
            wheres = {""} if quantity == "copy" else {"on_node", "on_socket"}
            assert keys & {
                ProbeKey(quantity, scope, 1, messages, delay_s, size) for scope in wheres
            }
    for quantity in ("ibarrier", "fence"):
        assert ProbeKey(quantity, "", 1, 1, 0.0, 0) in keys
    assert {key.size_bytes for key in keys if key.quantity == "reduce"} == {8, 65536}
    assert {key.size_bytes for key in keys if key.quantity == "receive"} >= {1, 8}


def test_parameters_are_fitted_to_what_it_measures(any_kernels: Kernels, tmp_path: Path) -> None:
    for launch in range(2):
        options = ("--sizes", "1:64K:x4", "--max-samples", "8", "--launch", str(launch))
        campaign = ("--campaign", "a-campaign")
        status, stderr = probe(any_kernels, tmp_path / f"{launch}.jsonl", 2, *options, *campaign)
        assert status == 0, stderr
    assert ingest(tmp_path / "s.db", [tmp_path]).problems == []
    with Store.open(tmp_path / "s.db") as store:
        (system,) = store.systems()["system"]
        model = fit(store, system)
    (pair,) = model.pairs.values()
    assert (pair.layout.launches, pair.layout.ppn) == (2, 2)
    found = pair.loggp
    assert isinstance(found, LogGP)
    for protocol in found.protocols:
        assert protocol.alpha_s >= 0
        assert not isinstance(protocol.alpha, Estimate) or 1e-9 < protocol.alpha.value < 1


@pytest.mark.parametrize(
    ("procs", "options", "message"),
    [
        (1, ("--sizes", "8"), "probes need at least two ranks"),
        (2, ("--sizes", "2G"), "probes use at most 1G"),
        (2, (), "--sizes LIST is missing"),
        (2, ("--sizes", "8", "--pattern", "random"), "--pattern is an option of run, not of probe"),
    ],
)
def test_what_cannot_be_probed_is_refused_in_one_line(
    any_kernels: Kernels, tmp_path: Path, procs: int, options: tuple[str, ...], message: str
) -> None:
    status, stderr = probe(any_kernels, tmp_path / "o.jsonl", procs, *options)
    assert status != 0
    (line,) = [line for line in stderr.splitlines() if line.startswith("swpbench: ")]
    assert message in line

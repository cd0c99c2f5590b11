"""LogGP parameters from round trips of machines whose parameters are known."""

from collections.abc import Callable

import numpy as np
import pytest

from tests import probes
from tests.probes import Noise, TrueProtocol, receives, round_trips
from tuner.models import loggp
from tuner.models.loggp import LogGP
from tuner.models.parameter import Estimate, ModelError, NotIdentified, Parameter
from tuner.models.segments import FLOOR

THREE = (
    TrueProtocol(512, 8e-7, 2e-7, 3e-7, 5e-10),
    TrueProtocol(8192, 1.5e-6, 3e-7, 6e-7, 2e-10),
    TrueProtocol(np.inf, 6e-6, 5e-7, 1.2e-6, 1e-10),
)
TWO = THREE[1:]
FOUR = (TrueProtocol(64, 4e-7, 1e-7, 2e-7, 2e-9), *THREE)
CLEAN = Noise(samples=0.01, outliers=0)

NAMES = {
    "latency": "latency_s",
    "overhead_send": "overhead_s",
    "overhead_receive": "overhead_s",
    "gap": "gap_s",
    "gap_per_byte": "per_byte_s",
    "alpha": "alpha_s",
    "beta": "per_byte_s",
}


def fitted(truth: tuple[TrueProtocol, ...], noise: Noise, seed: int, launches: int = 1) -> LogGP:
    found = loggp.fit(
        round_trips(truth, noise, seed, launches), receives(truth, noise, seed, launches)
    )
    assert isinstance(found, LogGP)
    return found


def parameters(model: LogGP) -> list[tuple[int, str, Parameter]]:
    return [
        (number, name, getattr(protocol, name))
        for number, protocol in enumerate(model.protocols)
        for name in NAMES
    ]


@pytest.mark.parametrize("truth", [TWO, THREE, FOUR])
def test_parameters_of_a_quiet_machine(truth: tuple[TrueProtocol, ...]) -> None:
    model = fitted(truth, CLEAN, 1)
    assert [each.up_to_bytes for each in model.protocols[:-1]] == [
        each.up_to_bytes for each in truth[:-1]
    ]
    for number, name, found in parameters(model):
        true = getattr(truth[number], NAMES[name])
        if isinstance(found, Estimate):
            assert found.value == pytest.approx(true, rel=0.1), (number, name)
            assert found.low <= found.value <= found.high
    estimated = {name for _, name, found in parameters(model) if isinstance(found, Estimate)}
    assert estimated == set(NAMES)


def test_errors_over_seeds() -> None:
    errors: dict[tuple[int, str], list[float]] = {}
    for seed in range(20):
        model = fitted(THREE, Noise(), seed)
        assert len(model.protocols) == 3
        for number, name, found in parameters(model):
            if isinstance(found, Estimate):
                true = getattr(THREE[number], NAMES[name])
                errors.setdefault((number, name), []).append(abs(found.value / true - 1))
    for number in range(3):
        assert np.median(errors[number, "alpha"]) < 0.02
        assert np.median(errors[number, "overhead_receive"]) < 0.02
    assert np.median(errors[2, "beta"]) < 0.02
    assert np.median(errors[2, "gap_per_byte"]) < 0.02


def test_intervals_hold_the_truth_of_many_launches() -> None:
    inside = []
    for seed in range(20):
        model = fitted(THREE, Noise(launches=0.02), seed, launches=5)
        last = model.protocols[-1]
        for name in ("alpha", "beta"):
            found, true = getattr(last, name), getattr(THREE[2], NAMES[name])
            assert isinstance(found, Estimate)
            inside.append(found.low <= true <= found.high)
    assert np.mean(inside) >= 0.85


def test_a_ping_pong_alone_does_not_identify_the_latency() -> None:
    (launch,) = round_trips(THREE, CLEAN, 1)
    alone = {key: values for key, values in launch.items() if key[1] == 1}
    model = loggp.fit([alone])
    assert isinstance(model, LogGP)
    for protocol in model.protocols:
        assert isinstance(protocol.alpha, Estimate)
        for name in ("latency", "overhead_send", "overhead_receive", "gap", "gap_per_byte"):
            assert isinstance(getattr(protocol, name), NotIdentified)


def test_messages_that_cross_are_fitted_as_those_alone_are() -> None:
    """Of the same times, disturbed ones count as little."""
    (launch,) = round_trips(THREE, Noise(), 1)
    halves = {key: values / 2 for key, values in launch.items() if key[1:] == (1, 0)}
    model = loggp.fit([launch], (), [halves])
    assert isinstance(model, LogGP)
    for protocol in model.protocols:
        for alone, crossing in (
            (protocol.alpha, protocol.loaded_alpha),
            (protocol.beta, protocol.loaded_beta),
        ):
            assert isinstance(alone, Estimate) == isinstance(crossing, Estimate)
            if isinstance(alone, Estimate) and isinstance(crossing, Estimate):
                assert crossing.value == pytest.approx(alone.value)


def test_overheads_as_long_as_the_trip_leave_no_latency() -> None:
    truth = (TrueProtocol(np.inf, 1e-9, 5e-7, 2e-7, 1e-10),)
    for seed in range(5):
        (protocol,) = fitted(truth, Noise(samples=0.1), seed).protocols
        assert isinstance(protocol.latency, NotIdentified)


def test_a_constant_time_has_no_time_per_byte() -> None:
    truth = (TrueProtocol(np.inf, 1e-6, 1e-7, 2e-7, 1e-25),)
    for protocol in fitted(truth, CLEAN, 1).protocols:
        assert isinstance(protocol.beta, NotIdentified)
        assert isinstance(protocol.alpha, Estimate)
    exact = {(float(s), 1.0, 0.0): np.full(20, 1e-6) for s in probes.SIZES}
    model = loggp.fit([exact])
    assert isinstance(model, LogGP)
    (protocol,) = model.protocols
    assert isinstance(protocol.beta, NotIdentified)
    single = {key: values.astype(np.float32) for key, values in exact.items()}
    for value in (1e-5, 3e-6, 1e-6):
        model = loggp.fit([{key: 0 * values + np.float32(value) for key, values in single.items()}])
        assert isinstance(model, LogGP)
        assert [type(each.beta) for each in model.protocols] == [NotIdentified]
    assert protocol.alpha == Estimate(*[pytest.approx(5e-7)] * 3)


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_few_sizes_identify_nothing(count: int) -> None:
    launches = round_trips(THREE, CLEAN, 1, sizes=probes.SIZES[:count])
    assert isinstance(loggp.fit(launches), NotIdentified)
    assert isinstance(loggp.fit([]), NotIdentified)


@pytest.mark.parametrize("value", [float("nan"), -1e-6, 0.0, float("inf"), 1e-13, 2e12])
def test_an_impossible_time_is_reported_in_one_line(value: float) -> None:
    (launch,) = round_trips(THREE, CLEAN, 1)
    launch[64, 1, 0][3] = value
    with pytest.raises(
        ModelError,
        match=r"^a time of .* s at 64 bytes: times must be positive, from 9.09e-13 to 1.1e\+12 s$",
    ):
        loggp.fit([launch])


def test_size_and_time_in_each_others_place_are_no_times() -> None:
    swapped = {(float(s), 1.0, 0.0): np.array([-1.0 * s]) for s in probes.SIZES}
    with pytest.raises(ModelError, match="times must be positive"):
        loggp.fit([swapped])


def any_times(random: np.random.Generator) -> float:
    return float(10 ** random.uniform(-9, 3))


def falling(random: np.random.Generator) -> float:
    return float(random.choice([1e-6, 1.0]))


@pytest.mark.parametrize("draw", [any_times, falling])
def test_senseless_times_give_no_senseless_parameters(
    draw: Callable[[np.random.Generator], float],
) -> None:
    for seed in range(10):
        random = np.random.default_rng(seed)
        (launch,) = round_trips(THREE, CLEAN, seed, sizes=probes.OCTAVES)
        model = loggp.fit([{key: np.full(3, draw(random)) for key in launch}])
        assert isinstance(model, LogGP)
        for _, name, found in parameters(model):
            if isinstance(found, Estimate):
                assert np.isfinite([found.value, found.low, found.high]).all(), name
                assert 0 < found.low <= found.value <= found.high, name
                if name in ("beta", "gap_per_byte"):
                    assert found.value > 1e-9 * FLOOR / probes.OCTAVES[-1]

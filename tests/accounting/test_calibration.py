"""Calibration: golden values, the safe side, targets that cannot be met, and the classical rules."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import (
    Gaussian,
    Laplace,
    PoissonSampled,
    PrivacyProfile,
    PureDP,
    PureFilter,
    RandomizedResponse,
    Renyi,
    SampledWithoutReplacement,
    ShuffledEpochs,
    ZCDPFilter,
    ZeroConcentrated,
    calibration,
)
from sitr.accounting.calibration import (
    abadi_gaussian_delta,
    abadi_gaussian_noise,
    calibrate,
    calibrate_count,
    calibrate_noise,
    calibrate_queries,
    calibrate_sampling_prob,
    classical_gaussian_noise,
    error_of_noise,
    noise_for_error,
    split_budget,
)
from sitr.accounting.filters import MOST
from sitr.errors import CannotCalibrate, InvalidArgument, NoSuchGuarantee
from tests.accounting.helpers import gaussian_delta, law, logs

TARGET = {"epsilon": 1.0, "delta": 1e-6}
targets = st.fixed_dictionaries({"epsilon": logs(0.05, 20), "delta": logs(1e-10, 1e-2)})
JUST_LESS = 1 - 1e-6  # ten times the accuracy of the search


def gaussians(count):
    return lambda noise: Gaussian(noise) * count


def sgd(steps, sampling_prob):
    return lambda noise: PoissonSampled(Gaussian(noise), sampling_prob) * steps


# Golden values, computed by another program.


@pytest.mark.parametrize(
    ("make", "truth"), [(Gaussian, 4.224679), (gaussians(1000), 133.5961), (sgd(10000, 0.01), 4.302106)]
)
def test_least_noise_is_the_known_one(make, truth):
    found = calibrate_noise(make, **TARGET)
    assert found.value == pytest.approx(truth, rel=5e-7)
    assert found.achieved.upper <= TARGET["epsilon"]
    assert found.event == make(found.value)


def test_pure_laplace_needs_one_over_epsilon():
    found = calibrate_noise(Laplace, epsilon=0.3, delta=0)
    assert 1 / 0.3 <= found.value <= 1 / 0.3 * (1 + 1e-6)


# The safe side: what is returned meets the target, and a little more greed does not.


@law(40)
@given(targets, st.integers(1, 10**6))
def test_least_noise_is_safe_and_least(target, count):
    found = calibrate_noise(gaussians(count), **target)
    assert gaussian_delta(math.sqrt(count) / found.value, target["epsilon"]) <= target["delta"]
    less = gaussian_delta(math.sqrt(count) / (found.value * JUST_LESS), target["epsilon"])
    assert less > target["delta"]


@law(40)
@given(targets, logs(1, 1e4))
def test_most_repetitions_are_safe_and_most(target, noise):
    event = Gaussian(noise)
    if event.epsilon(target["delta"]).upper > target["epsilon"]:
        with pytest.raises(CannotCalibrate):
            calibrate_count(event, **target)
        return
    count = calibrate_count(event, **target).value
    assert isinstance(count, int)
    assert gaussian_delta(math.sqrt(count) / noise, target["epsilon"]) <= target["delta"]
    assert gaussian_delta(math.sqrt(count + 1) / noise, target["epsilon"]) > target["delta"] * (1 - 1e-9)


@law(6)
@given(st.fixed_dictionaries({"epsilon": logs(0.5, 4), "delta": logs(1e-8, 1e-4)}), logs(0.8, 3))
def test_largest_rate_is_safe_and_largest(target, noise):
    def make(rate):
        return PoissonSampled(Gaussian(noise), rate) * 500

    found = calibrate_sampling_prob(make, **target)
    assert make(found.value).epsilon(target["delta"]).upper <= target["epsilon"]
    assert found.value == 1 or make(found.value / JUST_LESS).epsilon(target["delta"]).upper > target["epsilon"]


@law(40)
@given(logs(1e-6, 1e3), st.integers(1, 10**6))
def test_rho_target_is_met_in_exact_arithmetic(rho, count):
    found = calibrate_noise(gaussians(count), rho=rho)
    assert count / (2 * found.value**2) <= rho
    assert count / (2 * (found.value * JUST_LESS) ** 2) > rho
    assert found.achieved.upper <= rho


@pytest.mark.parametrize(("noise", "rho", "most"), [(10.0, 0.5, 100), (1.0, 0.5, 1), (3.0, 1.0, 18), (7.0, 0.25, 24)])
def test_a_budget_of_rho_is_filled_as_a_filter_fills_it(noise, rho, most):
    assert calibrate_count(Gaussian(noise), rho=rho).value == most
    budget = ZCDPFilter(rho=rho)
    assert budget.admits(Gaussian(noise) * most)
    assert not budget.admits(Gaussian(noise) * (most + 1))


@pytest.mark.parametrize(
    ("event", "target", "most"),
    [
        (Laplace(5.0), {"rho": 0.3}, 15),  # the double 0.3 lies under 15/50
        (Laplace(10.0), {"rho": 0.1}, 20),
        (PureDP(0.1), {"rho": 0.3}, 60),
        (PureDP(0.1), {"epsilon": 1.0, "delta": 0.0}, 10),  # the double 0.1 lies over 1/10
        (Laplace(10.0), {"epsilon": 0.3, "delta": 0.0}, 3),
        (RandomizedResponse(0.75), {"epsilon": 3.3, "delta": 0.0}, 3),
    ],
)
def test_a_count_is_that_of_a_filter_whatever_is_counted(event, target, most):
    found = calibrate_count(event, **target)
    limit = target.get("rho") or target["epsilon"]
    assert found.value == most == filled(event, target)
    assert found.achieved.upper <= limit * (1 + 2**-40)


@law(60)
@given(
    st.one_of(st.builds(Laplace, logs(1, 100)), st.builds(PureDP, logs(0.01, 1)), st.builds(Gaussian, logs(1, 100))),
    st.one_of(st.integers(1, 10**4), st.floats(1, 1e4)),
    st.booleans(),
)
def test_a_count_is_that_of_a_filter_at_any_limit(event, times, pure):
    """Limits that so many costs fill to the last digit, and others."""
    if pure and isinstance(event, Gaussian):
        return
    limit = float(times * (event.pure() if pure else event.zcdp().rho))
    target = {"epsilon": limit, "delta": 0.0} if pure else {"rho": limit}
    assert calibrate_count(event, **target).value == filled(event, target)


def filled(event, target):
    """How many such events a filter admits one by one."""
    budget = ZCDPFilter(**target) if "rho" in target else PureFilter(target["epsilon"])
    return MOST // budget.units(event)[0]


@pytest.mark.parametrize("claim", [ZeroConcentrated(700.0), Renyi([(1.0, 0.01)])])
def test_a_claim_too_weak_to_promise_anything_allows_no_count(claim):
    with pytest.raises(CannotCalibrate):
        calibrate_count(PoissonSampled(claim, 0.5), epsilon=1.0, delta=1e-6)
    rate = calibrate_sampling_prob(lambda q: PoissonSampled(claim, q), epsilon=1.0, delta=1e-6).value
    assert rate <= 1e-6 * (1 + 1e-9)


def test_a_target_out_of_reach_is_noticed_in_a_few_steps():
    tried = []

    def steps(q):
        tried.append(q)
        return PoissonSampled(Laplace(1.0), q) * 1000

    with pytest.raises(CannotCalibrate):
        calibrate_sampling_prob(steps, epsilon=1e-9, delta=1e-12)
    assert len(tried) <= 9


HEAVY = (
    PoissonSampled(Gaussian(1.0), 6.4e-5) + PrivacyProfile([(0.0218, 1.75e-7), (0.0672, 1.5e-8), (600.0, 1e-300)]) * 5
)


@pytest.mark.parametrize(
    ("make", "target", "best"),
    [
        (lambda noise: Gaussian(noise) * 26 + HEAVY, {"epsilon": 0.3165, "delta": 1.523e-6}, 76.8),
        (lambda noise: PoissonSampled(Gaussian(noise) + Laplace(5.0), 0.01) * 100, TARGET, 1.00266),
    ],
)
def test_a_search_through_events_that_take_long_ends_early_and_near(make, target, best):
    """Each question takes a fifth of a second; and the upper end of the first event's cost jumps."""
    tried = []
    found = calibrate_noise(lambda noise: tried.append(noise) or make(noise), **target)
    assert len(tried) <= 10
    assert found.achieved.upper <= target["epsilon"]
    assert best * (1 - 1e-3) <= found.value <= best * 1.05


@pytest.mark.parametrize("noise", [Gaussian, Laplace])
def test_a_search_through_many_batches_of_one_event_goes_to_the_end(noise):
    found = calibrate_noise(lambda size: SampledWithoutReplacement(noise(size), 10_000, 100) * 1000, **TARGET)
    assert TARGET["epsilon"] * (1 - 1e-5) <= found.achieved.upper <= TARGET["epsilon"]


def test_a_search_through_batches_of_several_events_ends_early_and_near():
    """Its laws take a tenth of a second each: the last try that is paid for is made where it meets the target."""
    batch = lambda noise: SampledWithoutReplacement(Gaussian(noise) + Laplace(10.0), 10_000, 100)  # noqa: E731
    found = calibrate_noise(lambda noise: ShuffledEpochs(batch(noise), 50), **TARGET)
    assert TARGET["epsilon"] * 0.95 <= found.achieved.upper <= TARGET["epsilon"]


def test_a_search_without_means_still_finds_something_safe(monkeypatch):
    monkeypatch.setattr(calibration, "ALLOWANCE", 0.0)
    found = calibrate_noise(sgd(10000, 0.01), **TARGET)
    assert found.achieved.upper <= 1.0
    assert 4.302106 <= found.value <= 4.302106 * 16


def test_a_cost_that_jumps_is_followed_to_the_end():
    """A secant through both sides of a jump closes in from one side only, so what is left is halved."""
    tried = []

    def make(e):
        tried.append(e)
        return PureDP(1e-3 if e < 0.3 else 2.0)

    found = calibrate(make, bounds=(1e-3, 1.0), epsilon=1.0, delta=0)
    assert 0.3 * (1 - 1e-7) <= found.value < 0.3
    assert len(tried) <= 2 + 28


def test_a_constant_part_of_zcdp_is_not_forgotten():
    found = calibrate(lambda xi: ZeroConcentrated(rho=0.1, xi=xi), bounds=(0.01, 10), rho=0.5)
    assert found.value == pytest.approx(0.4, rel=1e-6)


def test_rising_and_falling_costs_are_told_apart():
    falling = calibrate(gaussians(10), bounds=(0.1, 1000), **TARGET)
    assert falling.value == pytest.approx(calibrate_noise(gaussians(10), **TARGET).value, rel=3e-7)
    rising = calibrate(lambda count: Gaussian(20) * count, bounds=(1, 10**6), whole=True, **TARGET)
    assert rising.value == calibrate_count(Gaussian(20), **TARGET).value


def test_ends_of_the_search():
    whole_range_is_fine = calibrate(lambda e: PureDP(e), bounds=(0.1, 0.5), **TARGET)
    assert whole_range_is_fine.value == 0.5
    assert calibrate_noise(Gaussian, bounds=(10, 20), **TARGET).value == 10
    assert calibrate_sampling_prob(lambda q: PoissonSampled(Gaussian(10), q), **TARGET).value == 1
    with pytest.raises(CannotCalibrate, match=r"no value in \[0.1, 2\] meets epsilon=1, delta=1e-06"):
        calibrate_noise(Gaussian, bounds=(0.1, 2), **TARGET)
    with pytest.raises(CannotCalibrate, match="at 1 it is still"):
        calibrate_count(Gaussian(1), rho=0.1)
    with pytest.raises(CannotCalibrate, match="meets rho=1e-09"):
        calibrate(gaussians(1), bounds=(1, 100), rho=1e-9)


def test_more_budget_means_less_noise():
    noises = [calibrate_noise(Gaussian, epsilon=e, delta=1e-6).value for e in (0.1, 0.5, 1, 2, 8)]
    assert noises == sorted(noises, reverse=True)


# The split of a budget.


@law(20)
@given(targets, st.lists(logs(0.1, 10), min_size=1, max_size=6))
def test_split_keeps_the_proportions_and_spends_the_budget(target, errors):
    plan = {f"query {i}": error for i, error in enumerate(errors)}
    split = split_budget(plan, **target)
    factors = [split.noise[name] / error for name, error in plan.items()]
    assert max(factors) == pytest.approx(min(factors), rel=1e-12)
    m = math.sqrt(math.fsum(noise**-2 for noise in split.noise.values()))
    assert gaussian_delta(m, target["epsilon"]) <= target["delta"] <= gaussian_delta(m / JUST_LESS, target["epsilon"])
    assert [event.noise_multiplier for event in split.events.values()] == list(split.noise.values())


def test_split_of_laplace_noise_by_basic_composition():
    split = split_budget({"a": 1.0, "b": 3.0}, epsilon=1.0, delta=0, noise="laplace")
    assert split.noise == pytest.approx({"a": 4 / 3, "b": 4}, rel=1e-6)
    assert split.achieved.upper <= 1


# Accuracy.


@law(50)
@given(logs(1e-3, 1e6), st.floats(0.01, 0.999), st.sampled_from(["gaussian", "laplace"]), logs(1e-2, 1e2))
def test_error_and_noise_are_inverse(error, confidence, noise, sensitivity):
    options = {"confidence": confidence, "noise": noise, "sensitivity": sensitivity}
    multiplier = noise_for_error(error, **options)
    assert error_of_noise(multiplier, **options) == pytest.approx(error, rel=1e-12)
    scale = multiplier * sensitivity
    inside = math.erf(error / scale / math.sqrt(2)) if noise == "gaussian" else -math.expm1(-error / scale)
    assert inside == pytest.approx(confidence, rel=1e-9)


def test_queries_at_an_accuracy():
    found = calibrate_queries(100.0, **TARGET)
    noise = noise_for_error(100.0)
    assert gaussian_delta(math.sqrt(found.value) / noise, 1.0) <= 1e-6
    assert gaussian_delta(math.sqrt(found.value + 1) / noise, 1.0) > 1e-6


# The classical rules, which hold where they say so, and give noise away.


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2, 0.1, 0.3, 0.5])
def test_classical_rules_hold(epsilon, delta):
    for noise in (classical_gaussian_noise(epsilon, delta), abadi_gaussian_noise(epsilon, delta)):
        assert gaussian_delta(1 / noise, epsilon) <= delta
    assert abadi_gaussian_delta(abadi_gaussian_noise(epsilon, delta), epsilon) <= delta
    assert abadi_gaussian_noise(epsilon, delta) <= classical_gaussian_noise(epsilon, delta)


def test_seed_004_rule_is_false_for_large_delta_and_refused():
    noise, epsilon = 0.02, 0.9
    assert gaussian_delta(1 / noise, epsilon) > 0.8 * math.exp(-((noise * epsilon) ** 2) / 2)
    with pytest.raises(NoSuchGuarantee, match="seed 004"):
        abadi_gaussian_delta(noise, epsilon)
    with pytest.raises(InvalidArgument, match=r"delta=0.6 is not in \(0, 0.5\]"):
        abadi_gaussian_noise(epsilon, 0.6)


# Bad input.


@pytest.mark.parametrize(
    "target",
    [
        {},
        {"epsilon": 1.0},
        {"delta": 1e-6},
        {"epsilon": 1.0, "delta": 1e-6, "rho": 1.0},
        {"epsilon": 1.0, "rho": 1.0},
        {"epsilon": math.nan, "delta": 1e-6},
        {"epsilon": -1.0, "delta": 1e-6},
        {"epsilon": 0, "delta": 1e-6},
        {"epsilon": math.inf, "delta": 1e-6},
        {"epsilon": 1e300, "delta": 1e-6},
        {"epsilon": True, "delta": 1e-6},
        {"epsilon": 1.0, "delta": 1},
        {"epsilon": 1.0, "delta": -1e-6},
        {"epsilon": 1.0, "delta": math.nan},
        {"rho": 0},
        {"rho": math.inf},
        {"rho": "a"},
    ],
)
def test_unclear_targets_are_refused(target):
    with pytest.raises(InvalidArgument, match=r"epsilon=|delta=|rho="):
        calibrate_noise(Gaussian, **target)


@pytest.mark.parametrize(
    "bounds", [(1, 1), (2, 1), (0, 1), (-1, 1), (1, math.inf), (1, math.nan), (1, 2, 3), 5, (True, 2)]
)
def test_bad_bounds_are_refused(bounds):
    with pytest.raises(InvalidArgument, match="bounds"):
        calibrate_noise(Gaussian, bounds=bounds, **TARGET)
    with pytest.raises(InvalidArgument, match="bounds"):
        calibrate(Gaussian, bounds=bounds, **TARGET)


def test_other_bad_arguments_are_refused():
    with pytest.raises(InvalidArgument, match=r"bounds=1\.5"):
        calibrate(lambda k: Gaussian(20) * k, bounds=(1.5, 10), whole=True, **TARGET)
    with pytest.raises(InvalidArgument, match=r"bounds=2 is not in \(0, 1\]"):
        calibrate_sampling_prob(lambda q: PoissonSampled(Gaussian(1), q), bounds=(0.1, 2), **TARGET)
    with pytest.raises(InvalidArgument, match="not an event: float"):
        calibrate_noise(lambda noise: noise, **TARGET)
    with pytest.raises(InvalidArgument, match="not an event: str"):
        calibrate_count("gaussian", **TARGET)
    with pytest.raises(InvalidArgument, match="plan has no query"):
        split_budget({}, **TARGET)
    with pytest.raises(InvalidArgument, match=r"plan\['a'\]=-1"):
        split_budget({"a": -1}, **TARGET)
    with pytest.raises(InvalidArgument, match="noise='cauchy' is not one of"):
        split_budget({"a": 1}, noise="cauchy", **TARGET)
    with pytest.raises(InvalidArgument, match=r"error=0 "):
        noise_for_error(0)
    with pytest.raises(InvalidArgument, match=r"confidence=1 "):
        noise_for_error(1.0, confidence=1)
    with pytest.raises(InvalidArgument, match=r"sensitivity=nan "):
        error_of_noise(1.0, sensitivity=math.nan)
    for rule in (classical_gaussian_noise, abadi_gaussian_noise):
        with pytest.raises(InvalidArgument, match=r"epsilon=1 is not in \(0, 1\)"):
            rule(1, 1e-6)
        with pytest.raises(InvalidArgument, match=r"delta=0 "):
            rule(0.5, 0)


def test_a_target_that_the_event_cannot_speak_of():
    with pytest.raises(NoSuchGuarantee):
        calibrate_noise(Gaussian, epsilon=1.0, delta=0)
    with pytest.raises(NoSuchGuarantee):
        calibrate(lambda e: RandomizedResponse(0.6) + ZeroConcentrated(0.1, delta=e), bounds=(1e-6, 0.1), rho=1.0)

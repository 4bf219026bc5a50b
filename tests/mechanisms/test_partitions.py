"""Stability-based selection: exact laws of one and two groups under the event, draws, order, bad input."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sitr.errors import InvalidArgument, NoSuchGuarantee
from sitr.mechanisms import select_partitions
from sitr.mechanisms.partitions import NOISES
from sitr.mechanisms.randomness import SYSTEM
from sitr.mechanisms.stability import LEAST_SIGMA, NormalGate
from tests.mechanisms.statistics import ALARM, chi_square
from tests.mechanisms.truths import (
    delta_of,
    draws,
    keeps_its_promise,
    laplace_mass,
    laplace_tail,
    refuses_quietly,
)


def far_of(mechanism):
    """Beyond every count that is tried."""
    if mechanism.noise == "gaussian":
        return mechanism.threshold + math.ceil(14 * mechanism.scale)
    return 2 * mechanism.threshold + 8


def normal_law(mechanism, count):
    """The same with Gaussian noise, by adding up its weights; what is farther off has no weight in floats."""
    reach = math.ceil(20 * mechanism.scale) + mechanism.threshold + 10
    weights = {noise: math.exp(-((noise / mechanism.scale) ** 2) / 2) for noise in range(-reach, reach + 1)}
    whole = math.fsum(weights.values())
    found = {None: 0.0, "far": 0.0}
    for noise, weight in weights.items():
        seen = count + noise
        place = None if seen < mechanism.threshold else "far" if seen >= far_of(mechanism) else seen
        found[place] = found.get(place, 0.0) + weight / whole
    return found


def group_law(mechanism, count):
    """What is seen of one group: nothing, its noisy count, or one so large that its likelihood ratio stays the same."""
    if count == 0:
        return {None: 1.0}
    if mechanism.noise == "gaussian":
        return normal_law(mechanism, count)
    threshold, scale, far = mechanism.threshold, mechanism.scale, far_of(mechanism)
    found = {None: 1 - laplace_tail(scale, threshold - count), "far": laplace_tail(scale, far - count)}
    return found | {seen: laplace_mass(scale, seen - count) for seen in range(threshold, far)}


def joint(*laws):
    return {
        seen: math.prod(law[one] for law, one in zip(laws, seen, strict=True))
        for seen in product(*(law.keys() for law in laws))
    }


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (2.0, 1e-4), (0.3, 0.2), (1.0, 0.7), (8.0, 1e-3)])
def test_one_group_is_told_no_better_than_the_event_says(epsilon, delta, noise):
    mechanism = select_partitions(epsilon=epsilon, delta=delta, noise=noise)
    for count in range(mechanism.threshold + 4):
        keeps_its_promise(mechanism.event, group_law(mechanism, count), group_law(mechanism, count + 1))


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (2.0, 0.3)])
def test_two_groups_are_told_no_better_than_the_event_says(epsilon, delta, noise):
    """Both old, one old and one new, both new: the composition of two gates bounds them all."""
    mechanism = select_partitions(epsilon=epsilon, delta=delta, max_groups_per_unit=2, noise=noise)
    counts = [0, 1, 2, mechanism.threshold, mechanism.threshold + 1]
    for first, second in product(counts, repeat=2):
        old = joint(group_law(mechanism, first), group_law(mechanism, second))
        new = joint(group_law(mechanism, first + 1), group_law(mechanism, second + 1))
        keeps_its_promise(mechanism.event, old, new, (0.0, 0.5, 1.0, 2.0))


@pytest.mark.parametrize("noise", NOISES)
def test_a_person_who_moves_changes_two_groups(noise):
    mechanism = select_partitions(epsilon=1.0, delta=0.05, adjacency="replace_one", noise=noise)
    for first, second in product([0, 1, mechanism.threshold], repeat=2):
        old = joint(group_law(mechanism, first + 1), group_law(mechanism, second))
        new = joint(group_law(mechanism, first), group_law(mechanism, second + 1))
        keeps_its_promise(mechanism.event, old, new, (0.0, 0.5, 1.0))
    with pytest.raises(AssertionError):  # it has teeth: the event of one group does not hold two
        keeps_its_promise(select_partitions(epsilon=0.5, delta=0.025).event, old, new, (0.0, 0.5, 1.0))


@pytest.mark.parametrize(("people", "groups"), [(2, 1), (3, 3), (5, 2)])
def test_people_who_act_as_one_have_no_promise_that_is_not_kept(people, groups):
    """They are seen in a group of their own far more often than all of them one by one."""
    drawn = select_partitions(epsilon=1.0, delta=1e-3, max_groups_per_unit=groups, noise="laplace")
    keeps_its_promise(drawn.event.group(people), group_law(drawn, people), group_law(drawn, 0))
    mechanism = select_partitions(epsilon=1.0, delta=1e-3, max_groups_per_unit=groups, noise="gaussian")
    alone, together = (1 - group_law(mechanism, count)[None] for count in (1, people))
    assert together > 1.2 * people * alone
    with pytest.raises(NoSuchGuarantee):
        mechanism.event.group(people)


@pytest.mark.parametrize(("delta", "groups"), [(1e-305, 1), (1e-300, 512), (1e-323, 2)])
def test_a_delta_that_gaussian_noise_is_not_held_to(delta, groups):
    assert select_partitions(epsilon=1.0, delta=delta, max_groups_per_unit=groups).noise == "laplace"
    with pytest.raises(InvalidArgument):
        select_partitions(epsilon=1.0, delta=delta, max_groups_per_unit=groups, noise="gaussian")


@pytest.mark.parametrize("gate", [NormalGate(LEAST_SIGMA, 40), NormalGate(3e5, 10**8)], ids=repr)
def test_the_least_noise_and_the_rarest_pass_have_an_event(gate):
    event = gate.event("add_remove")
    assert 0 < gate.delta <= event.infinite_mass < 1


@pytest.mark.parametrize("groups", [1, 2, 7])
def test_the_event_is_tight_and_within_what_was_asked(groups):
    mechanism = select_partitions(epsilon=1.0, delta=1e-3, max_groups_per_unit=groups, noise="laplace")
    assert mechanism.event.epsilon(delta=1e-3).upper <= 1.0
    one = laplace_tail(mechanism.scale, mechanism.threshold - 1)
    assert math.isclose(mechanism.event.infinite_mass, 1 - (1 - one) ** groups, rel_tol=1e-9)
    assert mechanism.event.infinite_mass <= 1e-3
    # All groups new is exactly that mass, whatever ε: so no smaller δ could be stated.
    assert math.isclose(delta_of(mechanism.event, 50.0), 1 - (1 - one) ** groups, rel_tol=1e-6)


@pytest.mark.parametrize("groups", [1, 3, 40])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (0.1, 1e-6), (5.0, 1e-9)])
def test_gaussian_noise_costs_what_was_asked_and_little_less(epsilon, delta, groups):
    mechanism = select_partitions(epsilon=epsilon, delta=delta, max_groups_per_unit=groups, noise="gaussian")
    least = 0.97 if mechanism.scale > LEAST_SIGMA * 1.01 else 0.5  # finer noise would not pass for continuous noise
    assert least * epsilon <= mechanism.event.epsilon(delta=delta).upper <= epsilon
    alone = normal_law(mechanism, 1)
    one = 1 - alone[None] if delta > 1e-6 else sum(alone[seen] for seen in alone if seen is not None)
    assert mechanism.event.infinite_mass >= -math.expm1(groups * math.log1p(-one)) * (1 - 1e-12)
    assert math.isclose(mechanism.event.infinite_mass, -math.expm1(groups * math.log1p(-one)), rel_tol=1e-6)


@given(
    st.floats(0.05, 5.0),
    st.floats(-12.0, -2.0).map(lambda digits: 10.0**digits),
    st.sampled_from([1, 2, 3, 10, 100]),
    st.sampled_from(["add_remove", "replace_one"]),
)
@settings(max_examples=30)
def test_the_noise_that_lists_smaller_groups_is_taken(epsilon, delta, groups, adjacency):
    asked = {"epsilon": epsilon, "delta": delta, "max_groups_per_unit": groups, "adjacency": adjacency}
    each = [select_partitions(**asked, noise=noise) for noise in NOISES]
    taken = select_partitions(**asked)
    assert taken.threshold == min(one.threshold for one in each)
    assert taken.event.epsilon(delta=delta).upper <= epsilon * (1 + 1e-12)
    assert taken.event.infinite_mass <= delta
    if groups >= 10:
        assert taken.noise == "gaussian"


def test_chances_are_those_of_the_law():
    for noise in NOISES:
        mechanism = select_partitions(epsilon=1.0, delta=1e-4, max_groups_per_unit=3, noise=noise)
        for count in (1, 5, mechanism.threshold, mechanism.threshold + 9):
            assert math.isclose(mechanism.chance(count), 1 - group_law(mechanism, count)[None], rel_tol=1e-6)


@pytest.mark.parametrize("sigma", [1.8, 3.0, 700.0])
def test_tails_of_gaussian_noise_are_sums_of_its_weights(sigma):
    gate = NormalGate.of(sigma, 1e-5)
    reach = math.ceil(45 * sigma) + 50
    places = np.arange(-reach, reach + 1)
    weights = np.exp(-((places / sigma) ** 2) / 2)
    sums = weights[::-1].cumsum()[::-1] / weights.sum()
    asked = np.arange(-math.ceil(9 * sigma), math.ceil(9 * sigma) + 1, max(1, math.ceil(sigma / 20)))
    assert np.allclose(np.exp(gate.log_tail(asked.astype(float))), sums[asked + reach], rtol=1e-9, atol=0)
    assert gate.delta >= sums[gate.threshold + reach]
    assert gate.delta <= 1e-5 < NormalGate(sigma, gate.threshold - 1).delta


def test_tails_of_wide_gaussian_noise_are_those_of_the_normal_law():
    narrow, wide = NormalGate(99_999.0, 10**6), NormalGate(100_001.0, 10**6)
    asked = np.linspace(-7e5, 7e5, 99).round()
    assert np.allclose(narrow.log_tail(asked), wide.log_tail(asked), rtol=2e-3, atol=1e-9)
    assert math.isclose(narrow.delta, wide.delta, rel_tol=3e-3)
    far = NormalGate(3e5, 10**6)
    assert math.log(far.delta) >= far.log_tail(np.array([1e6]))[0]


def test_no_finite_notion_is_claimed():
    event = select_partitions(epsilon=1.0, delta=1e-6).event
    for ask in (event.cdp, event.zcdp, event.gdp, event.pure, lambda: event.rdp(2)):
        with pytest.raises(NoSuchGuarantee):
            ask()


@pytest.mark.statistical
@pytest.mark.parametrize("noise", NOISES)
def test_releases_follow_the_law(noise):
    """200,000 groups of one size in one release: what is seen of them, as a chi-square against the law."""
    mechanism = select_partitions(epsilon=1.0, delta=0.01, noise=noise)
    count, number = mechanism.threshold - 1, 200_000
    released = draws(mechanism, dict.fromkeys(range(number), count), 1, SYSTEM)[0]
    law = group_law(mechanism, count)
    seen = np.array(list(released.values()))
    far = far_of(mechanism)
    observed = [
        number - seen.size,
        np.sum(seen >= far),
        *(np.sum(seen == one) for one in range(mechanism.threshold, far)),
    ]
    assert chi_square(observed, list(law.values())) > ALARM
    assert math.isclose(mechanism.chance(count), 1 - law[None], rel_tol=1e-12)


def test_groups_leave_in_an_order_that_does_not_tell_of_the_data():
    mechanism = select_partitions(epsilon=1.0, delta=1e-6)
    orders = {tuple(mechanism.release(dict.fromkeys("abc", 10**6)).value) for _ in range(300)}
    assert len(orders) == 6  # one is missing with probability under 6 (5/6)^300 < 1e-22


def test_empty_groups_are_as_if_absent_and_no_data_name_no_group():
    mechanism = select_partitions(epsilon=1.0, delta=0.5)
    assert all(mechanism.release({"a": 0}).value == {} for _ in range(100))
    assert mechanism.release({}).value == {}


def test_without_noise():
    mechanism = select_partitions(epsilon=1.0, delta=1e-6)
    counts = {"a": mechanism.threshold, "b": mechanism.threshold - 1}
    assert mechanism.release(counts, unsafe_without_noise=True).value == {"a": mechanism.threshold}


GOOD = {"epsilon": 1.0, "delta": 1e-6}


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", value) for value in (0, -1, math.nan, math.inf, True, "1", None)]
    + [("delta", value) for value in (0, 1, -1, math.nan, True, "1", None)]
    + [("max_groups_per_unit", value) for value in (0, -1, 1.0, 513, True, "1", None)]
    + [("adjacency", value) for value in ("add", None, 1)]
    + [("noise", value) for value in ("normal", 1, True)],
    ids=str,
)
def test_bad_parameters_are_refused(name, value):
    with pytest.raises(InvalidArgument, match=name):
        select_partitions(**{**GOOD, name: value})


@pytest.mark.parametrize(
    "counts",
    [
        {"secret": -1},
        {"secret": 1.0},
        {"secret": math.nan},
        {"secret": None},
        {"secret": True},
        {"secret": "31337"},
        {"secret": [1]},
        ["secret"],
        [("secret", 1)],
        "secret",
        31337,
        None,
    ],
    ids=repr,
)
def test_bad_counts_are_refused_without_being_shown_and_nothing_is_drawn(counts, monkeypatch):
    refuses_quietly(select_partitions(**GOOD), counts, monkeypatch)

"""Propose–test–release: distances against a search over all small data sets, the promise by brute force, bad input."""

import math
from collections import Counter

import numpy as np
import pytest

from sitr.errors import InvalidArgument, NoSuchGuarantee
from sitr.mechanisms import ptr_median, ptr_mode
from sitr.mechanisms.randomness import SYSTEM
from tests.mechanisms.statistics import ALARM, chi_square
from tests.mechanisms.truths import (
    counts_of,
    draws,
    keeps_its_promise,
    laplace_mass,
    laplace_tail,
    multisets,
    neighbours,
    refuses_quietly,
)

ADJACENCIES = ["add_remove", "replace_one"]
KEYS = range(3)
VALUES = range(5)


def mode_of(data):
    """The modes, all of them: whichever of several is named, the promise must hold."""
    counts = Counter(data)
    return {key for key in counts if counts[key] == max(counts.values())}


def mode_distance(mechanism, data):
    return mechanism.distance(np.array(list(Counter(data).values()), dtype=np.int64))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_distance_of_a_mode_moves_by_one_and_is_zero_where_modes_differ(adjacency):
    mechanism = ptr_mode(epsilon=1.0, delta=0.05, adjacency=adjacency)
    for data in multisets(KEYS, 7):
        here = mode_distance(mechanism, data)
        for other in neighbours(data, KEYS, adjacency):
            there = mode_distance(mechanism, other)
            assert abs(here - there) <= 1
            if len(mode_of(data) | mode_of(other)) > 1:
                assert here == there == 0


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (0.4, 0.3), (2.0, 1e-3)])
def test_a_mode_is_told_no_better_than_the_event_says(adjacency, epsilon, delta):
    mechanism = ptr_mode(epsilon=epsilon, delta=delta, adjacency=adjacency)

    def law_of(data, named):
        passed = laplace_tail(1 / epsilon, mechanism.threshold - mode_distance(mechanism, data))
        return {None: 1 - passed, named: passed} if data else {None: 1.0}

    for data in multisets(KEYS, 5):
        for other in neighbours(data, KEYS, adjacency):
            for one in mode_of(data) or {None}:
                for two in mode_of(other) or {None}:
                    keeps_its_promise(mechanism.event, law_of(data, one), law_of(other, two), (0.0, 0.3, 1.0))


@pytest.mark.statistical
def test_releases_of_a_mode_follow_the_law():
    mechanism = ptr_mode(epsilon=1.0, delta=0.05)
    counts = {"a": mechanism.threshold + 1, "b": 1}
    answers = draws(mechanism, counts, 20_000, SYSTEM)
    passed = laplace_tail(1.0, 1)  # the distance is one short of the threshold
    assert chi_square(counts_of(answers, ["a", None]), [passed, 1 - passed]) > ALARM


def median_of(data):
    return data[(len(data) - 1) // 2] if data else VALUES[0]


def local_sensitivity(data, adjacency):
    others = neighbours(data, VALUES, adjacency)
    return max((abs(median_of(data) - median_of(other)) for other in others), default=0)


def distances_to_trouble(proposed, adjacency, most):
    """Breadth-first from all data sets whose local sensitivity exceeds the proposed one."""
    everything = multisets(VALUES, most)
    known = set(everything)
    distance = {data: 0 for data in everything if local_sensitivity(data, adjacency) > proposed}
    layer = list(distance)
    while layer:
        following = {other for data in layer for other in neighbours(data, VALUES, adjacency)} & known
        layer = [data for data in following if data not in distance]
        for data in layer:
            distance[data] = 1 + min(distance.get(other, math.inf) for other in neighbours(data, VALUES, adjacency))
    return distance


def made_median(proposed, adjacency, epsilon=1.0, delta=0.05):
    return ptr_median(
        epsilon=epsilon, delta=delta, bounds=(0, 4), proposed_sensitivity=proposed, integers=True, adjacency=adjacency
    )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("proposed", [1, 2, 3])
def test_the_distance_of_a_median_is_that_of_a_search(adjacency, proposed):
    """Nobody at all is trouble, as one person decides: so no data set is farther from it than it has people."""
    truth = distances_to_trouble(proposed, adjacency, 8)
    mechanism = made_median(proposed, adjacency)
    sizes = range(5) if adjacency == "add_remove" else range(1, 9)
    checked = 0
    for data in truth:
        if len(data) in sizes:
            assert mechanism.distance(np.array(data, dtype=np.int64)) == truth[data]
            checked += 1
    assert checked >= 100


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("epsilon", "delta", "proposed"), [(1.0, 0.05, 1), (2.0, 0.2, 2)])
def test_a_median_is_told_no_better_than_the_event_says(adjacency, epsilon, delta, proposed):
    mechanism = made_median(proposed, adjacency, epsilon, delta)
    scale, noise = 2 / epsilon, float(mechanism._noise)

    def law_of(data):
        distance = mechanism.distance(np.array(data, dtype=np.int64))
        passed = laplace_tail(scale, mechanism.threshold - distance)
        median = median_of(data)
        law = {None: 1 - passed, 4: passed * laplace_tail(noise, 4 - median), 0: passed * laplace_tail(noise, median)}
        return law | {value: passed * laplace_mass(noise, value - median) for value in (1, 2, 3)}

    for data in multisets(VALUES, 3):
        law = law_of(data)
        for other in neighbours(data, VALUES, adjacency):
            keeps_its_promise(mechanism.event, law, law_of(other), (0.0, epsilon / 2, epsilon))


@pytest.mark.statistical
def test_releases_of_a_median_follow_the_law():
    mechanism = made_median(1, "add_remove")
    answers = draws(mechanism, [2] * 12, 20_000, SYSTEM)
    noise, distance = float(mechanism._noise), mechanism.distance(np.array([2] * 12))
    passed = laplace_tail(2.0, mechanism.threshold - distance)
    middle = [passed * laplace_mass(noise, value - 2) for value in (1, 2, 3)]
    law = [passed * laplace_tail(noise, 2), *middle, passed * laplace_tail(noise, 2), 1 - passed]
    assert chi_square(counts_of(answers, [*VALUES, None]), law) > ALARM


def test_delta_is_shown_as_infinite_loss_and_no_finite_notion_is_claimed():
    for mechanism in (ptr_mode(epsilon=1.0, delta=1e-6), made_median(1, "add_remove", delta=1e-6)):
        event = mechanism.event
        assert 0 < event.infinite_mass <= 1e-6
        assert event.epsilon(delta=1e-6).upper <= 1.0
        assert event.pure(delta_part=True) <= 1.0 + 1e-12
        for ask in (event.cdp, event.zcdp, event.gdp, event.pure, lambda event=event: event.rdp(2)):
            with pytest.raises(NoSuchGuarantee):
                ask()


def test_without_data_the_answer_is_none_but_for_delta():
    mode, median = ptr_mode(epsilon=1.0, delta=1e-12), made_median(1, "add_remove", delta=1e-12)
    assert [mode.release({}).value, median.release([]).value] == [None, None]
    often = [made_median(1, "add_remove", delta=0.4).release([], unsafe_seed=seed).value for seed in range(100)]
    assert None in often
    assert any(value is not None for value in often)


def test_where_the_data_are_close_the_answer_is():
    median = ptr_median(epsilon=1.0, delta=1e-6, bounds=(0, 1000), proposed_sensitivity=0.01)
    ages = np.linspace(40, 40.2, 2001)
    release = median.release(ages, unsafe_seed=3)
    assert abs(release.value - 40.1) < 0.5
    assert math.isclose(release.error95, 0.01 / 0.5 * math.log(20), rel_tol=1e-3)
    assert median.release(np.linspace(0, 1000, 101)).value is None  # but for 1e-6 (e^{ε/2})^few: far under 1e-9


def test_without_noise():
    assert ptr_mode(epsilon=1.0, delta=1e-6).release({"a": 30, "b": 1}, unsafe_without_noise=True).value == "a"
    assert ptr_mode(epsilon=1.0, delta=1e-6).release({"a": 3, "b": 1}, unsafe_without_noise=True).value is None
    assert made_median(1, "add_remove").release([2] * 60, unsafe_without_noise=True).value == 2


MODE = {"epsilon": 1.0, "delta": 1e-6}
MEDIAN = MODE | {"bounds": (0.0, 1.0), "proposed_sensitivity": 0.1}
BAD = (
    [("epsilon", value) for value in (0, -1, math.nan, math.inf, True, "1", None)]
    + [("delta", value) for value in (0, 1, -1, math.nan, True, "1", None)]
    + [("adjacency", value) for value in ("add", None, 1)]
)


@pytest.mark.parametrize(("name", "value"), BAD, ids=str)
def test_bad_parameters_of_a_mode_are_refused(name, value):
    with pytest.raises(InvalidArgument, match=name):
        ptr_mode(**{**MODE, name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    BAD
    + [("bounds", value) for value in ((1, 0), (1, 1), (0, math.nan), (0, math.inf), (0,), 3, None)]
    + [("proposed_sensitivity", value) for value in (0, -1, 1.0, 2, math.nan, True, "1", None)]
    + [("share", value) for value in (0, 1, -1, math.nan, True, "1", None)],
    ids=str,
)
def test_bad_parameters_of_a_median_are_refused(name, value):
    with pytest.raises(InvalidArgument, match=name):
        ptr_median(**{**MEDIAN, name: value})


@pytest.mark.parametrize("counts", [{"secret": -1}, {"secret": 1.5}, ["secret"], "secret", 31337, None], ids=repr)
def test_bad_counts_are_refused_without_being_shown_and_nothing_is_drawn(counts, monkeypatch):
    refuses_quietly(ptr_mode(**MODE), counts, monkeypatch)


@pytest.mark.parametrize("values", ["secret", 31337, None, {}], ids=repr)
def test_bad_values_are_refused_without_being_shown_and_nothing_is_drawn(values, monkeypatch):
    refuses_quietly(ptr_median(**MEDIAN), values, monkeypatch)

"""Quantiles: the exact law against its definition point by point, its promise by brute force, draws, bad input."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sitr.accounting import Exponential
from sitr.errors import InvalidArgument
from sitr.mechanisms import quantile
from sitr.mechanisms.randomness import SYSTEM
from tests.mechanisms.statistics import ALARM, chi_square
from tests.mechanisms.truths import (
    Counting,
    counts_of,
    draws,
    keeps_its_promise,
    multisets,
    neighbours,
    refuses_quietly,
)

VALUES = range(5)
QUANTILES = [0.0, 0.25, 0.5, 0.9, 1.0]


def utility(data, q, point):
    """How many people lie between a point and the quantile, negative."""
    wanted = q * len(data)
    return -max(0, sum(x < point for x in data) - wanted, wanted - sum(x <= point for x in data))


def law_of(mechanism, data, sensitivity):
    """Weights e^{εu/2Δ} over every point of the grid, by the definition."""
    rate = mechanism.event.at_epsilon / (2 * float(sensitivity))
    points = range(mechanism.span.lower, mechanism.span.upper + 1)
    weights = {point: math.exp(rate * float(utility(data, mechanism.q, point))) for point in points}
    total = math.fsum(weights.values())
    return {point: weight / total for point, weight in weights.items()}


def made(q, epsilon=1.0, adjacency="add_remove"):
    mechanism = quantile(q=q, epsilon=epsilon, bounds=(0, 4), integers=True, adjacency=adjacency)
    sensitivity = max(mechanism.q, 1 - mechanism.q) if adjacency == "add_remove" else Fraction(1)
    return mechanism, sensitivity


@pytest.mark.parametrize("q", [*QUANTILES, 1 / 3])
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_the_pieces_are_the_definition(q, adjacency):
    """Each piece of the grid has its length and e^{-rate gap} as weight; together they are the law."""
    mechanism, sensitivity = made(q, 1.3, adjacency)
    for data in multisets(VALUES, 4):
        starts, lengths, gaps = mechanism._pieces(np.array(data, dtype=np.int64))
        found = {}
        for start, length, gap in zip(starts.tolist(), lengths.tolist(), gaps.tolist(), strict=True):
            for point in range(start, start + length):
                assert point not in found
                found[point] = math.exp(-gap * float(mechanism._rate))
        total = math.fsum(found.values())
        assert min(gaps) == 0
        for point, probability in law_of(mechanism, data, sensitivity).items():
            assert abs(found[point] / total - probability) < 1e-12


@pytest.mark.parametrize("q", QUANTILES)
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_neighbours_are_told_apart_no_better_than_the_event_says(q, adjacency):
    mechanism, sensitivity = made(q, 1.0, adjacency)
    for data in multisets(VALUES, 3):
        law = law_of(mechanism, data, sensitivity)
        for other in neighbours(data, VALUES, adjacency):
            for point in VALUES:  # the sensitivity of u, exactly
                assert abs(utility(data, mechanism.q, point) - utility(other, mechanism.q, point)) <= sensitivity
            keeps_its_promise(mechanism.event, law, law_of(mechanism, other, sensitivity), (0.0, 0.3, 0.7, 1.0))


@pytest.mark.statistical
def test_releases_follow_the_law():
    data = (1, 1, 3)
    mechanism, sensitivity = made(0.25, 2.0)
    law = law_of(mechanism, data, sensitivity)
    assert chi_square(counts_of(draws(mechanism, data, 100_000, SYSTEM), list(law)), list(law.values())) > ALARM


@pytest.mark.statistical
def test_without_data_the_answer_is_uniform_between_the_bounds():
    """Ten equal parts of the range, 20,000 draws."""
    mechanism = quantile(q=0.3, epsilon=1.0, bounds=(-2.5, 7.5))
    answers = np.array(draws(mechanism, [], 20_000, SYSTEM))
    assert np.all((answers >= -2.5) & (answers <= 7.5))
    assert chi_square(np.histogram(answers, bins=10, range=(-2.5, 7.5))[0], [0.1] * 10) > ALARM


def test_much_data_gives_the_quantile():
    generator = np.random.default_rng(1)
    values = generator.normal(0, 1, 100_001)
    for q in (0.1, 0.5, 0.9):
        found = quantile(q=q, epsilon=1.0, bounds=(-10, 10)).release(values, unsafe_seed=1).value
        assert abs(np.mean(values < found) - q) < 1e-3


def test_ties_do_not_push_the_answer_away():
    """With all people at one value its utility is 0 and that of every other point -n/2."""
    mechanism = quantile(q=0.5, epsilon=1.0, bounds=(0, 100), integers=True)
    assert {mechanism.release([37] * 200, unsafe_seed=seed).value for seed in range(50)} == {37}


def test_answers_lie_on_the_grid_inside_the_bounds():
    mechanism = quantile(q=0.5, epsilon=0.01, bounds=(0.1, 0.7))
    step = float(mechanism.span.step)
    for seed in range(200):
        answer = mechanism.release([0.3, 0.5, 1e9, -1e9], unsafe_seed=seed).value
        assert 0.1 <= answer <= 0.7
        assert (answer / step).is_integer()


def test_the_bits_that_are_drawn_do_not_depend_on_the_outcome():
    used = set()
    mechanism = quantile(q=0.5, epsilon=1.0, bounds=(0, 1000), integers=True)
    for data in ([], [1], [3, 500, 900], [7] * 10):
        source = Counting()
        mechanism._drawn(mechanism._checked(data), source)
        used.add(source.count)
    assert used == {32}


def test_without_noise_the_quantile_itself():
    mechanism = quantile(q=0.5, epsilon=1.0, bounds=(0, 100), integers=True)
    assert mechanism.release([10, 20, 30], unsafe_without_noise=True).value == 20
    assert mechanism.event == Exponential(1.0, adjacency="add_remove")


GOOD = {"q": 0.5, "epsilon": 1.0, "bounds": (0.0, 1.0)}


@pytest.mark.parametrize(
    ("name", "value"),
    [("q", value) for value in (-0.1, 1.1, math.nan, True, "1", None)]
    + [("epsilon", value) for value in (0, -1, math.nan, math.inf, True, "1", None)]
    + [
        ("bounds", value)
        for value in (
            (1, 0),
            (1, 1),
            (0, math.nan),
            (0, math.inf),
            (0,),
            (0, 1, 2),
            3,
            None,
            ("a", "b"),
            (1e15, 1e15 + 1),
        )
    ]
    + [("adjacency", value) for value in ("add", None, 1)],
    ids=str,
)
def test_bad_parameters_are_refused(name, value):
    with pytest.raises(InvalidArgument, match=name):
        quantile(**{**GOOD, name: value})


def test_whole_numbers_want_whole_bounds():
    with pytest.raises(InvalidArgument, match="bounds"):
        quantile(q=0.5, epsilon=1.0, bounds=(0.5, 10), integers=True)


@pytest.mark.parametrize(
    "values",
    [
        "secret",
        "",
        31337,
        None,
        {},
    ],
    ids=repr,
)
def test_bad_values_are_refused_without_being_shown_and_nothing_is_drawn(values, monkeypatch):
    refuses_quietly(quantile(**GOOD), values, monkeypatch)


@pytest.mark.parametrize("row", [math.nan, None, "secret", [1, 2], math.inf, -math.inf, True, 10**400])
def test_no_row_is_refused(row):
    """An error that one row can cause would tell of it."""
    for adjacency in ("add_remove", "replace_one"):
        mechanism = quantile(**{**GOOD, "adjacency": adjacency})
        low, high = GOOD["bounds"]
        assert low <= mechanism.release([row]).value <= high

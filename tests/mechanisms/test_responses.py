"""Randomized response: exact probabilities, its promise, the estimator by enumeration, bad input."""

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

from sitr.accounting import RandomizedResponse
from sitr.errors import InvalidArgument
from sitr.mechanisms import randomized_response
from sitr.mechanisms.randomness import SYSTEM
from tests.mechanisms.statistics import ALARM, chi_square
from tests.mechanisms.truths import counts_of, draws, keeps_its_promise, refuses_quietly


def law_of(mechanism, answer):
    other = (1 - Fraction(mechanism.p)) / (mechanism.k - 1)
    return {place: Fraction(mechanism.p) if place == answer else other for place in range(mechanism.k)}


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("p", [0.1, 0.5, 0.75, 0.99])
def test_neighbours_are_told_apart_no_better_than_the_event_says(p, k):
    mechanism = randomized_response(p=p, k=k)
    assert mechanism.event == RandomizedResponse(p, k, adjacency="replace_one")
    for first, second in product(range(k), repeat=2):
        keeps_its_promise(mechanism.event, law_of(mechanism, first), law_of(mechanism, second))


@pytest.mark.parametrize("k", [2, 3, 1000])
@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 1.0, 10.0, 30.0, 100.0])
def test_epsilon_is_met_from_below(epsilon, k):
    """p is the largest float at most e^ε/(e^ε + k - 1)."""
    p = randomized_response(epsilon=epsilon, k=k).p
    with mp.workdps(80):
        exact = 1 / (1 + (k - 1) * mpmath.exp(-mpf(epsilon)))
        assert mpf(p) <= exact
        assert mpf(math.nextafter(p, 2)) > exact


@pytest.mark.statistical
@pytest.mark.parametrize(("p", "k"), [(0.75, 2), (0.1, 2), (0.6, 5), (0.2, 3)])
def test_many_reports_follow_the_law(p, k):
    mechanism = randomized_response(p=p, k=k)
    for answer in range(k):
        reports = mechanism.release_many(np.full(300_000, answer)).value
        law = [float(one) for one in law_of(mechanism, answer).values()]
        assert chi_square(np.bincount(reports, minlength=k), law) > ALARM


@pytest.mark.statistical
def test_single_reports_follow_the_law():
    mechanism = randomized_response(p=0.6, categories=["a", "b", "c"])
    assert chi_square(counts_of(draws(mechanism, "b", 50_000, SYSTEM), ["a", "b", "c"]), [0.2, 0.6, 0.2]) > ALARM


@pytest.mark.parametrize(("p", "k", "truth"), [(0.75, 2, (0, 1, 1)), (0.5, 3, (0, 0, 2)), (0.1, 3, (1, 2, 2))])
def test_the_estimator_is_unbiased_and_its_error_is_its_standard_deviation(p, k, truth):
    """Over all reports of three people, with their probabilities."""
    mechanism = randomized_response(p=p, k=k)
    mean, square = np.zeros(k), np.zeros(k)
    for reports in product(range(k), repeat=len(truth)):
        probability = math.prod(
            float(law_of(mechanism, own)[report]) for own, report in zip(truth, reports, strict=True)
        )
        found = mechanism.estimate(np.bincount(reports, minlength=k)).counts
        mean += probability * found
        square += probability * found**2
    own = np.bincount(truth, minlength=k)
    np.testing.assert_allclose(mean, own, atol=1e-12)
    other = (1 - p) / (k - 1)
    variance = (own * p * (1 - p) + (len(truth) - own) * other * (1 - other)) / (p - other) ** 2
    np.testing.assert_allclose(square - mean**2, variance, rtol=1e-10)
    expected = own * p + (len(truth) - own) * other  # where the reports are as expected, the error stated is that one
    np.testing.assert_allclose(mechanism.estimate(expected).standard_errors, np.sqrt(variance), rtol=1e-10)


def test_the_estimate_is_refused_where_reports_say_nothing():
    with pytest.raises(InvalidArgument, match="p="):
        randomized_response(p=0.25, k=4).estimate([1, 2, 3, 4])


def test_categories_come_back_as_they_were():
    mechanism = randomized_response(epsilon=1.0, categories=["yes", "no", None])
    release = mechanism.release_many(["yes", None, "no"] * 10)
    assert set(release.value) <= {"yes", "no", None}
    assert release.private
    assert len(release.value) == 30
    assert mechanism.release_many(["yes", None], unsafe_without_noise=True).value == ["yes", None]
    assert not mechanism.release("no", unsafe_seed=1).private
    assert mechanism.release_many([]).value == []


@pytest.mark.parametrize(
    ("arguments", "match"),
    [({"p": value}, "p=") for value in (0, 1, -1, math.nan, True, "1")]
    + [({"epsilon": value}, "epsilon=") for value in (0, -1, math.nan, math.inf, True, "1")]
    + [({"p": 0.7, "k": value}, "k=") for value in (1, 0, 2.0, True, "2", None, 10**7)]
    + [({"p": 0.7, "categories": value}, "categories") for value in ([], ["a"], ["a", "a"], "ab", 3, [[1], [2]])]
    + [
        ({"p": 0.7, "categories": ["a", "b"], "k": 3}, "k=3"),
        ({}, "not one target"),
        ({"p": 0.7, "epsilon": 1.0}, "not one"),
    ],
    ids=str,
)
def test_bad_parameters_are_refused(arguments, match):
    with pytest.raises(InvalidArgument, match=match):
        randomized_response(**arguments)


@pytest.mark.parametrize("answer", [2, -1, 31337, 1.0, math.nan, "secret", None, True, [0], 10**30], ids=repr)
def test_bad_answers_are_refused_without_being_shown_and_nothing_is_drawn(answer, monkeypatch):
    refuses_quietly(randomized_response(p=0.7), answer, monkeypatch)
    refuses_quietly(randomized_response(p=0.7), [answer, answer], monkeypatch, "release_many")


@pytest.mark.parametrize("answer", ["secret", 31337, math.nan, None, ["a"]], ids=repr)
def test_answers_that_are_no_category_are_refused(answer, monkeypatch):
    mechanism = randomized_response(p=0.7, categories=["a", "b"])
    refuses_quietly(mechanism, answer, monkeypatch)
    refuses_quietly(mechanism, ["a", answer], monkeypatch, "release_many")
    refuses_quietly(mechanism, 31337, monkeypatch, "release_many")


@pytest.mark.parametrize("counts", [[1], [1, 2, 3], [-1, 2], [math.nan, 1], None, "ab", [[1, 2]]], ids=repr)
def test_bad_counts_of_reports_are_refused(counts):
    with pytest.raises(InvalidArgument, match="counts"):
        randomized_response(p=0.7).estimate(counts)

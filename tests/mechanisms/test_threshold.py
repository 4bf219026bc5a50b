"""AboveThreshold: the exact law, its promise by brute force over neighbours, draws, bad input."""

import math
from fractions import Fraction

import pytest

from sitr.accounting import PureDP
from sitr.errors import InvalidArgument
from sitr.mechanisms import above_threshold
from sitr.mechanisms.randomness import SYSTEM
from tests.mechanisms.statistics import ALARM, chi_square
from tests.mechanisms.truths import (
    Counting,
    changes,
    counts_of,
    draws,
    keeps_its_promise,
    laplace_mass,
    laplace_tail,
    refuses_quietly,
)

ANSWERS = [(0, 0, 0), (1, -1, 2), (-2, -2, 3), (5, 0, 0)]


def law_of(mechanism, answers):
    """P(k) = Σ over the threshold's noise of P(all before k under it) P(k not under it)."""
    first, others = (float(noise) for noise in mechanism._noises)
    reach = math.ceil(40 * first) + 20
    found = dict.fromkeys([*range(len(answers)), None], 0.0)
    for noise in range(-reach, reach + 1):
        left = laplace_mass(first, noise)
        for place, answer in enumerate(answers):
            above = laplace_tail(others, mechanism._threshold + noise - answer)
            found[place] += left * above
            left *= 1 - above
        found[None] += left
    total = math.fsum(found.values())
    return {outcome: probability / total for outcome, probability in found.items()}


@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize(("epsilon", "share"), [(1.0, None), (2.0, 0.5), (0.5, 0.2)])
def test_neighbours_are_told_apart_no_better_than_the_event_says(monotone, epsilon, share):
    mechanism = above_threshold(
        epsilon=epsilon, sensitivity=1, threshold=1, monotone=monotone, share=share, integers=True
    )
    assert mechanism.event == PureDP(epsilon)
    for answers in ANSWERS:
        law = law_of(mechanism, answers)
        for change in changes(3, 0 if monotone else -1, 1):
            moved = [answer + step for answer, step in zip(answers, change, strict=True)]
            keeps_its_promise(mechanism.event, law, law_of(mechanism, moved), (0.0, epsilon / 2, epsilon))


def test_the_monotone_noise_is_no_promise_for_other_answers():
    """The check above has teeth (THEORY 2.5: 1.49 ε was seen)."""
    mechanism = above_threshold(epsilon=2.0, sensitivity=1, threshold=0, monotone=True, share=0.5, integers=True)
    first, second = law_of(mechanism, (0, 0, 0, 0)), law_of(mechanism, (1, 1, 1, -1))
    with pytest.raises(AssertionError):
        keeps_its_promise(mechanism.event, first, second)


def test_the_noises_are_those_of_the_theorem():
    mechanism = above_threshold(epsilon=1.0, sensitivity=1, threshold=0, share=0.25, integers=True)
    assert mechanism._noises == (4, Fraction(8, 3))
    mechanism = above_threshold(epsilon=1.0, sensitivity=3, threshold=0, share=0.25, monotone=True, integers=True)
    assert mechanism._noises == (12, 4)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1.0, 100.0])
def test_the_rounding_is_charged_and_costs_little(epsilon):
    mechanism = above_threshold(epsilon=epsilon, sensitivity=0.7, threshold=1.0, share=0.5)
    moved = math.floor(Fraction(0.7) / mechanism._grid.step) + 1
    assert mechanism._noises[0] == moved / (Fraction(epsilon) / 2)
    assert 1 <= mechanism.threshold_scale / (0.7 / (epsilon / 2)) < 1.01


@pytest.mark.statistical
def test_releases_follow_the_law():
    mechanism = above_threshold(epsilon=2.0, sensitivity=1, threshold=2, integers=True)
    answers = (0, 2, -1, 3)
    law = law_of(mechanism, answers)
    assert chi_square(counts_of(draws(mechanism, answers, 100_000, SYSTEM), list(law)), list(law.values())) > ALARM


def test_the_bits_that_are_drawn_do_not_depend_on_where_the_answer_lies():
    mechanism = above_threshold(epsilon=1.0, sensitivity=1.0, threshold=0.0)
    used = set()
    for place in range(5):
        source = Counting()
        values = [-1e6] * 5
        values[place] = 1e6
        assert mechanism._drawn(mechanism._checked(values), source) == place
        used.add(source.count)
    assert len(used) == 1


def test_the_accuracy_holds():
    mechanism = above_threshold(epsilon=1.0, sensitivity=1, threshold=0, integers=True)
    alpha = mechanism.accuracy(queries=3, probability=0.9)
    low, high = -math.ceil(alpha) - 1, math.ceil(alpha) + 1
    assert law_of(mechanism, (low, low, high))[2] >= 0.9


def test_without_noise_and_without_answers():
    mechanism = above_threshold(epsilon=1.0, sensitivity=1, threshold=2.0)
    assert mechanism.release([1.0, 2.0, 3.0], unsafe_without_noise=True).value == 1
    assert mechanism.release([1.0], unsafe_without_noise=True).value is None
    assert mechanism.release([]).value is None


GOOD = {"epsilon": 1.0, "sensitivity": 1.0, "threshold": 0.0}


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", value) for value in (0, -1, math.nan, math.inf, True, "1", None)]
    + [("sensitivity", value) for value in (0, -1, math.nan, math.inf, True, "1", None)]
    + [("threshold", value) for value in (math.nan, math.inf, True, "1", None, 1e300)]
    + [("share", value) for value in (0, 1, -1, 2, math.nan, True, "1")]
    + [("adjacency", value) for value in ("add", 1)],
    ids=str,
)
def test_bad_parameters_are_refused(name, value):
    with pytest.raises(InvalidArgument, match=name):
        above_threshold(**{**GOOD, name: value})


@pytest.mark.parametrize(
    "answers",
    [
        [math.nan, 1],
        [math.inf, 31337.0],
        ["secret"],
        "secret",
        [None],
        31337,
        None,
        [[1, 2]],
        {},
        {"secret": 1},
        [True],
    ],
    ids=repr,
)
def test_bad_answers_are_refused_without_being_shown_and_nothing_is_drawn(answers, monkeypatch):
    refuses_quietly(above_threshold(**GOOD), answers, monkeypatch)

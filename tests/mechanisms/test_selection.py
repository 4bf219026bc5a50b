"""The exponential mechanism and permute-and-flip: exact laws, their promise by brute force, underflow, bad input."""

import math
from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

from sitr.accounting import Exponential, PureDP
from sitr.errors import InvalidArgument
from sitr.mechanisms import exponential_mechanism, permute_and_flip
from sitr.mechanisms.randomness import SYSTEM
from sitr.mechanisms.samplers import choices
from tests.mechanisms.samplers.test_choices import flip_law
from tests.mechanisms.statistics import ALARM, chi_square
from tests.mechanisms.truths import Scripted, changes, counts_of, draws, keeps_its_promise, refuses_quietly

BOTH = [exponential_mechanism, permute_and_flip]
SCORES = [(0, 0, 0), (3, 1, 0), (0, 2, 2), (5, 4, -2), (0, 0, 1)]


def law_of(mechanism, scores):
    """The law of either, by its formula, in floats."""
    rate = float(mechanism.rate)
    gaps = [max(scores) - score for score in scores]
    if isinstance(mechanism.event, PureDP):
        return dict(enumerate(flip_law(gaps, rate)))
    weights = [math.exp(-gap * rate) for gap in gaps]
    return {place: weight / math.fsum(weights) for place, weight in enumerate(weights)}


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_neighbours_are_told_apart_no_better_than_the_event_says(make, monotone, epsilon):
    mechanism = make(epsilon=epsilon, sensitivity=1, candidates=range(3), monotone=monotone, integers=True)
    assert mechanism.rate == Fraction(epsilon) / (1 if monotone else 2)
    for scores in SCORES:
        for change in changes(3, 0 if monotone else -1, 1):
            moved = [score + step for score, step in zip(scores, change, strict=True)]
            keeps_its_promise(mechanism.event, law_of(mechanism, scores), law_of(mechanism, moved))


def test_the_monotone_weights_are_no_promise_for_other_scores():
    """The check above has teeth: the same weights on scores that move apart cost twice as much."""
    mechanism = exponential_mechanism(epsilon=1.0, sensitivity=1, candidates=range(2), monotone=True, integers=True)
    with pytest.raises(AssertionError):
        keeps_its_promise(mechanism.event, law_of(mechanism, (0, 0)), law_of(mechanism, (1, -1)))


def test_permute_and_flip_is_not_of_bounded_range():
    """Its profile lies above that of the exponential mechanism: charging it as one would be wrong (THEORY 2.5)."""
    mechanism = permute_and_flip(epsilon=1.0, sensitivity=1, candidates=range(2), integers=True)
    laws = law_of(mechanism, (0, 0)), law_of(mechanism, (1, -1))
    with pytest.raises(AssertionError):
        keeps_its_promise(Exponential(1.0), *laws)
    keeps_its_promise(mechanism.event, *laws)


@pytest.mark.parametrize("make", BOTH)
def test_the_rounding_of_scores_is_charged(make):
    """On the grid neighbours are floor(Δ/step) + 1 steps apart at most, and the rate is made for that."""
    mechanism = make(epsilon=1.0, sensitivity=0.3, candidates=range(2))
    grid = mechanism.grid
    moved = math.floor(Fraction(0.3) / grid.step) + 1
    assert mechanism.rate == Fraction(1) / (2 * moved)
    assert Fraction(0.3) / grid.step / moved > 1 - Fraction(1, 2**20)
    generator = np.random.default_rng(1)
    for _ in range(200):
        scores = generator.normal(0, 10, 2)
        apart = grid.placed("scores", scores + 0.3) - grid.placed("scores", scores)
        assert np.all((apart >= 0) & (apart <= moved))


@pytest.mark.statistical
@pytest.mark.parametrize("make", BOTH)
def test_releases_follow_the_law(make):
    names = ["a", "b", "c", "d"]
    mechanism = make(epsilon=1.0, sensitivity=1, candidates=names, integers=True)
    answers = draws(mechanism, [0, 3, 2, -4], 100_000, SYSTEM)
    law = list(law_of(mechanism, (0, 3, 2, -4)).values())
    assert chi_square(counts_of(answers, names), law) > ALARM


def naive_law(scores, epsilon, sensitivity):
    """A naive twin: weights by floats."""
    weights = np.exp(epsilon * np.asarray(scores, dtype=float) / (2 * sensitivity))
    with np.errstate(invalid="ignore"):
        return weights / weights.sum()


def shifted_naive_law(scores, epsilon, sensitivity):
    """The usual repair, which moves the best score to 0."""
    return naive_law(np.asarray(scores) - max(scores), epsilon, sensitivity)


def test_weights_far_from_zero_keep_their_ratio():
    """The naive twin divides nothing by nothing; the exact weights are those of the differences."""
    assert np.all(np.isnan(naive_law([-10_000, -10_002], 1.0, 1.0)))
    mechanism = exponential_mechanism(epsilon=1.0, sensitivity=1, candidates=range(2), integers=True)
    far = [mechanism.release([-10_000, -10_002], unsafe_seed=seed).value for seed in range(300)]
    near = [mechanism.release([0, -2], unsafe_seed=seed).value for seed in range(300)]
    assert far == near
    assert set(Counter(far)) == {0, 1}


def test_no_candidate_becomes_impossible_by_underflow():
    """Neighbours' scores -745 and -746: for the repaired twin an outcome becomes impossible, a loss without limit."""
    first, second = shifted_naive_law([0, -745], 2.0, 1.0)[1], shifted_naive_law([0, -746], 2.0, 1.0)[1]
    assert first > 0 == second
    mechanism = exponential_mechanism(epsilon=2.0, sensitivity=1, candidates=["a", "b"], integers=True)
    for score in (-745, -746):
        gaps, bits = np.array([0, -score]), 1300
        lows, highs = choices._running_sums(np.ones_like(gaps), gaps, mechanism.rate, bits)
        with mp.workdps(500):
            exact = mpmath.exp(mpf(score)) * mpf(2) ** bits
            assert lows[1] - highs[0] <= exact <= highs[1] - lows[0]
            assert (highs[1] - lows[0]) / exact < 1 + 1e-9
        source = Scripted(then=255)  # the largest uniform number there is
        assert mechanism._drawn(mechanism._checked([0, score]), source) == "b"
        assert source.drawn * 8 > -score / math.log(2)


@pytest.mark.parametrize("make", BOTH)
def test_the_shortfall_holds(make):
    mechanism = make(epsilon=1.0, sensitivity=1, candidates=range(4), integers=True)
    bound = mechanism.shortfall(0.9)
    for scores in [(0, 0, 0, 0), (20, 10, 0, -5), (8, 0, 0, 0), (9, 0, 0, 1)]:
        law = law_of(mechanism, scores)
        assert sum(law[place] for place, score in enumerate(scores) if score < max(scores) - bound) <= 0.1


@pytest.mark.parametrize("make", BOTH)
def test_without_noise_the_best_is_chosen_and_the_release_says_so(make):
    release = make(epsilon=1.0, sensitivity=1, candidates=["x", "y", "z"]).release([1, 3, 2], unsafe_without_noise=True)
    assert (release.value, release.private) == ("y", False)


def test_the_events():
    assert exponential_mechanism(epsilon=2.0, sensitivity=1, candidates=[1]).event == Exponential(2.0)
    event = permute_and_flip(epsilon=2.0, sensitivity=1, candidates=[1], adjacency="replace_one").event
    assert event == PureDP(2.0, adjacency="replace_one")


GOOD = {"epsilon": 1.0, "sensitivity": 1.0, "candidates": ["a", "b"]}


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", value) for value in (0, -1, math.nan, math.inf, True, "1", None, 1e-12, 1e9)]
    + [("sensitivity", value) for value in (0, -1, math.nan, math.inf, True, "1", None)]
    + [("candidates", value) for value in ([], "ab", b"ab", 3, None, ["a", "a"], [[1], [2]], range(10**6 + 1))]
    + [("adjacency", value) for value in ("add", 1, [])],
    ids=lambda value: str(value)[:20],
)
def test_bad_parameters_are_refused(make, name, value):
    with pytest.raises(InvalidArgument, match=name):
        make(**{**GOOD, name: value})


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize(
    "scores",
    [
        [1.0],
        [1, 2, 3],
        [],
        [math.nan, 1],
        [math.inf, 31337.0],
        ["secret", 1],
        [None, 1],
        31337,
        None,
        [[1, 2], [3, 4]],
        [[1], [2, 3]],
        {"secret": 1, "b": 2},
        [True, False],
        [1j, 2],
    ],
    ids=repr,
)
def test_bad_scores_are_refused_without_being_shown_and_nothing_is_drawn(make, scores, monkeypatch):
    refuses_quietly(make(**GOOD), scores, monkeypatch)


@pytest.mark.parametrize("make", [exponential_mechanism, permute_and_flip])
def test_monotone_scores_are_refused_under_replace_one(make):
    with pytest.raises(InvalidArgument, match="replace_one"):
        make(epsilon=1.0, sensitivity=1.0, candidates=["a", "b"], monotone=True, adjacency="replace_one")

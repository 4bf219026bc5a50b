"""The one-run audit: its theorem by enumeration and by simulation, its bound, and what it refuses."""

import math

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

from sitr.accounting import Gaussian
from sitr.audit import audit_one_run
from sitr.audit.one_run import epsilon_lower_one_run, p_value
from sitr.errors import InvalidArgument

CHANCES = np.random.default_rng()
FALSE_ALARM = 1e-9
RUNS = 300


def canaries(epsilon, delta, count):
    """Randomized response on each canary; with probability δ it is told outright: (ε,δ)-DP, and nothing is worse."""
    included = CHANCES.random(count) < 0.5
    told = np.where(CHANCES.random(count) < expit(epsilon), included, ~included) * 1.0
    return np.where(CHANCES.random(count) < delta, np.where(included, 2.0, -1.0), told), included


# --- the theorem, by enumeration ---------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
@pytest.mark.parametrize(("count", "delta"), [(1, 0.1), (5, 0.02), (40, 1e-3), (40, 0.05), (300, 1e-5), (300, 1e-3)])
def test_no_mechanism_that_tells_some_canaries_outright_beats_the_bound(epsilon, delta, count):
    """With probability π = mδ/k a random set of k canaries is told outright, the others answer by randomized response:
    each is told with probability δ, so this is (ε,δ)-DP. The law of the right guesses is exact."""
    bias = expit(epsilon)
    right = np.arange(count + 1)
    bounds = np.array([p_value(count, count, v, epsilon, delta) for v in right])
    for told in range(1, count + 1):
        rate = min(count * delta / told, 1.0)
        tail = (1 - rate) * binom.sf(right - 1, count, bias) + rate * binom.sf(right - 1 - told, count - told, bias)
        assert np.all(tail <= bounds + 1e-12)
    each = delta + (1 - delta) * bias  # each canary told by a coin of its own
    assert np.all(binom.sf(right - 1, count, each) <= bounds + 1e-12)


def test_without_delta_it_is_the_binomial_tail():
    for v in range(0, 21):
        assert p_value(50, 20, v, 1.0, 0.0) == pytest.approx(binom.sf(v - 1, 20, expit(1.0)))


def test_the_largest_average_is_found():
    """The maximum runs over all i; far from the law's mass it must not be cut short."""
    for count, right, epsilon in ((2000, 1990, 0.1), (2000, 1100, 3.0), (500, 500, 0.0), (500, 260, 0.0)):
        masses = binom.pmf(right - np.arange(1, right + 1), count, expit(epsilon))
        alpha = np.max(np.cumsum(masses) / np.arange(1, right + 1))
        full = binom.sf(right - 1, count, expit(epsilon)) + 2 * count * 1e-5 * alpha
        assert p_value(count, count, right, epsilon, 1e-5) == pytest.approx(min(full, 1.0), rel=1e-9)


@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-4, 5e-4, 1e-2])
@pytest.mark.parametrize(("count", "right"), [(1000, 700), (1000, 520), (1000, 999), (100, 100), (2, 2)])
def test_every_epsilon_under_the_bound_is_refuted(count, right, delta):
    bound = epsilon_lower_one_run(count, count, right, delta, 0.05)
    for epsilon in np.linspace(0.0, bound, 300)[: -1 if bound else 0]:
        assert p_value(count, count, right, epsilon, delta) <= 0.05 * (1 + 1e-9)
    if 2 * count * delta <= 1:
        assert p_value(count, count, right, bound + 1e-4, delta) > 0.05


def test_delta_costs_something_and_more_right_guesses_show_more():
    bounds = [epsilon_lower_one_run(1000, 500, 420, delta, 0.05) for delta in (0.0, 1e-6, 1e-4, 1e-3)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] < bounds[0]
    rising = [epsilon_lower_one_run(1000, 500, right, 1e-5, 0.05) for right in range(250, 501, 25)]
    assert rising == sorted(rising)
    assert epsilon_lower_one_run(1000, 500, 0, 1e-5, 0.05) == 0


# --- by simulation ------------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (3.0, 0.0), (1.0, 1e-3), (0.0, 0.0)])
@pytest.mark.parametrize("guesses", [None, 400, [50, 100, 400]], ids=str)
def test_the_bound_exceeds_the_truth_no_more_often_than_it_may(epsilon, delta, guesses):
    """At most one time in twenty; the threshold for 300 runs is passed with probability under 1e-9."""
    above = 0
    for _ in range(RUNS):
        report = audit_one_run(*canaries(epsilon, delta, 400), delta=delta, guesses=guesses)
        above += report.epsilon_lower > epsilon
    assert above <= binom.isf(FALSE_ALARM, RUNS, 0.05)


@pytest.mark.statistical
def test_the_bound_is_close_to_the_truth():
    """10,000 canaries of ε = 2, all guessed: the share of right guesses has a standard deviation of 0.0032, which is
    0.031 of ε; the bound lies 1.6 of them under it, and eight of them are 0.25."""
    scores, included = canaries(2.0, 0.0, 10_000)
    honest = audit_one_run(scores, included, guesses=10_000)
    assert 1.6 < honest.epsilon_lower < 2.25
    assert audit_one_run(scores, included, claimed=(1.0, 1e-6), guesses=10_000).violated


# --- how it works -------------------------------------------------------------------------------------------


def test_the_highest_are_guessed_in_and_the_lowest_out():
    scores = np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    report = audit_one_run(scores, np.array([True, False, True, True, False]), guesses=3)
    assert (report.canaries, report.guesses, report.correct) == (5, 3, 2)


def test_a_list_of_guesses_shares_the_error():
    scores, included = np.arange(100.0), np.arange(100) >= 50
    alone = audit_one_run(scores, included, guesses=100)
    listed = audit_one_run(scores, included, guesses=[10, 100])
    assert listed.guesses == 100
    assert listed.epsilon_lower == pytest.approx(
        audit_one_run(scores, included, guesses=100, confidence=0.975).epsilon_lower
    )
    assert listed.epsilon_lower < alone.epsilon_lower


def test_equal_scores_say_nothing_even_of_sorted_canaries():
    included = np.arange(2000) < 1000
    for scores in (np.zeros(2000), np.zeros(2000, dtype=int)):
        assert audit_one_run(scores, included).epsilon_lower < 0.3
        assert abs(audit_one_run(scores, included).correct - 500) < 130


def test_verdicts():
    scores, included = np.arange(200.0), np.arange(200) >= 100
    found = audit_one_run(scores, included, claimed=(1.0, 0.0))
    assert found.verdict == "violation certified"
    assert "100 of 100 guesses were right" in str(found)
    none = audit_one_run(scores, ~included, claimed=Gaussian(noise_multiplier=1.0), delta=1e-6)
    assert (none.epsilon_lower, none.violated) == (0.0, False)
    assert none.verdict == "no violation found, and 100 guesses are too few to show one"
    less = audit_one_run(scores, ~included, claimed=(1.0, 0.0))
    assert less.verdict.startswith("no violation found with 200 canaries (a true ε smaller than 1.")
    silent = audit_one_run(scores, ~included)
    assert silent.verdict == "nothing was claimed (200 canaries can show ε = 3.49 at most)"
    assert silent.to_dict()["claimed_epsilon"] is None


def test_what_escapes_is_what_would_have_been_refuted():
    scores, included = np.arange(2000.0), np.arange(2000) % 2 == 0
    report = audit_one_run(scores, included, claimed=(1.0, 0.0), guesses=1000)
    right = round(1000 * expit(report.escapes_epsilon))
    assert epsilon_lower_one_run(2000, 1000, right, 0.0, 0.05) > 1.0
    assert epsilon_lower_one_run(2000, 1000, right - 1, 0.0, 0.05) <= 1.0
    few = audit_one_run(scores, included, claimed=(9.0, 0.0), guesses=10)
    assert few.escapes_epsilon == math.inf
    assert few.verdict == "no violation found, and 10 guesses are too few to show one"


def test_what_only_right_guesses_refute_is_not_called_too_little_to_be_shown():
    """7 of 7 certify ε ≥ 0.63; all are right half of the time where one is with probability 2^(-1/7)."""
    scores, included = np.arange(14.0), np.arange(14) >= 7
    assert audit_one_run(scores, included, claimed=(0.5, 0.0), guesses=7).verdict == "violation certified"
    report = audit_one_run(scores, ~included, claimed=(0.5, 0.0), guesses=7)
    assert expit(report.escapes_epsilon) ** 7 == pytest.approx(0.5)
    assert report.verdict == "no violation found with 14 canaries (a true ε smaller than 2.263 would escape)"
    too_large = audit_one_run(scores, ~included, claimed=(0.63, 0.0), guesses=7)
    assert too_large.verdict == "no violation found, and 7 guesses are too few to show one"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [True]), "canaries=1"),
        (([1.0, 2.0], [1, 0]), "scores and included"),
        (([1.0, 2.0], [True]), "scores and included"),
        (([[1.0, 2.0]], [[True, False]]), "scores and included"),
        ((["a", "b"], [True, False]), "scores and included"),
        (([1.0, math.nan], [True, False]), "no numbers"),
    ],
)
def test_bad_arrays_are_refused(arguments, message):
    with pytest.raises(InvalidArgument, match=message):
        audit_one_run(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"guesses": 0}, "guesses=0"),
        ({"guesses": 5}, "guesses=5"),
        ({"guesses": []}, "empty"),
        ({"guesses": True}, "guesses=True"),
        ({"guesses": 2.0}, "guesses=2.0"),
        ({"confidence": 0.0}, "confidence=0.0"),
        ({"delta": 1.0}, "delta=1.0"),
        ({"claimed": (1.0, 1e-6), "delta": 1e-5}, "delta=1e-05"),
        ({"claimed": "gaussian"}, "claimed='gaussian'"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(InvalidArgument, match=message):
        audit_one_run([1.0, 2.0, 3.0, 4.0], [True, False, True, False], **options)

"""The choice of engine: whichever answers, the answers agree."""

import math
from fractions import Fraction

import pytest

from sitr.accounting.engines import solve
from sitr.accounting.engines.closed import closed_form
from sitr.accounting.engines.delta import Found
from sitr.accounting.engines.mix import Mix
from sitr.accounting.engines.solve import HIDDEN, _cut_if_hidden, _log_main, _rare, delta_of, epsilon_of
from sitr.accounting.engines.ways import Purse
from sitr.accounting.losses import pairs

LAWS = {
    "laplace": pairs.laplace_pair(0.3).forward,
    "response": pairs.k_ary_pair(0.7, 2).forward,
    "discrete gaussian": pairs.discrete_gaussian_pair(3.0, 1).forward,
    "sampled remove": pairs.sampled_gaussian_pair(1.0, 0.1).forward,
    "sampled add": pairs.sampled_gaussian_pair(1.0, 0.1).backward,
    "black box": pairs.two_point_pair(0.4, 1e-9).forward,
}


@pytest.mark.parametrize("loss", LAWS.values(), ids=LAWS.keys())
def test_a_count_equals_as_many_parts(loss):
    for times in (2, 5):
        counted, apart = (epsilon_of(Mix.of(parts), 1e-5) for parts in ([(loss, times)], [(loss, 1)] * times))
        assert max(counted.lower, apart.lower) <= min(counted.upper, apart.upper)
        assert counted.upper == pytest.approx(apart.upper, rel=1e-4)


@pytest.mark.parametrize("loss", LAWS.values(), ids=LAWS.keys())
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_delta_and_epsilon_of_one_order_undo_each_other(loss, delta):
    mix = Mix.of([(loss, 20)])
    found = epsilon_of(mix, delta)
    assert delta_of(mix, found.upper).lower <= delta
    assert found.lower == 0 or delta_of(mix, found.lower).upper >= delta


def test_a_whisper_of_gaussian_noise_changes_little():
    faint = pairs.gaussian_pair(1e-7).forward
    for loss in LAWS.values():
        without, with_noise = epsilon_of(Mix.of([(loss, 10)]), 1e-5), epsilon_of(Mix.of([(loss, 10), (faint, 1)]), 1e-5)
        assert with_noise.upper >= without.lower
        assert with_noise.upper == pytest.approx(without.upper, rel=1e-4)


def test_the_better_end_of_each_is_kept():
    assert Found(1.0, 3.0, "a").meet(Found(2.0, 4.0, "b")).lower == 2.0
    assert Found(1.0, 3.0, "a").meet(Found(2.0, 4.0, "b")).upper == 3.0


def test_the_larger_of_two_numbers_is_bracketed():
    worst = Found(1.0, 3.0, "a").worst(Found(2.0, 2.5, "b"))
    assert (worst.lower, worst.upper) == (2.0, 3.0)


def test_an_infinite_mass_above_delta_allows_no_epsilon():
    assert epsilon_of(Mix.of([(LAWS["black box"], 1)]), 1e-10).upper == math.inf
    assert epsilon_of(Mix.of([(LAWS["black box"], 1)]), 1e-9).upper == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("parts", "epsilon"),
    [
        ([(pairs.sampled_gaussian_pair(10.0, 1e-15).forward, 1)], 0.0776),
        ([(pairs.gaussian_pair(0.01).forward, 1)], 5.0),
        ([(pairs.k_ary_pair(1e-9, 10**6).forward, 60)], 400.0),
    ],
)
def test_where_some_loss_is_above_epsilon_delta_is_never_said_to_be_0(parts, epsilon):
    assert 0 <= delta_of(Mix.of(parts), epsilon).lower < delta_of(Mix.of(parts), epsilon).upper


@pytest.mark.parametrize("other", [pairs.laplace_pair(2.0), pairs.gaussian_pair(0.5), pairs.two_point_pair(1.0, 0.0)])
def test_rare_steps_never_make_a_release_cheaper(other):
    """Even where nothing is left to pay with: what is released without them costs no more."""
    rare, start = pairs.sampled_pair(pairs.gaussian_pair(2.0), 1e-6), Found(0.0, math.inf, "nothing yet")
    both = _rare(Mix.of([(rare.forward, 10), (other.forward, 2)]), start, 1e-5, 1.0, Purse(0.0))
    alone = epsilon_of(Mix.of([(other.forward, 2)]), 1e-5)
    assert alone.lower <= both.lower <= both.upper
    assert alone.lower > 0


def test_an_end_that_is_not_asked_for_is_not_worked_for():
    """Where there is infinite-loss mass, what it leaves of δ is rounded, and each end is a question of its own."""
    mix = Mix.of([(pairs.two_point_pair(0.5, 1e-9).forward, 3), (pairs.two_point_pair(0.3, 0.0).forward, 2)])
    both, upper, lower = (epsilon_of(mix, 1e-4, ends=ends) for ends in (("lower", "upper"), ("upper",), ("lower",)))
    assert 0 < both.lower <= both.upper
    assert (upper.lower, upper.upper) == (0.0, both.upper)
    assert (lower.lower, lower.upper) == (both.lower, float("inf"))


@pytest.mark.parametrize("terms", [(1.0, 2.0**-53), (1.0, 2.0**-54, 2.0**-54), (0.1, 0.2, 0.4)])
def test_where_delta_is_all_infinite_mass_epsilon_is_the_sum_of_the_largest_losses(terms):
    """The sum may be rounded; and each loss may be wrong by two units in its last place, before it is added."""
    first, *others = terms
    failing = (pairs.two_point_pair(first, 1e-9).forward, 1)
    found = epsilon_of(Mix.of([failing, *((pairs.two_point_pair(e, 0.0).forward, 1) for e in others)]), 1e-9)
    exact, units = sum(map(Fraction, terms)), Fraction(5, 2**53)
    assert Fraction(found.lower) <= exact * (1 - units) < exact * (1 + units) <= Fraction(found.upper)
    assert found.upper - found.lower <= 1e-14 * found.upper


def test_a_single_largest_loss_that_is_stated_is_not_rounded():
    found = epsilon_of(Mix.of([(pairs.two_point_pair(0.3, 1e-9).forward, 1)]), 1e-9)
    assert (found.lower, found.upper) == (0.3, 0.3)


@pytest.mark.parametrize(("m", "c"), [(1.0, 6.0), (0.2, 40.0), (3.0, 2.0), (0.05, 200.0)])
def test_the_main_term_is_near_the_truth_where_c_is_the_saddle(m, c):
    """ln δ + cε - K(c) of a Gaussian at ε = K'(c), by its closed form."""
    mix = Mix.of([(pairs.gaussian_pair(m).forward, 1)])
    epsilon = m**2 * (2 * c + 1) / 2
    truth = closed_form(mix).log_delta(epsilon) + c * epsilon - float(mix.log_mgf(c))
    assert _log_main(mix, c) == pytest.approx(truth, abs=0.15)


@pytest.mark.parametrize(("above", "hidden"), [(-0.01, False), (0.01, True)])
def test_steps_are_cut_off_where_the_tilted_law_hides_delta(monkeypatch, above, hidden):
    mix, c, epsilon = Mix.of([(pairs.sampled_gaussian_pair(1.0, 1e-3).forward, 10)]), 3.0, 5.0
    seen = float(mix.log_mgf(c)) - c * epsilon
    monkeypatch.setattr(solve, "rough_log_delta", lambda *_: seen - HIDDEN - above)
    assert (_cut_if_hidden(mix, c, epsilon) is not None) == hidden

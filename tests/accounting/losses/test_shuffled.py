"""The pair of shuffled reports: binomial laws, what spreads them, and what is taken together."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting.losses import shuffled
from sitr.accounting.losses.shuffled import Crowd, Law, binomial, counted_beneath, shuffled_above, shuffled_beneath
from tests.accounting.helpers import law, logs


@pytest.mark.parametrize(
    ("n", "p"), [(1, 0.3), (10, 0.5), (40, 1e-9), (1000, 0.9), (10**5, 0.2), (10**7, 1e-6), (10**9, 0.25)]
)
def test_a_binomial_law_has_its_chances_to_many_digits(n, p):
    values, chances = binomial(n, p)
    assert math.fsum(chances) == pytest.approx(1, abs=1e-12)
    assert float(values @ chances) == pytest.approx(n * p, rel=1e-12)
    with mpmath.mp.workdps(40):
        for place in np.unique(np.linspace(0, values.size - 1, 7).astype(int)):
            x = int(values[place])
            log = mpmath.loggamma(n + 1) - mpmath.loggamma(x + 1) - mpmath.loggamma(n - x + 1)
            log += x * mpmath.log(mpmath.mpf(p)) + (n - x) * mpmath.log1p(-mpmath.mpf(p))
            if log > -690:
                assert float(chances[place] / mpmath.exp(log)) == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize(("n", "p"), [(30, 0.5), (1000, 0.01), (5000, 0.3), (10**6, 0.2)])
@pytest.mark.parametrize("rare", [20.0, 100.0])
def test_what_is_left_out_is_rare(n, p, rare):
    """Bernstein's bound, also for one trial more or less; the whole law is the one cut much later."""
    whole = binomial(n, p)
    kept = binomial(n, p, rare).values
    for moved in (-1, 0, 1):
        outside = (whole.values + moved < kept[0]) | (whole.values + moved > kept[-1])
        outside &= (whole.values + moved >= 0) & (whole.values + moved <= n)
        assert whole.chances[outside].sum() <= 2 * math.exp(-rare)


@pytest.mark.parametrize("variance", [0.0, 0.3, 20.0, 1e4, 1e9])
@pytest.mark.parametrize("rare", [20.0, 100.0, 690.0])
def test_the_reach_is_that_of_bernstein_and_two_more(variance, rare):
    t = shuffled._reach(variance, rare) - 2
    assert t**2 / (2 * variance + 2 * t / 3) >= rare * (1 - 1e-12)


values_and_nodes = st.lists(st.integers(0, 100), min_size=1, max_size=8, unique=True)


@law(60)
@given(values_and_nodes, st.lists(st.integers(0, 100), max_size=6), st.integers(0, 100), logs(0.1, 10))
def test_spreading_keeps_the_mean_and_raises_what_is_convex(values, inner, at, slope):
    values = np.sort(np.array(values, dtype=float))
    chances = np.linspace(1, 2, values.size)
    before = Law(values, chances / chances.sum())
    nodes = np.unique([values[0], *np.clip(inner, values[0], values[-1]), values[-1]]).astype(float)
    after = before.spread(nodes)
    assert math.fsum(after.chances) == pytest.approx(1, abs=1e-12)
    assert float(after.values @ after.chances) == pytest.approx(float(before.values @ before.chances), abs=1e-9)
    lower, upper = (float(np.maximum(slope * (x - at), 0) @ c) for x, c in (before, after))
    assert lower <= upper + 1e-9


def profile_of_coins(growth, labels, blankets, coins, epsilons):
    """δ of so many coins of which one has the bias of `labels`, beside a number of other blankets."""
    beside = Law(np.array([float(blankets)]), np.ones(1))
    rows = shuffled._outcomes(growth, labels, beside, coins, shuffled._distances(coins, 690.0), 1.0)
    losses, masses = shuffled._both_signs([rows])
    assert math.fsum(masses) == pytest.approx(1, abs=1e-12)
    return np.array([math.fsum(masses * np.maximum(-np.expm1(e - losses), 0)) for e in epsilons])


@pytest.mark.parametrize("growth", [0.2, 2.0, 30.0])
@pytest.mark.parametrize("blankets", [0, 5, 300])
@pytest.mark.parametrize(("low", "high"), [(1, 3), (10, 14), (80, 90)])
def test_the_bias_of_most_coins_among_fewest_dominates_a_group_and_the_other_way_round(growth, blankets, low, high):
    epsilons = np.linspace(0, 0.9 * math.log1p(growth), 12)
    above = profile_of_coins(growth, high, blankets, low, epsilons)
    beneath = profile_of_coins(growth, low, blankets, high, epsilons)
    for coins in range(low, high + 1):
        truth = profile_of_coins(growth, coins, blankets, coins, epsilons)
        assert np.all(above >= truth * (1 - 1e-12) - 1e-300)
        assert np.all(beneath <= truth * (1 + 1e-12) + 1e-300)
        assert np.all(profile_of_coins(growth, coins, blankets + 3, coins, epsilons) <= truth * (1 + 1e-12) + 1e-300)


@pytest.mark.parametrize(
    ("n", "coins"),
    [(50, 7), (201, 40), (201, 201), (10**5, 123), (10**5, 10**5 - 1), (10**8, 54_321), (10**8, 10**8), (10**9, 1)],
)
def test_other_blankets_are_no_more_than_there_are(n, coins):
    """A law on few numbers, with the mean of a few trials less at the most."""
    crowd = Crowd.of(1.0, 4, n)
    values, chances = crowd.blankets(coins)
    mean, deviation = (n - coins) * crowd.rest, math.sqrt(n * crowd.rest * (1 - crowd.rest))
    found = float(values @ chances)
    assert math.fsum(chances) == pytest.approx(1, abs=1e-12)
    if n <= shuffled.FEW:  # the person's report may be one of them: the law is weighted by what the person adds
        exact = binomial(n - coins, crowd.rest)
        weights = exact.chances * ((1 + crowd.growth / 2) * coins + exact.values)
        assert found == pytest.approx(float(exact.values @ weights / weights.sum()), rel=1e-12)
        assert found > mean
    else:
        assert values.size <= shuffled.FENCES.size + 2
        assert mean - (1 + shuffled.ROUGH * deviation) <= found <= mean * (1 + 1e-12)


@pytest.mark.parametrize(("epsilon", "k", "n"), [(1.0, 2, 50), (1.0, 3, 5000), (3.0, 5, 10**6), (0.1, 2, 10**9)])
def test_groups_hold_all_numbers_of_coins_once(epsilon, k, n):
    crowd = Crowd.of(epsilon, k, n)
    coins = crowd.coins(shuffled.FARTHEST)
    groups = shuffled._groups(coins, 8)
    assert math.fsum(group.chance for group in groups) == pytest.approx(1, abs=1e-12)
    assert all(first.high < second.low for first, second in itertools.pairwise(groups))
    for low, high, chance in groups[:: max(len(groups) // 5, 1)]:
        inside = (coins.values >= low) & (coins.values <= high)
        assert chance == pytest.approx(float(coins.chances[inside].sum()), rel=1e-12)


@pytest.mark.parametrize(("epsilon", "k", "n"), [(1.0, 2, 150), (2.0, 3, 60), (1.0, 6, 100), (1.0, 20, 190)])
def test_taking_numbers_together_can_only_cost_more(monkeypatch, epsilon, k, n):
    exact = shuffled_above(epsilon, k, n).renyi.forward
    beneath = shuffled_beneath(epsilon, max(k, 3), n).forward
    monkeypatch.setattr(shuffled, "WORK", 20_000)
    monkeypatch.setattr(shuffled, "FEW", 10)
    monkeypatch.setattr(shuffled, "NODES", 64)
    coarse = shuffled_above(epsilon, k, n).renyi.forward
    coarser_beneath = shuffled_beneath(epsilon, max(k, 3), n).forward
    epsilons = np.linspace(0, 0.9 * epsilon, 10)
    assert np.all(coarse.profile(epsilons) >= exact.profile(epsilons) * (1 - 1e-12))
    assert coarse.losses.size < exact.losses.size
    assert np.all(coarser_beneath.profile(epsilons) <= beneath.profile(epsilons) * (1 + 1e-12))
    assert coarser_beneath.losses.size < beneath.losses.size
    assert float(coarse.profile(0.0)) < 1.5 * float(exact.profile(0.0))


@pytest.mark.parametrize(("epsilon", "k", "n"), [(1.0, 2, 5), (1.0, 2, 3000), (0.01, 4, 10**6), (8.0, 3, 10**5)])
def test_both_orders_are_equal_and_have_all_of_their_mass(epsilon, k, n):
    pair = shuffled_above(epsilon, k, n)
    for atoms in (pair.forward, pair.renyi.forward):
        masses = np.exp(atoms.logs)
        assert math.fsum(masses) == pytest.approx(1, abs=1e-12)
        assert math.fsum(masses * np.exp(-atoms.losses)) == pytest.approx(1, abs=1e-12)
        losses = atoms.losses[atoms.logs > -600]  # where masses underflow, one of two images may be lost
        losses = losses[np.abs(losses) <= -losses[0]]
        assert np.abs(losses + losses[::-1]).max() <= 1e-12 * epsilon
    assert pair.renyi.forward.largest == epsilon
    assert pair.forward.infinite_mass == shuffled.REMAINDER


@pytest.mark.parametrize(("advantage", "n"), [(0.5, 1), (0.5, 4), (0.05, 300), (0.9, 10**6)])
def test_counting_what_passes_a_test(advantage, n):
    """δ(0) by hand: Q has Bin(n, low), and P one trial that passes with the other chance."""
    pair = counted_beneath(advantage, n)
    low = (1 - advantage) / 2
    x, chances = binomial(n - 1, low)
    same, other = np.zeros(n + 1 if n < 1000 else 0), np.zeros(n + 1 if n < 1000 else 0)
    if n < 1000:
        for chance, to in ((low, same), (1 - low, other)):
            np.add.at(to, x, chances * (1 - chance))
            np.add.at(to, x + 1, chances * chance)
        truth = np.maximum(other - same, 0).sum()
        assert float(pair.forward.profile(0.0)) == pytest.approx(truth, rel=1e-10)
        assert float(pair.backward.profile(0.0)) == pytest.approx(truth, rel=1e-10)
    assert float(pair.forward.profile(0.0)) <= advantage * (1 + 1e-12)

"""Coins of rational probability."""

from fractions import Fraction

import pytest
from scipy import stats

from sitr.mechanisms.randomness import SYSTEM
from sitr.mechanisms.samplers.draws import bernoulli
from tests.mechanisms.statistics import ALARM
from tests.mechanisms.truths import Scripted


@pytest.mark.statistical
@pytest.mark.parametrize("p", [Fraction(1, 3), Fraction(0.1), Fraction(999, 1000), Fraction(1, 10**6)])
def test_coins_show_heads_with_their_probability(p):
    """An exact binomial test, two-sided."""
    found = int(bernoulli(p, 1_000_000, SYSTEM).sum())
    assert stats.binomtest(found, 1_000_000, float(p)).pvalue > ALARM


def test_the_ends_are_certain():
    assert bernoulli(Fraction(0), 100, SYSTEM).sum() == 0
    assert bernoulli(Fraction(0), 1, Scripted(then=0)).sum() == 0
    assert bernoulli(Fraction(1), 100, SYSTEM).sum() == 100


@pytest.mark.parametrize(("then", "heads"), [(0, 1), (255, 0)])
def test_where_the_first_bits_are_those_of_p_more_decide(then, heads):
    source = Scripted((2**64 // 3).to_bytes(8, "little"), then)
    assert bernoulli(Fraction(1, 3), 1, source)[0] == heads
    assert source.drawn > 8


def test_a_probability_below_the_first_bits_is_still_possible():
    p = Fraction(1, 2**100)
    assert bernoulli(p, 1, Scripted(then=0))[0] == 1
    assert bernoulli(p, 1, Scripted((1).to_bytes(8, "little"), then=0))[0] == 0

"""The reconstruction attack: it recovers everyone without noise, nearly everyone under √n, and nobody at a small ε."""

import math

import pytest
from scipy.special import bdtrc

from examples.reconstruction import DELTA, attack, noise_for, outcomes, table
from tests.mechanisms.statistics import ALARM

PEOPLE = 96


def test_without_noise_everyone_is_recovered():
    found = attack("no noise", 0.0, people=PEOPLE, repeats=3)
    assert found.recovered >= 0.99
    assert found.epsilon == math.inf


@pytest.mark.statistical
def test_noise_well_under_the_root_of_n_protects_nobody():
    """At 0.1 √n a bit's estimate has a deviation of about 0.1, and is wrong beyond 0.5: in none of a million."""
    found = attack("0.1 √n", 0.1 * math.sqrt(PEOPLE), people=PEOPLE, repeats=3)
    assert found.recovered >= 0.97
    assert found.epsilon > 100


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [1.0, 0.1])
def test_at_a_small_epsilon_the_attack_is_about_a_tossed_coin(epsilon):
    """Of 768 bits each is found with probability `limit` at most; more than 70 % of them has one under 1e-9."""
    found = attack("dp", noise_for(epsilon, 256), people=256, repeats=3)
    assert 0.999 * epsilon < found.epsilon <= epsilon
    assert found.limit < 0.55
    assert bdtrc(0.7 * 768, 768, found.limit) < ALARM
    assert abs(found.recovered - 0.5) <= 0.2


def test_no_attack_can_expect_more_than_the_accountant_allows():
    """The limit is (1 + δ(0))/2, and never above what ε and δ give: (e^ε + δ)/(1 + e^ε)."""
    for epsilon in (0.5, 3.0):
        found = attack("dp", noise_for(epsilon, PEOPLE), people=PEOPLE, repeats=1)
        assert 0.5 < found.limit <= (math.exp(found.epsilon) + DELTA) / (1 + math.exp(found.epsilon))


def test_the_table_has_a_line_for_each_noise():
    found = outcomes(people=24, repeats=1)
    lines = table(found).splitlines()
    assert len(lines) == 1 + len(found)
    assert lines[1].startswith("no noise")
    assert "∞" in lines[1]
    assert "as ε = 1 asks" in lines[-2]

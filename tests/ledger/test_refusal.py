"""Refusals: what was asked, what is left, and what would fit."""

import pytest

from sitr.accounting import ApproximateDP, Gaussian, Laplace, PureDP, PureFilter, RDPFilter, Renyi
from sitr.accounting.filters import WHOLE
from sitr.errors import BudgetExceeded
from sitr.ledger import Budget, Standing
from sitr.ledger.filters import Filters
from sitr.ledger.keeper import Keeper
from sitr.ledger.refusal import _missing, least_noise, refusal


def test_a_refusal_says_what_would_fit(ledger):
    ledger.create_budget("clinic", Budget(rho=0.5, delta=1e-9))
    with pytest.raises(BudgetExceeded, match=r"what fits into this budget: the same with 2.00 times the noise"):
        ledger.reserve("clinic", Gaussian(noise_multiplier=0.5), analyst="amina")
    with pytest.raises(BudgetExceeded, match="δ-parts"):
        ledger.reserve("clinic", ApproximateDP(epsilon=0.01, delta=1e-6), analyst="amina")


def test_a_refusal_speaks_of_parts_where_the_measure_is_no_price(ledger):
    ledger.create_budget("clinic", Budget(epsilon=1, delta=1e-6))
    with pytest.raises(BudgetExceeded) as refused:
        ledger.reserve("clinic", PureDP(epsilon=4), analyst="amina")
    assert "% of it requested, 100 % left, short by" in refused.value.what
    assert "divergence" not in refused.value.what


def test_of_two_filters_the_one_speaks_that_admits_the_most():
    keeper = Keeper.of(Budget(epsilon=1.0, delta=1e-6)).joined()
    dear = refusal("clinic", Standing(keeper, (WHOLE // 2, 0, WHOLE // 2)), PureDP(epsilon=0.75))
    assert "ε: 0.750 requested, 0.500 left" in dear.what
    assert dear.do == "what fits into this budget: the same with 1.51 times the noise."
    many = refusal("clinic", Standing(keeper, keeper.nothing), PureDP(epsilon=0.001) * 10**6)
    assert "% of it requested, 100 % left" in many.what
    assert "THEORY 5.4" in many.why
    fit = int(many.do.split(" of these")[0].rsplit(" ", 1)[1])
    assert Standing(keeper, keeper.nothing).admits(PureDP(epsilon=0.001) * fit)
    assert not Standing(keeper, keeper.nothing).admits(PureDP(epsilon=0.001) * (fit + 1))
    assert fit > 20_000


def test_an_event_that_only_a_dead_filter_has_a_price_for():
    two = Filters([PureFilter(1.0), RDPFilter(alpha=20, epsilon=1.0)])
    (told,) = _missing(two.at((None, 0, 5)).serving(), Renyi(points=[(2.0, 0.1)]))
    assert told == "none of its filters that still hold has a price for this"


@pytest.mark.parametrize("budget", [Budget(epsilon=1), Budget(epsilon=1, delta=1e-6), Budget(rho=0.1)])
def test_the_least_noise_that_is_told_fits_and_a_little_less_does_not(budget):
    keeper = Keeper.of(budget)
    told = least_noise(Standing(keeper, (WHOLE // 3, 0)))
    kind, _, noise = told.removesuffix(")").partition("(noise_multiplier=")
    event = {"Laplace": Laplace, "Gaussian": Gaussian}[kind]
    assert Standing(keeper, (WHOLE // 3, 0)).admits(event(float(noise)))
    assert not Standing(keeper, (WHOLE // 3, 0)).admits(event(0.99 * float(noise)))
    assert least_noise(Standing(keeper, (WHOLE, 0))) == ""

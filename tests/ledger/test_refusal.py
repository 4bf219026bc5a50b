"""Refusals: what was asked, what is left, and what would fit."""

import pytest

from sitr.accounting import (
    ApproximateDP,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    Renyi,
    SampledWithoutReplacement,
    ShuffledEpochs,
    ShuffledReports,
)
from sitr.accounting.filters import WHOLE
from sitr.errors import BudgetExceeded
from sitr.ledger import Budget, Ledger, Standing
from sitr.ledger.keeper import Keeper
from sitr.ledger.refusal import _missing, least_noise, noise_factor, refusal
from tests.ledger.test_keeper import alone


def test_a_refusal_says_what_would_fit(ledger):
    ledger.create_budget("clinic", Budget(rho=0.5, delta=1e-9))
    with pytest.raises(BudgetExceeded, match=r"what fits into this budget: the same with 2.00 times the noise"):
        ledger.reserve("clinic", Gaussian(noise_multiplier=0.5), analyst="amina")
    with pytest.raises(BudgetExceeded, match="δ-parts"):
        ledger.reserve("clinic", ApproximateDP(epsilon=0.01, delta=1e-6), analyst="amina")


def test_a_refusal_speaks_of_parts_where_the_measure_is_no_price(ledger):
    ledger.create_budget("clinic", Budget(epsilon=1, delta=1e-6))
    with pytest.raises(BudgetExceeded, match=r"ε: 4\.00 requested, 1\.00 left, short by 3\.00"):
        ledger.reserve("clinic", PureDP(epsilon=4), analyst="amina")
    ledger.reserve("clinic", PureDP(epsilon=0.01) * 222, analyst="amina")  # more than pure ε and whole events hold
    with pytest.raises(BudgetExceeded) as refused:
        ledger.reserve("clinic", PureDP(epsilon=0.01) * 300, analyst="amina")
    assert "% of it requested, 49.9 % left, short by" in refused.value.what
    assert "divergence" not in refused.value.what


def test_of_two_filters_the_one_speaks_that_admits_the_most():
    keeper = alone().joined()
    dear = refusal("clinic", Standing(keeper, (WHOLE // 2, WHOLE // 2, 0)), PureDP(epsilon=0.75))
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
    two = alone().joined().filter
    (told,) = _missing(two.having((5, None, 0)).serving(), Renyi(points=[(2.0, 0.1)]))
    assert told == "none of its filters that still hold can count this"


@pytest.mark.parametrize("budget", [Budget(epsilon=1), Budget(epsilon=1, delta=1e-6), Budget(rho=0.1)])
def test_the_least_noise_that_is_told_fits_and_a_little_less_does_not(budget):
    keeper = Keeper.of(budget)
    some, full = (tuple(units for _ in keeper.nothing) for units in (WHOLE // 3, WHOLE))
    told = least_noise(Standing(keeper, some))
    kind, _, noise = told.removesuffix(")").partition("(noise_multiplier=")
    event = {"Laplace": Laplace, "Gaussian": Gaussian}[kind]
    assert Standing(keeper, some).admits(event(float(noise)))
    assert not Standing(keeper, some).admits(event(0.99 * float(noise)))
    assert least_noise(Standing(keeper, full)) == ""


INSIDE = {
    "itself": lambda noise: noise,
    "sampled": lambda noise: PoissonSampled(noise, 1.0),
    "batch": lambda noise: SampledWithoutReplacement(noise, 10, 10),
    "passes": lambda noise: ShuffledEpochs(noise, 1) + noise * 3,
}


@pytest.mark.parametrize("wrap", INSIDE.values(), ids=INSIDE.keys())
def test_more_noise_is_that_of_what_is_inside(wrap):
    asked = wrap(Gaussian(noise_multiplier=1))
    neighbours = asked.adjacency or "replace_one"
    keeper = Keeper.of(Budget(rho=asked.zcdp().rho, adjacency=neighbours))
    standing = Standing(keeper, keeper.nothing)
    assert noise_factor(standing, wrap(Gaussian(noise_multiplier=0.5))) == "2.00"
    assert noise_factor(standing, ShuffledReports(RandomizedResponse(p=0.999999), n=2)) == ""


def test_a_sum_that_people_reckon_is_not_shown_with_a_hair_more():
    """Ten times 0.1 is a hair more than 1 in exact numbers, and the safe side of three digits would be 1.01."""
    ledger = Ledger.open("memory://")
    ledger.create_budget("clinic", Budget(epsilon=0.5))
    with pytest.raises(BudgetExceeded, match=r"ε: 1\.00 requested, 0\.500 left, short by 0\.500"):
        ledger.reserve("clinic", PureDP(epsilon=0.1) * 10, analyst="amina")
    ledger.create_budget("lab", Budget(epsilon=1.0))
    ledger.reserve("lab", PureDP(epsilon=0.1) * 10, analyst="amina")
    assert "exact      ε = 1.00 at δ = 0" in str(ledger.statement("lab"))

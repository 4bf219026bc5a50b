"""Ways of bounding δ: what they cost is known before they are made, and a purse that is empty buys nothing."""

import tracemalloc

import pytest

from sitr.accounting import (
    ApproximateDP,
    Concentrated,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    ZeroConcentrated,
)
from sitr.accounting.engines.cut import cut_at
from sitr.accounting.engines.delta import Found
from sitr.accounting.engines.line import Grid, Line
from sitr.accounting.engines.mix import Mix
from sitr.accounting.engines.near import gated_at
from sitr.accounting.engines.split import split_at
from sitr.accounting.engines.ways import Purse, Way, _in_order, _narrowed, attempt
from sitr.accounting.losses.cuts import Gate
from sitr.accounting.losses.sampled import SampledGaussianLoss

MEGABYTES = 1 << 20


class Priced:
    """Bounds that only have a price."""

    method = "priced"

    def __init__(self, work):
        self.work = work

    def upper(self, epsilon):
        raise AssertionError("not to be evaluated")

    lower = upper


def test_a_purse_pays_until_it_is_empty():
    purse = Purse(10.0)
    assert purse.pays(Priced(6.0))
    assert not purse.pays(Priced(6.0))
    assert purse.pays(Priced(4.0))


def test_all_questions_of_a_search_are_paid_from_one_purse():
    whole = Purse(10.0)
    first, second = Purse(8.0, whole=whole), Purse(8.0, whole=whole)
    assert first.pays(Priced(6.0))
    assert not second.pays(Priced(6.0))
    assert (first.left, second.left, whole.left) == (2.0, 4.0, 4.0)
    first.buys("a law", 1.0)
    second.buys("a law", 1.0)
    assert whole.left == 3.0


@pytest.mark.parametrize(
    ("lower", "upper", "settled"),
    [(0.0, 0.5, True), (0.0, 0.9, False), (0.9, 1.1, False), (1.1, 9.0, False), (1.5, 9.0, True), (1.0, 1.0, True)],
)
def test_a_search_is_content_with_a_bracket_far_from_its_limit(lower, upper, settled):
    found = Found(lower, upper, "any")
    assert Purse(limit=1.0).settles(found) is settled
    assert Purse().settles(found) is (lower == upper)


def test_what_costs_no_number_is_not_bought():
    assert not Purse().pays(Priced(float("nan")))


@pytest.mark.parametrize("error", [OverflowError, ZeroDivisionError, ValueError])
def test_a_way_that_cannot_be_tuned_proves_nothing(error):
    def fails():
        raise error

    assert attempt(fails, Purse()) is None


def test_a_way_that_shows_that_nothing_fails_answers_nothing():
    class Harmless(Priced):
        def upper(self, epsilon):
            return 0.0

    way = Way(lambda mix, epsilon, log_delta: Harmless(1.0), "harmless", 0.5)
    found = _narrowed(way, Mix(()), Found(0.0, 1.0, "Chernoff"), 1e-6, way.start, Purse())
    assert (found.lower, found.upper, found.method) == (0.0, 0.0, "harmless")


@pytest.mark.parametrize(
    ("sigma", "others", "high", "ways"),
    [
        (0.5, [], 1e9, [cut_at, split_at, gated_at]),
        (2.0, [], 1e9, [cut_at, gated_at, split_at]),
        (0.5, [], 1e-9, [split_at, gated_at]),
        (0.5, [Gaussian(1.0)], 1e9, [cut_at]),
        (0.5, [Laplace(1.0)], 1e9, [cut_at]),
        (0.5, [Laplace(1.0)], 1e-9, [cut_at, split_at, gated_at]),
    ],
)
def test_ways_are_asked_by_what_makes_the_loss(sigma, others, high, ways):
    """Where many steps make it, the largest are cut off; a single one is summed apart; in doubt, all are asked."""
    rare = (SampledGaussianLoss.pair(sigma, 1e-4).forward, 10)
    beside = [(pair.forward, n) for event in others for pair, n in event.curve.parts]
    asked = _in_order(Mix.of([rare, *beside]), 1e-6, 10.0, high)
    assert [way.at for way in asked] == ways


def test_a_line_says_what_it_costs_before_it_is_evaluated():
    mix = Mix.of([(SampledGaussianLoss.pair(1.0, 0.1).forward, 100)])
    tracemalloc.start()
    line = Line(mix, Grid(c=5.0, period=1.0, count=10**8, whisper=0.0))
    assert line.work > 1e10
    assert not Purse().pays(line)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 16 * MEGABYTES


def test_a_gate_makes_no_more_nodes_than_it_may():
    loss = SampledGaussianLoss.pair(1e-3, 1e-9).forward
    with pytest.raises(OverflowError):
        Gate(loss, edge=1e6, width=1e-9).log_passed(1e5)


HEAVY = [
    lambda: (PoissonSampled(Gaussian(0.5), 0.01) + PureDP(1.0) * 5).epsilon(0.5),
    lambda: PoissonSampled(Concentrated(30.0, 8.0), 0.01).epsilon(1e-6),
    lambda: (PoissonSampled(Gaussian(0.5), 0.01) + ApproximateDP(1.0, 1e-3) * 5).delta(0.3),
    lambda: (PoissonSampled(Gaussian(4.9), 2.8e-6) + PoissonSampled(Gaussian(0.076), 0.0097)).delta(0.1),
    lambda: PoissonSampled(PoissonSampled(Gaussian(0.3), 7e-8) + PoissonSampled(Laplace(0.5), 0.01) * 9, 0.7).delta(
        0.1
    ),
    lambda: (PoissonSampled(ZeroConcentrated(50.0), 0.3) + PoissonSampled(Gaussian(0.2), 1e-5) * 9).epsilon(1e-9),
]


@pytest.mark.parametrize("ask", HEAVY)
def test_no_question_takes_much_memory(ask):
    tracemalloc.start()
    found = ask()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert 0 <= found.lower <= found.upper
    assert peak < 400 * MEGABYTES

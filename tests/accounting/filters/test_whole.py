"""Whole events: charged by one point of their own curve, which is settled once, and checked again later."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import (
    ApproximateDP,
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    LossDistribution,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    Renyi,
    SampledWithoutReplacement,
    WholeFilter,
    ZeroConcentrated,
    compose,
)
from sitr.accounting.filters import WHOLE
from sitr.accounting.filters.filter import PROMISE, amount_of, in_units
from sitr.errors import InvalidArgument, NoSuchGuarantee
from tests.accounting.filters.analysts import adaptive_delta, greedy_analyst, sequences, strategies
from tests.accounting.helpers import law

SGD = PoissonSampled(Gaussian(1.1), 256 / 60000)
EVENTS = [
    Laplace(20.0),
    Laplace(100.0) * 300,
    Gaussian(20.0),
    DiscreteGaussian(5.0, 2) * 3,
    SGD,
    SGD * 1700,
    SGD * 200 + Laplace(50.0),
    RandomizedResponse(0.52) * 40,
    Exponential(0.1) * 20,
    ZeroConcentrated(0.001, delta=1e-9),
    ZeroConcentrated(0.001, delta=1e-3),
    ApproximateDP(0.1, 1e-8) * 2,
    ApproximateDP(0.1, 1e-3),
    Renyi(points=[(16, 0.05)]),
    Gaussian(1e7),
    Gaussian(1e11),
    PoissonSampled(Gaussian(1.0), 1e-8),
    ZeroConcentrated(1e-16, delta=1e-9),
    Composed(((PureDP(0.01), 400), (Gaussian(50.0), 3))),
]


@pytest.mark.parametrize("event", EVENTS, ids=repr)
@pytest.mark.parametrize("limits", [(1.0, 2.5e-7), (0.1, 1e-9), (8.0, 1e-2)])
def test_the_point_lies_on_the_curve_or_above(event, limits):
    book = WholeFilter(*limits)
    epsilon, delta = book.cost(event), book.delta_part(event)
    assert delta >= event.infinite_mass
    assert event.delta(epsilon).lower <= delta
    if delta > event.infinite_mass:
        assert event.epsilon(delta).lower <= epsilon


@pytest.mark.parametrize("event", EVENTS, ids=repr)
def test_the_point_is_read_again_from_the_units(event):
    book = WholeFilter(1.0, 2.5e-7)
    cost, mass = book.units(event)
    assert amount_of(cost, 1.0, math.inf) >= book.cost(event)
    assert math.isclose(amount_of(mass, 2.5e-7, -math.inf), book.delta_part(event), rel_tol=1e-15, abs_tol=0)
    assert book.accepts(event, (cost, mass))


@pytest.mark.parametrize(
    "event",
    [
        Gaussian(20.0),
        Gaussian(1e7),
        SGD * 1700,
        SGD * 100,
        Laplace(100.0) * 300,
        ZeroConcentrated(1e-3),
        PoissonSampled(Gaussian(1.0), 2e-4) * 100,
        PoissonSampled(Gaussian(2.0), 1e-3) * 100 + Laplace(1e3),
    ],
    ids=repr,
)
def test_hardly_another_point_admits_more_of_the_same(event):
    book = WholeFilter(1.0, 2.5e-7)

    def releases(epsilon, delta):
        return 1 / max(epsilon, delta / 2.5e-7)

    best = max(releases(event.epsilon(delta).upper, delta) for delta in np.geomspace(1e-16, 2.5e-7, 25))
    assert releases(book.cost(event), book.delta_part(event)) >= 0.97 * best


@pytest.mark.parametrize("event", [PureDP(20.0), RandomizedResponse(0.999), DiscreteLaplace(0.3)], ids=repr)
def test_rare_samples_of_few_outcomes_are_charged_by_their_law_and_not_by_their_curve(event):
    """They were charged ε = 5, and cost nothing at this δ."""
    samples, budget = PoissonSampled(event, 1e-5) * 3, WholeFilter(epsilon=1.0, delta=1e-3)
    assert samples.epsilon(1e-4).upper == 0
    assert budget.cost(samples) < 0.1
    assert budget.delta_part(samples) < 1e-4


def test_a_rare_batch_is_charged_by_its_law_and_not_by_its_curve():
    """It was charged ε = 1.1, and costs nothing at a third of this δ."""
    event = SampledWithoutReplacement(PureDP(9.71), n=10**9, batch=261_968)
    budget = WholeFilter(epsilon=1.0, delta=1e-3)
    assert event.epsilon(3e-4).upper == 0
    assert budget.cost(event) < 0.3
    assert budget.delta_part(event) < 3e-4


@pytest.mark.parametrize("event", [Laplace(300.0), PureDP(0.003), RandomizedResponse(0.51), Laplace(2.0) * 3], ids=repr)
def test_a_bounded_loss_takes_no_delta(event):
    """At any δ the budget has, ε would be hardly less than the largest loss."""
    assert WholeFilter(1.0, 2.5e-7).delta_part(event) == 0
    assert WholeFilter(1.0, 2.5e-7).cost(event) == event.pure()


@pytest.mark.parametrize(("noise", "halvings"), [(400.0, 10), (3e5, 20), (1e11, 30)])
def test_what_costs_nothing_at_the_whole_of_delta_takes_a_small_share_of_it(noise, halvings):
    """The first of three that ε is more than nothing at, or the last of them."""
    event, book = Gaussian(noise), WholeFilter(1.0, 1e-2)
    assert event.epsilon(1e-2).upper == 0
    assert book.units(event)[1] == WHOLE >> halvings
    assert (book.cost(event) > 0) == (halvings < 30)


def test_a_claim_is_charged_as_it_stands():
    book = WholeFilter(1.0, 1e-6)
    assert (book.cost(ApproximateDP(0.1, 1e-7)), book.delta_part(ApproximateDP(0.1, 1e-7))) == (0.1, 1e-7)
    assert book.releases(ApproximateDP(0.1, 1e-7)) == 10


def test_the_point_is_settled_by_the_event_and_the_limits_alone():
    fresh, used = WholeFilter(1.0, 2.5e-7), WholeFilter(1.0, 2.5e-7)
    used.charge(Gaussian(10.0))
    assert used.units(SGD * 300) == fresh.units(SGD * 300)
    assert WholeFilter(2.0, 2.5e-7).delta_part(SGD * 300) < fresh.delta_part(SGD * 300)


@pytest.mark.parametrize("event", [SGD * 300, Gaussian(20.0), Laplace(100.0) * 300, ZeroConcentrated(0.001)], ids=repr)
def test_any_point_of_the_curve_is_accepted_and_none_under_it(event):
    """So does an accountant that is tighter than the one that charged, or that chooses otherwise."""
    book = WholeFilter(1.0, 2.5e-7)
    for delta in (2.5e-7, 1e-8, 1e-12):
        mass = math.ceil(delta / 2.5e-7 * WHOLE)
        epsilon = event.epsilon(amount_of(mass, 2.5e-7, -math.inf)).upper
        assert book.accepts(event, (math.ceil(epsilon * WHOLE), mass))
        assert book.accepts(event, (math.ceil(epsilon * WHOLE * 1.5), mass))
        assert not book.accepts(event, (math.floor(epsilon * 0.99 * WHOLE), mass))
    assert not book.accepts(event, (WHOLE // 1000, 0))
    assert book.accepts(event, (None, 0))
    assert book.accepts(event, (0, None))


def test_the_largest_loss_is_accepted_as_a_point():
    event, book = RandomizedResponse(0.52) * 40, WholeFilter(4.0, 1e-6)
    assert book.cost(event) < event.pure()
    assert book.accepts(event, (math.ceil(event.pure() / 4.0 * WHOLE), 0))
    assert not book.accepts(event, (math.floor(event.pure() / 4.0 * 0.999 * WHOLE), 0))


@pytest.mark.parametrize("limits", [(3.0, 1e-6), (7.0, 3e-5), (11.0, 1e-3)])
def test_a_point_that_is_one_unit_short_is_not_accepted(limits):
    """The units are read rounded down: one less is less than the largest loss, or than the mass, as a number too."""
    event, book = RandomizedResponse(0.52) * 40 + ApproximateDP(0.0, 1e-9), WholeFilter(*limits)
    paid, failing = in_units(event.pure(delta_part=True), limits[0]), in_units(event.infinite_mass, limits[1])
    assert book.units(event)[1] > 2 * failing  # so that it is another point than the one that is chosen
    assert book.accepts(event, (paid, failing))
    assert not book.accepts(event, (paid - 1, failing))
    assert not book.accepts(event, (paid, failing - 1))


@pytest.mark.parametrize("event", [Gaussian(0.5), Gaussian(0.5) * 10, SGD * 10**5], ids=repr)
def test_an_event_that_is_too_much_is_priced_at_the_whole_of_delta_and_no_more(event):
    book = WholeFilter(1.0, 1e-6)
    assert book.cost(event) > 1
    assert book.delta_part(event) == 1e-6


def test_a_point_that_leaves_out_the_mass_of_infinite_losses_is_not_accepted():
    event, book = ApproximateDP(0.1, 1e-8) * 2, WholeFilter(1.0, 1e-6)
    cost, mass = book.units(event)
    assert book.accepts(event, (cost, mass))
    assert not book.accepts(event, (2 * cost, 0))
    assert not book.accepts(event, (2 * cost, mass // 2))


@pytest.mark.parametrize("nothing", [LossDistribution([0.0], [0.4], 0.6), ApproximateDP(0.5, 0.5)], ids=repr)
def test_an_event_without_any_point_is_refused(nothing):
    book = WholeFilter(1.0, 1e-3)
    assert not book.admits(nothing)
    with pytest.raises(NoSuchGuarantee, match=r"no .* guarantee is known"):
        book.charge(nothing)
    assert book.tally(nothing)[0] is None


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_the_promise_is_about_the_neighbours_of_the_filter(adjacency):
    assert WholeFilter(1.0, 1e-6, adjacency=adjacency).guarantee().adjacency == adjacency


# Analysts.


@pytest.mark.parametrize("limits", [(1.0, 1e-3), (0.5, 1e-2)])
def test_the_greedy_analyst_is_stopped(limits):
    truth = adaptive_delta(greedy_analyst(*limits), limits[0], WholeFilter(*limits))
    assert truth <= limits[1] * (1 + 1e-9)


@law(80)
@given(strategies())
def test_no_adaptive_analyst_breaks_the_promise(strategy):
    book = WholeFilter(1.0, 1e-3)
    for epsilon in (0.5, 1.0, 2.0):
        assert adaptive_delta(strategy, epsilon, book) <= book.guarantee().delta(epsilon).upper * (1 + 1e-9) + 1e-15


@law(15)
@given(sequences)
def test_admitted_events_compose_to_no_more_than_the_promise(events):
    book = WholeFilter(2.0, 1e-3)
    admitted = [event for event in events if book.admits(event) and (book.charge(event), True)]
    if admitted:
        assert compose(*admitted).delta(2.0).lower <= book.guarantee().delta(2.0).upper


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0, 0, True, "1", None, 1e300])
def test_bad_limits_are_refused(bad):
    with pytest.raises(InvalidArgument, match="epsilon="):
        WholeFilter(bad, 1e-6)
    with pytest.raises(InvalidArgument, match="delta="):
        WholeFilter(1.0, bad)


@given(st.sampled_from(EVENTS))
def test_what_is_asked_twice_is_the_same(event):
    assert WholeFilter(1.0, 2.5e-7).units(event) == WholeFilter(1.0, 2.5e-7).units(event)


def test_a_point_that_another_machine_rounded_is_accepted():
    event, book = ApproximateDP(0.5, 1e-9), WholeFilter(1.0, 1e-6)
    paid, failing = book.units(event)
    assert book.accepts(event, (paid - 1, failing - 1))
    assert not book.accepts(event, (paid - paid // 2**30, failing))


def test_what_is_promised_is_more_than_the_limits_by_what_they_may_be_exceeded():
    promise = WholeFilter(1.0, 1e-6).guarantee()
    assert promise == ApproximateDP(PROMISE, 1e-6 * PROMISE)


@pytest.mark.parametrize("epsilon", [5000.001, 10_001.0])
def test_a_limit_out_of_range_is_refused_with_the_range(epsilon):
    with pytest.raises(InvalidArgument, match=r"epsilon=.* is not in \(0, 5000\]"):
        WholeFilter(epsilon, 1e-6)

"""Several filters at once: what fits, what an adaptive analyst gains at most, and what is recorded and raised."""

import json
import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import (
    ApproximateDP,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RDPFilter,
    Renyi,
    UnionFilter,
    WholeFilter,
    ZeroConcentrated,
    choose_filter,
    choose_union,
    compose,
)
from sitr.accounting.filters import MOST, WHOLE, Order
from sitr.accounting.filters.filter import PROMISE
from sitr.accounting.filters.single import renyi_limit
from sitr.accounting.filters.union import FIXED
from sitr.errors import BudgetExceeded, IncompatibleAdjacency, InvalidArgument, NoSuchGuarantee
from sitr.mechanisms import gaussian
from tests.accounting.filters.analysts import (
    Question,
    adaptive_delta,
    charged_to_all,
    charged_where_admitted,
    fill,
    greedy_analyst,
    parts_for_each,
    sequences,
    strategies,
    worst_delta,
)
from tests.accounting.helpers import gaussian_delta, law, logs

SGD = PoissonSampled(Gaussian(1.1), 256 / 60000)


def tiny():
    return choose_union(1.0, 1e-6)


# What fits into (1, 1e-6).


@pytest.mark.parametrize(
    ("event", "least"),
    [
        (Laplace(1.0), 1),
        (Laplace(2.0), 2),
        (Laplace(10.0), 10),
        (Laplace(100.0), 445),
        (Gaussian(20.0), 19),
        (DiscreteGaussian(20.0), 19),
        (gaussian(epsilon=0.92, delta=1e-6, sensitivity=1.0).event, 1),
        (gaussian(epsilon=0.92, delta=1e-6, sensitivity=1.0, integers=True).event, 1),
        (SGD * 1700, 1),
        (ZeroConcentrated(0.001), 21),
    ],
    ids=repr,
)
def test_so_many_fit(event, least):
    book = fill(tiny(), event, least)
    assert not book.admits(event)
    assert book.guarantee().at_epsilon <= 1 + 2.0**-38
    assert book.guarantee().at_delta <= 1e-6 * (1 + 2.0**-38)


def test_many_small_releases_and_then_a_plan_fit():
    book = fill(tiny(), Laplace(1 / 0.003), 100)
    book.charge(SGD * 750)
    assert not book.admits(SGD * 750)
    assert book.admits(Laplace(1 / 0.003))


def test_nothing_that_fits_into_pure_epsilon_is_refused():
    book = fill(tiny(), PureDP(0.1), 9)
    assert book.admits(PureDP(0.1))
    assert not choose_filter(1.0, 1e-6).admits(PureDP(0.1) * 10)


# Every event is charged to every filter.


def test_an_event_is_charged_to_every_filter_also_to_those_that_are_over():
    book = tiny()
    book.charge(SGD * 1700)
    used = book.used
    assert used[0] is None  # no pure ε, for ever
    assert used[1] > 1000 * WHOLE  # no Rényi order holds such a plan
    assert used[-2] <= WHOLE
    book.charge(Laplace(1000.0))
    units = book.units(Laplace(1000.0))
    assert book.used == tuple(None if a is None else a + b for a, b in zip(used, units, strict=True))


def test_positions_are_what_each_filter_counts_alone():
    book, event = tiny(), Laplace(30.0) * 3 + ApproximateDP(0.01, 1e-9)
    units = book.units(event)
    for member, way in zip(book.members, book.ways, strict=True):
        assert member.units(event) == tuple(units[position] for position in way)
    assert [way[1] for way in book.ways[:4]] == [4, 4, 4, 4]  # δ-parts of pure ε and of the orders are counted once
    assert len({position for way in book.ways[4:] for position in way}) == 4


def test_what_has_no_guarantee_in_a_notion_is_dead_there_and_counts_elsewhere():
    units = tiny().units(ZeroConcentrated(0.001))
    assert [position for position, one in enumerate(units) if one is None] == [0, 5]
    table = tiny().units(Renyi(points=[(8, 0.01)]))
    assert [position for position, one in enumerate(table) if one is None] == [0, 1, 2, 3, 5]


def test_an_event_without_any_guarantee_is_refused_with_the_reason():
    nothing = Renyi(points=[(1.5, 0.1)], delta=0.6)
    book = tiny()
    assert not book.admits(nothing)
    with pytest.raises(NoSuchGuarantee):
        book.units(nothing)
    with pytest.raises(NoSuchGuarantee) as caught:
        book.charge(nothing)
    assert caught.value.why
    assert caught.value.do
    assert book.used == (0,) * 9


def test_a_refusal_names_what_the_best_filter_lacks():
    book = fill(tiny(), Laplace(2.0), 1)
    with pytest.raises(BudgetExceeded, match=r"epsilon: 1\.00 requested, 0\.500 left, short by 0\.500") as caught:
        book.charge(Laplace(1.0))
    assert "of several filters" in caught.value.why
    assert book.used == fill(tiny(), Laplace(2.0), 1).used


def test_where_everything_is_dead_a_refusal_still_says_why():
    book = tiny()
    book.used = (None,) * 9
    with pytest.raises(BudgetExceeded, match="requested, 0 left"):
        book.charge(Gaussian(20.0))


@law(20)
@given(sequences, st.randoms(use_true_random=False))
def test_the_sums_do_not_depend_on_the_order(events, dice):
    one, other, shuffled = choose_union(1000.0, 0.1), choose_union(1000.0, 0.1), list(events)
    dice.shuffle(shuffled)
    for book, order in ((one, events), (other, shuffled)):
        for event in order:
            book.charge(event)
    assert one.used == other.used


def test_one_adjacency_for_all_events():
    book = tiny()
    book.charge(PureDP(0.1, adjacency="replace_one"))
    assert book.adjacency == book.guarantee().adjacency == "replace_one"
    assert not book.admits(SGD)
    with pytest.raises(IncompatibleAdjacency):
        book.charge(SGD)
    assert choose_union(1.0, 1e-6, adjacency="add_remove").admits(SGD)


# What is left is told by the filter that admits the most releases of the kind.


def test_the_filter_that_serves_best_tells_what_is_left():
    book = fill(tiny(), Laplace(100.0), 40)
    pure, small = book.serving(Laplace(2.0)), book.serving(Laplace(100.0))
    assert pure.remaining() == {"epsilon": pytest.approx(0.6), "delta": 1e-7}
    assert isinstance(small, RDPFilter)
    assert small.alpha == book.orders[0].alpha
    assert small.releases(Laplace(100.0)) == book.releases(Laplace(100.0)) == 405
    assert small.used == (book.used[1], book.used[4])
    assert isinstance(book.serving(SGD * 1000), WholeFilter)
    assert book.used == fill(tiny(), Laplace(100.0), 40).used


def test_without_an_event_the_filter_that_used_the_least_of_its_limit_tells():
    book = fill(tiny(), Laplace(100.0), 40)
    shares = [max(book.used[position] for position in way) for way in book.ways]
    least = shares.index(min(shares))
    assert least != 0
    assert book.serving().used == tuple(book.used[position] for position in book.ways[least])
    assert type(book.serving()) is type(book.members[least])


def test_what_a_promise_allows_over_limits_is_taken_off_the_limits():
    for order in choose_union(1.0, 1e-6).orders:
        assert order.divergence * PROMISE**2 <= renyi_limit(order.alpha - 1, 1.0, math.log(order.delta)) * (1 + 1e-15)


def test_delta_parts_are_told_apart_from_the_rest():
    book = fill(tiny(), ApproximateDP(0.1, 3e-8), 2)
    left = book.serving(PureDP(0.4)).remaining()
    assert left["epsilon"] == pytest.approx(0.8)
    assert left["delta"] == pytest.approx(4e-8)


@law(15)
@given(sequences, st.sampled_from([Laplace(20.0), Gaussian(30.0), SGD * 20, ApproximateDP(0.01, 1e-6)]))
def test_no_filter_would_admit_more_than_the_one_that_serves(events, event):
    book = choose_union(2.0, 1e-3)
    for one in events:
        if book.admits(one):
            book.charge(one)
    best = book.serving(event)
    assert best.releases(event) == book.releases(event)
    for member, way in zip(book.members, book.ways, strict=True):
        alone = member.having(tuple(book.used[position] for position in way))
        if alone.tally(event)[0] is not None:
            assert alone.releases(event) <= best.releases(event)


# The limits keep the promise, by 50 digits.


def promised(book):
    """Return the δ that the limits of a union imply at its ε, with all that may be used over them (THEORY 5.4)."""
    with mpmath.workdps(50):
        over = mpmath.mpf(MOST) / WHOLE
        total = (mpmath.mpf(book.parts) + mpmath.mpf(book.gdp_parts) + mpmath.mpf(book.whole)) * over
        for order in book.orders:
            alpha, most = mpmath.mpf(order.alpha), mpmath.mpf(order.divergence) * over
            total += (
                mpmath.exp((alpha - 1) * (most - mpmath.mpf(book.epsilon))) * (1 - 1 / alpha) ** (alpha - 1) / alpha
            )
        if book.mu:
            total += gaussian_delta(mpmath.mpf(book.mu) * mpmath.sqrt(over), mpmath.mpf(book.epsilon))
        return total


@law(60)
@given(logs(1e-6, 5000), logs(1e-200, 0.9))
def test_the_chosen_limits_keep_the_promise_and_waste_nothing(epsilon, delta):
    book = choose_union(epsilon, delta)
    total = promised(book)
    assert total <= mpmath.mpf(delta) * (1 + mpmath.mpf(2) ** -38)
    assert total >= delta * (1 - 1e-6)
    assert book.orders[0].alpha == max(order.alpha for order in book.orders)
    assert 1 <= len(book.orders) <= 3
    assert book.limits[0] == book.limits[-2] == epsilon


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (3.0, 1e-5), (8.0, 1e-5)])
def test_each_limit_is_as_high_as_its_share_allows(epsilon, delta):
    book = choose_union(epsilon, delta)
    for name in ("mu", "divergence_1", "divergence_2", "divergence_3", "parts", "whole"):
        record = book.record()
        if name in record:
            with pytest.raises(InvalidArgument, match="higher than the promise allows"):
                UnionFilter.from_record(record | {name: record[name] * (1 + 1e-10)})
            UnionFilter.from_record(record | {name: record[name] * (1 - 1e-10)})


@pytest.mark.parametrize("name", ["parts", "gdp", "gdp_parts", "whole", "delta_1", "delta_2", "delta_3"])
def test_no_part_of_delta_is_left_out_of_the_sum(name):
    record = tiny().record()
    with pytest.raises(InvalidArgument, match="higher than the promise allows"):
        UnionFilter.from_record(record | {name: record[name] + 1e-9})


@law(40)
@given(logs(1e-6, 5000), logs(1e-200, 0.9))
def test_no_limit_is_so_low_that_rounding_would_make_another_of_it(epsilon, delta):
    assert all(order.divergence > 0.01 * epsilon for order in choose_union(epsilon, delta).orders)


def test_a_lower_order_without_room_leaves_its_share_to_the_main_one():
    book = choose_union(1.0, 0.05)
    assert len(book.orders) == 2
    assert book.orders[0].delta == pytest.approx(0.4 * 0.05)
    assert all(order.divergence > 0 for order in book.orders)


# The record.


@law(30)
@given(logs(1e-6, 5000), logs(1e-200, 0.9))
def test_the_same_limits_are_made_of_the_record(epsilon, delta):
    book = choose_union(epsilon, delta, adjacency="add_remove")
    record = json.loads(json.dumps(book.record()))
    assert all(type(value) is float for value in record.values())
    again = UnionFilter.from_record(record, adjacency="add_remove")
    assert (again.limits, again.ways, again.record()) == (book.limits, book.ways, book.record())
    assert again.adjacency == "add_remove"


def test_what_is_no_record_is_refused():
    record = tiny().record()
    for broken in (
        {},
        {"epsilon": 1.0},
        {name: value for name, value in record.items() if name != "alpha_2"},
        record | {"more": 1.0},
        record | {"alpha_1": "24"},
        record | {"delta_1": -1e-7},
        record | {"delta_1": None},
        record | {"mu": math.nan},
        record | {"gdp": 0.0},
        record | {"epsilon": 2.0, "delta": 1e-7},
        record | {"delta": 0.0},
    ):
        with pytest.raises(InvalidArgument):
            UnionFilter.from_record(broken)
    assert set(record) >= set(FIXED)


def test_a_union_may_be_pure_epsilon_beside_one_order():
    """As old budgets become: the order that was recorded, with all of its δ, and pure ε, which takes none."""
    old = choose_filter(1.0, 1e-6)
    book = UnionFilter(1.0, 1e-6, parts=old.delta, orders=[Order(old.alpha, 1e-6 - old.delta, old.epsilon)])
    assert book.ways == ((0, 2), (1, 2))
    assert book.limits == (1.0, old.epsilon, old.delta)
    assert (book.releases(Laplace(1.0)), book.releases(Laplace(100.0))) == (1, old.releases(Laplace(100.0)))
    assert UnionFilter.from_record(book.record()).limits == book.limits
    assert book.raised(2.0, 1e-6).ways == book.ways


# A raise.


@law(30)
@given(logs(1e-3, 100), logs(1e-12, 0.1), st.floats(1, 10), st.floats(1, 9))
def test_a_raise_lowers_no_limit_and_keeps_orders_and_shares(epsilon, delta, more, larger):
    book = choose_union(epsilon, delta)
    raised = book.raised(epsilon * more, delta * larger)
    assert all(after >= before for before, after in zip(book.limits, raised.limits, strict=True))
    assert [order.alpha for order in raised.orders] == [order.alpha for order in book.orders]
    for before, after in zip(book.orders, raised.orders, strict=True):
        assert after.delta / raised.delta == pytest.approx(before.delta / book.delta, rel=1e-12)
    assert raised.whole / raised.delta == pytest.approx(book.whole / book.delta, rel=1e-12)
    assert promised(raised) <= mpmath.mpf(raised.delta) * (1 + mpmath.mpf(2) ** -38)
    assert UnionFilter.from_record(raised.record()).limits == raised.limits


def test_what_was_used_is_told_exactly_after_a_raise_and_the_dead_stay_dead():
    book = tiny()
    book.charge(Laplace(2.0))
    book.charge(ZeroConcentrated(1e-6))
    raised = book.raised(3.0, 1e-5)
    for before, after, old, new in zip(book.used, raised.used, book.limits, raised.limits, strict=True):
        assert after == (None if before is None else math.ceil(before * Fraction(old) / Fraction(new)))
    assert raised.used[0] is None
    assert raised.used[5] is None
    assert not raised.admits(Laplace(1 / 2.5))
    assert raised.adjacency == book.adjacency


def test_a_step_of_518_times_a_limit_is_not_a_third_of_it_after_a_raise():
    book = tiny()
    steps = PoissonSampled(Gaussian(1.1), 256 / 60000) * 64
    book.charge(steps)
    assert 518 <= book.used[1] / WHOLE < 519
    raised = book.raised(2.0, 1e-6)
    assert raised.used[1] / WHOLE == pytest.approx(518.4 * book.limits[1] / raised.limits[1], rel=1e-3)
    assert raised.used[1] > 100 * WHOLE


@pytest.mark.parametrize(("epsilon", "delta"), [(0.9, 1e-6), (1.0, 0.9e-6), (2.0, 1e-7), (math.nan, 1e-6), ("2", 1e-6)])
def test_what_does_not_raise_is_refused(epsilon, delta):
    with pytest.raises(InvalidArgument, match=r"(epsilon|delta)="):
        tiny().raised(epsilon, delta)


@pytest.mark.parametrize(
    ("delta", "parts", "told"),
    [(0.0, 0.0, "delta=0"), (1.0, 0.0, "delta=1"), (1e-6, 1.5, r"parts=1\.5"), (1e-6, -0.5, r"parts=-0\.5")],
)
def test_what_is_no_probability_is_refused_by_its_name(delta, parts, told):
    with pytest.raises(InvalidArgument, match=told):
        UnionFilter(1.0, delta, parts=parts)


@pytest.mark.parametrize("epsilon", [1e-7, 5000.001, 10_001.0, 30_000.0])
def test_a_promise_out_of_range_is_refused_with_the_range(epsilon):
    with pytest.raises(InvalidArgument, match=rf"epsilon={epsilon!r} is not in \[1e-06, 5000\]"):
        choose_union(epsilon, 1e-6)
    with pytest.raises(InvalidArgument, match=rf"epsilon={epsilon!r} is not in \[1e-06, 5000\]"):
        UnionFilter(epsilon, 1e-6, parts=0.0)


# The worst analyst there is, and twins of the rule.

BUDGETS = [(1.0, 0.05, 20), (0.5, 0.02, 12), (2.0, 0.01, 16), (1.0, 1e-3, 20), (4.0, 0.01, 12)]


def gained(rule, book, grains, *, few=False):
    """What the worst analyst gains by pure questions, outright gambles, and one of both kinds; or by two pure ones."""
    grain = book.epsilon / grains
    sizes = (1, grains - 1) if few else (1, grains // 4, grains // 2, grains - 1)
    questions = [Question(size, 0.0, grain) for size in sizes]
    questions += [] if few else [Question(0, book.parts / 2, grain), Question(2, book.parts / 3, grain)]
    return worst_delta(*rule(book, questions), questions, book.epsilon, grain, 300 + 4 * grains)


@pytest.mark.parametrize(("epsilon", "delta", "grains"), BUDGETS)
def test_the_worst_adaptive_analyst_gains_no_more_than_is_promised(epsilon, delta, grains):
    book = choose_union(epsilon, delta)
    truth = gained(charged_to_all, book, grains)
    assert 0.2 * delta < truth <= delta


@pytest.mark.parametrize(("epsilon", "delta", "grains"), BUDGETS)
def test_a_twin_that_charges_only_the_filters_that_admit_is_caught(epsilon, delta, grains):
    book = choose_union(epsilon, delta)
    assert gained(charged_where_admitted, book, grains, few=True) > 2 * delta


def test_a_twin_that_limits_delta_parts_once_for_each_filter_is_caught():
    """Most of δ is for δ-parts: with a limit for each filter, an analyst gains that several times over."""
    chosen = choose_union(1.0, 0.05)
    book = UnionFilter(
        1.0,
        0.05,
        parts=0.035,
        orders=[Order(chosen.orders[0].alpha, 0.3 * chosen.orders[0].delta, 1e-3)],
        mu=0.5 * chosen.mu,
        gdp=0.3 * chosen.gdp,
        gdp_parts=0.3 * chosen.gdp_parts,
        whole=0.3 * chosen.whole,
    )
    assert gained(charged_to_all, book, 12) <= 0.05
    assert gained(parts_for_each, book, 12) > 1.2 * 0.05


class Unchecked(UnionFilter):
    """A twin that takes whatever limits it is given."""

    def _check_promise(self):
        pass


@pytest.mark.parametrize(
    ("epsilon", "delta", "grains", "times"), [(1.0, 0.05, 20, 1.83), (0.5, 0.02, 12, 1.89), (1.0, 1e-3, 20, 1.72)]
)
def test_a_twin_that_gives_all_of_delta_to_every_filter_gains_so_much_more(epsilon, delta, grains, times):
    """A report rather than a proof: no theorem says what such a rule promises, and this is what it gave away."""
    chosen = choose_union(epsilon, delta)
    alphas = [order.alpha for order in chosen.orders]
    orders = [Order(a, delta, choose_filter(epsilon, delta, delta_share=0.0, alpha=a).epsilon) for a in alphas]
    greedy = Unchecked(
        epsilon, delta, parts=delta, orders=orders, mu=_mu(epsilon, delta), gdp=delta, gdp_parts=delta, whole=delta
    )
    assert gained(charged_to_all, greedy, grains) == pytest.approx(times * delta, rel=0.01)


def _mu(epsilon, delta):
    """The largest μ of Gaussian DP that implies (ε,δ), by bisection."""
    low, high = 1e-3, 10.0
    for _ in range(40):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if gaussian_delta(middle, epsilon) <= delta else (low, middle)
    return low


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (0.5, 1e-2)])
def test_the_greedy_analyst_is_stopped(epsilon, delta):
    assert adaptive_delta(greedy_analyst(epsilon, delta), epsilon, choose_union(epsilon, delta)) <= delta


@law(60)
@given(strategies())
def test_no_adaptive_analyst_breaks_the_promise(strategy):
    book = choose_union(1.0, 1e-3)
    for epsilon in (1.0, 2.0):
        assert adaptive_delta(strategy, epsilon, book) <= book.guarantee().delta(epsilon).upper


@law(15)
@given(sequences)
def test_admitted_events_compose_to_no_more_than_the_promise(events):
    book = choose_union(2.0, 1e-3)
    admitted = [event for event in events if book.admits(event) and (book.charge(event), True)]
    if admitted:
        assert compose(*admitted).delta(2.0).lower <= book.guarantee().delta(2.0).upper


@pytest.mark.parametrize("scale", [4.6, 7.0, 12.0, 30.0])
def test_a_budget_full_of_discrete_noise_costs_no_more_than_the_promise(scale):
    book, event = tiny(), DiscreteGaussian(scale)
    count = book.releases(event)
    fill(book, event, count)
    assert not book.admits(event)
    assert (event * count).delta(1.0).upper <= 1e-6
    assert (event * math.ceil(1.35 * count + 1)).delta(1.0).lower > 1e-6  # and wastes little of it


def test_a_recorded_charge_is_not_enough_for_an_event_of_other_neighbours():
    event = Gaussian(noise_multiplier=20, adjacency="replace_one")
    units = choose_union(epsilon=1.0, delta=1e-6).units(event)
    assert choose_union(epsilon=1.0, delta=1e-6, adjacency="replace_one").accepts(event, units)
    with pytest.raises(IncompatibleAdjacency):
        choose_union(epsilon=1.0, delta=1e-6, adjacency="add_remove").accepts(event, units)

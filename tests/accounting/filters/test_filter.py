"""What all filters do: whole numbers of any size, ways, charges that are worked out again."""

import math
import pickle
from fractions import Fraction

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
    PureFilter,
    RDPFilter,
    WholeFilter,
    ZCDPFilter,
    ZeroConcentrated,
    choose_filter,
    choose_union,
)
from sitr.accounting.filters import MOST, WHOLE, added, rescaled
from sitr.accounting.filters.filter import REMEMBERED, amount_of, covers, in_units
from sitr.errors import IncompatibleAdjacency, InvalidArgument
from tests.accounting.helpers import law, logs

ALL = [
    lambda: PureFilter(1.0, 1e-3),
    lambda: ZCDPFilter(0.2, 1e-3),
    lambda: choose_filter(1.0, 1e-3),
    lambda: WholeFilter(1.0, 1e-3),
    lambda: choose_union(1.0, 1e-3),
]
EVENTS = [
    Laplace(3.0),
    Laplace(40.0),
    Gaussian(30.0),
    DiscreteGaussian(30.0, 2),
    ZeroConcentrated(0.01, delta=1e-5),
    ApproximateDP(0.1, 1e-4),
    PoissonSampled(Gaussian(3.0), 0.1),
]


# Whole numbers.

sizes = st.integers(0, 2**300)
limits = logs(1e-300, 1e300)


@given(logs(1e-300, 1e300), limits)
def test_a_cost_is_counted_exactly_and_rounded_up(cost, limit):
    units = in_units(cost, limit)
    assert (units - 1) * Fraction(limit) < Fraction(cost) * WHOLE <= units * Fraction(limit)


def test_what_is_no_number_of_units_is_none():
    assert in_units(0.0, 0.0) == 0
    assert in_units(1e-300, 0.0) is None
    assert in_units(math.inf, 1.0) is None


@given(st.integers(0, 2**80), logs(1e-12, 1e12))
def test_units_become_a_number_again_on_either_side(units, limit):
    exact = Fraction(limit) * units / WHOLE
    below, above = (amount_of(units, limit, towards) for towards in (-math.inf, math.inf))
    assert Fraction(below) <= exact <= Fraction(above)
    assert above <= math.nextafter(below, math.inf)


@given(st.lists(st.tuples(st.none() | sizes, st.none() | sizes), min_size=1, max_size=5))
def test_charges_add_and_what_is_dead_stays_dead(rows):
    used, units = zip(*rows, strict=True)
    for before, more, after in zip(used, units, added(used, units), strict=True):
        assert after == (None if before is None or more is None else before + more)


@given(sizes, logs(1e-9, 1e9), logs(1e-9, 1e9))
def test_what_was_used_is_told_in_units_of_other_limits_exactly(used, old, new):
    (after,) = rescaled((used,), (old,), (new,))
    assert (after - 1) * Fraction(new) < used * Fraction(old) <= after * Fraction(new)


def test_a_step_far_over_the_limit_stays_so_after_a_raise():
    """It read 0.35 of the raised limit once, as costs over a limit were all written down as one unit more than that."""
    small = PureFilter(1.0)
    (cost, mass) = small.units(PureDP(518.0))
    assert (cost, mass) == (518 * WHOLE, 0)
    raised = PureFilter(2.86)
    (after, _) = rescaled((cost, mass), small.limits, (raised.limit, 1.0))
    assert after / WHOLE == pytest.approx(518 / 2.86, rel=1e-12)
    assert not raised.holds((after, 0))


def test_a_limit_that_is_nothing_is_used_by_nothing():
    assert rescaled((0, None), (1.0, 0.0), (2.0, 0.0)) == (0, None)


# Ways.


@given(st.lists(st.sampled_from([0, 1, WHOLE, MOST, MOST + 1, 518 * WHOLE, None]), min_size=9, max_size=9))
def test_a_history_holds_while_one_way_does(used):
    union = choose_union(1.0, 1e-6)
    assert union.holds(tuple(used)) == any(
        all(used[position] is not None and used[position] <= MOST for position in way) for way in union.ways
    )


@pytest.mark.parametrize("make", ALL)
def test_every_position_is_in_a_way_and_has_a_limit(make):
    book = make()
    positions = {position for way in book.ways for position in way}
    assert positions == set(range(len(book.used))) == set(range(len(book.limits)))
    assert all(limit > 0 for limit in book.limits)
    assert set(book.used) == {0}


@pytest.mark.parametrize("event", EVENTS, ids=repr)
@pytest.mark.parametrize("make", ALL)
def test_as_many_releases_are_foretold_as_are_admitted(make, event):
    book = make()
    if not book.admits(event):
        return
    foretold, count = book.releases(event), 0
    while book.admits(event):
        book.charge(event)
        count += 1
        assert book.releases(event) == foretold - count
    assert count == foretold


def test_what_costs_nothing_is_released_without_end():
    for book in (PureFilter(1.0), ZCDPFilter(1.0), WholeFilter(1.0, 1e-6), choose_union(1.0, 1e-6)):
        assert book.releases(PureDP(0.0)) == math.inf
    book = PureFilter(1.0, 1e-6)
    book.used = (MOST + 1, 0)
    assert book.releases(PureDP(0.0)) == 0
    book.used = (None, 0)
    assert book.releases(PureDP(0.0)) == 0


@pytest.mark.parametrize("make", ALL)
def test_a_refused_event_changes_nothing(make):
    book = make()
    book.charge(Laplace(10.0))
    before = book.used
    assert not book.admits(Laplace(0.01))
    with pytest.raises(ValueError, match="requested"):
        book.charge(Laplace(0.01))
    assert book.used == before


# Charges that are worked out again.


@law(60)
@given(st.sampled_from(ALL), st.sampled_from(EVENTS), st.integers(0, 8), st.integers(1, 2**70))
def test_a_recorded_charge_is_enough_if_no_position_is_under_what_is_due(make, event, place, more):
    book = make()
    try:
        units = book.units(event)
    except ValueError:
        return
    place %= len(units)
    assert book.accepts(event, units)
    richer = tuple(due if number != place or due is None else due + more for number, due in enumerate(units))
    assert book.accepts(event, richer)
    dead = tuple(None if number == place else due for number, due in enumerate(units))
    assert book.accepts(event, dead)


@pytest.mark.parametrize("event", EVENTS, ids=repr)
@pytest.mark.parametrize("make", ALL)
def test_a_recorded_charge_that_is_too_small_is_not_accepted(make, event):
    book = make()
    try:
        units = book.units(event)
    except ValueError:
        return
    for number, due in enumerate(units):
        poorer = tuple(
            one if place != number else 7 if one is None else one * 999 // 1000 for place, one in enumerate(units)
        )
        if due != 0 and due != 1:
            assert not book.accepts(event, poorer), number


def test_what_another_machine_rounds_otherwise_is_accepted():
    book, event = RDPFilter(8.0, 1.0, 1e-6), Gaussian(20.0)
    cost, mass = book.units(event)
    assert book.accepts(event, (cost - cost // 2**41, mass))
    assert not book.accepts(event, (cost - cost // 2**39, mass))


@given(st.none() | st.integers(0, 2**90), st.none() | st.integers(0, 2**90))
def test_what_covers_a_charge(paid, due):
    if paid is None:
        assert covers(paid, due)
    elif due is None:
        assert not covers(paid, due)
    else:
        assert covers(paid, due) == (Fraction(paid) >= due * (1 - Fraction(1, 2**40)))


# What an event costs is worked out once.


@pytest.mark.parametrize("make", ALL)
def test_few_costs_are_remembered_and_they_are_the_same_again(make):
    book, events = make(), [PureDP(0.001 * (number + 1)) for number in range(REMEMBERED + 10)]
    for event in events:
        assert book.units(event) == book.units(event)
        assert len(book._remembered) <= REMEMBERED
    assert [book.units(event) for event in events[-30:]] == [make().units(event) for event in events[-30:]]
    with pytest.raises(InvalidArgument, match="float is not an event"):
        book.units(0.1)


@pytest.mark.parametrize("make", ALL)
def test_a_cost_that_is_remembered_is_no_pass_for_other_neighbours(make):
    book, added_one = make(), PureDP(0.01, adjacency="add_remove")
    book.units(added_one)
    book.charge(PureDP(0.01, adjacency="replace_one"))
    assert not book.admits(added_one)
    with pytest.raises(IncompatibleAdjacency):
        book.units(added_one)


def test_what_events_cost_is_not_pickled():
    budget = PureFilter(epsilon=1.0)
    budget.units(PureDP(0.5))
    again = pickle.loads(pickle.dumps(budget))
    assert again._remembered == {}
    assert again.units(PureDP(0.5)) == budget.units(PureDP(0.5))

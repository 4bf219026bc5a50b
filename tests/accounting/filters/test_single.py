"""Filters: adaptive analysts are stopped, the promise holds, a full budget is decided as people expect."""

import gc
import json
import math
import weakref
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import (
    ApproximateDP,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    Renyi,
    ZeroConcentrated,
    calibrate_count,
    compose,
)
from sitr.accounting.filters import (
    MOST,
    WHOLE,
    AdvancedFilter,
    Filter,
    GDPFilter,
    Odometer,
    PureFilter,
    RDPFilter,
    ZCDPFilter,
    choose_filter,
)
from sitr.accounting.losses.law import LaterPair
from sitr.errors import BudgetExceeded, IncompatibleAdjacency, InvalidArgument, NoSuchGuarantee
from tests.accounting.filters.analysts import adaptive_delta, fill, greedy_analyst, sequences, strategies
from tests.accounting.helpers import law, logs

FILTERS = [
    lambda: PureFilter(1.0, 1e-3),
    lambda: ZCDPFilter(0.2, 1e-3),
    lambda: RDPFilter(5.0, 1.0, 1e-3),
    lambda: GDPFilter(0.8, 1e-3),
    lambda: AdvancedFilter(2.0, 1e-2, 1e-3),
    lambda: choose_filter(1.0, 1e-3),
]
filters = st.sampled_from(FILTERS)
ZERO_OUTSIDE = ApproximateDP(0.0, 1e-15)


# An analyst who sees every answer before asking again.


class NaiveRule:
    """Lets pass what, had it been fixed in advance, would be (ε,δ)-DP: exact composition of what was chosen so far."""

    def __init__(self, epsilon, delta):
        self.epsilon, self.delta, self.events = epsilon, delta, ()

    def admits(self, event):
        return compose(*self.events, event).delta(self.epsilon).upper <= self.delta

    def charge(self, event):
        assert self.admits(event)
        self.events = (*self.events, event)


def test_the_greedy_analyst_breaks_the_naive_rule():
    epsilon, delta = 1.0, 1e-3
    truth = adaptive_delta(greedy_analyst(epsilon, delta), epsilon, NaiveRule(epsilon, delta))
    assert truth == pytest.approx(1.9 * delta, rel=0.01)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PureFilter(1.0, 1e-3),
        lambda: AdvancedFilter(1.0, 5e-4, 5e-4),
        lambda: choose_filter(1.0, 1e-3),
        lambda: choose_filter(1.0, 1e-3, delta_share=0.9),
    ],
)
def test_the_greedy_analyst_is_stopped_by_every_filter(make):
    epsilon, delta, book = 1.0, 1e-3, make()
    truth = adaptive_delta(greedy_analyst(epsilon, delta), epsilon, book)
    assert truth <= delta * (1 + 1e-9)


def test_the_greedy_analyst_is_stopped_at_the_closer_look():
    strategy, book = greedy_analyst(1.0, 1e-3), PureFilter(1.0, 1e-3)
    for answers in range(4):
        book.charge(strategy((1,) * answers))
    assert book.admits(strategy((1, 1, 1, 2)))  # the gamble was paid for
    with pytest.raises(BudgetExceeded, match=r"epsilon: .* requested, 0 left"):
        book.charge(strategy((1, 1, 1, 1)))


@law(150)
@given(filters, strategies())
def test_no_adaptive_analyst_breaks_a_promise(make, strategy):
    book = make()
    promise = book.guarantee()
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        truth = adaptive_delta(strategy, epsilon, book)
        assert truth <= promise.delta(epsilon).upper * (1 + 1e-9) + 1e-15


# What was admitted never costs more than the promise, also as one fixed sequence of any events.


@law(25)
@given(filters, sequences)
def test_admitted_events_compose_to_no_more_than_the_promise(make, events):
    book = make()
    admitted = [event for event in events if book.admits(event) and (book.charge(event), True)]
    if not admitted:
        return
    for epsilon in (0.2, 1.0, 2.0):
        assert compose(*admitted).delta(epsilon).lower <= book.guarantee().delta(epsilon).upper


@law(40)
@given(filters, sequences)
def test_charging_is_what_admits_says_and_only_ever_spends(make, events):
    book = make()
    for event in events:
        before, left = book.spent(), book.remaining()
        if book.admits(event):
            book.charge(event)
            assert all(book.spent()[name] >= before[name] for name in before)
            assert all(book.remaining()[name] <= left[name] for name in left)
        else:
            with pytest.raises((BudgetExceeded, NoSuchGuarantee)):
                book.charge(event)
            assert (book.spent(), book.remaining()) == (before, left)
    limits = {book.parameter: getattr(book, book.parameter), "delta": book.delta}
    assert all(book.spent()[name] <= limits[name] for name in limits)


@law(30)
@given(filters, sequences, st.randoms(use_true_random=False))
def test_the_sum_does_not_depend_on_the_order(make, events, dice):
    one, other, shuffled = make(), make(), list(events)
    for book, order in ((one, events), (other, shuffled)):
        book.limit, book.delta = 1e6, 0.5
        for event in order:
            if book.admits(event):
                book.charge(event)
        dice.shuffle(shuffled)
    assert one.used == other.used


# A full budget.


@pytest.mark.parametrize(
    ("book", "event", "times"),
    [
        (PureFilter(1.0), PureDP(0.1), 10),
        (PureFilter(1.0), PureDP(1 / 3), 3),
        (PureFilter(1.0), PureDP(1e-4), 10_000),
        (PureFilter(0.3), PureDP(0.1), 3),
        (PureFilter(1.0), Laplace(10), 10),
        (PureFilter(1.0, 1e-5), ApproximateDP(0.1, 1e-6), 10),
        (PureFilter(1.0), PureDP(0.1) * 10, 1),
        (ZCDPFilter(0.5), Gaussian(10), 100),
        (ZCDPFilter(0.5, 1e-6), ZeroConcentrated(0.05, delta=1e-7), 10),
        (GDPFilter(1.0), Gaussian(10), 100),
        (GDPFilter(0.3), Gaussian(10), 9),
        (RDPFilter(20, 1.0), Gaussian(10), 10),
    ],
    ids=repr,
)
def test_what_fills_a_budget_exactly_fits_and_not_a_bit_more(book, event, times):
    fill(book, event, times)
    left = book.remaining()[book.parameter]
    assert left == pytest.approx(0, abs=1e-5 * getattr(book, book.parameter))
    assert book.spent()[book.parameter] == pytest.approx(getattr(book, book.parameter), rel=1e-11)
    with pytest.raises(BudgetExceeded):
        book.charge(event)
    assert not book.admits(PureDP(1e-4))


def test_a_full_budget_is_decided_to_one_part_in_two_to_the_forty():
    book = PureFilter(1.0)
    assert book.admits(PureDP(1 + 2.0**-41))
    assert not book.admits(PureDP(1 + 2.0**-39))
    assert book.guarantee().pure() >= 1 + 2.0**-40
    assert book.guarantee().pure() <= 1 + 2.0**-38


def test_units_are_exact_and_never_clamped():
    book = PureFilter(1.0, 1e-6)
    assert book.units(PureDP(2.0**-60)) == (1, 0)
    assert book.units(PureDP(1e-300)) == (1, 0)
    assert book.units(PureDP(0.0)) == (0, 0)
    cost, mass = book.units(ApproximateDP(100, 0.5) * 10**6)
    assert cost == 10**8 * WHOLE
    assert mass >= 10**6 * WHOLE
    assert PureFilter(1.0).units(ApproximateDP(0.5, 1e-9)) == (WHOLE // 2, None)
    assert WHOLE < MOST


def test_no_delta_part_is_admitted_where_none_is_kept():
    assert not PureFilter(1.0).admits(ApproximateDP(0.1, 1e-300))
    assert ZCDPFilter(1.0, 1e-6).admits(ApproximateDP(0.1, 1e-7))
    book = fill(ZCDPFilter(1.0, 1e-6), ApproximateDP(0.1, 3e-7), 3)
    with pytest.raises(BudgetExceeded, match="delta: 3e-07 requested, 1e-07 left, short by 2e-07"):
        book.charge(ApproximateDP(0.1, 3e-7))


def test_the_message_says_what_is_missing():
    book = fill(PureFilter(1.0), PureDP(0.75), 1)
    with pytest.raises(BudgetExceeded) as caught:
        book.charge(PureDP(0.5))
    assert caught.value.what == "epsilon: 0.500 requested, 0.250 left, short by 0.250."
    assert "Rogers" in caught.value.why
    assert caught.value.do


def test_the_message_promises_no_more_than_is_left():
    book = fill(PureFilter(1.0), PureDP(1 / 3), 1)
    with pytest.raises(BudgetExceeded, match=r"0.901 requested, 0.666 left, short by 0.235"):
        book.charge(PureDP(0.9009))


# State.


def test_state_is_plain_numbers():
    book = fill(choose_filter(1.0, 1e-6), Gaussian(20), 3)
    used, adjacency = json.loads(json.dumps([book.used, book.adjacency]))
    again = RDPFilter(book.alpha, book.epsilon, book.delta, adjacency=adjacency)
    again.used = tuple(used)
    assert again.spent() == book.spent()
    assert again.remaining() == book.remaining()


def test_every_filter_names_its_theorem():
    for make in FILTERS:
        assert isinstance(make(), Filter)
        assert any(year in make().theorem for year in ("2016", "2021", "2022", "2023"))


# What does not exist in a notion, and other neighbours.


@pytest.mark.parametrize(
    ("book", "event"),
    [
        (PureFilter(1.0), Gaussian(10)),
        (AdvancedFilter(1.0, 1e-6), Gaussian(10)),
        (PureFilter(1.0), DiscreteGaussian(10)),
        (ZCDPFilter(1.0), Renyi(points=[(8, 0.1)])),
        (GDPFilter(1.0), Concentrated(0.01, 0.1)),
        (GDPFilter(1.0), DiscreteGaussian(10)),
        (RDPFilter(10, 1.0), Renyi(points=[(8, 0.1)])),
        (PureFilter(1.0), PureDP(0.1) + Gaussian(100)),
    ],
    ids=repr,
)
def test_an_event_without_a_guarantee_in_the_notion_is_refused_with_the_reason(book, event):
    assert not book.admits(event)
    with pytest.raises(NoSuchGuarantee) as caught:
        book.charge(event)
    assert caught.value.why
    assert caught.value.do
    assert book.used == (0, 0)


def test_one_adjacency_for_all_events():
    book = PureFilter(1.0)
    book.charge(PureDP(0.1))
    assert book.adjacency is None
    book.charge(PureDP(0.1, adjacency="replace_one"))
    assert book.adjacency == "replace_one"
    sampled = PoissonSampled(Laplace(10), 0.1)
    assert not book.admits(sampled)
    with pytest.raises(IncompatibleAdjacency):
        book.charge(sampled)
    with pytest.raises(IncompatibleAdjacency):
        PureFilter(1.0, adjacency="add_remove").charge(PureDP(0.1, adjacency="replace_one"))
    assert PureFilter(1.0, adjacency="add_remove").admits(sampled)


# Costs.


def test_costs_are_those_of_the_notion():
    assert PureFilter(1.0).cost(Laplace(4) * 2) == 0.5
    assert ZCDPFilter(1.0).cost(Gaussian(2) * 3) == 0.375
    assert ZCDPFilter(1.0).cost(ZeroConcentrated(0.25, xi=0.5)) == 0.75
    assert 1 <= GDPFilter(1.0).cost(Gaussian(2) * 4) <= 1 + 1e-14
    assert AdvancedFilter(1.0, 1e-6).cost(PureDP(0.3) + PureDP(0.4)) == pytest.approx(0.5)


@law(40)
@given(st.floats(1.01, 200), st.one_of(st.builds(Gaussian, logs(0.5, 1e6)), st.builds(Laplace, logs(0.5, 1e6))))
def test_renyi_costs_are_the_divergence_and_never_under_it(alpha, event):
    cost = RDPFilter(alpha, 1.0).cost(event)
    noise = event.noise_multiplier
    if isinstance(event, Gaussian):
        truth = alpha / (2 * noise**2)
    else:
        with mpmath.workdps(50):
            a, e = mpmath.mpf(alpha), 1 / mpmath.mpf(noise)
            moment = a * mpmath.exp((a - 1) * e) + (a - 1) * mpmath.exp(-a * e)
            truth = mpmath.log(moment / (2 * a - 1)) / (a - 1)
    assert truth * (1 - 1e-15) <= cost <= truth * (1 + 1e-12) + 1e-14 / (alpha - 1)


def sampled_gaussian_divergence(sigma, q, alpha):
    """D_α at 40 digits: a binomial sum at whole orders (THEORY 2.7), elsewhere the integral of r^α over its tangent."""
    with mpmath.workdps(40):
        s, q, a = mpmath.mpf(sigma), mpmath.mpf(q), mpmath.mpf(alpha)
        if alpha == int(alpha):
            coefficient, terms = mpmath.mpf(1), []
            for k in range(int(alpha) + 1):
                terms.append(coefficient * (1 - q) ** (a - k) * q**k * mpmath.exp(mpmath.mpf(k * (k - 1)) / (2 * s**2)))
                coefficient = coefficient * (a - k) / (k + 1)
            return mpmath.log(mpmath.fsum(terms)) / (a - 1)

        def excess(x):
            r = 1 + q * mpmath.expm1((2 * x - 1) / (2 * s**2))
            return mpmath.exp(-(x**2) / (2 * s**2)) * (r**a - 1 - a * (r - 1))

        turn = 0.5 + s**2 * mpmath.log(1 / q - 1)
        edges = {centre + k * s for centre in (0, 1, a) for k in (-16, -6, -2, 2, 6, 16)}
        edges |= {turn + k * s**2 for k in (-20, -5, 0, 5, 20) if abs(turn + k * s**2) < a + 20 * s}
        return mpmath.log1p(mpmath.quad(excess, sorted(edges)) / (s * mpmath.sqrt(2 * mpmath.pi))) / (a - 1)


@pytest.mark.parametrize("alpha", [1.0001, 1.5, 2, 22.18, 64, 10_000])
@pytest.mark.parametrize(
    ("sigma", "q"), [(0.05, 0.5), (0.2, 1e-5), (0.5, 1e-9), (1, 0.05), (3, 0.99), (30, 1e-3), (1e4, 0.5)]
)
def test_costs_of_sampled_gaussians_are_never_under_the_truth(sigma, q, alpha):
    truth = sampled_gaussian_divergence(sigma, q, alpha)
    cost = RDPFilter(alpha, 1.0).cost(PoissonSampled(Gaussian(sigma), q))
    assert truth * (1 - 1e-14) <= cost <= truth * (1 + 1e-9) + 1e-14 / (alpha - 1)
    assert PoissonSampled(Gaussian(sigma), q).rdp(alpha) == pytest.approx(
        float(truth), rel=1e-9, abs=1e-14 / (alpha - 1)
    )


BOUNDED = [
    Laplace(2.0),
    Exponential(0.7),
    RandomizedResponse(0.8),
    RandomizedResponse(0.1, 4),
    PureDP(0.3),
    DiscreteLaplace(3.0, 4),
]


@pytest.mark.parametrize("inner", [*BOUNDED, ApproximateDP(0.4, 1e-6)], ids=repr)
@pytest.mark.parametrize("q", [1e-4, 0.3, 0.95])
def test_sampling_a_pure_event_costs_by_the_formula(inner, q):
    """ln(1 + q (e^ε - 1)) with the person, and -ln(1 - q (1 - e^-ε)), which is less, without (THEORY 2.7)."""
    epsilon, event = inner.pure(delta_part=True), PoissonSampled(inner, q)
    expected = max(math.log1p(q * math.expm1(epsilon)), -math.log1p(-q) if inner.infinite_mass else 0.0)
    for cost in (PureFilter(1.0).cost(event), AdvancedFilter(1.0, 1e-6).cost(event)):
        assert cost == pytest.approx(expected, rel=1e-14)
    assert PureFilter(1.0, 1e-3).units(event)[1] >= q * inner.infinite_mass * WHOLE / 1e-3 * (1 - 1e-12)
    if not inner.infinite_mass:
        assert event.epsilon(0).upper == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("make", FILTERS)
@pytest.mark.parametrize("inner", BOUNDED, ids=repr)
def test_no_filter_makes_the_laws_of_an_event(make, inner):
    event = PoissonSampled(inner, 0.01)
    make().charge(event)
    assert isinstance(event._part, LaterPair)
    assert "made" not in vars(event._part)
    assert (event * 2).epsilon(1e-6).upper > 0
    assert "made" in vars(event._part)


@law(40)
@given(logs(1e-9, 3), st.integers(1, 10**6))
def test_gaussian_dp_costs_are_never_under_the_truth(epsilon, count):
    with mpmath.workdps(50):
        truth = mpmath.sqrt(8 * count) * mpmath.erfinv(mpmath.tanh(mpmath.mpf(epsilon) / 2))
    cost = GDPFilter(1.0).cost(PureDP(epsilon) * count)
    assert truth * (1 - 1e-15) <= cost <= truth * (1 + 1e-12) + 1e-15 * math.sqrt(count)


def test_advanced_filter_follows_its_formula():
    book, slack = AdvancedFilter(1.0, 1e-6), 1e-6
    fill(book, PureDP(0.01), 300)
    squares = 300 * 0.01**2
    formula = math.sqrt(2 * math.log(1 / slack) * squares) + squares / 2
    assert book.spent()["epsilon"] == pytest.approx(formula, rel=1e-12)
    room = math.sqrt(book.limit)
    assert math.sqrt(2 * math.log(1 / slack)) * room + room**2 / 2 == pytest.approx(1.0, rel=1e-12)
    assert choose_filter(1.0, 1e-6, delta_share=0).admits(PureDP(0.01) * 350)
    assert not AdvancedFilter(1.0, 1e-6).admits(PureDP(0.01) * 350)


# The choice of an order.


def converted(alpha, divergence, delta):
    """RDP to ε (THEORY 3.2)."""
    return divergence + math.log((alpha - 1) / alpha) - (math.log(delta) + math.log(alpha)) / (alpha - 1)


@law(60)
@given(logs(1e-3, 100), logs(1e-12, 0.1), st.sampled_from([0.0, 0.1, 0.5]))
def test_the_chosen_filter_keeps_the_target_and_has_the_most_room(epsilon, delta, share):
    book = choose_filter(epsilon, delta, delta_share=share)
    left = delta * (1 - share)
    assert converted(book.alpha, book.epsilon * (1 + 2.0**-39), left) <= epsilon
    assert book.delta * (1 + 2.0**-39) + left <= delta * (1 + 1e-15)
    room = book.epsilon / book.alpha
    for factor in (0.01, 0.3, 0.9, 0.99, 1.01, 1.1, 3, 100):
        alpha = 1 + (book.alpha - 1) * factor
        other = (epsilon - converted(alpha, 0.0, left)) / alpha
        assert other <= room * (1 + 1e-9)


def test_the_room_for_gaussians_is_that_of_zcdp():
    book = choose_filter(1.0, 1e-6, delta_share=0)
    room = book.epsilon / book.alpha
    assert float(ZeroConcentrated(room).epsilon(1e-6)) == pytest.approx(1.0, rel=1e-6)


# Bad input.


@pytest.mark.parametrize("kind", [PureFilter, ZCDPFilter, GDPFilter, RDPFilter, AdvancedFilter])
def test_records_of_other_filters_are_refused(kind):
    for record in (
        {},
        {"delta": 0.0},
        {"epsilon": 1.0, "rho": 1.0, "mu": 1.0, "alpha": 2.0, "slack": 1e-6, "delta": 0.0},
    ):
        with pytest.raises(InvalidArgument, match=f"not that of a {kind.__name__}"):
            kind.from_record(record)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0, 0, True, "1", None, 1e300])
def test_bad_limits_are_refused(bad):
    for make in (PureFilter, ZCDPFilter, GDPFilter, lambda x: RDPFilter(2.0, x), lambda x: AdvancedFilter(x, 1e-6)):
        with pytest.raises(InvalidArgument, match=r"(epsilon|rho|mu)="):
            make(bad)
    with pytest.raises(InvalidArgument, match="epsilon="):
        RDPFilter(2.0, 1.5e12)
    with pytest.raises(InvalidArgument, match="alpha="):
        RDPFilter(bad, 1.0)
    with pytest.raises(InvalidArgument, match="slack="):
        AdvancedFilter(1.0, bad)
    with pytest.raises(InvalidArgument, match="epsilon="):
        choose_filter(bad, 1e-6)
    with pytest.raises(InvalidArgument, match="delta="):
        choose_filter(1.0, bad)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1e-6, 1.0, True, "1", None])
def test_bad_deltas_are_refused(bad):
    for make in (PureFilter, ZCDPFilter, GDPFilter):
        with pytest.raises(InvalidArgument, match="delta="):
            make(1.0, bad)
    with pytest.raises(InvalidArgument, match="delta_share="):
        choose_filter(1.0, 1e-6, delta_share=bad)


def test_other_bad_arguments_are_refused():
    with pytest.raises(InvalidArgument, match=r"alpha=1 is not in \(1, "):
        RDPFilter(1, 1.0)
    with pytest.raises(InvalidArgument, match=r"slack \+ delta=0.6"):
        AdvancedFilter(1.0, 0.3, 0.3)
    with pytest.raises(InvalidArgument, match="adjacency='both'"):
        PureFilter(1.0, adjacency="both")
    for refuse in (PureFilter(1.0).admits, PureFilter(1.0).charge, Odometer().record):
        with pytest.raises(InvalidArgument, match="float is not an event"):
            refuse(0.1)


def test_filters_keep_few_of_the_events_they_saw():
    book = PureFilter(epsilon=100.0)
    seen = []
    for j in range(600):
        event = PoissonSampled(RandomizedResponse(0.6 + j / 10_000), 0.01)
        book.charge(event)
        seen.append(weakref.ref(event))
        del event
    gc.collect()
    assert sum(reference() is not None for reference in seen) <= 300


@pytest.mark.parametrize(
    "book",
    [
        PureFilter(1.0, adjacency="replace_one"),
        PureFilter(1.0, 1e-6, adjacency="replace_one"),
        ZCDPFilter(0.1, adjacency="replace_one"),
        RDPFilter(8.0, 1.0, adjacency="replace_one"),
        GDPFilter(1.0, 1e-6, adjacency="replace_one"),
        AdvancedFilter(1.0, 1e-6, adjacency="replace_one"),
    ],
)
def test_a_promise_speaks_of_the_neighbours_of_what_was_admitted(book):
    assert book.guarantee().adjacency == "replace_one"


def test_a_filter_shows_all_that_was_fixed_in_advance():
    assert repr(RDPFilter(8.0, 1.0, 1e-6)) == "RDPFilter(alpha=8, epsilon=1, delta=1e-06)"
    assert repr(AdvancedFilter(1.0, 1e-6)) == "AdvancedFilter(slack=1e-06, epsilon=1, delta=0)"


@pytest.mark.parametrize("alpha", [1.5, 8.0, 22.0, 200.0])
@pytest.mark.parametrize(("epsilon", "delta"), [(2.0, 1e-6), (8.0, 1e-3)])
def test_a_limit_at_an_order_that_is_fixed_keeps_the_promise(epsilon, delta, alpha):
    best = choose_filter(epsilon, delta)
    try:
        fixed = choose_filter(epsilon, delta, alpha=alpha)
    except InvalidArgument:  # at this order the promise has no room
        assert alpha < best.alpha
        return
    assert fixed.alpha == alpha
    assert fixed.guarantee().epsilon(delta).upper <= epsilon * (1 + 1e-9)
    assert fixed.epsilon / fixed.alpha <= best.epsilon / best.alpha * (1 + 1e-9)  # the room for Gaussian noise


# Whole numbers: everything that a ledger adds up, by exact fractions.


limits = st.floats(1e-3, 1e3)
shares = st.floats(1e-12, 1.0)
HAIR = Fraction(1, 2**50)


@given(limits, shares, shares, st.floats(1e-9, 0.4))
def test_a_charge_is_the_cost_over_the_limit_rounded_up(limit, share, delta_share, delta):
    cost, mass = limit * share, delta * delta_share
    exact = math.ceil(Fraction(cost) / Fraction(limit) * WHOLE)
    assert PureFilter(limit, delta).units(PureDP(cost)) == (exact, 0)
    units = PureFilter(limit, delta).units(ApproximateDP(cost, mass))
    assert units[0] == exact
    assert units[1] == pytest.approx(mass / delta * WHOLE, rel=1e-12, abs=1)


@pytest.mark.parametrize("make", FILTERS)
@pytest.mark.parametrize("place", [0, 1])
def test_a_filter_admits_up_to_the_last_unit(make, place):
    """Of either limit: what is used and what is asked add up to `MOST`, and not to one unit more."""
    event = ApproximateDP(1e-3, 1e-5)
    asked = make().units(event)
    for over in (0, 1):
        book = make()
        used = [0, 0]
        used[place] = MOST - asked[place] + over
        book.used = tuple(used)
        assert book.admits(event) == (over == 0)
        if over:
            with pytest.raises(BudgetExceeded, match="delta: " if place else f"{book.parameter}: "):
                book.charge(event)
            assert book.used == tuple(used)
        else:
            book.charge(event)
            assert (book.used[place], book.used[1 - place]) == (MOST, asked[1 - place])


@given(st.integers(0, MOST), st.integers(0, MOST), limits)
def test_what_was_spent_rounds_up_and_what_is_left_rounds_down(used, mass, limit):
    for book in (PureFilter(limit, 1e-3), ZCDPFilter(limit, 1e-3), GDPFilter(limit, 1e-3)):
        book.used = (used, mass)
        spent, left = book.spent(), book.remaining()
        for name, most, units, power in (
            (book.parameter, Fraction(book.limit), used, book.power),
            ("delta", Fraction(1e-3), mass, 1),
        ):
            exact, full = most * units / WHOLE, Fraction(getattr(book, name))
            assert spent[name] <= full
            assert min(exact, full**power) <= Fraction(spent[name]) ** power <= exact * (1 + HAIR) + HAIR**6
            assert Fraction(left[name]) ** power <= max(most - exact, 0)
            assert Fraction(left[name]) ** power >= (most - exact) * (1 - HAIR)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("slack", [1e-12, 1e-6, 0.1])
def test_the_advanced_filter_is_its_theorem(epsilon, slack):
    """√(2 ln(1/δ') S) + S/2 is ε where S is the limit, and what was spent where S was used; by 50 digits."""
    book = AdvancedFilter(epsilon, slack)

    def promised(summed):
        with mpmath.workdps(50):
            return mpmath.sqrt(-2 * mpmath.log(mpmath.mpf(slack)) * summed) + summed / 2

    assert float(promised(mpmath.mpf(book.limit))) == pytest.approx(epsilon, rel=1e-13)
    for share in (1e-6, 0.3, 0.9):
        book.used = (int(share * WHOLE), 0)
        truth = promised(mpmath.mpf(book.limit) * book.used[0] / WHOLE)
        assert truth <= book.spent()["epsilon"] <= truth * (1 + 1e-14)
    assert book.guarantee().at_delta == slack
    assert 0 < book.guarantee().at_epsilon / epsilon - 1 < 2.0**-38


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (10.0, 1e-3)])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
def test_the_filter_that_is_chosen_promises_what_was_asked_for_and_hardly_less(epsilon, delta, share):
    """D_α at the order becomes ε = D + ln((α-1)/α) - (ln δ' + ln α)/(α-1) (THEORY 3.2), by 50 digits."""
    book = choose_filter(epsilon, delta, delta_share=share)
    with mpmath.workdps(50):
        order, left = mpmath.mpf(book.alpha), mpmath.mpf(delta) * (1 - mpmath.mpf(share))
        most = book.epsilon * (1 + mpmath.mpf(2) ** -39)
        promised = most + mpmath.log((order - 1) / order) - (mpmath.log(left) + mpmath.log(order)) / (order - 1)
        assert epsilon * (1 - 1e-9) < promised <= epsilon
    assert delta * share * (1 - 1e-9) <= book.delta * (1 + 2.0**-39) <= delta * share
    beside = [choose_filter(epsilon, delta, delta_share=share, alpha=1 + (book.alpha - 1) * by) for by in (0.98, 1.02)]
    assert book.epsilon / book.alpha >= max(one.epsilon / one.alpha for one in beside)


def test_what_is_charged_of_delta_is_never_under_it():
    """A stated mass is charged as stated, to the unit; one that was computed, with what rounding may have taken."""
    stated = ZeroConcentrated(1.0, delta=2**-20)
    assert ZCDPFilter(8.0, 8 * 2**-20).units(stated)[1] == 2**57
    for count in (3, 7, 1000):
        for event in (stated, ApproximateDP(0.0, 1e-5), PoissonSampled(ApproximateDP(0.1, 1e-5), 0.3)):
            one = Fraction(1e-5) * (Fraction(0.3) if isinstance(event, PoissonSampled) else 1)
            one = Fraction(1, 2**20) if event is stated else one
            truth = 1 - (1 - one) ** count
            assert (event * count).zcdp(delta_part=True).infinite_mass >= truth
            assert ZCDPFilter(1e6, 0.125).units(event * count)[1] >= truth * 8 * 2**60


@pytest.mark.parametrize("make", FILTERS)
def test_a_promise_covers_the_last_unit_of_either_limit(make):
    """All that may be used is a part in 2^40 over the limits: so is what is promised, and hardly more."""
    book = make()
    assert book.used == (0, 0)
    promised, over = book.guarantee(), Fraction(MOST, WHOLE)
    mass = Fraction(promised.curve.infinite_mass) - Fraction(getattr(book, "slack", 0.0))
    assert over <= (mass + Fraction(1, 2**60)) / Fraction(book.delta)
    assert mass <= Fraction(book.delta) * over**3
    stated = {
        PureFilter: lambda: promised.pure(delta_part=True),
        AdvancedFilter: lambda: promised.pure(delta_part=True),
        ZCDPFilter: lambda: promised.zcdp(delta_part=True).rho,
        GDPFilter: lambda: promised.gdp(delta_part=True),
        RDPFilter: lambda: promised.rdp(book.alpha, delta_part=True),
    }
    cost, limit = Fraction(stated[type(book)]()), Fraction(getattr(book, book.parameter))
    assert limit * over <= cost <= limit * over**3


def test_limits_on_mu_are_those_whose_promise_is_a_gaussian_that_can_be_stated():
    for ends in (2e-12, 5000.0):
        assert GDPFilter(ends).guarantee().gdp() == pytest.approx(ends, rel=1e-9)
    for beyond in (1.9e-12, 5001.0):
        with pytest.raises(InvalidArgument, match="mu="):
            GDPFilter(beyond)


def test_what_holds_but_for_a_small_mass_promises_nothing_of_groups():
    """Two people who are alone among the groups that a threshold hides are seen far more often than twice one."""
    for book in (GDPFilter(0.5, 1e-6), ZCDPFilter(0.1, 1e-6), RDPFilter(8.0, 0.4, 1e-6)):
        with pytest.raises(NoSuchGuarantee):
            book.guarantee().group(2)
    assert GDPFilter(0.5).guarantee().group(2).gdp() == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("make", [PureFilter, lambda epsilon: AdvancedFilter(epsilon, 1e-6)])
def test_limits_on_epsilon_go_up_to_half_of_what_an_event_may_state(make):
    assert make(5000.0).guarantee().pure(delta_part=True) == pytest.approx(5000.0, rel=1e-9)
    with pytest.raises(InvalidArgument, match="epsilon="):
        make(5000.001)


# Discrete Gaussian noise in a filter of Gaussian DP: with a little δ, which holds what it leaves out.


def test_discrete_noise_is_admitted_where_some_delta_is_kept():
    book = GDPFilter(0.5, 1e-12)
    assert book.releases(DiscreteGaussian(20.0)) == math.floor(0.25 * 398.5)
    book.charge(DiscreteGaussian(20.0) * 5 + ZERO_OUTSIDE)
    assert book.spent()["mu"] ** 2 == pytest.approx(5 / 398.5, rel=1e-9)
    assert 5e-25 <= book.spent()["delta"] - 1e-15 <= 1e-24
    assert not GDPFilter(0.5).admits(DiscreteGaussian(20.0))


def test_what_discrete_noise_leaves_out_is_never_lost_beside_a_larger_mass():
    book, mass = GDPFilter(0.5, 1e-3), ApproximateDP(0.0, 1e-5)
    assert book.delta_part(DiscreteGaussian(20.0) + mass) > mass.infinite_mass
    assert book.delta_part(ZeroConcentrated(0.1, delta=1e-5)) == 1e-5
    assert book.tally(ZeroConcentrated(0.1, delta=1e-5)) == (None, book.units(mass)[1])


# Calibration and filters agree.


@pytest.mark.parametrize(("event", "rho"), [(Gaussian(10.0), 0.5), (Gaussian(3.0), 0.7), (Laplace(5.0), 0.31)])
def test_a_filter_admits_as_many_as_a_calibration_finds(event, rho):
    assert ZCDPFilter(rho).releases(event) == calibrate_count(event, rho=rho).value

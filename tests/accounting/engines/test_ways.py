"""Ways of bounding δ: what they cost is known before they are made, and a purse that is empty buys nothing."""

import math
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
from sitr.accounting.engines import ways
from sitr.accounting.engines.cut import cut_at
from sitr.accounting.engines.delta import Found
from sitr.accounting.engines.line import MOST_WORK, Grid, Line
from sitr.accounting.engines.mix import Mix
from sitr.accounting.engines.near import gated_at
from sitr.accounting.engines.rare import single_jump
from sitr.accounting.engines.solve import candidates
from sitr.accounting.engines.split import split_at
from sitr.accounting.engines.ways import (
    Purse,
    Way,
    _in_order,
    _narrowed,
    _slope,
    attempt,
    narrowed_by_ways,
    truncated,
)
from sitr.accounting.losses.cuts import Gate
from sitr.accounting.losses.sampled import SampledGaussianLoss

MEGABYTES = 1 << 20


class Priced:
    """Bounds that only have a price."""

    method = "priced"

    def __init__(self, work, asked=0.0):
        self.work, self.asked = work, asked

    def upper(self, epsilon):
        raise AssertionError("not to be evaluated")

    lower = upper


def test_a_purse_pays_until_it_is_empty():
    purse = Purse(10.0)
    assert [purse.pays(Priced(work)) for work in (6.0, 6.0, 4.0)] == [True, False, True]


def test_a_question_may_cost_as_much_as_two_of_the_longest_lines():
    purse = Purse()
    assert [purse.pays(Priced(MOST_WORK)) for _ in range(3)] == [True, True, False]


def test_a_tilt_of_a_group_is_paid_for():
    mix = Mix.of([(SampledGaussianLoss.pair(1.0, 0.01, 3).forward, 5)])
    purse = Purse(1.5 * mix.tuning)
    assert [purse.tunes(mix) for _ in range(2)] == [True, False]
    assert Purse(1e-9).tunes(Mix.of([(SampledGaussianLoss.pair(1.0, 0.01).forward, 5)]))
    assert list(candidates(mix, 1.0, Purse(mix.tuning))) == []


def test_a_moment_at_a_steep_tilt_is_paid_for_once():
    loss, other = SampledGaussianLoss(0.4, 1e-3, False, 2), SampledGaussianLoss(0.4, 1e-3, False)
    work = loss.moment_work(1e4) + other.moment_work(1e4)
    purse = Purse(work)
    assert purse.moment(Mix.of([(loss, 3)]), 1e4)
    assert purse.moment(Mix.of([(loss, 1), (other, 2)]), 1e4)
    assert purse.left == pytest.approx(0.0, abs=1e-6 * work)
    purse.spend(1.0)
    assert not purse.moment(Mix.of([(loss, 3)]), 1e4)


def test_a_question_that_takes_the_last_of_a_purse_is_its_last():
    purse = Purse(3.0)
    assert [purse.asks(Priced(0.0, asked=1.0)) for _ in range(4)] == [True, True, False, False]


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
    [
        (0.0, 0.8, True),
        (0.0, 0.81, False),
        (0.9, 1.1, False),
        (1.24, 9.0, False),
        (1.25, 9.0, True),
        (1.0, 1.0, True),
    ],
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


@pytest.mark.parametrize("error", [OverflowError, ValueError])
def test_a_truncated_bound_that_cannot_be_computed_excludes_no_epsilon(monkeypatch, error):
    def fails(mix, delta):
        raise error

    monkeypatch.setattr(ways, "truncated_epsilon", fails)
    assert truncated(Mix(()), 1e-6) == math.inf


def test_bounds_are_made_only_if_they_are_paid_for():
    dear = Priced(6.0)
    assert attempt(lambda: dear, Purse(6.0)) is dear
    assert attempt(lambda: dear, Purse(5.0)) is None
    assert attempt(lambda: None, Purse()) is None


class Falling(Priced):
    """Bounds on δ(ε) = e^-ε, to a relative error."""

    def __init__(self, error, proposed):
        super().__init__(1.0)
        self.error, self.proposed = error, proposed

    def upper(self, epsilon):
        return math.exp(-epsilon) * (1 + self.error)

    def lower(self, epsilon):
        return math.exp(-epsilon) * (1 - self.error)

    def guess(self, log_delta, start):
        return self.proposed


class Asked:
    """A way that keeps at which ε it was tuned, and proposes one after another; δ = e^-10 is at ε = 10."""

    delta = math.exp(-10)

    def __init__(self, error, *proposed):
        self.tuned = []

        def at(mix, epsilon, log_delta):
            assert log_delta == math.log(self.delta)
            self.tuned.append(epsilon)
            return Falling(error, proposed[len(self.tuned) - 1])

        self.at = at

    def way(self, start=5.0):
        return Way(self.at, "asked", start)

    def narrows(self, start, lower=0.0, upper=20.0):
        return _narrowed(self.way(), Mix(()), Found(lower, upper, "before"), self.delta, start, Purse())


NARROW, WIDE = 1e-5, 0.1  # errors of δ that leave a bracket of 2e-6 and of 2e-2 of ε


def test_a_way_is_tuned_within_what_is_known():
    for start, lower, upper, first in ((30.0, 2.0, 20.0, 20.0), (1.0, 2.0, 20.0, 2.0), (7.0, 2.0, 20.0, 7.0)):
        way = Asked(NARROW, 10.0)
        found = way.narrows(start, lower, upper)
        assert way.tuned == [first]
        assert found.lower <= 10 <= found.upper
        assert found.within(1e-5)


def test_a_way_is_asked_again_only_where_it_was_tuned_elsewhere_and_is_not_narrow():
    narrow, there, near, far = Asked(NARROW, 10.0), Asked(WIDE, 10.0), Asked(WIDE, 10.15), Asked(WIDE, 10.0, 10.0)
    for way, start in ((narrow, 5.0), (there, 10.0), (near, 10.0), (far, 9.7)):
        way.narrows(start)
    assert [way.tuned for way in (narrow, there, near, far)] == [[5.0], [10.0], [10.0], [9.7, 10.0]]
    edge = Asked(WIDE, 12.75, 10.0, 10.0)  # just 2 % away
    edge.narrows(12.5)
    assert edge.tuned[:2] == [12.5, 12.75]


def test_no_way_is_tuned_at_nothing():
    way = Asked(NARROW, 10.0)
    assert way.narrows(0.0) == Found(0.0, 20.0, "before")
    assert way.tuned == []


def test_a_way_that_never_settles_is_asked_three_times():
    way = Asked(0.9, *(5.0, 20.0) * 3)
    found = way.narrows(12.0)
    assert len(way.tuned) == 3
    assert found.lower <= 10 <= found.upper


def test_a_proposal_goes_down_by_a_factor_of_four_at_most():
    way = Asked(0.9, 0.0, 4.0)
    way.narrows(16.0)
    assert way.tuned == [16.0, 4.0]


def test_the_first_step_of_a_search_is_by_the_slope_or_as_long_as_epsilon():
    for rate in (1e-3, 1.0, 30.0):
        falls = Falling(0.0, 0.0)
        falls.upper = lambda epsilon, rate=rate: math.exp(-rate * epsilon)
        assert _slope(falls, 4.0) == pytest.approx(rate, rel=1e-9)
    for constant in (0.3, 0.0, math.nan):
        flat = Falling(0.0, 0.0)
        flat.upper = lambda epsilon, constant=constant: constant
        assert _slope(flat, 4.0) * 4.0 == 1.0


@pytest.fixture
def ordered(monkeypatch):
    """Put ways in place of those that suit a mix; the first is that of many steps, if told so."""

    def narrows(found, *asked, many=False):
        monkeypatch.setattr(ways, "_in_order", lambda *_: tuple(one.way() for one in asked))
        if many:
            monkeypatch.setattr(ways, "cut_at", asked[0].at)
        return narrowed_by_ways(Mix(()), found, Asked.delta, 10.0, Purse())

    return narrows


def test_a_bracket_of_rare_events_is_worked_on_until_it_is_narrower_than_one_in_ten_thousand(ordered):
    for width, times in ((1e-4, 1), (8e-5, 0)):
        way = Asked(NARROW, 10.0)
        ordered(Found(10.0 * (1 - width), 10.0, "before"), way)
        assert len(way.tuned) == times


def test_the_first_way_that_is_narrow_enough_wins(ordered):
    narrow, other = Asked(NARROW, 10.0), Asked(NARROW, 10.0)
    found = ordered(Found(0.0, 20.0, "before"), narrow, other)
    assert (len(narrow.tuned), len(other.tuned)) == (1, 0)
    assert found.within(1e-5)


@pytest.mark.parametrize("many", [True, False])
def test_a_fair_bracket_is_enough_where_many_steps_make_the_loss(ordered, many):
    """Then the ways that are made for a single one do not improve it; but they are the first to ask for those."""
    fair, other = Asked(0.02, 10.0, 10.0), Asked(NARROW, 10.0)
    found = ordered(Found(0.0, 20.0, "before"), fair, other, many=many)
    assert len(fair.tuned) > 0
    assert len(other.tuned) == (0 if many else 1)
    assert found.within(1e-2 if many else 1e-5)


def test_a_fair_bracket_is_narrowed_by_the_way_for_many_steps_all_the_same(ordered):
    way = Asked(NARROW, 10.0)
    ordered(Found(9.95, 10.0, "before"), way, many=True)
    assert len(way.tuned) == 1


def test_a_way_is_tuned_in_the_middle_of_a_bracket_that_tells_where(ordered):
    for lower, upper, first in ((9.5, 10.5, 10.0), (9.2, 10.8, 9.2), (2.0, 18.0, 5.0)):
        way = Asked(NARROW, 10.0)
        ordered(Found(lower, upper, "before"), way)
        assert way.tuned == [first]


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
        (1.3, [], 1e9, [cut_at, split_at, gated_at]),
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


def test_many_steps_make_a_loss_four_times_as_large_as_one_makes():
    mix = Mix.of([(SampledGaussianLoss.pair(0.5, 1e-4).forward, 10)])
    jump = single_jump(mix, 1e-6, 10.0)
    first = [_in_order(mix, 1e-6, 10.0, times * jump)[0].at for times in (3.9, 4.1)]
    assert first == [split_at, cut_at]


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

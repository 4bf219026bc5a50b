"""The choice of engine: whichever answers, the answers agree."""

import math
from fractions import Fraction

import pytest
from mpmath import mp, mpf

from sitr.accounting.engines import solve
from sitr.accounting.engines.closed import closed_form
from sitr.accounting.engines.delta import Found
from sitr.accounting.engines.lattice import AtomSum, enumerated
from sitr.accounting.engines.line import GOAL, Grid
from sitr.accounting.engines.mix import Mix, best_tilt, chernoff_epsilon, log_kappa, saddle_tilt
from sitr.accounting.engines.near import Gated
from sitr.accounting.engines.solve import (
    COARSE,
    HIDDEN,
    _chernoff,
    _chernoff_delta,
    _cut_if_hidden,
    _fine_line,
    _finite_delta,
    _harder,
    _log_main,
    _numerical,
    _rare,
    _saddle_guess,
    _saddle_line,
    _top_atom,
    candidates,
    delta_of,
    delta_of_orders,
    epsilon_of,
    epsilon_of_orders,
)
from sitr.accounting.engines.split import Split
from sitr.accounting.engines.ways import Purse
from sitr.accounting.losses import pairs
from sitr.accounting.losses.atoms import pair_of
from sitr.accounting.losses.sampled import SampledGaussianLoss

LAWS = {
    "laplace": pairs.laplace_pair(0.3).forward,
    "response": pairs.k_ary_pair(0.7, 2).forward,
    "discrete gaussian": pairs.discrete_gaussian_pair(3.0, 1).forward,
    "sampled remove": pairs.sampled_gaussian_pair(1.0, 0.1).forward,
    "sampled add": pairs.sampled_gaussian_pair(1.0, 0.1).backward,
    "black box": pairs.two_point_pair(0.4, 1e-9).forward,
}


@pytest.mark.parametrize("loss", LAWS.values(), ids=LAWS.keys())
def test_a_count_equals_as_many_parts(loss):
    for times in (2, 5):
        counted, apart = (epsilon_of(Mix.of(parts), 1e-5) for parts in ([(loss, times)], [(loss, 1)] * times))
        assert max(counted.lower, apart.lower) <= min(counted.upper, apart.upper)
        assert counted.upper == pytest.approx(apart.upper, rel=1e-4)


@pytest.mark.parametrize("loss", LAWS.values(), ids=LAWS.keys())
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_delta_and_epsilon_of_one_order_undo_each_other(loss, delta):
    mix = Mix.of([(loss, 20)])
    found = epsilon_of(mix, delta)
    assert delta_of(mix, found.upper).lower <= delta
    assert found.lower == 0 or delta_of(mix, found.lower).upper >= delta


def test_a_whisper_of_gaussian_noise_changes_little():
    faint = pairs.gaussian_pair(1e-7).forward
    for loss in LAWS.values():
        without, with_noise = epsilon_of(Mix.of([(loss, 10)]), 1e-5), epsilon_of(Mix.of([(loss, 10), (faint, 1)]), 1e-5)
        assert with_noise.upper >= without.lower
        assert with_noise.upper == pytest.approx(without.upper, rel=1e-4)


def test_the_better_end_of_each_is_kept():
    assert Found(1.0, 3.0, "a").meet(Found(2.0, 4.0, "b")).lower == 2.0
    assert Found(1.0, 3.0, "a").meet(Found(2.0, 4.0, "b")).upper == 3.0


def test_the_larger_of_two_numbers_is_bracketed():
    worst = Found(1.0, 3.0, "a").worst(Found(2.0, 2.5, "b"))
    assert (worst.lower, worst.upper) == (2.0, 3.0)


def test_an_infinite_mass_above_delta_allows_no_epsilon():
    assert epsilon_of(Mix.of([(LAWS["black box"], 1)]), 1e-10).upper == math.inf
    assert epsilon_of(Mix.of([(LAWS["black box"], 1)]), 1e-9).upper == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("parts", "epsilon"),
    [
        ([(pairs.sampled_gaussian_pair(10.0, 1e-15).forward, 1)], 0.0776),
        ([(pairs.gaussian_pair(0.01).forward, 1)], 5.0),
        ([(pairs.k_ary_pair(1e-9, 10**6).forward, 60)], 400.0),
    ],
)
def test_where_some_loss_is_above_epsilon_delta_is_never_said_to_be_0(parts, epsilon):
    assert 0 <= delta_of(Mix.of(parts), epsilon).lower < delta_of(Mix.of(parts), epsilon).upper


@pytest.mark.parametrize("other", [pairs.laplace_pair(2.0), pairs.gaussian_pair(0.5), pairs.two_point_pair(1.0, 0.0)])
def test_rare_steps_never_make_a_release_cheaper(other):
    """Even where nothing is left to pay with: what is released without them costs no more."""
    rare, start = pairs.sampled_pair(pairs.gaussian_pair(2.0), 1e-6), Found(0.0, math.inf, "nothing yet")
    both = _rare(Mix.of([(rare.forward, 10), (other.forward, 2)]), start, 1e-5, 1.0, Purse(0.0))
    alone = epsilon_of(Mix.of([(other.forward, 2)]), 1e-5)
    assert alone.lower <= both.lower <= both.upper
    assert alone.lower > 0


def test_an_end_that_is_not_asked_for_is_not_worked_for():
    """Where there is infinite-loss mass, what it leaves of δ is rounded, and each end is a question of its own."""
    mix = Mix.of([(pairs.two_point_pair(0.5, 1e-9).forward, 3), (pairs.two_point_pair(0.3, 0.0).forward, 2)])
    both, upper, lower = (epsilon_of(mix, 1e-4, ends=ends) for ends in (("lower", "upper"), ("upper",), ("lower",)))
    assert 0 < both.lower <= both.upper
    assert (upper.lower, upper.upper) == (0.0, both.upper)
    assert (lower.lower, lower.upper) == (both.lower, float("inf"))


@pytest.mark.parametrize("terms", [(1.0, 2.0**-53), (1.0, 2.0**-54, 2.0**-54), (0.1, 0.2, 0.4)])
def test_where_delta_is_all_infinite_mass_epsilon_is_the_sum_of_the_largest_losses(terms):
    """The sum may be rounded; and each loss may be wrong by two units in its last place, before it is added."""
    first, *others = terms
    failing = (pairs.two_point_pair(first, 1e-9).forward, 1)
    found = epsilon_of(Mix.of([failing, *((pairs.two_point_pair(e, 0.0).forward, 1) for e in others)]), 1e-9)
    exact, units = sum(map(Fraction, terms)), Fraction(5, 2**53)
    assert Fraction(found.lower) <= exact * (1 - units) < exact * (1 + units) <= Fraction(found.upper)
    assert found.upper - found.lower <= 1e-14 * found.upper


def test_a_single_largest_loss_that_is_stated_is_not_rounded():
    found = epsilon_of(Mix.of([(pairs.two_point_pair(0.3, 1e-9).forward, 1)]), 1e-9)
    assert (found.lower, found.upper) == (0.3, 0.3)


@pytest.mark.parametrize(("m", "c"), [(1.0, 6.0), (0.2, 40.0), (3.0, 2.0), (0.05, 200.0)])
def test_the_main_term_is_near_the_truth_where_c_is_the_saddle(m, c):
    """ln δ + cε - K(c) of a Gaussian at ε = K'(c), by its closed form."""
    mix = Mix.of([(pairs.gaussian_pair(m).forward, 1)])
    epsilon = m**2 * (2 * c + 1) / 2
    truth = closed_form(mix).log_delta(epsilon) + c * epsilon - float(mix.log_mgf(c))
    assert _log_main(mix, c) == pytest.approx(truth, abs=0.15)


@pytest.mark.parametrize(("above", "hidden"), [(-0.01, False), (0.01, True)])
def test_steps_are_cut_off_where_the_tilted_law_hides_delta(monkeypatch, above, hidden):
    mix, c, epsilon = Mix.of([(pairs.sampled_gaussian_pair(1.0, 1e-3).forward, 10)]), 3.0, 5.0
    seen = float(mix.log_mgf(c)) - c * epsilon
    rough = seen - HIDDEN - above
    monkeypatch.setattr(solve, "rough_log_delta", lambda mix, epsilon, most: rough if rough <= most else None)
    assert (_cut_if_hidden(mix, c, epsilon) is not None) == hidden


@pytest.mark.parametrize(("m", "c"), [(0.01, 0.5), (0.1, 0.1), (0.0, 2.0)])
def test_the_main_term_is_at_most_the_constant_of_chernoffs_bound(m, c):
    mix = Mix((), m**2)
    assert _log_main(mix, c) == float(log_kappa(c))


SMALL, LARGE = (Mix.of([(pairs.laplace_pair(e).forward, 20)]) for e in (0.1, 0.3))
FAILING = Mix.of([(pairs.two_point_pair(0.1, 1e-9).forward, 5)])


@pytest.mark.parametrize(("one", "other"), [(SMALL, LARGE), (LARGE, SMALL), (SMALL, FAILING), (FAILING, SMALL)])
def test_the_larger_of_two_orders_is_the_answer(one, other):
    both, each = epsilon_of_orders([one, other], 1e-5), [epsilon_of(mix, 1e-5) for mix in (one, other)]
    assert both.lower == max(found.lower for found in each)
    assert both.upper == pytest.approx(max(found.upper for found in each), rel=1e-9)
    both, each = delta_of_orders([one, other], 0.45), [delta_of(mix, 0.45) for mix in (one, other)]
    assert both.lower == max(found.lower for found in each)
    assert both.upper == pytest.approx(max(found.upper for found in each), rel=1e-9)


def test_a_search_asks_another_order_also_where_the_first_is_just_at_its_limit():
    limit = epsilon_of(SMALL, 1e-5).upper
    assert epsilon_of_orders([SMALL, LARGE], 1e-5, purse=Purse(limit=limit)).upper > limit


def test_an_order_that_costs_less_for_sure_is_not_asked(monkeypatch):
    asked = []

    def counted(mix, *rest):
        asked.append(mix)
        return epsilon_of(mix, *rest)

    monkeypatch.setattr(solve, "epsilon_of", lambda mix, delta, *rest, **named: counted(mix, delta))
    epsilon_of_orders([LARGE, SMALL], 1e-5)
    assert asked == [LARGE]


@pytest.mark.parametrize("count", [1, 3, 50])
@pytest.mark.parametrize(("p", "k"), [(0.9, 2), (0.55, 2), (0.02, 1000)])
@pytest.mark.parametrize("share", [1e-18, 1e-3, 0.5, 1 - 1e-6])
def test_the_largest_loss_alone_bounds_epsilon_from_both_sides(p, k, count, share):
    """The chance q of all largest losses forces ε ≥ L + ln(1 - δ/q); of a single response it is the answer."""
    with mp.workdps(60):
        largest, top = count * mp.log(mpf(p) * (k - 1) / (1 - mpf(p))), mpf(p) ** count
        delta = float(share * top)
        exact = max(largest + mp.log1p(-mpf(delta) / top), 0)
        found = _top_atom(Mix.of([(pairs.k_ary_pair(p, k).forward, count)]), delta)
        assert found.lower <= exact <= largest <= found.upper
        assert exact - found.lower <= 1.1e-12 * share / (1 - share) + 1.2e-14 * largest
        assert found.upper <= largest * (1 + 2e-14)


def test_chernoffs_bound_is_the_truth_of_a_law_with_one_loss():
    """δ(ε) = 1 - e^(ε - L), which is the least of κ(c) e^(c (L - ε)) over c."""
    mix = Mix.of([(pair_of([1.0], [1.0], 0.0).forward, 1)])
    for epsilon in (0.01, 0.5, 0.99):
        truth = -math.expm1(epsilon - 1)
        assert truth * (1 + 1e-7) <= _chernoff_delta(mix, epsilon, Purse()).upper <= truth * (1 + 1e-5)


STEEP = Mix.of([(pairs.sampled_gaussian_pair(0.4, 1e-3, 2).backward, 1), (pairs.gaussian_pair(0.03).forward, 1)])


def asked_tilts(monkeypatch):
    """The tilts at which moments of sampled steps are computed from now on."""
    tilts, moment = [], SampledGaussianLoss._log_moment
    monkeypatch.setattr(SampledGaussianLoss, "_log_moment", lambda loss, c: tilts.append(c) or moment(loss, c))
    return tilts


def test_chernoffs_bound_on_delta_is_searched_for_as_long_as_its_tilts_are_paid_for(monkeypatch):
    """Where nothing is left the best of those that were asked stands: it is wider, and true."""
    best = _chernoff_delta(STEEP, 1.0, Purse()).upper
    tilts = asked_tilts(monkeypatch)
    whole = Purse()
    assert _chernoff_delta(STEEP, 1.0, whole).upper == best
    paid = math.fsum(loss.moment_work(c) for c in set(tilts) for loss, _ in STEEP.parts)
    assert Purse().left - whole.left == pytest.approx(paid, rel=1e-9)
    many = len(tilts)
    tilts.clear()
    assert _chernoff_delta(STEEP, 1.0, Purse(paid / 3)).upper >= best
    assert 1 < len(tilts) < many / 2
    tilts.clear()
    assert best <= _chernoff_delta(STEEP, 1.0, Purse(0.0)).upper <= 1
    assert len(set(tilts)) == 1


def test_an_order_whose_delta_is_smaller_for_sure_is_not_searched_to_its_least_bound(monkeypatch):
    larger = Mix.of([(LAWS["laplace"], 20), (pairs.gaussian_pair(0.03).forward, 1)])
    found = delta_of_orders([larger, STEEP], 1.0), delta_of_orders([larger, STEEP], 1.0, only_chernoff=True)
    tilts = asked_tilts(monkeypatch)
    assert delta_of(STEEP, 1.0).upper < found[0].lower
    tilts.clear()
    assert delta_of_orders([larger, STEEP], 1.0) == found[0] == delta_of(larger, 1.0)
    assert delta_of_orders([larger, STEEP], 1.0, only_chernoff=True) == found[1]
    assert len(set(tilts)) <= 4


def test_all_orders_of_a_delta_are_paid_from_one_purse(monkeypatch):
    purses = []
    monkeypatch.setattr(solve, "candidates", lambda mix, epsilon, purse: purses.append(purse) or ())
    whole = Purse()
    delta_of_orders([SMALL, LARGE], 0.5, purse=whole)
    assert [purse.whole for purse in purses] == [whole, whole]
    assert all(purse is not whole for purse in purses)


def test_no_loss_is_above_the_largest():
    mix = Mix.of([(pairs.two_point_pair(0.1, 0.0).forward, 3)])
    assert _chernoff_delta(mix, 0.31, Purse()).upper == 0
    assert _chernoff_delta(mix, mix.largest, Purse()).upper > 0  # which is rounded
    assert _chernoff(mix, 1e-300) >= 3 * Fraction(0.1)
    assert _chernoff(mix, 1e-300) == pytest.approx(0.3, rel=1e-14)


def test_a_line_that_smooths_too_much_is_not_worth_its_while(monkeypatch):
    """A whisper moves ε by w² times the slope: 1 + c, or ln(1/δ)/ε where that is steeper."""
    for c, epsilon, log_delta, slope in ((1.0, 2.0, -0.1, 2.0), (0.1, 2.0, -8.0, 4.0)):
        for share, coarse in ((0.9, False), (1.1, True)):
            grid = Grid(c, 1.0, 8, math.sqrt(share * COARSE * epsilon / slope))
            monkeypatch.setattr(solve, "choose_grid", lambda *_, grid=grid: grid)
            assert (_fine_line(LARGE, c, epsilon, log_delta) is None) == coarse


class Free:
    """Bounds that cost nothing, with a grid."""

    method, work = "free", 0.0

    def __init__(self, mix, grid):
        self.grid = grid


def test_a_harder_look_is_tuned_in_the_middle_and_smooths_less_by_as_much_as_it_needs(monkeypatch):
    asked = []

    def line(mix, epsilon, log_delta, goal):
        asked.append((epsilon, goal))
        assert log_delta == math.log(1e-5)
        return type("Free", (), {"work": 0.0})

    monkeypatch.setattr(solve, "_saddle_line", line)
    monkeypatch.setattr(solve, "_on_line", lambda *_: Found(1.0, 1 + 2.0**-13, "line"))
    assert _harder(LARGE, Found(0.5, 2.0, "before"), 1e-5, Purse()).upper == 1 + 2.0**-13
    assert asked == [(1.25, GOAL), (1 + 2.0**-14, pytest.approx(GOAL**2 * (2**13 + 1), rel=1e-6, abs=0.0))]


def test_no_look_is_so_hard_that_it_would_smooth_by_less_than_rounding(monkeypatch):
    goals = []
    monkeypatch.setattr(solve, "_saddle_line", lambda *asked: goals.append(asked[-1]) or Free(None, None))
    monkeypatch.setattr(solve, "_on_line", lambda *_: Found(1.0, 2.0, "line"))
    _harder(LARGE, Found(0.5, 2.0, "before"), 1e-5, Purse())
    assert goals == [GOAL, 1e-10]


def test_a_harder_look_that_cannot_be_paid_for_changes_nothing():
    assert _harder(LARGE, Found(0.5, 2.0, "before"), 1e-5, Purse(0.0)) == Found(0.5, 2.0, "before")


def test_a_harder_look_is_at_the_saddle():
    assert _saddle_line(LARGE, 1.0, math.log(1e-5), GOAL).grid.c == saddle_tilt(LARGE, 1.0)


def test_a_search_begins_near_the_answer():
    log_delta = math.log(1e-5)
    start, _ = _saddle_guess(LARGE, best_tilt(LARGE, log_delta), log_delta)
    assert start == pytest.approx(epsilon_of(LARGE, 1e-5).upper, rel=0.05)


def never(*_, **__):
    raise AssertionError("not to be asked")


def test_a_search_far_from_its_limit_is_content_with_chernoffs_bound(monkeypatch):
    monkeypatch.setattr(solve, "lattice_sum", never)
    assert _numerical(LARGE, 1e-5, 0.0, Purse(limit=1e3)).method == "Chernoff"


RARE_STEPS = Mix.of([(pairs.sampled_gaussian_pair(1.0, 1e-6).forward, 10)])


def test_a_search_far_from_its_limit_is_content_with_the_truncated_bound(monkeypatch):
    for way in ("narrowed_by_ways", "_fine_line"):
        monkeypatch.setattr(solve, way, never)
    assert _rare(RARE_STEPS, Found(0.0, math.inf, "before"), 1e-9, 1.0, Purse(limit=1e3)).upper < 100


def test_the_line_is_asked_for_rare_steps_only_where_it_may_see_them(monkeypatch):
    monkeypatch.setattr(solve, "narrowed_by_ways", lambda mix, found, *_: found)
    monkeypatch.setattr(solve, "truncated", lambda *_: 2.0)
    lines = []
    monkeypatch.setattr(solve, "_fine_line", lambda mix, c, *_: lines.append(c))
    seen = {c: float(RARE_STEPS.log_mgf(c)) - 2 * c - math.log(1e-9) < HIDDEN for c in (0.5, 2.0, 4.0, 6.0, 8.0)}
    for c in seen:
        _rare(RARE_STEPS, Found(0.0, math.inf, "before"), 1e-9, c, Purse())
    assert lines == [c for c, visible in seen.items() if visible]
    assert 0 < len(lines) < len(seen)


def test_what_a_floor_covers_or_is_narrow_is_not_worked_on(monkeypatch):
    steps = Mix.of([(pairs.sampled_gaussian_pair(1.0, 0.1).forward, 100)])
    narrow = epsilon_of(steps, 1e-5)
    for way in ("_rare", "_harder"):
        monkeypatch.setattr(solve, way, never)
    assert epsilon_of(steps, 1e-5) == narrow
    monkeypatch.setattr(solve, "_on_line", lambda *_: Found(1.0, 2.0, "line"))
    assert epsilon_of(steps, 1e-5, floor=2.0).upper == 2.0
    monkeypatch.setattr(solve, "_rare", lambda *_: Found(1.5, 1.5, "rare"))
    assert epsilon_of(steps, 1e-5, floor=1.9).method == "rare"


def test_bounds_on_delta_are_asked_until_they_are_narrow(monkeypatch):
    class Known:
        method = "known"

        def __init__(self, error):
            self.error = error

        def upper(self, epsilon):
            return 1e-3 * (1 + self.error)

        def lower(self, epsilon):
            return 1e-3 * (1 - self.error)

    def bounds(*_):
        yield Known(1e-3)
        yield Known(4e-7)
        never()

    monkeypatch.setattr(solve, "candidates", bounds)
    found = _finite_delta(LARGE, 0.5, Purse())
    assert (found.lower, found.upper) == (1e-3 * (1 - 4e-7), 1e-3 * (1 + 4e-7))


def test_a_delta_that_is_as_small_as_nothing_is_not_looked_at_more_closely(monkeypatch):
    monkeypatch.setattr(solve, "candidates", never)
    assert 0 < _finite_delta(Mix.of([(pairs.gaussian_pair(0.01).forward, 1)]), 5.0, Purse()).upper <= 1e-300


def test_nothing_is_forced_by_a_chance_that_is_delta_itself():
    assert _top_atom(Mix.of([(pairs.k_ary_pair(0.55, 2).forward, 1)]), math.nextafter(0.55, 0.0)).lower == 0


def test_what_infinite_mass_takes_of_delta_leaves_no_bound():
    mass = FAILING.infinite_mass  # computed, and known to some rounding
    assert (_chernoff(FAILING, mass), _chernoff(FAILING, 1e-9)) == (math.inf, math.inf)
    assert epsilon_of(FAILING, mass) == Found(0.0, math.inf, "infinite-loss mass")
    assert epsilon_of(FAILING, 1e-9) == Found(math.inf, math.inf, "infinite-loss mass")


def test_a_search_is_told_no_lower_end_where_that_is_a_question_of_its_own():
    found = epsilon_of(FAILING, 1e-4, purse=Purse(limit=0.4))
    assert (found.lower, found.upper) == (0.0, epsilon_of(FAILING, 1e-4).upper)


@pytest.mark.parametrize("mix", [LARGE, Mix(())])
def test_every_delta_of_1_is_kept_for_nothing(mix):
    assert (_chernoff(mix, 1.0), epsilon_of(mix, 1.0).upper) == (0.0, 0.0)


def test_a_single_largest_loss_is_the_answer_where_delta_hardly_matters():
    found = epsilon_of(Mix.of([(pairs.two_point_pair(0.3, 0.0).forward, 1)]), 1e-12)
    assert found.method == "largest loss"
    assert found.lower <= 0.3 <= found.upper


def test_the_conversion_of_a_curve_is_at_its_best_order_and_for_the_worst_law():
    log_delta = math.log(1e-5)
    best = min(chernoff_epsilon(LARGE, c / 100, log_delta) for c in range(1, 2000))
    for mixes in ([SMALL, LARGE], [LARGE, SMALL]):
        found = epsilon_of_orders(mixes, 1e-5, only_chernoff=True)
        assert best * (1 - 1e-3) <= found.upper <= best * (1 + 1e-6)


def test_an_order_that_costs_less_and_a_target_that_is_far_are_not_looked_at_more_closely(monkeypatch):
    enough = []
    monkeypatch.setattr(solve, "_chernoff", lambda mix, delta, tolerance, enough=0.0: enough_for(mix, enough))

    def enough_for(mix, value):
        enough.append(value)
        return 3.0 if mix is LARGE else 0.5

    assert epsilon_of_orders([LARGE, SMALL], 1e-5, only_chernoff=True).upper == 3.0
    assert epsilon_of_orders([SMALL, LARGE], 1e-5, only_chernoff=True, purse=Purse(limit=1.25)).upper == 3.0
    assert enough == [0.0, 3.0, 1.0, 1.0]


def test_each_question_is_paid_from_its_own_purse_and_from_that_of_all(monkeypatch):
    paid = []
    monkeypatch.setattr(solve, "_finite_epsilon", lambda mix, delta, floor, purse: paid.append(purse))
    whole, search = Purse(), Purse(limit=1.0)
    for purse in (None, whole, search):
        epsilon_of(LARGE, 1e-5, purse=purse)
    assert [purse.whole for purse in paid] == [None, whole, None]
    assert paid[2] is search


def test_where_no_line_can_be_made_chernoffs_bound_stands(monkeypatch):
    def overflows(*_):
        raise OverflowError

    monkeypatch.setattr(solve, "choose_grid", overflows)
    assert epsilon_of(LARGE, 1e-5).method == "Chernoff"
    assert delta_of(LARGE, 0.5).method == "Chernoff"
    assert list(candidates(RARE_STEPS, 0.0, Purse())) == []
    assert {bounds.method for bounds in candidates(RARE_STEPS, 0.5, Purse())} <= {Split.method, Gated.method}


@pytest.mark.parametrize(
    ("mix", "epsilon", "whisper", "cut"),
    [
        (RARE_STEPS, 0.5, 0.1, True),
        (RARE_STEPS, 0.5, 0.0, False),
        (RARE_STEPS, 0.0, 0.1, False),
        (LARGE, 0.5, 0.1, False),
    ],
)
def test_the_ways_for_rare_steps_bound_delta_where_there_are_any(monkeypatch, mix, epsilon, whisper, cut):
    """Single steps are summed apart beside the line; the largest are cut off only where the line would smooth."""
    asked, tuned = [], []
    monkeypatch.setattr(solve, "choose_grid", lambda mix, c, *_: Grid(c, 1.0, 8, whisper))
    monkeypatch.setattr(solve, "Line", Free)
    monkeypatch.setattr(solve, "_cut_if_hidden", lambda *_: asked.append("cut"))
    for name in ("split_at", "gated_at"):
        monkeypatch.setattr(solve, name, lambda mix, epsilon, log_jump: tuned.append(log_jump) or Free(mix, None))
    found = list(candidates(mix, epsilon, Purse()))
    assert asked == ["cut"] * cut
    if mix is RARE_STEPS and epsilon > 0:
        ((loss, count),) = mix.parts
        assert tuned == [pytest.approx(math.log(count * float(loss.profile(epsilon))))] * 2
    else:
        assert tuned == []
    assert len(found) == 1 + len(tuned)


@pytest.mark.parametrize(("mix", "epsilon"), [(LARGE, 1.0), (LARGE, 3.0), (Mix.of([(LAWS["laplace"], 400)]), 0.0)])
def test_a_line_for_delta_is_as_fine_as_delta_is_small(monkeypatch, mix, epsilon):
    seen = []
    truth = math.log(delta_of(mix, epsilon).upper)
    monkeypatch.setattr(solve, "choose_grid", lambda mix, c, epsilon, log_delta, goal: seen.append(log_delta))
    monkeypatch.setattr(solve, "Line", lambda *_: None)
    list(candidates(mix, epsilon, Purse()))
    assert seen == [pytest.approx(truth, abs=0.3)]
    assert seen[0] < 0


def test_a_largest_loss_that_may_be_rounded_leaves_some_delta():
    """1 + 2^-53 is no double, and was summed to 1, with one loss above that: now it is rounded up."""
    mix = Mix.of([(pairs.two_point_pair(e, 0.0).forward, 1) for e in (1.0, 2.0**-53)])
    assert mix.largest == 1 + 2.0**-52
    assert delta_of(mix, 1.0).upper >= math.exp(mix.log_top_mass) * 2.0**-53
    assert delta_of(mix, 1.0 + 2.0**-49).upper == 0


def test_rare_steps_are_kept_off_a_line_that_would_smooth_them(monkeypatch):
    monkeypatch.setattr(solve, "choose_grid", lambda mix, c, *_: Grid(c, 1.0, 8, 0.1))
    monkeypatch.setattr(solve, "Line", Free)
    monkeypatch.setattr(solve, "_on_line", never)
    monkeypatch.setattr(solve, "_rare", lambda *_: Found(1.5, 1.5, "rare"))
    assert _numerical(RARE_STEPS, 1e-9, 0.0, Purse()).method == "rare"


def test_few_atoms_are_summed():
    (only,) = candidates(Mix.of([(LAWS["response"], 5)]), 0.5, Purse())
    assert isinstance(only, AtomSum)


def test_the_sum_of_few_atoms_is_the_answer_at_once(monkeypatch):
    """It is exact to rounding: no lattice is made, and no line."""
    monkeypatch.setattr(solve, "lattice_sum", never)
    monkeypatch.setattr(solve, "Line", never)
    found = _numerical(Mix.of([(LAWS["response"], 5)]), 1e-5, 0.0, Purse())
    assert found.method == "enumeration"
    assert found.within(1e-12)


def test_a_lattice_and_many_atoms_are_paid_for(monkeypatch):
    mix, purse = Mix.of([(LAWS["response"], 5)]), Purse(1000.0)
    lattice = Free(mix, None)
    lattice.work = 300.0
    monkeypatch.setattr(solve, "FEW", 0)
    monkeypatch.setattr(solve, "Line", Free)
    monkeypatch.setattr(solve, "lattice_sum", lambda *_: lattice)
    monkeypatch.setattr(solve, "_solved", lambda *_: Found(0.0, 9.0, "wide"))
    monkeypatch.setattr(solve, "_on_line", lambda *_: Found(0.0, 9.0, "wide"))
    monkeypatch.setattr(solve, "_harder", lambda mix, found, *_: found)
    _numerical(mix, 1e-5, 0.0, purse)
    assert purse.left == 700.0 - AtomSum(*enumerated(mix)).work

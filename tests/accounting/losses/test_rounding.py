"""What is rounded towards more loss is never under the truth, and not further from it than it has to be."""

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sitr.accounting import (
    DiscreteLaplace,
    Exponential,
    Laplace,
    PoissonSampled,
    PureDP,
    PureFilter,
    RandomizedResponse,
    Renyi,
    SampledWithoutReplacement,
    ShuffledReports,
    ZeroConcentrated,
    calibrate,
    compose,
)
from sitr.accounting.losses.rounding import added_above, log_above, rounded_up, sampled_above, sum_above
from tests.accounting.helpers import law, logs

DIGITS = 400  # also for logarithms of one and next to nothing
MP = mpmath.mp.clone()
MP.dps = DIGITS

numbers = st.floats(1e-300, 1e300)
losses = st.one_of(logs(1e-12, 5e3), st.sampled_from([1e-300, 1.0, 30.0, 699.0, 701.0]))
rates = st.one_of(logs(1e-323, 0.999), logs(2**-53, 0.1).map(lambda gap: 1 - gap), st.sampled_from([0.5, 1 - 2**-53]))


def is_least(found, truth):
    """Whether a float is the least that is not under a number, unless 39 digits do not tell that from a float."""
    return MP.mpf(math.nextafter(found, -math.inf)) < truth + abs(truth) * MP.mpf(10) ** -39 and truth <= MP.mpf(found)


@law(200)
@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
@example(Fraction(1, 2))
@example(Fraction(10**400))
def test_a_fraction_is_rounded_up_to_the_next_float(number):
    found = rounded_up(number)
    assert found >= number
    assert math.nextafter(found, 0) < number


@law(200)
@given(st.lists(st.floats(-1e300, 1e300), max_size=8))
@example([0.1] * 10)
@example([1e16, 1.0, -1e16])
def test_a_sum_is_rounded_up_to_the_next_float(terms):
    found, truth = sum_above(terms), sum(map(Fraction, terms))
    assert found >= truth
    assert found == 0 == truth or math.nextafter(found, -math.inf) < truth


def test_an_infinite_term_makes_an_infinite_sum():
    assert sum_above([1.0, math.inf]) == math.inf


@law(200)
@given(st.fractions(min_value=1, max_value=10**300))
@example(1 + Fraction(1, 2**90))
@example(Fraction(2))
def test_a_logarithm_is_rounded_up_to_the_next_float(ratio):
    truth = MP.log(MP.mpf(ratio.numerator) / ratio.denominator)
    assert is_least(log_above(ratio.numerator, ratio.denominator), truth) or ratio == 1
    assert log_above(7, 7) == 0.0


@law(200)
@given(losses, rates, st.sampled_from([1, -1]))
@example(30.0, 1e-13, 1)
@example(720.0, 1e-315, 1)  # q e^l is small, though e^l is no number
@example(74.10599956217135, 0.9999999999998151, -1)  # of 1 + q (e^l - 1) most digits cancel
@example(1e-300, 1e-15, -1)
def test_the_loss_of_a_sample_is_rounded_up_to_the_next_float(loss, q, sign):
    with MP.workdps(3 * DIGITS):
        ratio = 1 + MP.mpf(q) * MP.expm1(sign * MP.mpf(loss))
        assert is_least(sampled_above(sign * loss, q), MP.log(ratio))
        assert is_least(added_above(sign * loss, q), -MP.log(ratio))


def test_where_one_has_no_such_outcome_the_sample_leaves_the_rest():
    assert is_least(added_above(-math.inf, 0.25), -MP.log(0.75))
    assert sampled_above(math.inf, 0.25) == math.inf
    assert sampled_above(0.0, 0.25) == added_above(0.0, 0.25) == 0.0


# Events, each with its ε by another route, at 400 digits.


def plain(draw):
    """One event of bounded loss, and its ε."""
    kind, noise = draw(st.integers(0, 4)), draw(st.one_of(logs(0.03, 1e3), st.sampled_from([2.0, 3.0, 5.0, 10.0])))
    if kind == 0:
        return Laplace(noise), 1 / MP.mpf(noise)
    if kind == 1:
        moved = draw(st.integers(1, 9))
        return DiscreteLaplace(noise, moved), moved / MP.mpf(noise)
    if kind == 2:
        return Exponential(1 / noise), MP.mpf(1 / noise)
    if kind == 3:
        return PureDP(1 / noise), MP.mpf(1 / noise)
    p, k = draw(st.one_of(st.floats(1e-6, 0.999), st.sampled_from([0.17, 0.5, 0.75]))), draw(st.integers(2, 6))
    return RandomizedResponse(p, k), abs(MP.log(MP.mpf(p) * (k - 1) / (1 - MP.mpf(p))))


@st.composite
def bounded_events(draw):
    """An event, perhaps on a sample or a batch or under a claim, and its ε."""
    event, epsilon = plain(draw)
    around = draw(st.integers(0, 5))
    if around == 1:
        q = draw(logs(1e-13, 0.9))
        return PoissonSampled(event, q), MP.log(1 + MP.mpf(q) * MP.expm1(epsilon))
    if around == 2:
        n = draw(st.integers(2, 10**6))
        batch = draw(st.integers(1, n - 1))
        return SampledWithoutReplacement(event, n, batch), MP.log(1 + MP.expm1(epsilon) * batch / n)
    if around == 3:
        return Renyi(formula=event), epsilon
    if around == 4:
        return ShuffledReports(event, draw(st.integers(1, 20))), epsilon
    return event, epsilon


def check(event, truth):
    """Hold the answers beside the truth."""
    found = event.epsilon(0.0)
    assert MP.mpf(found.lower) <= truth <= MP.mpf(found.upper)
    assert found.upper == event.pure() == event.rdp(math.inf)
    assert MP.mpf(found.upper) <= truth * (1 + MP.mpf(2) ** -44)


@law(150)
@given(bounded_events())
@example((RandomizedResponse(p=0.17, k=2), MP.log((1 - MP.mpf(0.17)) / MP.mpf(0.17))))
@example((PoissonSampled(Laplace(1 / 30), 1e-13), MP.log(1 + MP.mpf(1e-13) * MP.expm1(1 / MP.mpf(1 / 30)))))
def test_a_pure_epsilon_is_never_under_the_truth(case):
    check(*case)


@law(60)
@given(st.lists(st.tuples(bounded_events(), st.integers(1, 10**6)), min_size=1, max_size=4))
def test_nor_is_that_of_several(rows):
    adjacencies = {event.adjacency for (event, _), _ in rows} - {None}
    rows = rows if len(adjacencies) < 2 else rows[:1]
    whole = compose(*(event * count for (event, _), count in rows))
    check(whole, MP.fsum(count * epsilon for (_, epsilon), count in rows))


@law(60)
@given(st.data(), st.integers(1, 50), st.integers(1, 1000))
def test_nor_is_that_of_a_group(data, size, count):
    event, epsilon = plain(data.draw)
    check((event * count).group(size), size * count * epsilon)


@pytest.mark.parametrize(
    ("event", "epsilon"),
    [
        (Laplace(2.0), 0.5),
        (Laplace(10.0) * 100, 10.0),
        (Laplace(10.0) * 5 + Laplace(2.0), 1.0),
        (DiscreteLaplace(10.0, 3) * 10, 3.0),
        (PureDP(0.1), 0.1),
        (PureDP(0.25) * 3, 0.75),
        (Exponential(1.0) * 3, 3.0),
        (RandomizedResponse(0.5), 0.0),
    ],
)
def test_what_is_exact_stays_as_it_is(event, epsilon):
    assert event.pure() == event.rdp(math.inf) == event.epsilon(0.0).upper == epsilon


def test_a_group_of_exact_noise_is_exact_too():
    assert Laplace(10.0).group(5).pure() == 0.5
    assert DiscreteLaplace(10.0).group(5).pure() == 0.5


@pytest.mark.parametrize("claim", [ZeroConcentrated(0.0, 0.1), Renyi([(2.0, 0.05), (math.inf, 0.1)])])
def test_a_claim_of_a_largest_loss_is_pure_and_so_is_its_group(claim):
    check(claim, MP.mpf(0.1))
    check(claim.group(3), 3 * MP.mpf(0.1))


@law(60)
@given(st.data(), logs(0.1, 10))
def test_a_filter_charges_no_less(data, limit):
    event, epsilon = plain(data.draw)
    units, _ = PureFilter(limit).units(event)
    assert units >= epsilon / MP.mpf(limit) * 2**60


@law(20)
@given(st.floats(0.01, 5.0))
def test_what_is_calibrated_to_a_pure_epsilon_keeps_it(target):
    found = calibrate(RandomizedResponse, bounds=(0.5, 1 - 1e-9), epsilon=target, delta=0)
    p = MP.mpf(found.value)
    assert MP.log(p / (1 - p)) <= target

"""Sums, means, variances: sensitivities by enumeration, their promise by brute force, attacks, errors, bad input."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import bdtr, ndtr, ndtri

from sitr.accounting import DiscreteGaussian, DiscreteLaplace
from sitr.errors import InvalidArgument, SitrError
from sitr.mechanisms import bounded_mean, bounded_sum, bounded_variance
from sitr.mechanisms.additive import AdditiveNoise
from sitr.mechanisms.randomness import SYSTEM
from sitr.mechanisms.samplers.draws import LARGEST_SIGMA
from sitr.mechanisms.sums import ENDS, KNOWN, WAVES
from tests.mechanisms.statistics import ALARM, fits
from tests.mechanisms.sum_twins import running_sum, wrapping_sum
from tests.mechanisms.truths import (
    draws,
    keeps_its_promise,
    laplace_mass,
    multisets,
    neighbours,
    refuses_quietly,
)

MAKERS = [bounded_sum, bounded_mean, bounded_variance]
ADJACENCIES = ["add_remove", "replace_one"]
TARGETS = [{"epsilon": 1.0}, {"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.1}]
REACH = 60


def exact(mechanism, data):
    """The sum of rounded rows, in steps."""
    return mechanism._checked(data)


def law_of(mechanism, total):
    """The law of a release on whole numbers whose exact sum is this; what lies far out is one outcome more."""
    scale = mechanism.event.scale
    if isinstance(mechanism.event, DiscreteLaplace):
        law = {total + x: laplace_mass(scale, x) for x in range(-REACH, REACH + 1)}
    else:
        weights = {x: math.exp(-(x**2) / (2 * scale**2)) for x in range(-REACH, REACH + 1)}
        law = {total + x: weight / math.fsum(weights.values()) for x, weight in weights.items()}
    law["rest"] = max(1 - math.fsum(law.values()), 0.0)
    return law


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("bounds", [(0, 2), (-1, 2), (1, 3)])
@pytest.mark.parametrize("target", [{"epsilon": 1.5}, {"epsilon": 2.0, "delta": 1e-3}, {"rho": 0.5}], ids=str)
def test_neighbours_are_told_apart_no_better_than_the_event_says(bounds, adjacency, target):
    """Rows below, on, between, above the bounds, and missing ones."""
    mechanism = bounded_sum(bounds=bounds, integers=True, adjacency=adjacency, **target)
    values = (-5, 0, 1, 2, 9, math.nan)
    totals = {
        (exact(mechanism, list(data)), exact(mechanism, list(other)))
        for data in multisets(values, 2)
        for other in neighbours(data, values, adjacency)
    }
    for first, second in totals:  # the law depends on nothing else
        keeps_its_promise(mechanism.event, law_of(mechanism, first), law_of(mechanism, second), (0.0, 0.5, 1.0, 1.5))
    farthest = max(abs(first - second) for first, second in totals)
    assert farthest == mechanism.event.sensitivity == mechanism.sensitivity


@pytest.mark.parametrize("design", [ENDS[1], ENDS[2], WAVES[1], WAVES[2]])
@pytest.mark.parametrize("width", range(1, 30))
def test_one_row_more_moves_the_statistics_by_what_is_charged(design, width):
    moved = [design.statistics((1, k, k * k), width) for k in range(width + 1)]
    assert all(isinstance(number, int) for one in moved for number in one)
    if design.joint:
        assert {sum(map(abs, one)) for one in moved} == {width ** design.degrees[0]}
        assert min(min(one) for one in moved) == 0
    else:
        for place, degree in enumerate(design.degrees):
            assert max(abs(one[place]) for one in moved) == width**degree


@pytest.mark.parametrize("design", [KNOWN[1], KNOWN[2]])
@pytest.mark.parametrize("width", range(1, 30))
def test_one_other_row_moves_the_statistics_by_what_is_charged(design, width):
    rows = [design.statistics((1, k, k * k), width) for k in range(width + 1)]
    assert all(isinstance(number, int) for one in rows for number in one)
    for place, degree in enumerate(design.degrees):
        values = [one[place] for one in rows]
        assert max(values) - min(values) <= width**degree


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("k", [0, 1, 2, 3])
def test_a_row_that_moves_several_statistics_costs_what_one_would(degree, k):
    """The joint law of two or three discrete Laplace noises, moved by a row, against the event's profile."""
    width, scale = 3, 3.0**degree / 1.5
    shift = ENDS[degree].statistics((1, k, k * k), width)
    event = DiscreteLaplace(scale, width**degree, adjacency="add_remove")
    moved = [one for one in shift if one]  # the others tell nothing
    reach = 40 if degree == 1 else 30 if len(moved) < 3 else 22
    first, second = {}, {}
    for point in product(range(-reach, reach + 1), repeat=len(moved)):
        first[point] = math.prod(laplace_mass(scale, x) for x in point)
        second[point] = math.prod(laplace_mass(scale, x - s) for x, s in zip(point, moved, strict=True))
    for law in (first, second):  # what is cut off is one outcome more: post-processing
        law["rest"] = 1 - math.fsum(law.values())
    keeps_its_promise(event, first, second, (0.0, 0.5, 1.0, 1.5))


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_the_event_meets_the_target(make, adjacency, target):
    event = make(bounds=(-3.3, 120.1), adjacency=adjacency, **target).event
    assert event.adjacency == adjacency
    if "rho" in target:
        assert 0.0999 < event.zcdp().rho <= 0.1
    elif "delta" in target:
        assert 0.999 < event.epsilon(delta=1e-6).upper <= 1.0
    else:
        assert 0.999999 < event.pure() <= 1.0


ROWS = st.lists(st.floats(allow_nan=True) | st.integers() | st.none(), max_size=20)
BOUNDS = st.tuples(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@given(ROWS, ROWS.filter(bool), BOUNDS, st.randoms())
def test_the_exact_sum_moves_by_no_more_than_was_charged(rows, others, bounds, order):
    for adjacency, changed in (("add_remove", rows), ("replace_one", [*rows, others[-1]])):
        mechanism = bounded_sum(bounds=bounds, epsilon=1.0, adjacency=adjacency)
        neighbour = [*rows, others[0]]
        order.shuffle(neighbour)
        apart = exact(mechanism, neighbour) - exact(mechanism, changed)
        assert abs(apart) <= mechanism.event.sensitivity
        assert mechanism.sensitivity <= (max(map(abs, bounds)) if adjacency == "add_remove" else bounds[1] - bounds[0])


@given(ROWS, st.randoms())
def test_no_answer_depends_on_the_order_of_the_rows(rows, order):
    shuffled = list(rows)
    order.shuffle(shuffled)
    for make in MAKERS:
        mechanism = make(bounds=(-1.5, 7.25), epsilon=1.0)
        assert mechanism.release(rows, unsafe_seed=3) == mechanism.release(shuffled, unsafe_seed=3)


def moved_by(total, data, other, upper):
    """How far two data sets' sums are apart, in units of the claimed sensitivity."""
    return abs(total(data) - total(other)) / upper


def test_a_sum_that_overflows_moves_by_more_than_was_claimed_and_ours_does_not():
    upper = 2**62
    data = [upper]
    assert moved_by(lambda rows: wrapping_sum(rows, upper), data, [*data, upper], upper) == 3
    ours = bounded_sum(bounds=(-(2**48), 2**48), epsilon=1e3, integers=True)
    many = np.full(2**16, 2**48)
    assert exact(ours, many) == 2**64
    assert moved_by(lambda rows: exact(ours, rows), many, many[1:], ours.event.sensitivity) == 1


@pytest.mark.parametrize(("kind", "size"), [(np.float16, 2**11), (np.float32, 2**24)])
def test_sums_in_short_floats_depend_on_the_order_and_ours_do_not(kind, size):
    """From 2^11, or 2^24, on the next float is 2 away, and rows of 1 are lost after the others but not before them."""
    rows = [float(size), *[1.0] * 40]
    assert running_sum(rows, size, kind) == size
    assert running_sum(rows[::-1], size, kind) == size + 40
    ours, column = bounded_sum(bounds=(0.0, float(size)), epsilon=1.0), np.array(rows, dtype=kind)
    assert exact(ours, column) * ours.step == exact(ours, column[::-1]) * ours.step == size + 40


@pytest.mark.parametrize(("kind", "size"), [(np.float16, 2**11), (np.float32, 2**24)])
def test_sums_in_short_floats_move_by_more_than_was_claimed_and_ours_do_not(kind, size):
    """After one row of 2^11, or 2^24, half as many rows of a little over 1 count as 2 each: 1.5 times the claim."""
    row = 1 + float(np.finfo(kind).eps)
    fewer = np.full(size // 2, row, dtype=kind)
    more = np.concatenate([np.array([size], dtype=kind), fewer])
    assert moved_by(lambda rows: running_sum(rows, size, kind), more, fewer, size) > 1.49
    ours = bounded_sum(bounds=(0.0, float(size)), epsilon=1.0)
    assert moved_by(lambda rows: exact(ours, rows), more, fewer, ours.event.sensitivity) == 1


@pytest.mark.statistical
@pytest.mark.parametrize("target", [{"epsilon": 1.0}, {"rho": 0.5}], ids=str)
def test_releases_of_a_sum_follow_the_law(target):
    mechanism = bounded_sum(bounds=(0, 3), integers=True, **target)
    data = [1, 2, 99, math.nan, -4]
    law, low = law_of(mechanism, exact(mechanism, data)), exact(mechanism, data) - REACH
    found = np.array(draws(mechanism, data, 20_000, SYSTEM))
    assert fits(found, low, [law[low + x] for x in range(2 * REACH + 1)])


@pytest.mark.statistical
@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("target", [{"epsilon": 1.0}, {"epsilon": 2.0, "delta": 1e-6}, {"rho": 5.0}], ids=str)
@pytest.mark.parametrize("place", [0.02, 0.5, 0.97])
def test_95_of_100_answers_are_as_close_as_is_stated(make, adjacency, target, place):
    """1,500 releases: fewer hits than a binomial of 0.95 has with probability 1e-9 would be an alarm."""
    mechanism = make(bounds=(0.0, 10.0), adjacency=adjacency, **target)
    data = np.clip(np.random.default_rng(5).normal(10 * place, 1, 400), 0, 10)
    truth = {"bounded_sum": np.sum, "bounded_mean": np.mean, "bounded_variance": np.var}[make.__name__](data)
    slack = mechanism.step * data.size if make is bounded_sum else 0.0
    hits = sum(abs(one.value - truth) <= one.error95 + slack for one in (mechanism.release(data) for _ in range(1500)))
    assert bdtr(hits, 1500, 0.95) > ALARM


def test_the_error_shrinks_with_the_people_and_is_never_more_than_the_bounds_allow():
    for make, most in ((bounded_mean, 10.0), (bounded_variance, 25.0)):
        mechanism = make(bounds=(0.0, 10.0), epsilon=1.0)
        errors = [mechanism.accuracy(rows=rows) for rows in (1, 100, 10_000, 1_000_000)]
        assert errors == sorted(errors, reverse=True)
        assert errors[0] == pytest.approx(most, rel=1e-4)
        assert 60 < errors[2] / errors[3] < 105  # the rounding of rows stays
        data = [2.0, 5.0] * 50_000
        assert mechanism.release(data).error95 == pytest.approx(mechanism.accuracy(100_000), rel=0.6)


def test_both_ends_need_less_noise_than_two_releases_of_half_the_budget():
    """Variance of the mean's error times n²: at most 2 (w/ε)², where a centred sum and a count would have up to 4."""
    mechanism = bounded_mean(bounds=(0.0, 1.0), epsilon=1.0)
    for data in ([0.0] * 3000, [0.5] * 3000, [1.0, 0.0] * 1500):
        mean = np.mean(data)
        errors = [(mechanism.release(data, unsafe_seed=seed).value - mean) * 3000 for seed in range(400)]
        assert np.var(errors) < 2.6


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("data", [[], [math.nan], [None, "x"], [math.inf, -math.inf], [1e308] * 3], ids=str)
def test_there_is_always_an_answer(make, adjacency, data):
    release = make(bounds=(-2.0, 3.0), epsilon=1.0, adjacency=adjacency).release(data)
    assert math.isfinite(release.value)
    assert math.isfinite(release.error95)
    assert release.private
    if make is bounded_mean:
        assert -2 <= release.value <= 3
    if make is bounded_variance:
        assert 0 <= release.value <= 6.25


def test_without_noise_the_answer_itself():
    data = [1.0, 2.5, 9.0, math.nan, -math.inf]
    left, clipped = [1.0, 2.5, 4.0, 0.0], {"bounds": (0.0, 4.0), "epsilon": 1.0}
    for make, truth in ((bounded_sum, np.sum), (bounded_mean, np.mean), (bounded_variance, np.var)):
        for options, rows in (
            ({}, left),
            ({"missing": 3.0}, [*left, 3.0]),
            ({"adjacency": "replace_one"}, [*left, 2.0]),
        ):
            release = make(**clipped, **options).release(data, unsafe_without_noise=True)
            assert release.value == pytest.approx(truth(rows), abs=1e-5)
            assert not release.private


def test_a_gaussian_sum_is_charged_as_what_is_drawn():
    mechanism = bounded_sum(bounds=(-2, 5), rho=0.5, integers=True)
    assert mechanism.event == DiscreteGaussian(mechanism.event.scale, 5, adjacency="add_remove")
    assert mechanism.scale == pytest.approx(5.0)


GOOD = {"bounds": (0.0, 1.0), "epsilon": 1.0}


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", value) for value in (0, -1, math.nan, math.inf, True, "1", None)]
    + [("delta", value) for value in (0, 1, -1, math.nan, "1", True)]
    + [("rho", value) for value in (1.0, "1")]  # beside epsilon
    + [("bounds", value) for value in ((1, 0), (1, 1), (0, math.nan), (0, math.inf), (0,), 3, None, ("a", "b"))]
    + [("bounds", (1e15 - 0.5, 1e15)), ("bounds", (0.0, 1e16))]
    + [("missing", value) for value in (-0.1, 1.1, math.nan, "1", True)]
    + [("adjacency", value) for value in ("add", None, 1)],
    ids=str,
)
def test_bad_parameters_are_refused(make, name, value):
    with pytest.raises(InvalidArgument, match=name):
        make(**{**GOOD, name: value})


@pytest.mark.parametrize("make", MAKERS)
def test_the_range_of_delta_is_told(make):
    for delta in (0.0, 1.0, 1.5, 3.0):
        with pytest.raises(InvalidArgument, match=rf"delta={delta} is not in \(0, 1\)"):
            make(**GOOD, delta=delta)


@pytest.mark.parametrize("rho", [0, -1, math.nan, math.inf, True, "1"])
def test_bad_rho_is_refused(rho):
    with pytest.raises(InvalidArgument, match="rho"):
        bounded_sum(bounds=(0, 1), rho=rho)


@pytest.mark.parametrize(
    "options",
    [
        {"bounds": (0.5, 10), "epsilon": 1.0, "integers": True},
        {"bounds": (0, 2**49), "epsilon": 1.0, "integers": True},
        {"bounds": (0, 2**48), "epsilon": 1e-3, "integers": True},
        {"bounds": (0, 1), "rho": 1e8, "integers": True},
        {"bounds": (0, 1), "rho": 1e-18},
    ],
    ids=str,
)
def test_what_cannot_be_drawn_is_refused(options):
    with pytest.raises(SitrError, match=r"bounds|noise"):
        bounded_sum(**options)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("values", ["secret", 31337, None, {}, np.zeros((3, 2)), np.array(["secret"])], ids=repr)
def test_what_is_no_column_is_refused_without_being_shown_and_nothing_is_drawn(make, values, monkeypatch):
    refuses_quietly(make(**GOOD), values, monkeypatch)


@pytest.mark.parametrize("rows", [0, -1, 1.5, None])
def test_a_bad_number_of_rows_is_refused(rows):
    with pytest.raises(InvalidArgument, match="rows"):
        bounded_mean(**GOOD).accuracy(rows=rows)


def mean_coverage(target, adjacency, place):
    """How often the mean of very many people at a place is as close as stated, from the laws of the noises alone.

    With Gaussian noise that on the count is whole, ν, and that on the sum about the middle is η: the sum of (x - m) is
    off by η/2 + (1/2 - m)ν. With Laplace noise on both ends it is off by (1 - m)η - mν, at the ends by one of them.
    """
    people = 10**6
    mechanism = bounded_mean(bounds=(0.0, 10.0), adjacency=adjacency, **target)
    stated = (mechanism.accuracy(rows=people) - mechanism.step) * people / 10
    if "epsilon" in target:
        return 1 - math.exp(-stated * target["epsilon"])
    if adjacency == "replace_one":
        return 2 * ndtr(stated * math.sqrt(2 * target["rho"])) - 1
    sigma = math.sqrt(1 / target["rho"])
    weights = {x: math.exp(-(x**2) / (2 * sigma**2)) for x in range(-200, 201)}
    return math.fsum(
        weight * (ndtr((2 * stated - moved) / sigma) - ndtr((-2 * stated - moved) / sigma))
        for moved, weight in ((x * (1 - 2 * place), weight) for x, weight in weights.items())
    ) / math.fsum(weights.values())


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(
    "target", [{"epsilon": 0.1}, {"epsilon": 5.0}, {"rho": 0.01}, {"rho": 2.8}, {"rho": 20.0}], ids=str
)
def test_the_error_of_a_mean_holds_by_the_laws_of_its_noises(target, adjacency):
    """And is no larger than it has to be, where the noise of the count is not of a few whole numbers only."""
    for place in (0.0, 1.0):
        coverage = mean_coverage(target, adjacency, place)
        assert coverage >= 0.95 - 1e-5
        assert coverage < 0.957 or target.get("rho", 0) > 1


@pytest.mark.parametrize(
    ("target", "width95"), [({"epsilon": 2.0}, math.log(20) / 2), ({"rho": 0.5}, 1.959964)], ids=str
)
@pytest.mark.parametrize("bounds", [(0.0, 10.0), (-1000.0, 300.0), (0.001, 0.002)])
def test_the_error_of_a_sum_is_the_quantile_of_its_noise(target, width95, bounds):
    mechanism = bounded_sum(bounds=bounds, **target)
    assert mechanism.error95 == pytest.approx(width95 * max(map(abs, bounds)), rel=1e-3)
    assert mechanism.release([]).error95 == mechanism.error95


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("target", [{"epsilon": 1.0}, {"rho": 0.5}], ids=str)
@pytest.mark.parametrize("place", [0.05, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("spread", ["together", "at both ends"])
def test_the_error_of_a_variance_holds_wherever_the_noises_lie(target, adjacency, place, spread, monkeypatch):
    """All noises at the ends of what they stay within at once, 95 times in 100: no corner is farther off."""
    people = 1000
    high = round(people * place)
    data = np.full(people, 10 * place) if spread == "together" else np.repeat([0.0, 10.0], [people - high, high])
    mechanism = bounded_variance(bounds=(0.0, 10.0), adjacency=adjacency, **target)
    statistics = 2 if adjacency == "replace_one" else 3
    missed = 1 - 0.95 ** (1 / statistics)
    farthest = -float(ndtri(missed / 2)) if "rho" in target else -math.log(missed)
    errors, stated = [], []
    for signs in product((-1, 1), repeat=statistics):
        turned = iter(signs)

        def corner(noise, source, turned=turned):
            return np.array([next(turned) * math.floor(farthest * noise.scale) for _ in range(noise.grid.count)])

        monkeypatch.setattr(AdditiveNoise, "noise", corner)
        release = mechanism.release(data, unsafe_seed=1)
        errors.append(abs(release.value - float(np.var(data))))
        stated.append(release.error95)
        assert errors[-1] <= stated[-1]
    if spread == "at both ends" and place == 0.5:  # the worst data: the bound is nearly reached
        assert max(errors) > 0.6 * max(stated)


def test_without_people_an_error_is_as_wide_as_what_can_be_answered():
    for make, most in ((bounded_mean, 10.0), (bounded_variance, 25.0)):
        mechanism = make(bounds=(0.0, 10.0), epsilon=1.0)
        errors = [mechanism.release([], unsafe_seed=seed).error95 for seed in range(20)]
        assert errors == pytest.approx([most] * 20, rel=1e-4)
        assert make(bounds=(0.0, 10.0), epsilon=1.0, adjacency="replace_one").release([]).error95 == pytest.approx(
            most, rel=1e-4
        )


@pytest.mark.parametrize("make", MAKERS)
def test_targets_reach_to_the_ends_of_their_ranges(make):
    for end, beyond in ((1e-9, 0.9e-9), (1e4, 1.1e4)):
        assert make(bounds=(0.0, 1.0), epsilon=end).event.pure() == pytest.approx(end, rel=1e-6)
        with pytest.raises(InvalidArgument, match="epsilon="):
            make(bounds=(0.0, 1.0), epsilon=beyond)
    for beyond in (0.9e-18, 1.1e8):
        with pytest.raises(InvalidArgument, match="rho="):
            make(bounds=(0.0, 1.0), rho=beyond)


@pytest.mark.parametrize("maker", [bounded_mean, bounded_variance])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_noise_that_is_nearly_the_largest_is_drawn_on_the_coarsest_grid(maker, adjacency):
    """Bounds are one step apart then, as on two the noise of a square would be four times as large."""
    count = len((KNOWN if adjacency == "replace_one" else WAVES)[1 if maker is bounded_mean else 2].degrees)
    rho = count / (2 * (0.4 * LARGEST_SIGMA) ** 2)
    mechanism = maker(bounds=(0, 1), rho=rho, adjacency=adjacency)
    assert math.isfinite(mechanism.release([0, 1, 1], unsafe_seed=1).value)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_single_person_has_a_mean_and_no_variance(adjacency):
    """With nearly no noise: a count of one is divided by as it is."""
    mean = bounded_mean(bounds=(0, 10), epsilon=1e4, adjacency=adjacency)
    variance = bounded_variance(bounds=(0, 10), epsilon=1e4, adjacency=adjacency)
    assert mean.release([8.0], unsafe_seed=1).value == pytest.approx(8, abs=0.1)
    assert variance.release([8.0], unsafe_seed=1).value == pytest.approx(0, abs=0.2)

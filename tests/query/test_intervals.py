"""Intervals: estimates without noise, coverage and width from simulated releases, laws, bad input."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sitr.errors import InvalidArgument
from sitr.query import intervals
from tests.query.releases import MOMENTS, SHAPES, least, noises, pair, statistics, truth

RELEASES = 2000
ROWS = [5, 10, 20, 30, 50, 100, 300, 1000, 10_000, 1_000_000]  # per scale of the noise
KINDS = ["laplace", "gaussian"]
AGGREGATES = ["mean", "variance", "covariance", "correlation"]
RANGES = {"mean": (0, 1), "variance": (0, 0.25), "covariance": (-0.25, 0.25), "correlation": (-1, 1)}
LENGTHS = {"mean": (2, 2), "variance": (3, 3), "covariance": (4, 4), "correlation": (9, 9)}
# From how many rows on, per scale of the noise, the median width is at most 1.5 times the best: (Laplace, Gaussian).
NARROW = {"mean": (5, 5), "variance": (5, 5), "covariance": (50, 20), "correlation": (30, 30)}


def estimate(aggregate, cells):
    return getattr(intervals, aggregate)(cells, MOMENTS[aggregate])


def interval(aggregate, cells, kind, scale=1.0, **options):
    return np.array(getattr(intervals, f"{aggregate}_interval")(cells, MOMENTS[aggregate], scale, kind, **options))


def columns(aggregate, rows):
    if aggregate in ("mean", "variance"):
        return [(shape(rows), None) for shape in SHAPES.values()]
    shapes = itertools.product(["at both bounds", "even", "skewed"], [0, 0.5, 1, -1])
    pairs = [pair(rows, correlation, shape) for shape, correlation in shapes]
    return [*pairs, (np.full(rows, 0.3), pair(rows, 0, "even")[1]), (np.zeros(rows), np.ones(rows))]


def within(low, high, value):
    return (low <= value + 1e-12) & (value - 1e-12 <= high)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_truth_is_covered_and_intervals_are_narrow(aggregate, kind):
    """Best: twice the 95 % quantile of the estimate's own error. The threshold of coverage is that of `least`."""
    cells = [(rows, t, s) for rows in ROWS for t, s in columns(aggregate, rows)]
    for seed, (rows, t, s) in enumerate(cells):
        exact = statistics(aggregate, t, s)
        noisy = exact + noises(kind, (RELEASES, exact.size), seed)
        low, high = interval(aggregate, noisy, kind)
        right = truth(aggregate, t, s)
        if np.isnan(right):
            assert np.mean((low == -1) & (high == 1)) > 0.8
            continue
        assert np.sum(within(low, high, right)) >= least(RELEASES, len(cells)), (rows, seed)
        best = 2 * np.quantile(np.abs(estimate(aggregate, noisy) - right), 0.95)
        if rows >= NARROW[aggregate][KINDS.index(kind)]:
            assert np.median(high - low) <= 1.5 * best, (rows, seed)


@pytest.mark.statistical
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_intervals_of_means_are_exact(kind, confidence):
    """A two-sided binomial test, at 1e-9: the interval holds the mean as often as it says, no more and no less."""
    exact = statistics("mean", (np.arange(40) + 0.2) / 50)
    noisy = exact + noises(kind, (100_000, 2), 7)
    covered = within(*interval("mean", noisy, kind, confidence=confidence), np.mean((np.arange(40) + 0.2) / 50))
    assert stats.binomtest(int(covered.sum()), covered.size, confidence).pvalue > 1e-9


@pytest.mark.statistical
@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("kind", KINDS)
def test_integer_noise_on_columns_of_bits_is_covered(aggregate, kind):
    """Noise as coarse as its scale: half a step is added. The threshold is that of `least`."""
    cases = [(rows, correlation) for rows in (12, 100, 2000) for correlation in (0, 0.5, 1)]
    for seed, (rows, correlation) in enumerate(cases):
        t, s = pair(rows, correlation, "at both bounds")
        exact = statistics(aggregate, t, s)
        noisy = exact + noises(kind, (RELEASES, exact.size), seed, integers=True)
        low, high = interval(aggregate, noisy, kind, step=1.0)
        assert np.sum(within(low, high, truth(aggregate, t, s))) >= least(RELEASES, len(cases))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30), st.sampled_from(KINDS))
@settings(max_examples=100)
def test_estimates_without_noise_are_the_aggregates(rows, kind):
    t, s = np.array(rows).T
    for aggregate in AGGREGATES:
        found = estimate(aggregate, statistics(aggregate, t, s))
        if aggregate != "correlation":
            assert found == pytest.approx(truth(aggregate, t, s), abs=1e-12)
        elif min(t.std(), s.std()) > 1e-3:
            assert found == pytest.approx(truth(aggregate, t, s), abs=1e-6)


numbers = st.floats(-1e9, 1e9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("aggregate", AGGREGATES)
@given(data=st.data(), scale=st.sampled_from([0.0, 1e-6, 1.0, 1e6]))
@settings(max_examples=40)
def test_estimates_lie_in_their_interval_and_that_in_its_range(aggregate, kind, data, scale):
    length = LENGTHS[aggregate][KINDS.index(kind)]
    cells = data.draw(st.lists(st.one_of(numbers, st.floats(-9, 99)), min_size=length, max_size=length))
    low, high = interval(aggregate, cells, kind, scale)
    least_value, largest_value = RANGES[aggregate]
    found = estimate(aggregate, cells)
    assert least_value - 1e-12 <= low <= found <= high <= largest_value + 1e-12


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_a_vector_of_cells_is_the_cells_one_by_one(aggregate, kind):
    length = LENGTHS[aggregate][KINDS.index(kind)]
    cells = np.random.default_rng(1).exponential(20, size=(4, 3, length)) - 3
    low, high = interval(aggregate, cells, kind)
    assert low.shape == high.shape == estimate(aggregate, cells).shape == (4, 3)
    for place in np.ndindex(4, 3):
        one = interval(aggregate, cells[place], kind)
        assert one[0] == pytest.approx(low[place], abs=1e-12)
        assert one[1] == pytest.approx(high[place], abs=1e-12)


def test_more_cells_than_are_worked_on_at_once():
    cells = np.random.default_rng(2).exponential(20, size=(2 * intervals.CELLS + 3, 2))
    low, high = interval("mean", cells, "laplace")
    last = interval("mean", cells[-1], "laplace")
    assert last == pytest.approx(np.array([low[-1], high[-1]]), abs=1e-12)


@given(st.lists(st.floats(-10, 200), min_size=3, max_size=3), st.floats(0.5, 0.99), st.floats(0.5, 0.99))
@settings(max_examples=60)
def test_more_confidence_is_wider(cells, one, other):
    less, more = sorted([one, other])
    for aggregate, length in (("mean", 2), ("variance", 3)):
        inner = interval(aggregate, cells[:length], "laplace", confidence=less)
        outer = interval(aggregate, cells[:length], "laplace", confidence=more)
        assert outer[0] <= inner[0] + 1e-6
        assert inner[1] <= outer[1] + 1e-6


@given(st.lists(st.integers(-80, 1600).map(lambda eighths: eighths / 8), min_size=4, max_size=4))
@settings(max_examples=60)
def test_a_column_turned_round_turns_its_intervals_round(cells):
    mean, mirrored = (interval("mean", one, "laplace") for one in (cells[:2], cells[1::-1]))
    assert 1 - mean[::-1] == pytest.approx(mirrored, abs=1e-6)
    variance, mirrored = (interval("variance", one, "laplace") for one in (cells[:3], cells[2::-1]))
    assert variance == pytest.approx(mirrored, abs=1e-6)
    covariance, mirrored = (interval("covariance", one, "laplace") for one in (cells, cells[2:] + cells[:2]))
    assert -covariance[::-1] == pytest.approx(mirrored, abs=1e-6)


@given(st.lists(st.floats(5, 200), min_size=3, max_size=3), st.floats(0.1, 1000))
@settings(max_examples=40)
def test_only_rows_per_scale_count(cells, factor):
    wide = interval("variance", np.array(cells) * factor, "laplace", factor)
    assert wide == pytest.approx(interval("variance", cells, "laplace"), abs=1e-6)


def test_a_standard_deviation_is_the_root_of_a_variance():
    cells = [[40.0, 20.0, 40.0], [3.0, 0.0, -2.0]]
    squares = np.square(intervals.standard_deviation_interval(cells, MOMENTS["variance"], 1.0, "laplace"))
    assert np.allclose(squares, interval("variance", cells, "laplace"))
    assert np.allclose(intervals.standard_deviation(cells, MOMENTS["variance"]) ** 2, estimate("variance", cells))


def test_no_noise_leaves_a_point():
    for aggregate, cells in [("mean", [60.0, 20.0]), ("variance", [40.0, 20.0, 40.0])]:
        low, high = interval(aggregate, cells, "laplace", 0.0)
        assert low == pytest.approx(estimate(aggregate, cells), abs=1e-9)
        assert high == pytest.approx(low, abs=1e-9)


def test_a_cell_that_is_all_noise_says_nothing():
    for aggregate in AGGREGATES:
        for kind, length in zip(KINDS, LENGTHS[aggregate], strict=True):
            assert interval(aggregate, np.zeros(length), kind) == pytest.approx(np.array(RANGES[aggregate]))


@pytest.mark.parametrize(
    "wrong", [{"statistics": [1.0, 2.0, 3.0]}, {"statistics": 1.0}, {"scales": [1.0] * 3}, {"scales": -1.0},
              {"kind": "cauchy"}, {"confidence": 1.0}, {"step": -1.0}]
)  # fmt: skip
def test_what_is_no_interval_is_refused(wrong):
    with pytest.raises(InvalidArgument):
        intervals.mean_interval(
            **{"statistics": [1.0, 2.0], "moments": MOMENTS["mean"], "scales": 1.0, "kind": "laplace", **wrong}
        )

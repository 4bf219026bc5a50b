"""Ranges of ordered cells: what they cost, that nothing biases them, and that intervals hold what they say."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import PureDP
from sitr.audit import audit
from sitr.audit.report import VIOLATION
from sitr.errors import InvalidArgument
from sitr.mechanisms.hierarchy import Hierarchy
from sitr.mechanisms.randomness import SYSTEM, Seeded
from sitr.synthesis import ranges
from tests.synthesis.shapes import CELLS, shapes

ROWS = 100_000
BAR = 171  # rows: the mean error of independent noise on three levels, made consistent, at its best shape
# A coverage of 0.95 in 2,000 trials: fewer than 1,837 are seen once in 10^9 times (the binomial law's own quantile).
TRIALS, FEWEST = 2000, 1837


def some_ranges(cells, count, seed):
    ends = np.random.default_rng(seed).integers(0, cells, (2, count))
    return ends.min(axis=0), ends.max(axis=0)


def test_a_release_costs_the_pure_epsilon_under_either_relation():
    assert ranges(1000, epsilon=0.1).event == PureDP(0.1, adjacency="add_remove")
    made = ranges(1000, epsilon=0.1, adjacency="replace_one", total=5)
    assert made.event == PureDP(0.1, adjacency="replace_one")
    assert sum(ranges(1000, epsilon=0.1)._noise.law.rates) == Fraction(0.1)
    assert 2 * sum(made._noise.law.rates) == Fraction(0.1)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=300), st.integers(0, 100))
def test_nothing_but_the_counts_with_that_noise_leaves(counts, seed):
    made = ranges(len(counts), epsilon=0.5)
    law = made._noise.law
    found = made.release(counts, unsafe_seed=seed).value
    assert (found.noisy - counts == law.noise(Seeded(seed))[: len(counts)]).all()


@pytest.mark.statistical
@pytest.mark.parametrize(("times", "caught"), [(1, False), (3, True)])
def test_the_auditor_finds_nothing_but_a_twin_with_a_third_of_the_noise(times, caught):
    """A row moves from the first block to the last; an honest claim is accused once in 10^9."""
    made = ranges(20, epsilon=1.0, adjacency="replace_one", total=100)
    rates = tuple(times * rate for rate in made._noise.law.rates)

    def batch(counts, many):
        return list(np.array(counts) + Hierarchy(20 * many, rates).noise(SYSTEM).reshape(many, 20))

    inputs = [5] * 20, [6] + [5] * 18 + [4]
    report = audit(None, *inputs, claimed=made.event, samples=40_000, confidence=1 - 1e-9, batch=batch)
    assert (report.verdict == VIOLATION) == caught


@given(st.lists(st.integers(0, 50), min_size=1, max_size=300), st.booleans(), st.data())
def test_without_noise_all_answers_are_exact(counts, public, data):
    adjacency, total = ("replace_one", sum(counts)) if public else ("add_remove", None)
    made = ranges(len(counts), epsilon=1.0, adjacency=adjacency, total=total)
    found = made.release(counts, unsafe_without_noise=True).value
    low = data.draw(st.integers(0, len(counts) - 1))
    high = data.draw(st.integers(low, len(counts) - 1))
    assert found.count(low, high).estimate == pytest.approx(sum(counts[low : high + 1]))
    assert found.cumulative().estimate == pytest.approx(np.cumsum(counts))
    p = data.draw(st.floats(0.001, 0.999))
    if sum(counts):
        under = np.cumsum(counts)
        assert found.quantile(p).estimate == min(int(np.argmax(under >= p * under[-1])), len(counts) - 1)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=300), st.booleans())
def test_answers_agree_with_each_other(counts, public):
    adjacency, total = ("replace_one", sum(counts)) if public else ("add_remove", None)
    found = ranges(len(counts), epsilon=0.5, adjacency=adjacency, total=total).release(counts, unsafe_seed=1).value
    last, middle = len(counts) - 1, len(counts) // 2
    whole = found.count(0, last)
    if middle:
        parts = found.count(0, middle - 1).estimate + found.count(middle, last).estimate
        assert parts == pytest.approx(whole.estimate)
    if public:
        assert whole == (total, total, total)
    one = found.quantile(0.3)
    assert 0 <= one.low <= one.estimate <= one.high <= last


@pytest.mark.parametrize("shape", ["smooth", "zipf", "sparse", "uniform", "steps"])
def test_ranges_are_nearer_than_by_noise_on_each_level(shape):
    """The mean error of 2,000 random ranges, medians of nine, with rows and noise by seeds: 0.9 of the bar at most."""
    made = ranges(CELLS, epsilon=0.1, adjacency="replace_one", total=ROWS)
    low, high = some_ranges(CELLS, 2000, 1)
    errors = []
    for seed in range(9):
        counts = np.random.default_rng(seed).multinomial(ROWS, shapes()[shape])
        under = np.concatenate([[0], np.cumsum(counts)])
        found = made.release(counts, unsafe_seed=seed).value.count(low, high).estimate
        errors.append(np.abs(found - (under[high + 1] - under[low])).mean())
    assert np.median(errors) <= 0.9 * BAR


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("cells", "epsilon", "public"),
    [(1, 1.0, False), (3, 3.66, False), (23, 0.3, True), (23, 6.0, False), (130, 8.0, False), (130, 0.01, False)],
)
def test_intervals_of_counts_hold_the_truth(cells, epsilon, public):
    """One range of each of 2,000 releases, so that trials are independent."""
    counts = np.full(cells, 50)
    adjacency, total = ("replace_one", 50 * cells) if public else ("add_remove", None)
    made = ranges(cells, epsilon=epsilon, adjacency=adjacency, total=total)
    low, high = some_ranges(cells, TRIALS, 2)
    trials = [made.release(counts).value.count(*ends) for ends in zip(low, high, strict=True)]
    truth = 50 * (high - low + 1)
    assert sum(one.low <= true <= one.high for one, true in zip(trials, truth, strict=True)) >= FEWEST


@pytest.mark.statistical
def test_intervals_of_several_levels_hold_the_truth():
    """2,000 independent noises of 500 cells, in blocks of 5, 25 and 125; one random range of each."""
    made = ranges(500, epsilon=0.1, adjacency="replace_one", total=0)
    zeros = np.zeros(500, dtype=np.int64)
    low, high = some_ranges(500, TRIALS, 3)
    widths = made.expected_error(low, high)
    found = [made.release(zeros).value.count(*ends).estimate for ends in zip(low, high, strict=True)]
    assert (np.abs(found) <= widths).sum() >= FEWEST
    assert (np.abs(found) <= 0.6 * widths).sum() < FEWEST  # the test has teeth: these hold about 80 of 100


@pytest.mark.statistical
@pytest.mark.parametrize(("p", "public"), [(0.5, True), (0.02, False), (0.9, False)])
def test_intervals_of_quantiles_hold_the_truth(p, public):
    counts = np.random.default_rng(1).multinomial(300, np.full(60, 1 / 60))
    adjacency, total = ("replace_one", 300) if public else ("add_remove", None)
    made = ranges(60, epsilon=0.5, adjacency=adjacency, total=total)
    truth = int(np.argmax(np.cumsum(counts) >= p * 300))
    trials = [made.release(counts).value.quantile(p) for _ in range(TRIALS)]
    assert sum(one.low <= truth <= one.high for one in trials) >= FEWEST


def test_a_total_that_is_known_makes_ranges_nearer():
    low, high = some_ranges(CELLS, 200, 4)
    known = ranges(CELLS, epsilon=0.1, adjacency="replace_one", total=ROWS).expected_error(low, high)
    assert (known <= ranges(CELLS, epsilon=0.1, adjacency="replace_one").expected_error(low, high)).all()


def test_intervals_end_where_counts_cannot_be():
    found = ranges(30, epsilon=0.1, adjacency="replace_one", total=10).release([10] + [0] * 29).value
    one = found.count(0, np.arange(30))
    assert (one.low >= 0).all()
    assert (one.high <= 10).all()


@pytest.mark.parametrize(
    "arguments", [{"cells": 0}, {"cells": 10**5 + 1}, {"cells": 5, "total": 3}, {"cells": 5, "adjacency": "one"}]
)
def test_what_cannot_be_is_refused(arguments):
    with pytest.raises(InvalidArgument):
        ranges(arguments.pop("cells"), epsilon=1.0, **arguments)


@pytest.mark.parametrize("ends", [(-1, 2), (0, 5), (3, 2), (0.0, 1.0), (0, [1, 5])])
def test_ranges_that_are_none_are_refused(ends):
    made = ranges(5, epsilon=1.0)
    with pytest.raises(InvalidArgument):
        made.expected_error(*ends)
    with pytest.raises(InvalidArgument):
        made.release([1] * 5).value.count(*ends)


@pytest.mark.parametrize("counts", [[1, 2], [1.5, 2, 3], [-1, 2, 3]])
def test_what_are_no_counts_is_refused_and_not_shown(counts):
    with pytest.raises(InvalidArgument, match="whole numbers") as refused:
        ranges(3, epsilon=1.0).release(counts)
    assert "1.5" not in str(refused.value)


@pytest.mark.parametrize("p", [0, 1, float("nan"), "half"])
def test_a_quantile_is_of_a_part(p):
    with pytest.raises(InvalidArgument):
        ranges(3, epsilon=1.0).release([1, 2, 3]).value.quantile(p)

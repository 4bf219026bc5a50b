"""Quantiles from histograms: exact without noise, their cost, what they promise, coverage, widths, bad input."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from sitr.errors import InvalidArgument
from sitr.mechanisms import histogram_quantiles
from sitr.mechanisms import histograms as module
from sitr.mechanisms.randomness import Seeded
from tests.mechanisms.truths import Counting, refuses_quietly

QUANTILES = [0.0, 0.25, 0.5, 0.95, 1.0]
DRAWS = 2000
LEAST_COVERED = 1837  # P(fewer of 2,000 at probability 0.95) < 1e-9; computed in the test of it


def truth(cells, counts, q):
    """The first cell c with #{x ≤ c} ≥ q n and ≥ 1, by the definition."""
    total, seen = sum(counts), 0
    for cell, count in sorted(zip(cells, counts, strict=True)):
        seen += count
        if seen >= 1 and seen * q.denominator >= q.numerator * total:
            return cell
    return None


def rank_distance(cells, counts, q, point):
    """How many rows lie between a cell and the quantile."""
    total = sum(counts)
    under = sum(count for cell, count in zip(cells, counts, strict=True) if cell < point)
    upto = sum(count for cell, count in zip(cells, counts, strict=True) if cell <= point)
    return max(0.0, under - q * total, q * total - upto)


def histogram(kind, rows, cells):
    """A histogram of one kind, always the same."""
    generator = np.random.default_rng(20261115)
    if kind == "uniform":
        values = generator.integers(0, cells, rows)
    elif kind == "skewed":
        values = np.minimum(generator.lognormal(0, 1, rows) * cells / 50, cells - 1).astype(np.int64)
    elif kind == "tied":
        values = np.where(generator.random(rows) < 0.7, cells // 3, generator.integers(0, cells // 2, rows))
    else:  # two clusters far apart, and nothing between and outside
        values = np.where(generator.random(rows) < 0.5, cells // 4, 3 * cells // 4)
    return np.unique(values, return_counts=True)


@st.composite
def sparse(draw, cells, most=12):
    places = draw(st.lists(st.integers(0, cells - 1), max_size=most))
    return places, [draw(st.integers(0, 40)) for _ in places]


@given(st.data(), st.sampled_from([2, 3, 16, 17, 100, 300, 5000, 65536]))
@settings(max_examples=150, deadline=None)
def test_without_noise_the_quantiles_themselves(data, cells):
    groups = data.draw(st.lists(sparse(cells), min_size=1, max_size=3))
    q = data.draw(st.lists(st.sampled_from([*QUANTILES, 1 / 3, 0.999]), min_size=1, max_size=3))
    mechanism = histogram_quantiles(q=q, cells=cells, max_rows=3, epsilon=0.5)
    release = mechanism.release(groups, unsafe_without_noise=True)
    assert not release.private
    assert release.event == mechanism.event
    for group, (places, counts) in enumerate(groups):
        for place, part in enumerate(mechanism.q):
            wanted = truth(places, counts, part)
            if wanted is not None:
                assert [int(found[group, place]) for found in release.value[:3]] == [wanted] * 3
                assert release.value.rank_error[group, place] <= 0.5


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 7.3])
@pytest.mark.parametrize("cells", [2, 100, 1024, 65536])
@pytest.mark.parametrize(("adjacency", "times"), [("add_remove", 1), ("replace_one", 2)])
def test_all_groups_and_quantiles_together_cost_epsilon(epsilon, cells, adjacency, times):
    mechanism = histogram_quantiles(q=[0.1, 0.5], cells=cells, max_rows=5, epsilon=epsilon, adjacency=adjacency)
    assert epsilon * (1 - 1e-12) <= mechanism.event.pure() <= epsilon * (1 + 1e-12)
    assert math.fsum(5 * times / scale for scale in mechanism.scales) <= epsilon * (1 + 1e-15)
    assert mechanism.event.adjacency == adjacency


@given(st.data(), st.sampled_from(["add_remove", "replace_one"]), st.sampled_from([2, 40, 700, 65536]))
@settings(max_examples=60, deadline=None)
def test_one_person_moves_the_measured_counts_by_no_more_than_is_charged(data, adjacency, cells):
    """The stages of one release are looked at again with a neighbour's data: the loss of all that was seen is ≤ ε."""
    most = data.draw(st.integers(1, 6))
    rest = data.draw(st.lists(sparse(cells), min_size=1, max_size=3))
    rows = st.lists(st.tuples(st.integers(0, len(rest) - 1), st.integers(0, cells - 1)), max_size=most)
    mine, other = data.draw(rows), data.draw(rows) if adjacency == "replace_one" else []
    mechanism = histogram_quantiles(q=[0, 0.5], cells=cells, max_rows=most, epsilon=1.5, adjacency=adjacency)
    first, second = (mechanism._checked(with_rows(rest, added)) for added in (mine, other))
    loss = 0.0
    for measured in mechanism._stages(first, 0, Seeded(data.draw(st.integers(0, 1000)))):
        counts = np.diff(measured.under)
        before, after = (one.between(0, measured.borders) for one in (first, second))
        assert np.abs(before - after).sum() <= (most if adjacency == "add_remove" else 2 * most)
        loss += float((np.abs(counts - after) - np.abs(counts - before)).sum()) / measured.scale
    assert loss <= 1.5 * (1 + 1e-12)


def with_rows(groups, rows):
    """Groups with some rows more."""
    found = [(list(places), list(counts)) for places, counts in groups]
    for group, cell in rows:
        found[group][0].append(cell)
        found[group][1].append(1)
    return found


def exact_critical(left, right, q, scale, missed):
    """The least k with P((1 - q) L - q R > k) ≤ missed: the law on a lattice, from its characteristic function."""
    steps = (q.denominator - q.numerator, q.numerator)
    spread = scale * math.sqrt(2 * (left * steps[0] ** 2 + right * steps[1] ** 2))
    size = 1 << math.ceil(math.log2(60 * max(spread, q.denominator) + 200 * q.denominator))
    r, angles = math.exp(-1 / scale), 2 * np.pi * np.arange(size) / size
    powers = [
        ((1 - r) ** 2 / (1 - 2 * r * np.cos(angles * step) + r * r)) ** count
        for step, count in zip(steps, (left, right), strict=True)
    ]
    law = np.fft.fftshift(np.fft.ifft(powers[0] * powers[1]).real)
    over = np.cumsum(law[::-1])[::-1] - law
    return (int(np.argmax(over <= missed + 1e-12)) - size // 2) / q.denominator


@pytest.mark.parametrize("scale", [0.2, 0.3, 0.7, 2.0, 5.0, 20.0])
@pytest.mark.parametrize("missed", [0.025, 0.025 / 20, 0.025 / 200])
def test_critical_values_are_those_of_the_exact_laws_or_a_little_more(scale, missed):
    for q in histogram_quantiles(q=[0, 0.05, 0.25, 0.4, 0.5], cells=2, max_rows=1, epsilon=1.0).q:
        for left in (0, 1, 2, 5, 30):
            for right in (0, 1, 3, 10, 100):
                found = float(module.critical_value(np.array(left), np.array(right), float(q), scale, missed))
                if left * (1 - q) + right * q == 0:
                    assert found == 0
                    continue
                exact = exact_critical(left, right, q, scale, missed)
                assert found >= exact
                if missed == 0.025 and scale >= 5:
                    assert found <= 1.03 * exact + 1


COVERED = [
    ("uniform", 50, 100, 1, 0.5),
    ("uniform", 1000, 1024, 1, 1.0),
    ("uniform", 100_000, 2048, 20, 1.0),
    ("skewed", 300, 100, 1, 2.0),
    ("skewed", 20_000, 1024, 5, 0.1),
    ("skewed", 1500, 65536, 1, 1.0),
    ("tied", 200, 100, 1, 1.0),
    ("tied", 1000, 65536, 3, 1.0),
    ("clusters", 40, 1024, 1, 1.0),
    ("uniform", 1, 100, 1, 1.0),
    ("uniform", 3, 65536, 1, 2.0),
    ("uniform", 30, 20, 1, 1.0),
]


def test_the_threshold_of_the_tests_of_coverage():
    assert stats.binom.cdf(LEAST_COVERED - 1, DRAWS, 0.95) < 1e-9 < stats.binom.cdf(LEAST_COVERED, DRAWS, 0.95)


@pytest.mark.statistical
@pytest.mark.parametrize(("kind", "rows", "cells", "max_rows", "epsilon"), COVERED)
def test_intervals_and_rank_errors_hold_the_truth(kind, rows, cells, max_rows, epsilon):
    """Of 2,000 groups with the same rows; fewer than 1,837 have a probability under 1e-9 at a coverage of 0.95."""
    places, counts = histogram(kind, rows, cells)
    mechanism = histogram_quantiles(q=QUANTILES, cells=cells, max_rows=max_rows, epsilon=epsilon)
    found = mechanism.release([(places, counts)] * DRAWS, unsafe_seed=7).value
    for place, q in enumerate(mechanism.q):
        wanted = truth(places.tolist(), counts.tolist(), q)
        inside = (found.low[:, place] <= wanted) & (wanted <= found.high[:, place])
        assert np.sum(inside) >= LEAST_COVERED
        distances = {
            point: rank_distance(places, counts, float(q), point) for point in set(found.estimate[:, place].tolist())
        }
        ranks = np.array([distances[point] for point in found.estimate[:, place].tolist()])
        assert np.sum(ranks <= found.rank_error[:, place]) >= LEAST_COVERED


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("kind", "rows", "cells", "max_rows", "epsilon"),
    [
        ("uniform", 1000, 1024, 1, 1.0),
        ("uniform", 100_000, 4096, 5, 0.1),
        ("skewed", 1_000_000, 4096, 20, 0.1),
        ("skewed", 1000, 65536, 1, 1.0),
        ("uniform", 200, 65536, 1, 2.0),
    ],
)
def test_intervals_are_little_wider_than_they_have_to_be(kind, rows, cells, max_rows, epsilon):
    """The median width is under 1.5 times twice what the error stays within 95 times in 100."""
    places, counts = histogram(kind, rows, cells)
    mechanism = histogram_quantiles(q=[0.25, 0.5, 0.75], cells=cells, max_rows=max_rows, epsilon=epsilon)
    found = mechanism.release([(places, counts)] * DRAWS, unsafe_seed=7).value
    for place, q in enumerate(mechanism.q):
        errors = np.abs(found.estimate[:, place] - truth(places.tolist(), counts.tolist(), q))
        widths = found.high[:, place] - found.low[:, place]
        assert np.median(widths) <= 1.5 * 2 * np.quantile(errors, 0.95)


@pytest.mark.statistical
def test_ties_are_found_exactly():
    """Seven hundred of a thousand rows lie in one of 65,536 cells: nearly all releases name it and no other."""
    places, counts = histogram("tied", 1000, 65536)
    mechanism = histogram_quantiles(q=[0.5], cells=65536, max_rows=1, epsilon=1.0)
    found = mechanism.release([(places, counts)] * DRAWS, unsafe_seed=7).value
    assert np.mean(found.estimate == 65536 // 3) > 0.95
    assert np.median(found.high - found.low) == 0


def test_the_interval_of_a_group_without_rows_is_nearly_all_of_the_range():
    mechanism = histogram_quantiles(q=QUANTILES, cells=1000, max_rows=1, epsilon=1.0)
    found = mechanism.release([([], [])] * 500, unsafe_seed=1).value
    assert np.median(found.high - found.low) == 999


def test_estimates_lie_in_their_intervals_and_these_in_the_range():
    mechanism = histogram_quantiles(q=[0.9, 0.1, 0.5, 0.5], cells=77, max_rows=2, epsilon=0.3)
    found = mechanism.release([histogram("uniform", rows, 77) for rows in range(300)], unsafe_seed=3).value
    assert found.estimate.shape == (300, 4)
    assert np.all((found.low >= 0) & (found.low <= found.estimate))
    assert np.all((found.estimate <= found.high) & (found.high < 77))
    assert np.all(np.isfinite(found.rank_error) & (found.rank_error >= 0))
    assert np.array_equal(found.estimate[:, 2], found.estimate[:, 3])


def test_many_groups_are_measured_in_blocks_and_stay_in_their_places():
    mechanism = histogram_quantiles(q=[0.5], cells=300, max_rows=1, epsilon=5.0)
    groups = [([group % 300], [1000]) for group in range(2 * module.BLOCK + 10)]
    found = mechanism.release(groups, unsafe_seed=1).value.estimate[:, 0]
    assert np.array_equal(found, np.arange(len(groups)) % 300)


def test_no_groups_no_answers():
    assert histogram_quantiles(q=[0.5], cells=300, max_rows=1, epsilon=1.0).release([]).value.estimate.shape == (0, 1)


def test_cells_outside_the_range_count_as_its_ends_and_counts_of_one_cell_add_up():
    mechanism = histogram_quantiles(q=[0, 0.5, 1], cells=10, max_rows=1, epsilon=1.0)
    value = [([-5, 4, 4, 10**30], [3, 2, 9, 1]), (np.array([7], dtype=np.uint8), np.array([2**63], dtype=np.uint64))]
    found = mechanism.release(value, unsafe_without_noise=True).value.estimate
    assert found.tolist() == [[0, 4, 9], [7, 7, 7]]


def test_the_bits_that_are_drawn_do_not_depend_on_the_data():
    mechanism, used = histogram_quantiles(q=[0.5, 1], cells=5000, max_rows=1, epsilon=1.0), set()
    for group in (([], []), ([1], [1]), ([3, 500, 900], [10, 10**6, 3]), histogram("uniform", 1000, 5000)):
        source = Counting()
        mechanism._drawn(mechanism._checked([group, ([], [])]), source)
        used.add(source.count)
    assert len(used) == 1


def test_a_release_from_the_systems_bits_is_private():
    mechanism = histogram_quantiles(q=[0.5], cells=100, max_rows=1, epsilon=1.0)
    assert mechanism.release([([1, 2], [5, 5])]).private
    assert "q=[0.5]" in repr(mechanism)


GOOD = {"q": [0.5], "cells": 100, "max_rows": 1, "epsilon": 1.0}


@pytest.mark.parametrize(
    ("name", "value"),
    [("q", value) for value in ([], 0.5, "0.5", None, [-0.1], [1.1], [math.nan], [True], ["1"], [0.5] * 100)]
    + [("cells", value) for value in (1, 0, 2**16 + 1, 10.0, True, None)]
    + [("max_rows", value) for value in (0, -1, 1.5, 10**10, None)]
    + [("epsilon", value) for value in (0, -1, math.nan, math.inf, True, "1", None)]
    + [("adjacency", value) for value in ("add", None, 1)],
    ids=str,
)
def test_bad_parameters_are_refused(name, value):
    with pytest.raises(InvalidArgument, match=name):
        histogram_quantiles(**{**GOOD, name: value})


def test_noise_that_no_sampler_draws_is_refused():
    with pytest.raises(InvalidArgument, match="noise"):
        histogram_quantiles(q=[0.5], cells=100, max_rows=10**9, epsilon=1e-9)


@pytest.mark.parametrize(
    "value",
    [
        "secret",
        "",
        31337,
        None,
        {},
        {"secret": 1},
        [31337],
        ["secret"],
        [([1], [2], [3])],
        [([1, 2], [31337])],
        [([1], ["secret"])],
        [([1.5], [1])],
        [([1], [1.5])],
        [([1], [math.nan])],
        [([1], [-31337])],
        [([[1]], [[1]])],
        [([True], [1])],
        [([None], [1])],
        [(1, 1)],
    ],
    ids=repr,
)
def test_bad_values_are_refused_without_being_shown_and_nothing_is_drawn(value, monkeypatch):
    refuses_quietly(histogram_quantiles(**GOOD), value, monkeypatch)


@pytest.mark.parametrize("rows", [60, 1000, 20_000])
def test_expected_errors_are_those_that_are_seen(rows):
    """Of 4,000 groups with noise of another seed 90 to 99 % are within: 200 trials place the 95 % no better."""
    made = histogram_quantiles(q=[0.25, 0.9], cells=1000, max_rows=3, epsilon=1.0)
    cells = np.arange(rows) * 1000 // rows
    places, counts = np.unique(cells, return_counts=True)
    found = made.release([(places, counts)] * 4000, unsafe_seed=2).value
    off = np.abs(found.estimate - cells[[rows // 4 - 1, rows * 9 // 10 - 1]])
    within = np.mean(off <= made.expected_errors(rows) + 1, axis=0)
    assert np.all(within > 0.9)
    assert np.all(np.mean(off < made.expected_errors(rows) - 1, axis=0) < 0.99)


def test_a_group_that_may_be_empty_has_an_expected_error_too():
    made = histogram_quantiles(q=[0, 1], cells=2, max_rows=1, epsilon=1.0)
    assert made.expected_errors(0).shape == (2,)

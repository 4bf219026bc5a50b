"""Scores are high where an output speaks for the first input."""

import numpy as np
import pytest

from sitr.audit.samples import Reader, Sample
from sitr.audit.scores import LinearScore, ValueScore, learn

CHANCES = np.random.default_rng(11)
BITS = ["low bits", "low bits by size", "low bits in order"]


def sample(values):
    return Reader.of(values).read(values)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (["a", "b"] * 10, ["a"] * 20, ["categories"]),
        (list(range(20)), list(range(20)), ["value", "linear", "bins", *BITS]),
        ([0.5] * 20, [1] * 20, ["value", "linear", "bins", *BITS]),
        ([(0, 1)] * 20, [(1, 1)] * 20, ["categories", "value", "linear", "bins"]),
        ([1, None] * 10, [1, 2] * 10, ["categories", "value", "linear", "bins"]),
        ([1.5] * 300 + list(range(300)), [0.0] * 600, ["value", "linear", "bins", *BITS]),
        ([k / 3 for k in range(2000)] + [7.7] * 6, [0.5] * 6, ["value", "linear", "bins", "repeats", *BITS]),
        ([f"{k}" for k in range(20)], ["x"] * 20, ["categories"]),
        ([float("nan")] * 20, [float("nan")] * 20, ["categories"]),
    ],
    ids=["text", "whole", "fractions", "vectors", "gaps", "frequent", "repeated", "distinct text", "no numbers"],
)
def test_every_score_that_the_outputs_allow_is_learned(first, second, expected):
    reader = Reader.of(first, second)
    assert {score.name for score in learn(reader.read(first), reader.read(second))} == set(expected)


def test_the_leading_coordinate_is_looked_at():
    rows = CHANCES.normal(size=(400, 5))
    moved = rows + np.array([0, 0, 3, 0, 0])
    value = learn(Sample(moved, moved), Sample(rows, rows))[0]
    assert value.words(1.5, above=True) == "coordinate 3 ≥ 1.5"


def test_a_cell_score_separates_and_pools_what_is_rare():
    first, second = sample([0] * 90 + [1] * 10), sample([0] * 10 + [1] * 90)
    (score,) = [score for score in learn(first, second) if score.name == "bins"]
    high, low, new = score.values(sample([0, 1, 77]))
    assert high > 2 > -2 > low
    assert low < new < high
    assert score.words(99.0, above=True) == "an output not seen before"


@pytest.mark.parametrize("width", [3, 300])
def test_a_linear_score_finds_a_direction_that_no_coordinate_shows(width):
    rows = CHANCES.normal(size=(2000, width))
    first, second = (Sample(part, part) for part in (rows[:1000] + 0.3, rows[1000:] - 0.3))
    score = LinearScore(first, second)
    assert score.values(first).mean() - score.values(second).mean() > 0.5 * score.values(first).std()
    assert ("squares" in score.words(0.0, above=True)) == (width == 3)


def test_a_linear_score_sees_spread():
    rows = CHANCES.normal(size=(2000, 2))
    first, second = (Sample(part, part) for part in (3 * rows[:1000], rows[1000:]))
    score = LinearScore(first, second)
    assert np.median(score.values(first)) > np.quantile(score.values(second), 0.8)


def test_odd_numbers_break_no_score():
    odd = np.array([[np.nan, 1e300], [np.inf, -np.inf], [0.0, 0.0], [1e-300, 5.0]] * 10)
    for score in learn(Sample(odd, odd), Sample(odd, odd[::-1])):
        assert not np.isnan(score.values(Sample(odd, odd))).any()
        assert score.words(0.0, above=False)


def test_a_value_is_what_it_is():
    score = ValueScore(sample([1.0, 2.0]), 0)
    assert score.values(Sample([], np.array([[3.0], [np.nan]]))).tolist() == [3.0, -np.inf]
    assert score.words(0.25, above=False) == "output ≤ 0.25"

"""Counts from what was measured: right on average, in their intervals often enough, and none where nothing tells."""

from itertools import combinations

import numpy as np
import pytest
from scipy.stats import chi2

from sitr.synthesis import choice, measuring, mixture, synthesizer
from sitr.synthesis.answers import DEVIATIONS, NOT_MEASURED, Count, _interval, count_rows, measured_sum
from sitr.synthesis.denoising import Denoised
from sitr.synthesis.measured import Interaction, Margin, Sum
from sitr.synthesis.measuring import Learnt
from sitr.synthesis.mixture import Mixture
from sitr.tables.codes import Code
from sitr.tables.domains import Domain

RELEASES, AT_LEAST = 2000, 1837
CODES = (
    Code.of("sex", Domain("string", categories=("f", "m"), required=True)),
    Code.of("region", Domain("string", categories=("a", "b", "c"), required=True)),
    Code.of("age", Domain("number", lower=0, upper=99, required=True), cells=10),
)
CONDITIONS = {
    "all": (),
    "one value": ((1, "b"),),
    "several values": ((1, ["a", "c"]),),
    "a range": ((2, (25, 64)),),
    "a pair": ((0, "f"), (1, "b")),
    "several of a pair": ((0, "m"), (1, ["a", "b"])),
}


def some_rows():
    generator = np.random.default_rng(1)
    sex = generator.integers(0, 2, 1500)
    region = (sex + generator.integers(0, 2, 1500)) % 3
    return np.stack([sex, region, np.clip(generator.poisson(3 + 2 * sex), 0, 9)], axis=1)


def truth(rows, conditions):
    kept = np.ones(len(rows), dtype=bool)
    for column, wanted in conditions:
        kept &= CODES[column].whole(wanted)[rows[:, column]]
    return int(kept.sum())


@pytest.fixture
def quick(monkeypatch):
    """What is learnt of the measurements is no part of a count of measured cells."""
    monkeypatch.setattr(Mixture, "fitted", lambda self, *_: self)
    monkeypatch.setattr(mixture, "COMPONENTS", 2)
    monkeypatch.setattr(choice, "HALVINGS", 20)
    monkeypatch.setattr(measuring, "denoised", lambda noisy, *_, **__: Denoised(np.maximum(noisy, 0.0), "alike"))


@pytest.fixture
def measured_again(monkeypatch):
    """Releases that fit what was measured, roughly; and each table of two columns when it is measured."""
    monkeypatch.setattr(mixture, "COMPONENTS", 8)
    monkeypatch.setattr(measuring, "STEPS", (15,) * measuring.ROUNDS)
    monkeypatch.setattr(choice, "HALVINGS", 25)
    monkeypatch.setattr(measuring, "denoised", lambda noisy, *_, **__: Denoised(np.maximum(noisy, 0.0), "alike"))
    found, measure = [], measuring.Measuring._measured_pair

    def recorded(self, pair, level, deviation):
        found.append(pair)
        return measure(self, pair, level, deviation)

    monkeypatch.setattr(measuring.Measuring, "_measured_pair", recorded)
    return found


@pytest.mark.statistical
def test_intervals_hold_the_truth(quick):
    """Of whole releases with exact noise, in which pairs are measured once or twice.

    Fewer than 1,837 of 2,000 intervals hold the truth with probability 9.5e-10, if each does with 0.95; half a row at
    each end makes that less. Errors in deviations are normal: their mean is beyond 6.6/√2000 with probability 4e-11,
    and each tail of their squares, which is that of χ², has 2e-11. The law can fail: intervals of half the variance
    would hold the truth 1,837 times with probability 2e-28 at most.
    """
    rows = some_rows()
    made = synthesizer([code.size for code in CODES], epsilon=1.0, delta=1e-6)
    true = {name: truth(rows, conditions) for name, conditions in CONDITIONS.items()}
    errors, widths = (np.empty((RELEASES, len(CONDITIONS))) for _ in range(2))
    held = np.zeros(len(CONDITIONS), dtype=int)
    for release in range(RELEASES):
        learnt = made.release(rows).value.learnt
        for place, (name, conditions) in enumerate(CONDITIONS.items()):
            found = count_rows(learnt, CODES, conditions)
            held[place] += found.low <= true[name] <= found.high
            masks = {column: CODES[column].whole(wanted) for column, wanted in conditions}
            errors[release, place] = found.value - true[name]
            widths[release, place] = measured_sum(learnt.measured, masks).variance ** 0.5
    assert held.min() >= AT_LEAST
    assert (np.abs((errors / widths).mean(axis=0)) < 6.6 / RELEASES**0.5).all()
    squares = ((errors / widths) ** 2).sum(axis=0)
    assert (chi2.ppf(2e-11, RELEASES) < squares).all()
    assert (squares < chi2.isf(2e-11, RELEASES)).all()
    narrow = np.abs(errors) <= DEVIATIONS * 0.5**0.5 * widths
    assert narrow.sum(axis=0).max() < AT_LEAST


@pytest.mark.statistical
def test_intervals_hold_the_truth_where_noise_decides_what_is_measured_again(measured_again):
    """A first measurement's noise is fitted, and the farther that is from the rows, the finer is the second one.

    Of 2,000 intervals of each pair more than 163 miss the truth with probability 9.5e-10, if each holds it with 0.95.
    Nothing is said where a pair was not measured, which is no miss. The fewer cells a table has, the more does the
    noise of each move its distance: two values of each column are the worst. Half a row at each end is little here.
    """
    generator = np.random.default_rng(2)
    first = generator.integers(0, 2, 15_000)
    rows = np.stack([first, *(np.where(generator.random(15_000) < part, 1 - first, first) for part in (0.45, 0.5))], 1)
    made = synthesizer((2, 2, 2), epsilon=0.2, delta=1e-6)
    pairs = list(combinations(range(3), 2))
    masks = [{column: np.array([True, False]) for column in pair} for pair in pairs]
    true = [int((rows[:, pair] == 0).all(axis=1).sum()) for pair in pairs]
    errors = np.zeros((RELEASES, len(pairs)))  # in half widths
    for release in range(RELEASES):
        measured = made.release(rows).value.learnt.measured
        for place, mask in enumerate(masks):
            found = measured_sum(measured, mask)
            if found is not None:
                _, high = _interval(Sum(1e6, found.variance), 2)  # far from 0, where it would be cut
                errors[release, place] = (found.value - true[place]) / (high - 1e6)
    assert (np.abs(errors) > 1).sum(axis=0).max() <= RELEASES - AT_LEAST
    assert (np.abs(errors) > 0.5**0.5).sum(axis=0).min() > RELEASES - AT_LEAST
    assert len(measured_again) > 2 * (errors != 0).sum()  # tables were measured again


@pytest.fixture(scope="module")
def learnt():
    rows = some_rows()
    made = synthesizer([code.size for code in CODES], epsilon=5.0, delta=1e-6)
    return made.release(rows, unsafe_seed=3).value.learnt


def test_what_was_measured_is_kept(learnt):
    assert [one.columns for one in learnt.measured[:3]] == [(0,), (1,), (2,)]
    assert {one.columns for one in learnt.measured[3:]} <= set(combinations(range(3), 2))
    for one in learnt.measured:
        assert one.variance > 0
        total = one.total({})
        assert abs(total.value - 1500) < 7 * total.variance**0.5
    for one in learnt.measured[3:]:
        assert one.shape == tuple(bins.max() + 1 for bins in one.bins)
        assert np.abs(one.cells.sum(axis=0)).max() < 1e-6


def test_what_cuts_a_cell_has_no_interval(learnt):
    found = count_rows(learnt, CODES, ((2, (20, 64)),))
    assert found.low is None
    assert found.high is None
    assert NOT_MEASURED in str(found)
    assert "age: the range cuts a cell in two" in str(found)
    assert count_rows(learnt, CODES, ((2, (25, 64)),)).low is not None
    whole, less = (count_rows(learnt, CODES, ((2, (low, 64)),)).value for low in (25, 20))
    assert less > 0.9 * whole


def test_what_was_not_measured_has_no_interval(learnt):
    """The model says a number that is near, for three columns of which two were measured at once."""
    conditions = ((0, "f"), (1, "b"), (2, (0, 44)))
    found = count_rows(learnt, CODES, conditions)
    assert found.low is None
    assert NOT_MEASURED in str(found)
    assert abs(found.value - truth(some_rows(), conditions)) < 150


def test_bins_that_are_cut_are_told():
    counted = [Margin(c, np.full(code.size, 100 / code.size), 1.0) for c, code in enumerate(CODES)]
    bins = np.arange(2), np.repeat([0, 1], 5)
    pair = Interaction((counted[0], counted[2]), bins, np.array([[5.0, -5.0], [-5.0, 5.0]]), 4.0)
    levels = measuring.Levels([np.arange(code.size) for code in CODES], [])
    shares = [np.full(code.size, 1 / code.size) for code in CODES]
    learnt = Learnt(Mixture(levels, np.zeros((1, levels.finest), dtype=np.float32)), shares, 100, (*counted, pair))
    assert count_rows(learnt, CODES, ((0, "f"), (2, (0, 44)))).value == pytest.approx(30)
    other = count_rows(learnt, CODES, ((0, "f"), (2, (45, 99))))
    deviation = pair.deviations[0, 1]
    assert other.high == pytest.approx(20 + 1.05 * 1.959964 * deviation + 0.5)  # wider for two columns: 0037
    cut = count_rows(learnt, CODES, ((0, "f"), (2, (0, 34))))
    assert cut.low is None
    assert "counted together in wider cells" in str(cut)
    assert cut.value == pytest.approx(100 / 2 * 0.4)
    half = count_rows(learnt, CODES, ((2, (0, 9)),))  # 5 of the first cell's 5 values, and 5 of the 10 of the second
    assert half.low is None
    assert half.value == pytest.approx(100 * 0.15)


def test_nothing_and_everything(learnt):
    assert count_rows(learnt, CODES, ((2, (64, 25)),)) == Count(0.0, 0.0, 0.0)
    assert count_rows(learnt, CODES, ((1, []),)).high == 0
    every = count_rows(learnt, CODES, ((1, ["a", "b", "c"]), (2, (-5, 500))))
    assert every == count_rows(learnt, CODES, ())
    assert abs(every.value - 1500) < 30


def test_conditions_on_one_column_hold_together(learnt):
    both = count_rows(learnt, CODES, ((2, (0, 64)), (2, (25, 99))))
    assert both == count_rows(learnt, CODES, ((2, (25, 64)),))


def test_no_end_of_an_interval_is_negative():
    empty = Margin(0, np.array([-90.0, -10.0]), 4.0)
    levels = measuring.Levels([np.arange(2)], [])
    learnt = Learnt(Mixture(levels, np.zeros((1, 2), dtype=np.float32)), [np.full(2, 0.5)], 1, (empty,))
    assert count_rows(learnt, CODES, ((0, "f"),)) == Count(-90.0, 0.0, 0.0)

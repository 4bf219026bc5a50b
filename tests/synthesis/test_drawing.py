"""Drawing: counts are whole, right on average, and rows follow the mixture."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.synthesis import drawing
from sitr.synthesis.bins import Levels
from sitr.synthesis.drawing import blocks, drawn, even_counts
from sitr.synthesis.mixture import Mixture


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8).filter(lambda s: sum(s) > 0.01), st.integers(0, 500))
def test_counts_add_up_and_are_off_by_less_than_one(shares, rows):
    share = np.array([shares]) / sum(shares)
    counts = even_counts(share, np.array([rows]), np.random.default_rng(1))
    assert counts.sum() == rows
    assert (np.abs(counts - share * rows) <= 1 + 1e-6).all()


def test_counts_are_right_on_average():
    shares, rows = np.tile([[0.123, 0.456, 0.421]], (200_000, 1)), np.full(200_000, 7)
    means = even_counts(shares, rows, np.random.default_rng(2)).mean(axis=0)
    assert means == pytest.approx(7 * shares[0], abs=6.1 * 0.5 / np.sqrt(200_000))  # false alarms: 1e-9


def test_rows_follow_the_mixture():
    generator = np.random.default_rng(3)
    singles = [generator.dirichlet(np.ones(5)), generator.dirichlet(np.ones(7))]
    levels = Levels.of(singles, (0.12,))
    mixture = Mixture(levels, generator.normal(0, 2, (300, levels.finest)).astype(np.float32))
    rows = drawn(mixture, singles, 200_000, generator)
    binned = [bins[rows[:, column]] for column, bins in enumerate(levels.bins)]
    sizes = levels.sizes[0]
    found = np.bincount(binned[0] * sizes[1] + binned[1], minlength=sizes.prod()).reshape(sizes) / len(rows)
    wanted = mixture.tables()[0][levels.slice(0, 0), levels.slice(0, 1)]
    assert np.abs(found - wanted).sum() / 2 < 0.01
    for column, bins in enumerate(levels.bins):
        inside = np.bincount(rows[:, column], minlength=singles[column].size) / len(rows)
        for bin_ in range(sizes[column]):
            values = bins == bin_
            assert inside[values] / inside[values].sum() == pytest.approx(
                singles[column][values] / singles[column][values].sum(), abs=0.02
            )


@pytest.mark.parametrize("rows", [0, 1, 299, 1000])
def test_as_many_rows_as_were_asked_for(rows):
    levels = Levels.of([np.array([0.5, 0.5])], (0.0,))
    mixture = Mixture(levels, np.zeros((300, 2), dtype=np.float32))
    assert drawn(mixture, [np.array([0.5, 0.5])], rows, np.random.default_rng(4)).shape == (rows, 1)


def test_blocks_are_the_rows_that_are_drawn_at_once(monkeypatch):
    monkeypatch.setattr(drawing, "BLOCK", 400)
    generator = np.random.default_rng(5)
    singles = [generator.dirichlet(np.ones(300)), generator.dirichlet(np.ones(3))]
    levels = Levels.of(singles, (0.02,))
    mixture = Mixture(levels, generator.normal(0, 1, (30, levels.finest)).astype(np.float32))
    parts = list(blocks(mixture, singles, 1000, np.random.default_rng(6)))
    assert [len(part) for part in parts] == [400, 400, 200]
    assert (np.concatenate(parts) == drawn(mixture, singles, 1000, np.random.default_rng(6))).all()
    assert parts[0].dtype == np.uint16

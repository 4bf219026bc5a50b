"""The mixture: its slope is that of what is made small, and it finds what it is told."""

import numpy as np
import pytest

from sitr.synthesis import mixture
from sitr.synthesis.bins import Levels
from sitr.synthesis.mixture import Mixture, Targets, Triple


def some_targets(generator, columns=3, values=4):
    shares = [generator.dirichlet(np.ones(values)) for _ in range(columns)]
    levels = Levels.of(shares, (0.0, 0.3))
    singles = np.concatenate(shares).astype(np.float32)
    targets = Targets(levels, singles, np.full(singles.size, 3.0, dtype=np.float32))
    for one, other, level in ((0, 1, 0), (0, 2, 1)):
        shape = tuple(levels.sizes[level][[one, other]])
        table = generator.dirichlet(np.ones(np.prod(shape))).reshape(shape)
        targets.put(level, (one, other), table, 5.0)
    sizes = tuple(levels.sizes[-1])
    shares = generator.dirichlet(np.ones(np.prod(sizes))).reshape(sizes)
    targets.triples = [Triple((0, 1, 2), shares, 7.0)]
    return levels, targets


def loss(levels, targets, logits):
    shares, _ = mixture._normal(levels, logits)
    wide = mixture._at_all_levels(levels, shares)
    parts = zip(targets.pair_weights, map(mixture._tables, wide), targets.pairs, strict=True)
    pairs = sum((weights * (tables - wanted) ** 2).sum() / 4 for weights, tables, wanted in parts)
    for columns, wanted, weight in targets.triples:
        one, other, third = (wide[-1][levels.slice(-1, column)] for column in columns)
        found = np.einsum("ak,bk,ck->abc", one, other, third) / one.shape[1]
        pairs += weight * ((found - wanted) ** 2).sum() / 2
    return pairs + (targets.single_weights * (shares.mean(axis=1) - targets.singles) ** 2).sum() / 2


def test_the_slope_is_that_of_the_loss(monkeypatch):
    monkeypatch.setattr(mixture, "_tables", lambda wide: (wide @ wide.T) / wide.shape[1])
    generator = np.random.default_rng(1)
    levels, targets = some_targets(generator)
    logits = generator.normal(size=(levels.finest, 5))
    shares, _ = mixture._normal(levels, logits)
    wide = mixture._at_all_levels(levels, shares)
    parts = zip(wide, targets.pair_weights, targets.pairs, strict=True)
    moved = [(weights * (mixture._tables(part) - wanted)) @ part for part, weights, wanted in parts]
    for triple in targets.triples:
        mixture._add_slope(triple, levels, wide[-1], moved[-1])
    slope = mixture._slope(levels, shares, moved, targets) / logits.shape[1]
    for _ in range(20):
        place = tuple(generator.integers(0, logits.shape))
        moved = [logits.copy() for _ in range(2)]
        for sign, one in zip((1, -1), moved, strict=True):
            one[place] += sign * 1e-4
        rise = (loss(levels, targets, moved[0]) - loss(levels, targets, moved[1])) / 2e-4
        assert slope[place] == pytest.approx(rise, rel=2e-3, abs=1e-6)


def test_it_finds_a_table_that_it_is_told_exactly():
    generator = np.random.default_rng(2)
    table = generator.dirichlet(np.ones(12)).reshape(3, 4)
    levels = Levels.of([table.sum(axis=1), table.sum(axis=0)], (0.0,))
    singles = np.concatenate([table.sum(axis=1), table.sum(axis=0)]).astype(np.float32)
    targets = Targets(levels, singles, np.full(7, 1e6, dtype=np.float32))
    targets.put(0, (0, 1), table, 1e6)
    found = Mixture.begun(levels, singles, generator).fitted(targets, 150, 10.0).tables()[0]
    assert found[:3, 3:] == pytest.approx(table, abs=0.01)


def test_it_finds_what_only_three_columns_tell():
    """Of three fair coins the third says whether the others agree: every pair is independent."""
    generator = np.random.default_rng(4)
    shares = [np.full(2, 0.5)] * 3
    levels = Levels.of(shares, (0.0, 0.0))
    singles = np.full(6, 0.5, dtype=np.float32)
    table = np.array([[[0.25, 0], [0, 0.25]], [[0, 0.25], [0.25, 0]]])
    targets = Targets(levels, singles, np.full(6, 1e6, dtype=np.float32), [Triple((0, 1, 2), table, 1e6)])
    found = Mixture.begun(levels, singles, generator).fitted(targets, 150, 10.0)
    assert found.triple((0, 1, 2)) == pytest.approx(table, abs=0.02)
    assert found.tables()[0][:2, 2:4] == pytest.approx(0.25, abs=0.02)


def test_what_is_common_is_where_it_begins():
    generator = np.random.default_rng(3)
    shares = [np.array([0.9, 0.1]), np.array([0.2, 0.8])]
    levels = Levels.of(shares, (0.0,))
    begun = Mixture.begun(levels, np.concatenate(shares).astype(np.float32), generator)
    assert begun.shares.mean(axis=0) == pytest.approx(np.concatenate(shares), abs=0.02)


def test_any_logits_are_shares_of_each_column():
    levels = Levels.of([np.full(2, 0.5), np.full(3, 1 / 3)], (0.0,))
    made = Mixture(levels, np.array([[1e30, -1e30, 0, 5e4, 5e4]], dtype=np.float32))
    assert made.shares == pytest.approx(np.array([[1, 0, 0, 0.5, 0.5]]))

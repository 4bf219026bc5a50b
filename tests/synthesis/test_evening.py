"""Evening out: what is drawn comes nearer to the mixture, and stays what was drawn inside each component."""

import tracemalloc

import numpy as np
import pytest

from sitr.synthesis import drawing, evening
from sitr.synthesis.bins import Levels
from sitr.synthesis.drawing import drawn
from sitr.synthesis.evening import evened
from sitr.synthesis.mixture import Mixture
from sitr.synthesis.rules import Rules


def some_mixture(generator, columns=5, values=6, components=20):
    shares = [generator.dirichlet(np.ones(values)) for _ in range(columns)]
    levels = Levels.of(shares, (0.0,))
    return Mixture(levels, generator.normal(0, 1.5, (components, levels.finest)).astype(np.float32)), shares


def some_rows(mixture, each, generator):
    """Rows in the order of the components, whose columns are drawn one by one."""
    levels = mixture.levels
    rows = np.empty((each.sum(), len(levels.bins)), dtype=np.uint8)
    for row, component in enumerate(np.repeat(np.arange(each.size), each)):
        for column in range(rows.shape[1]):
            shares = mixture.shares[component, levels.slice(0, column)].astype(float)
            rows[row, column] = generator.choice(shares.size, p=shares / shares.sum())
    return rows


def off(rows, mixture):
    levels, found = mixture.levels, 0.0
    tables = mixture.tables()[0]
    for one in range(rows.shape[1]):
        for other in range(one):
            here, there = levels.slice(0, one), levels.slice(0, other)
            table = np.zeros(levels.sizes[0][[one, other]])
            np.add.at(table, (rows[:, one], rows[:, other]), 1 / len(rows))
            found += float(((table - tables[here, there]) ** 2).sum())
    return found


def test_pairs_come_nearer_and_columns_of_a_component_keep_their_counts():
    generator = np.random.default_rng(1)
    mixture, _ = some_mixture(generator)
    each = np.full(20, 100)
    rows = some_rows(mixture, each, generator)
    before = rows.copy()
    evened(rows, each, mixture, generator)
    assert off(rows, mixture) < 0.6 * off(before, mixture)
    for component in range(20):
        some = slice(100 * component, 100 * (component + 1))
        assert (np.sort(rows[some], axis=0) == np.sort(before[some], axis=0)).all()


def test_what_is_off_is_how_many_rows_more_there_are_than_the_mixture_says():
    generator = np.random.default_rng(7)
    shares = [generator.dirichlet(np.ones(values)) for values in (2, 5, 3)]
    levels = Levels.of(shares, (0.0,))
    mixture = Mixture(levels, generator.normal(0, 1.5, (4, levels.finest)).astype(np.float32))
    each = np.array([10, 0, 25, 7])
    rows = some_rows(mixture, each, generator)
    found = evening._off(rows + levels.starts[0], each, mixture)
    for one, other in ((0, 1), (0, 2), (1, 2)):
        here, there = levels.slice(0, one), levels.slice(0, other)
        table = np.zeros(levels.sizes[0][[one, other]])
        np.add.at(table, (rows[:, one], rows[:, other]), 1)
        for size, by in zip(each, mixture.shares.astype(float), strict=True):
            table -= size * np.outer(by[here], by[there])
        assert found[here, there] == pytest.approx(table, abs=1e-4)
        assert found[there, here] == pytest.approx(table.T, abs=1e-4)


def test_what_is_off_is_counted_on_as_rows_are_swapped():
    generator = np.random.default_rng(2)
    mixture, _ = some_mixture(generator, columns=4)
    each = np.full(20, 30)
    places = some_rows(mixture, each, generator) + mixture.levels.starts[0]
    known = evening._off(places, each, mixture)
    owners = np.repeat(np.arange(20), each)
    for column in (0, 3, 1, 2):
        one, other = evening._tried(owners, generator)
        assert (owners[one] == owners[other]).all()
        assert np.unique([one, other]).size == 2 * one.size
        bins = mixture.levels.slice(0, column)
        evening._swap(places, known, bins, column, *evening._differing(places[:, column], one, other))
    assert known == pytest.approx(evening._off(places, each, mixture), abs=1e-3)


def test_nothing_changes_where_both_rows_have_the_same_bin_of_another_column():
    """The last column gains 2 by a swap; that the column between was said to lose 2 kept it from being made."""
    places = np.array([[0, 2, 3], [1, 2, 4]])
    known = np.zeros((5, 5), dtype=np.float32)
    for one, other, rows in ((0, 3, 1), (1, 4, 1), (1, 3, -0.5), (0, 4, -0.5)):
        known[one, other] = known[other, one] = rows
    evening._swap(places, known, slice(0, 2), 0, np.array([0]), np.array([1]))
    assert places.tolist() == [[1, 2, 3], [0, 2, 4]]
    assert known[1, 3] == known[0, 4] == 0.5
    assert known[0, 3] == known[1, 4] == 0


@pytest.mark.parametrize(
    ("columns", "values", "spread", "each", "part"),
    [(3, 2, 1.5, 400, 0.05), (2, 2, 1.5, 1000, 0.05), (6, 4, 1.0, 400, 0.05), (20, 5, 2.0, 20, 0.4)],
)
def test_many_swaps_at_once_do_not_overshoot(columns, values, spread, each, part):
    """In squares, what was left was .78, 1.67 (nearer before), .18 and .59 of what it is where nothing is swapped."""
    generator = np.random.default_rng(1)
    levels = Levels.of([generator.dirichlet(np.ones(values)) for _ in range(columns)], (0.0,))
    mixture = Mixture(levels, generator.normal(0, spread, (100, levels.finest)).astype(np.float32))
    sizes = np.full(100, each)
    rows = np.empty((100 * each, columns), dtype=np.uint8)
    for column in range(columns):
        counts = drawing.even_counts(mixture.shares[:, levels.slice(0, column)].astype(float), sizes, generator)
        rows[:, column] = np.repeat(np.tile(np.arange(values), 100), counts.ravel())
        for component in np.split(rows[:, column], 100):
            generator.shuffle(component)
    before = off(rows, mixture)
    evened(rows, sizes, mixture, generator)
    assert off(rows, mixture) < part * before


def test_tables_of_all_bins_are_held_once_and_in_few_bits():
    generator = np.random.default_rng(1)
    mixture, _ = some_mixture(generator, columns=4, values=250, components=3)
    each = np.full(3, 2)
    places = some_rows(mixture, each, generator) + mixture.levels.starts[0]
    tracemalloc.start()
    evening._off(places, each, mixture)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 1.5 * 4 * mixture.levels.finest**2


@pytest.mark.parametrize("change", ["few rows", "many bins"])
def test_tables_of_all_bins_are_not_made_where_nothing_can_be_swapped(monkeypatch, change):
    generator = np.random.default_rng(1)
    mixture, shares = some_mixture(generator)
    monkeypatch.setattr(evening, "_off", lambda *_: pytest.fail("made"))
    if change == "many bins":
        monkeypatch.setattr(evening, "MOST_BINS", mixture.levels.finest - 1, raising=False)
    rows = len(mixture.shares) if change == "few rows" else 1000
    assert drawn(mixture, shares, rows, generator).shape == (rows, 5)


@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (1, 3), (50, 1)])
def test_few_rows_or_columns_are_left_as_they_are(rows, columns):
    generator = np.random.default_rng(3)
    mixture, shares = some_mixture(generator, columns=columns)
    assert drawn(mixture, shares, rows, generator).shape == (rows, columns)


def test_many_rows_are_left_as_they_are(monkeypatch):
    generator = np.random.default_rng(4)
    mixture, shares = some_mixture(generator)
    monkeypatch.setattr(evening, "WORK", 500 * 25 - 1)
    found = drawn(mixture, shares, 500, np.random.default_rng(5))
    monkeypatch.setattr(drawing, "evened", lambda *_: None)
    assert (found == drawn(mixture, shares, 500, np.random.default_rng(5))).all()


def not_evened(mixture, shares, rows):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(drawing, "evened", lambda *_: None)
        return drawn(mixture, shares, rows, np.random.default_rng(5))


@pytest.mark.parametrize(("rows", "block"), [(500, 500), (1000, 400)])
def test_the_limit_is_that_of_all_rows_and_counts_what_comes_first(monkeypatch, rows, block):
    """Each block had a limit of its own, and the first tables, which take as long as a turn of all columns, no part."""
    mixture, shares = some_mixture(np.random.default_rng(4))
    monkeypatch.setattr(drawing, "BLOCK", block)
    for work, is_evened in ((2 * rows * 25 - 1, False), (2 * rows * 25, True)):
        monkeypatch.setattr(evening, "WORK", work)
        found = drawn(mixture, shares, rows, np.random.default_rng(5))
        assert (found != not_evened(mixture, shares, rows)).any() == is_evened


def test_rows_that_replace_others_are_not_evened(monkeypatch):
    """Few of them are taken, and up to twenty blocks of them are drawn."""
    mixture, shares = some_mixture(np.random.default_rng(4), values=2)
    turns, original = [], drawing.evened

    def recorded(bins, each, mixture, generator, passes):
        turns.append(passes)
        original(bins, each, mixture, generator, passes)

    monkeypatch.setattr(drawing, "evened", recorded)
    rules = Rules([2] * 5, impossible=[{0: {1}}])  # half of all rows break it, and no swap helps
    rows = drawn(mixture, shares, 500, np.random.default_rng(5), rules)
    assert (rows[:, 0] == 0).all()
    assert turns[0] == evening.PASSES
    assert len(turns) > 1
    assert not any(turns[1:])


def test_three_columns_stay_as_the_mixture_has_them():
    """Swaps stay inside components: what a component alone tells of three columns is kept."""
    generator = np.random.default_rng(6)
    levels = Levels.of([np.full(2, 0.5)] * 3, (0.0,))
    far = 20.0
    corners = [(0, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0)]  # any two are independent, and the third is told by them
    logits = np.zeros((4, 6), dtype=np.float32)
    for component, corner in enumerate(corners):
        for column, value in enumerate(corner):
            logits[component, 2 * column + value] = far
    rows = drawn(Mixture(levels, logits), [np.full(2, 0.5)] * 3, 1000, generator)
    assert (rows.sum(axis=1) % 2 == 0).all()

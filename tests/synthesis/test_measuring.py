"""The measurements: between neighbours they move no farther than was paid for, whatever was measured before."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from sitr.accounting.notions import SMOOTHING, discrete_gdp
from sitr.errors import InvalidArgument
from sitr.mechanisms.randomness import Seeded
from sitr.synthesis import choice, interactions, measuring
from sitr.synthesis.bins import MOST_BINS
from sitr.synthesis.choice import LEAST_DEVIATION, Scores
from sitr.synthesis.measured import Interaction
from sitr.synthesis.measuring import LEVELS, MOST_VALUES, ROUNDS, Costs, Measuring
from sitr.synthesis.synthesizer import CodedRows, synthesizer

SIZES = (2, 7, 40, 3)
NEIGHBOURS = [("add_remove", 1), ("add_remove", 4), ("replace_one", 1), ("replace_one", 3)]


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    """What is measured moves by the rows, however well the mixture fits."""
    monkeypatch.setattr(measuring, "STEPS", (20,) * measuring.ROUNDS)


class Cheap(Costs):
    """Says that distances move a twentieth as far as they do."""

    moved = property(lambda self: self.rows / 20)


class Transcript(Measuring):
    """Keeps what was counted and what was measured of it; or repeats what another one measured."""

    def __init__(self, *arguments, repeats=None):
        self.counts, self.measured, self.repeats = [], [], repeats
        super().__init__(*arguments)

    def _noisy(self, counts, deviation):
        made = super()._noisy(counts, deviation) if self.repeats is None else self.repeats.measured[len(self.measured)]
        self.counts.append((counts.copy(), deviation))
        self.measured.append(made)
        return made


def transcript(rows, costs, repeats=None):
    counter = CodedRows(rows, SIZES)
    made = Transcript(counter, (False, True, True, False), costs, Seeded(5), np.random.default_rng(5), repeats=repeats)
    made.learnt()
    return made


def apart(here, there):
    """The μ² by which two transcripts with the same noise are apart, and what passes for Gaussian nowhere there."""
    assert len(here.counts) == len(there.counts)
    spent = outside = 0.0
    for (counts, deviation), (moved, same) in zip(here.counts, there.counts, strict=True):
        assert deviation == same
        spent += float(((counts - moved) ** 2).sum()) / (deviation**2 - SMOOTHING)
        outside += int((counts != moved).sum()) * discrete_gdp(deviation, 1)[1]
    return spent, outside


def neighbours(generator, count, adjacency, most, *, alike=None):
    """Rows, and those of a neighbour: a unit goes, or its rows are replaced; if all are alike, tables move farthest."""
    others = some_rows(generator, count)
    alike = generator.random() < 0.5 if alike is None else alike
    rows = np.concatenate([some_rows(generator, 1 if alike else most) for _ in range(2)])
    units = np.split(np.repeat(rows, most, axis=0) if alike else rows, 2)
    one = np.concatenate([others, units[0]])
    return one, np.concatenate([others, units[1]]) if adjacency == "replace_one" else others


def some_rows(generator, count):
    first = generator.integers(0, 2, count)
    second = (first * 3 + generator.integers(0, 4, count)) % 7
    third = np.clip(generator.normal(10 + 10 * first, 4, count).round(), 0, 39)
    return np.stack([first, second, third, generator.integers(0, 3, count)], axis=1).astype(np.int64)


@pytest.mark.parametrize(("seed", "check"), [(0, 0.0), (1, 0.2)])
@pytest.mark.parametrize("epsilon", [1.0, 1000.0])
@pytest.mark.parametrize(("adjacency", "most"), NEIGHBOURS)
def test_what_is_measured_moves_no_farther_than_was_paid_for(seed, check, epsilon, adjacency, most):
    """With much to spend, tables of three columns are measured too."""
    generator = np.random.default_rng(seed)
    costs = synthesizer(
        SIZES, epsilon=epsilon, delta=1e-6, max_rows_per_unit=most, adjacency=adjacency, check=check
    ).costs
    one, other = neighbours(generator, 3000 if epsilon == 1 else 20_000, adjacency, most)
    here = transcript(one, costs)
    there = transcript(other, costs, repeats=here)
    assert here.with_triples == bool(here.triples) == (epsilon > 1)
    spent, outside = apart(here, there)
    assert 0 < spent <= costs.mu**2
    assert outside <= costs.outside


@pytest.mark.parametrize(("adjacency", "most"), NEIGHBOURS)
def test_plain_counts_that_stand_for_interactions_move_no_farther_than_was_paid_for(adjacency, most, monkeypatch):
    monkeypatch.setattr(measuring, "WITHIN", np.inf)
    costs = synthesizer(SIZES, epsilon=1.0, delta=1e-6, max_rows_per_unit=most, adjacency=adjacency).costs
    one, other = neighbours(np.random.default_rng(8), 3000, adjacency, most, alike=True)
    here = transcript(one, costs)
    there = transcript(other, costs, repeats=here)
    tables = [counts for counts, _ in here.counts if counts.ndim == 2]
    assert tables
    assert all(table.sum() == len(one) for table in tables)
    spent, outside = apart(here, there)
    assert 0.5 * costs.mu**2 < spent <= costs.mu**2
    assert outside <= costs.outside


class ManyRows:
    """Counts of two columns of 20 values, of 6·10¹¹ rows."""

    table = 10**9 * (1 + 10 * np.eye(20, dtype=np.int64))

    def singles(self):
        return [self.table.sum(axis=1), self.table.sum(axis=0)]

    def pairs(self, bins):
        assert [one.tolist() for one in bins] == 2 * [list(range(20))]
        return {(0, 1): self.table}

    def tables(self, groups, bins):
        pytest.fail("there are no three columns")


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_units_of_very_many_rows_have_their_tables_measured_too(adjacency):
    """An interaction is measured in 1/400 of a row, and so much noise is not drawn: no table was ever measured."""
    made = synthesizer((20, 20), epsilon=1, delta=1e-6, max_rows_per_unit=10**6, adjacency=adjacency)
    tables = made.release(ManyRows(), unsafe_seed=5).value.learnt.measured
    (found,) = (one for one in tables if isinstance(one, Interaction))
    error = found.cells - interactions.centred(ManyRows.table.astype(np.float64))
    deviation = found.variance**0.5
    assert np.abs(error).max() < 7 * deviation
    assert 0.5 * deviation < error.std() < 1.5 * deviation
    part = made.costs.reach**2 / found.variance / (ROUNDS * made.costs.pairs(triples=False) ** 2)
    assert 0.99 < part <= 1


@pytest.mark.parametrize(("adjacency", "most"), [("add_remove", 1), ("add_remove", 5), ("replace_one", 5)])
def test_outside_counts_each_number_that_moves_once(adjacency, most):
    """One column, with so little noise that it is as small as it may be, of which a unit moves as many cells as it can;
    and the distances of each column and each two, all of which it moves."""
    costs = Costs(1e3, most, adjacency, 1)
    kept, left = np.zeros(40, dtype=np.int64), np.arange(most)
    moved = kept.copy()
    moved[left] = 1
    if adjacency == "replace_one":
        kept[most + left] = 1
    (deviation,) = costs.deviations([40])
    outside = int((kept != moved).sum()) * discrete_gdp(float(deviation), 1)[1]
    assert outside == pytest.approx(costs.outside, rel=1e-9, abs=0)
    assert outside <= costs.outside
    two, least = Costs(1e3, most, adjacency, 2, 0.5), discrete_gdp(LEAST_DEVIATION, 1)[1]
    numbers = 2 * two.moved + len(LEVELS) * ROUNDS + 3  # counts, and distances; and all cells of each interaction
    expected = numbers * discrete_gdp(float(deviation), 1)[1] + ROUNDS * MOST_BINS**2 // 2 * least
    assert two.outside == pytest.approx(expected, rel=1e-9, abs=0)


def test_outside_is_as_little_as_is_said():
    """By the docstring of `synthesizer`, of as many columns as there may be; it grew with the square of the rows."""
    assert Costs(1.0, 10**6, "replace_one", 200, 0.5).outside < 1e-10
    assert Costs(1.0, 1000, "replace_one", 200, 0.5).outside < 1e-13


def test_all_that_two_columns_may_cost_is_spent_on_their_table():
    """Deviations of 2^(k/2) left a quarter of it, and what a round left was lost."""
    generator = np.random.default_rng(3)
    first = generator.integers(0, 8, 20_000)
    rows = np.stack([first, np.where(generator.random(20_000) < 0.6, first, generator.integers(0, 8, 20_000))], axis=1)
    for epsilon in np.geomspace(0.5, 4, 8):
        made = synthesizer((8, 8), epsilon=float(epsilon), delta=1e-6)
        tables = made.release(rows, unsafe_seed=3).value.learnt.measured
        spent = sum(
            interactions.reach(one.shape, 1, "add_remove") ** 2 / one.cells.size**2 / one.variance
            for one in tables
            if isinstance(one, Interaction)
        )
        part = spent / (ROUNDS * made.costs.pairs(triples=False) ** 2)  # less what discrete noise gives up
        assert 0.995 < part <= 1


def spent_on_tables(made):
    """In fractions: what its tables of two and three columns cost, by what a unit moves and what is drawn."""
    spent = Fraction(0)
    for counts, deviation in made.counts:
        if counts.ndim > 1:
            costs = made.costs
            pair = counts.ndim == 2
            reach = interactions.reach(counts.shape, costs.rows, costs.adjacency) if pair else costs.reach
            spent += Fraction(reach) ** 2 / (Fraction(deviation) ** 2 - Fraction(SMOOTHING))
    return spent


@pytest.mark.parametrize("chosen", ["by their worth", "none in the end"])
@pytest.mark.parametrize("mu", [0.1, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_what_is_left_is_handed_on_and_no_more(adjacency, mu, chosen, monkeypatch):
    """With the largest μ tables of three columns are measured too."""
    if chosen == "none in the end":
        of_scores = Scores.chosen
        monkeypatch.setattr(Scores, "chosen", lambda self, mu, whole=False: {} if whole else of_scores(self, mu))
    costs = Costs(mu, 2, adjacency, len(SIZES))
    made = transcript(some_rows(np.random.default_rng(4), 50_000), costs)
    may = ROUNDS * Fraction(costs.pairs(triples=made.with_triples)) ** 2
    assert made.with_triples == (mu == 3)
    assert bool(made.triples) == (mu == 3 and chosen == "by their worth")
    if made.with_triples:
        may += Fraction(costs.triples) ** 2
    assert 1 - Fraction(1, 10**9) < spent_on_tables(made) / may <= 1


def test_nothing_is_spent_on_tables_if_none_is_ever_worth_it():
    """There is none to measure again: less is spent than is charged."""
    costs, sizes = Costs(0.05, 1, "add_remove", 2), (30, 30)
    rows = np.random.default_rng(4).integers(0, 30, (500, 2))
    made = Transcript(CodedRows(rows, sizes), (False, False), costs, Seeded(5), np.random.default_rng(5))
    learnt = made.learnt()
    assert spent_on_tables(made) == 0
    assert [one.columns for one in learnt.measured] == [(0,), (1,)]


def measured_before(shapes, costs):
    """What has measured tables of these shapes, and is to measure them again."""
    made = Measuring.__new__(Measuring)
    made.costs, made.with_triples = costs, False
    made.pairs = tuple((0, place + 1) for place in range(len(shapes)))
    made.found = {(pair, 1): None for pair in made.pairs}
    made.counted = {(pair, 1): np.zeros(shape) for pair, shape in zip(made.pairs, shapes, strict=True)}
    return made


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("rows", [1, 10**6])
def test_what_is_measured_again_costs_all_that_is_left(adjacency, rows):
    """Of units of very many rows large tables were left out, and their part with them."""
    shapes, costs = [(2, 2), (3, 2), (70, 80)], Costs(0.2, rows, adjacency, 4)
    again = measured_before(shapes, costs)._again(0.05)
    assert len(again) == 3
    spent = sum(Fraction(one.mu) ** 2 for one in again.values())
    assert 1 - Fraction(1, 10**9) < spent / Fraction(0.05) ** 2 <= 1


def test_what_is_measured_again_has_few_deviations():
    """Each has a table of its own to draw from: there was one for each shape."""
    shapes = [(x, y) for x in range(2, 15) for y in range(2, 15)]
    again = measured_before(shapes, Costs(0.5, 1, "add_remove", 20))._again(0.1)
    assert len(again) == len(shapes)
    assert len({one.deviation for one in again.values()}) < 20


def levels_of(shares, rows=10**6):
    """The bins of columns with these shares, by so many rows."""
    made = Measuring.__new__(Measuring)
    columns = len(shares)
    made.costs, made.with_triples, made.rows = Costs(0.18, 1, "add_remove", columns), False, float(rows)
    made.pairs, made.singles = tuple(combinations(range(columns), 2)), shares
    return made._levels(())


@pytest.mark.parametrize("columns", [2, 30, 200])
def test_there_are_no_more_bins_than_may_be(columns):
    """Columns of many even values had 66 bins each, however many columns there were; one of two values keeps both."""
    levels = levels_of([np.array([0.9, 0.1]), *[np.full(200, 1 / 200)] * (columns - 1)])
    assert levels.finest <= MOST_BINS
    assert levels.sizes[0, 0] == 2
    assert levels.sizes[0].min() >= 2


@pytest.mark.parametrize("epsilon", [0.03, 0.05, 0.07, 0.1, 0.2])
@pytest.mark.parametrize("columns", [1, 2, 3, 4])
def test_what_is_accepted_can_be_released(columns, epsilon):
    """Noise that bins are planned with, and that is never drawn, was refused when it had been charged already."""
    try:
        made = synthesizer((4,) * columns, epsilon=epsilon, delta=1e-4, max_rows_per_unit=10**6)
    except InvalidArgument:
        assert (columns, epsilon) not in {(2, 0.1), (3, 0.2), (4, 0.2)}
        return
    rows = np.random.default_rng(5).integers(0, 4, (10, columns))
    assert made.release(rows, unsafe_seed=5).value.sample(5).shape == (5, columns)


@pytest.mark.parametrize("check", [0.0, 0.3])
@pytest.mark.parametrize("columns", [1, 2, 4])
def test_all_noise_that_is_drawn_is_known_before(columns, check, monkeypatch):
    """Where the sampler has just as much as is needed, nothing fails; with less, it is refused."""
    generator = np.random.default_rng(6)
    costs, sizes = Costs(0.5, 3, "replace_one", columns, check), (5,) * columns
    drawn = [costs.deviations(sizes).max(), costs.check_deviation() if check else 0]
    most = max(*drawn, costs.score_deviation(len(LEVELS) * columns * (columns - 1) // 2) if columns > 1 else 0)
    rows = generator.integers(0, 5, (3000, columns))
    for module in (measuring, choice):
        monkeypatch.setattr(module, "LARGEST_SIGMA", most)
    costs.require_drawn(sizes)
    counter = CodedRows(rows, sizes)
    Measuring(counter, (False,) * columns, costs, Seeded(5), np.random.default_rng(5)).learnt()
    monkeypatch.setattr(measuring, "LARGEST_SIGMA", most * (1 - 1e-9))
    with pytest.raises(InvalidArgument, match="more than is drawn"):
        costs.require_drawn(sizes)


def test_noise_on_columns_of_unknown_size_is_known_before():
    costs = Costs(1.0, 1, "add_remove", 3)
    for sizes in ((2, 1, 5), (2, 10**3, 5), (2, 10**5, 5), (2, 10**7, 5)):
        deviations = costs.deviations(sizes)
        limit = float(deviations.max())
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(measuring, "LARGEST_SIGMA", max(limit, costs.score_deviation(9)) * (1 - 1e-9))
            with pytest.raises(InvalidArgument, match="more than is drawn"):
                costs.require_drawn((2, 1, 5), (2, MOST_VALUES, 5))


def test_more_noise_than_the_sampler_has_is_never_drawn():
    made = Measuring.__new__(Measuring)
    made.source = Seeded(1)
    with pytest.raises(InvalidArgument, match="more than is drawn"):
        made._noisy(np.zeros(3, dtype=np.int64), 2.0**29 * 1.01)


@pytest.mark.statistical
@pytest.mark.parametrize("deviation", [1.8, 40.0, 3000.0])
def test_the_noise_is_as_wide_as_it_is_said_to_be(deviation):
    """The law above believes the deviation that it is told; what is drawn has it.

    The sum of n squares over the variance is within 9 √(2n) of n but for 1e-9: Laurent and Massart's bound with
    x = ln(2e9) gives 2 √(n x) + 2 x = 9.26 √n + 43 < 9 √(2n) for a normal law, and discrete tails are no heavier.
    """
    count = 200_000
    made = Measuring.__new__(Measuring)
    made.source = Seeded(11)
    drawn = made._noisy(np.zeros(count, dtype=np.int64), deviation).astype(np.float64)
    assert abs((drawn**2).sum() / deviation**2 - count) < 9 * np.sqrt(2 * count)


@pytest.mark.parametrize(("adjacency", "most"), NEIGHBOURS)
def test_a_twin_that_says_interactions_move_less_is_seen(adjacency, most, monkeypatch):
    """The law above can fail: a reach that lacks a factor of √2, as if rows only came or went, breaks it."""
    reach = interactions.reach
    monkeypatch.setattr(interactions, "reach", lambda *arguments: reach(*arguments) / 2**0.5)
    costs = synthesizer(SIZES, epsilon=1.0, delta=1e-6, max_rows_per_unit=most, adjacency=adjacency).costs
    one, other = neighbours(np.random.default_rng(7), 3000, adjacency, most, alike=True)
    here = transcript(one, costs)
    there = transcript(other, costs, repeats=here)
    assert apart(here, there)[0] > costs.mu**2


def test_a_twin_that_scores_without_noise_is_seen():
    """The law above can fail: distances that are measured with too little noise break it."""
    generator = np.random.default_rng(7)
    costs = synthesizer(SIZES, epsilon=1.0, delta=1e-6).costs
    cheap = Cheap(**vars(costs))
    rows = some_rows(generator, 3000)
    here = transcript(rows, cheap)
    there = transcript(rows[:-1], cheap, repeats=here)
    moved = zip(here.counts, there.counts, strict=True)
    spent = sum(float(((one - other) ** 2).sum()) / (noise**2 - SMOOTHING) for (one, noise), (other, _) in moved)
    assert spent > costs.mu**2

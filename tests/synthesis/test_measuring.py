"""The measurements: between neighbours they move no farther than was paid for, whatever was measured before."""

from dataclasses import replace

import numpy as np
import pytest

from sitr.accounting.notions import SMOOTHING
from sitr.mechanisms.randomness import Seeded
from sitr.synthesis import measuring
from sitr.synthesis.measuring import Measuring
from sitr.synthesis.synthesizer import CodedRows, synthesizer

SIZES = (2, 7, 40, 3)
NEIGHBOURS = [("add_remove", 1), ("add_remove", 4), ("replace_one", 1), ("replace_one", 3)]


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    """What is measured moves by the rows, however well the mixture fits."""
    monkeypatch.setattr(measuring, "STEPS", (20,) * measuring.ROUNDS)


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
    others = some_rows(generator, 3000 if epsilon == 1 else 20_000)
    # A unit whose rows are all alike moves tables farthest.
    alike = generator.random() < 0.5
    rows = np.concatenate([some_rows(generator, 1 if alike else most) for _ in range(2)])
    units = np.split(np.repeat(rows, most, axis=0) if alike else rows, 2)
    one = np.concatenate([others, units[0]])
    other = np.concatenate([others, units[1]]) if adjacency == "replace_one" else others
    here = transcript(one, costs)
    there = transcript(other, costs, repeats=here)
    assert len(here.counts) == len(there.counts)
    assert here.with_triples == bool(here.triples) == (epsilon > 1)
    spent = 0.0
    for (counts, deviation), (moved, same) in zip(here.counts, there.counts, strict=True):
        assert deviation == same
        spent += float(((counts - moved) ** 2).sum()) / (deviation**2 - SMOOTHING)
    assert 0 < spent <= costs.mu**2


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


def test_a_twin_that_scores_without_noise_is_seen():
    """The law above can fail: distances that are measured with too little noise break it."""
    generator = np.random.default_rng(7)
    costs = synthesizer(SIZES, epsilon=1.0, delta=1e-6).costs
    cheap = replace(costs, moved=costs.moved / 20)
    rows = some_rows(generator, 3000)
    here = transcript(rows, cheap)
    there = transcript(rows[:-1], cheap, repeats=here)
    moved = zip(here.counts, there.counts, strict=True)
    spent = sum(float(((one - other) ** 2).sum()) / (noise**2 - SMOOTHING) for (one, noise), (other, _) in moved)
    assert spent > costs.mu**2

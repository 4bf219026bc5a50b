"""Noise over cells and blocks: the law itself, that it is drawn, what it costs, and how far it spreads."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.errors import InvalidArgument
from sitr.mechanisms.hierarchy import BRANCHES, Hierarchy
from sitr.mechanisms.randomness import SYSTEM, Seeded
from tests.mechanisms.statistics import chi_square, fits


def norm(law, noise):
    """What the law falls off by: rate · |sum| over all blocks of all levels, exactly."""
    return sum(
        rate * int(np.abs(noise.reshape(-1, size).sum(axis=1)).sum())
        for rate, size in zip(law.rates, law.sizes, strict=True)
    )


def fall(rate, far):
    return np.exp(-float(rate) * np.abs(np.arange(-far, far + 1)))


@given(st.integers(1, 5000), st.fractions(Fraction(1, 1000), 20), st.data())
def test_one_row_moves_the_norm_by_what_it_costs(cells, total, data):
    law = Hierarchy.of(cells, total)
    one, other = (data.draw(st.integers(0, cells - 1)) for _ in range(2))
    added, moved = np.zeros((2, law.cells), dtype=np.int64)
    added[one] = moved[one] = 1
    moved[other] -= 1
    assert norm(law, added) == total
    assert norm(law, moved) <= 2 * total
    if one // law.sizes[-1] != other // law.sizes[-1]:
        assert norm(law, moved) == 2 * total


@given(st.integers(1, 10**5))
def test_blocks_are_cut_by_the_number_of_cells_alone(cells):
    law = Hierarchy.of(cells, Fraction(1))
    assert sum(law.rates) == 1
    assert cells <= law.cells < cells + law.sizes[-1]
    assert law.cells % law.sizes[-1] == 0
    assert len(law.rates) == 1 or cells >= 4 * law.sizes[-1]


@pytest.mark.statistical
def test_a_block_is_drawn_by_its_law():
    """All noises of five cells within one row each, and the rest as one more outcome; false alarms 1e-9."""
    law = Hierarchy(BRANCHES * 200_000, (Fraction(3, 2), Fraction(1, 2)))
    blocks = law.noise(SYSTEM).reshape(-1, BRANCHES)
    outcomes = np.array(list(product([-1, 0, 1], repeat=BRANCHES)))
    far = 40
    sums = fall(law.rates[0], far)
    for _ in range(BRANCHES - 1):
        sums = np.convolve(sums, fall(law.rates[0], far))
    everything = sums @ fall(law.rates[1], BRANCHES * far)
    probabilities = np.exp([-float(norm(law, one)) for one in outcomes]) / everything
    near = blocks[(np.abs(blocks) <= 1).all(axis=1)]
    seen = np.bincount((near + 1) @ 3 ** np.arange(BRANCHES)[::-1], minlength=3**BRANCHES)
    counts, laws = np.append(seen, len(blocks) - len(near)), np.append(probabilities, 1 - probabilities.sum())
    assert chi_square(counts, laws) > 1e-9


def laws_of_three_levels(rates, far):
    """The laws of the sum of 25 cells, and of a single one of them, on -far … far; convolved here."""

    def together(part, times):
        found = part
        for _ in range(times - 1):
            found = np.convolve(found, part)
        return found

    def cut(found):
        middle = found.size // 2
        return found[middle - far : middle + far + 1]

    cell, five, whole = (fall(rate, far) for rate in rates)
    inner = five * cut(together(cell, 5))
    outer = whole * cut(together(inner, 5))
    around = five * cut(np.convolve(whole, together(inner, 4)))
    single = cell * cut(np.convolve(around, together(cell, 4)))
    return outer / outer.sum(), single / single.sum()


THREE = (Fraction(1, 2), Fraction(1, 3), Fraction(1, 4))


@pytest.mark.statistical
def test_blocks_of_blocks_are_drawn_by_their_law():
    """The sum of 25 cells, and a single cell of them; false alarms 1e-9 each."""
    outer, single = laws_of_three_levels(THREE, 60)
    cells = Hierarchy(25 * 20_000, THREE).noise(SYSTEM).reshape(-1, 25)
    assert fits(cells.sum(axis=1), -60, outer)
    assert fits(cells[:, 7], -60, single)


def test_variances_of_blocks_of_blocks_are_those_of_the_law():
    law, values = Hierarchy(50, THREE), np.arange(-90, 91)
    found = law.variances(np.array([25, 32]), np.array([50, 33]))
    true = [float(one @ values**2) for one in laws_of_three_levels(THREE, 90)]
    assert found == pytest.approx(true, rel=0.0015)


def test_variances_are_those_of_the_law():
    """Exactly, from all noises of two blocks of which one is moved past every cell; the rest is less than 1e-5."""
    law = Hierarchy(2 * BRANCHES, (Fraction(5, 2), Fraction(2)))
    values = np.array(list(product(range(-4, 5), repeat=BRANCHES)))
    masses = np.exp(-2.5 * np.abs(values).sum(axis=1) - 2 * np.abs(values.sum(axis=1)))
    block = (values * masses[:, np.newaxis]).T @ values / masses.sum()
    covariance = np.kron(np.eye(2), block)
    for low in range(law.cells):
        for high in range(low + 1, law.cells + 1):
            inside = np.zeros(law.cells)
            inside[low:high] = 1
            ends = np.array([low]), np.array([high])
            true = inside @ covariance @ inside
            assert true <= law.variances(*ends)[0] <= 1.002 * true
            evenly = inside - (high - low) / law.cells
            true = evenly @ covariance @ evenly
            assert true <= law.variances(*ends, known=True)[0] + 1e-9 <= 1.002 * true + 2e-9
            less = inside - 0.3
            true = less @ covariance @ less
            assert true <= law.variances(*ends, 0.3)[0] <= 1.002 * true


@pytest.mark.parametrize("total", [Fraction(1, 10**6), Fraction(1, 20), Fraction(3)])
def test_variances_do_not_hang_on_the_steps_they_are_computed_in(total):
    """Wide noise is computed on a coarser grid: in units of its scale nothing changes."""
    ends = np.array([0, 0, 17, 200]), np.array([1, 125, 600, 203])
    fine = Hierarchy.of(1000, total / 2).variances(*ends) * float(total) ** 2
    wide = Hierarchy.of(1000, total / 64).variances(*ends) * float(total / 32) ** 2
    assert fine == pytest.approx(wide, rel=0.02 if total < 1 else 0.2)


def test_a_seed_repeats_the_noise_and_marks_nothing_private():
    law = Hierarchy.of(137, Fraction(1, 3))
    assert (law.noise(Seeded(1)) == law.noise(Seeded(1))).all()
    assert law.noise(Seeded(1)).shape == (150,)


def test_noise_that_nothing_draws_is_refused():
    with pytest.raises(InvalidArgument, match="noise would be"):
        Hierarchy.of(1000, Fraction(1, 2**50))

"""Inversion: every level is exact, also the ones that are hardly ever reached."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.mechanisms.randomness import SYSTEM, Seeded, System
from sitr.mechanisms.samplers.laws import Coin, Digit, Normal, TwoSided
from sitr.mechanisms.samplers.table import BATCH, COMPARED, OPEN, Table, evenly_searched
from tests.mechanisms.statistics import fits

LAWS = [
    Coin(Fraction(1, 3)),
    Digit(Fraction(1, 1000), 256),
    Digit(Fraction(1, 2**40), 256),
    TwoSided(Fraction(7, 22)),
    TwoSided(Fraction(1, 1000), 256),
    Normal(Fraction(2)),
    Normal(Fraction(10**4, 7)),
    Normal(Fraction(10**4, 7), one_sided=True),
]


def probabilities(law, count):
    """The probabilities of the first outcomes by another route: mpmath, from the formulas."""
    with mpmath.workdps(50):
        values = law.values(count).tolist()
        if isinstance(law, Coin):
            p = mpmath.exp(-mpmath.mpf(law.x.numerator) / law.x.denominator)
            return [1 - p, p][:count]
        if isinstance(law, Normal):
            v = mpmath.mpf(law.variance.numerator) / law.variance.denominator
            weights = [mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * v)) for x in values]
            reach = int(20 * mpmath.sqrt(v)) + 20
            side = mpmath.fsum(mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * v)) for x in range(1, reach))
            total = 1 + side if law.one_sided else 1 + 2 * side
            return [w / total for w in weights]
        rate = mpmath.mpf(law.rate.numerator) / law.rate.denominator
        r, big = mpmath.exp(-rate), mpmath.exp(-rate * law.base)
        if isinstance(law, Digit):
            return [(1 - r) * r**d / (1 - big) for d in values]
        return [(1 - big) / (1 + r) * (big**h if h >= 0 else r * big ** (~h)) for h in values]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_floors_are_those_of_the_distribution_function(law):
    floors = Table(law).floors.tolist()
    with mpmath.workdps(50):
        total = mpmath.mpf(0)
        for floor, p in zip(floors[:600], probabilities(law, min(len(floors), 600)), strict=True):
            total += p
            assert floor == int(mpmath.floor(total * 2**64))


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_cell_without_a_step_has_one_outcome(law):
    table = Table(law)
    cells, shift = table.cells, 64 - table.coarse
    for cell in (0, 1, cells.size // 3, cells.size - 1):
        ends = np.array([cell << shift, ((cell + 1) << shift) - 1], dtype=np.uint64)
        first, last = table.outcomes[np.searchsorted(table.floors, ends)]
        assert cells[cell] == (first if first == last and not np.isin(ends, table.floors).any() else OPEN)


@pytest.mark.statistical
@pytest.mark.parametrize("count", [BATCH - 1, 200_000])
@pytest.mark.parametrize("fine", [6, 7, 12, 64])
def test_every_level_draws_the_law(fine, count):
    """With six or seven bits on the second level a good part of all draws goes on to the last one."""
    table = Table(TwoSided(Fraction(7, 22)), fine)
    draws = np.concatenate([table.draw(SYSTEM, count) for _ in range(max(40_000 // count, 1))])
    p = dict(zip(table.law.values(60).tolist(), map(float, probabilities(table.law, 60)), strict=True))
    assert fits(draws, -20, [p[x] for x in range(-20, 21)])


class Counting(System):
    def __init__(self):
        self.calls = []

    def bytes(self, count):
        self.calls.append(count)
        return super().bytes(count)


def test_a_few_draws_take_the_same_bytes_whatever_they_are():
    table = Table(TwoSided(Fraction(1, 10)))
    taken = set()
    for _ in range(2000):
        source = Counting()
        table.draw(source, 1)
        taken.add(tuple(source.calls))
    assert taken == {(8,)}


@given(
    st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=40),
    st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=40),
    st.booleans(),
)
def test_an_even_search_finds_what_any_search_finds(floors, numbers, together):
    """Also for numbers that equal a floor or the largest there is; by either way of searching."""
    floors = np.array(sorted(floors), dtype=np.uint64)
    uniform = np.array([*numbers, *floors.tolist(), 0, 2**64 - 1], dtype=np.uint64)
    if together:
        uniform = np.tile(uniform, COMPARED // uniform.size // floors.size + 1)
    assert (uniform.size * floors.size > COMPARED) == together
    assert np.array_equal(evenly_searched(floors, uniform), np.searchsorted(floors, uniform))


def test_the_last_level_reveals_bits_until_a_step_is_passed():
    """A uniform number that begins as a step does is decided by what follows."""
    law = Coin(Fraction(1))
    table = Table(law)
    step = int(table.floors[0])
    next_floor = Table(law, fine=64)._floors(128)[0] & (2**64 - 1)
    for following, outcome in ((next_floor - 1, 0), (next_floor + 1, 1)):

        class Fixed:
            private = False

            def bytes(self, count, following=following):
                return np.array([following], dtype=np.uint64).tobytes()

        assert table._deep_draw(Fixed(), step) == outcome


def test_a_seed_repeats_draws():
    table = Table(Normal(Fraction(9)))
    assert np.array_equal(table.draw(Seeded(3), 10_000), table.draw(Seeded(3), 10_000))

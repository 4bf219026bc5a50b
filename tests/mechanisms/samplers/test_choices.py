"""Choices by exact weights: probabilities against another arithmetic, rare paths forced, work that does not tell."""

import math
from fractions import Fraction
from itertools import permutations

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy import stats

from sitr.mechanisms.randomness import SYSTEM, Seeded
from sitr.mechanisms.samplers import choices
from sitr.mechanisms.samplers.choices import choose, flip, uniform_below
from tests.accounting.helpers import law
from tests.mechanisms.statistics import ALARM, chi_square
from tests.mechanisms.truths import Scripted

CASES = [
    ([1, 1], [0, 0], Fraction(1)),
    ([1, 1, 1], [3, 0, 1], Fraction(1, 2)),
    ([5, 0, 1, 1000, 7], [0, 0, 2, 9, 1], Fraction(3, 7)),
    ([1] * 6, [0, 1, 2, 3, 4, 5], Fraction(1, 3)),
    ([1, 2**40], [0, 2**20], Fraction(25, 2**20)),
]


def exact(lengths, gaps, rate):
    with mp.workdps(60):
        weights = [
            mpf(length) * mpmath.exp(-mpf(rate.numerator) * gap / rate.denominator)
            for length, gap in zip(lengths, gaps, strict=True)
        ]
        return [weight / mpmath.fsum(weights) for weight in weights]


def drawn(lengths, gaps, rate, source):
    return choose(np.array(lengths), np.array(gaps), rate, source)


@pytest.mark.parametrize(("lengths", "gaps", "rate"), CASES)
def test_evenly_spaced_uniform_numbers_give_each_place_its_share(lengths, gaps, rate):
    """Inversion: of N evenly spaced numbers each place takes N p of them, but for its two ends."""
    number = 1000
    found = [
        drawn(lengths, gaps, rate, Scripted((i * 2**128 // number + 1).to_bytes(16, "little"))) for i in range(number)
    ]
    for place, probability in enumerate(exact(lengths, gaps, rate)):
        assert abs(found.count(place) - number * float(probability)) <= 1


@pytest.mark.statistical
@pytest.mark.parametrize(("lengths", "gaps", "rate"), CASES[2:3])
def test_draws_follow_the_weights(lengths, gaps, rate):
    found = [drawn(lengths, gaps, rate, SYSTEM) for _ in range(100_000)]
    counts = np.bincount(found, minlength=len(lengths))
    assert chi_square(counts, [float(p) for p in exact(lengths, gaps, rate)]) > ALARM


@pytest.mark.statistical
def test_draws_follow_the_weights_where_bits_are_revealed_one_byte_at_a_time(monkeypatch):
    """With 8 bits at a time and little guard most draws go the rare way."""
    monkeypatch.setattr(choices, "REVEALED", 8)
    monkeypatch.setattr(choices, "GUARD", 2)
    lengths, gaps, rate = CASES[2]
    counts = np.bincount([drawn(lengths, gaps, rate, SYSTEM) for _ in range(50_000)], minlength=len(lengths))
    assert chi_square(counts, [float(p) for p in exact(lengths, gaps, rate)]) > ALARM
    counts = np.bincount([uniform_below(7, SYSTEM) for _ in range(50_000)], minlength=7)
    assert chi_square(counts, [1 / 7] * 7) > ALARM


@law(60)
@given(
    st.lists(st.tuples(st.integers(1, 2**52), st.integers(0, 2**61)), min_size=1, max_size=8),
    st.fractions(min_value=Fraction(1, 2**60), max_value=100).filter(bool),
    st.integers(8, 300),
)
def test_bounds_hold_the_weights(pieces, rate, bits):
    lengths, gaps = (np.array(column) for column in zip(*pieces, strict=True))
    lows, highs = choices._running_sums(lengths, gaps, rate, bits)
    with mp.workdps(60 + bits):
        total = mpf(0)
        for length, gap, low, high in zip(lengths.tolist(), gaps.tolist(), lows, highs, strict=True):
            total += length * mpmath.exp(-mpf(rate.numerator) * gap / rate.denominator) * mpf(2) ** bits
            assert low <= total <= high
    assert highs[-1] - lows[-1] <= 2**13 * int(np.sum(lengths, dtype=object))


def test_a_place_of_tiny_probability_keeps_it():
    """All ones, for ever, is the largest uniform number: it ends in the last place however small that is."""
    source = Scripted(then=255)
    assert drawn([1, 1], [0, 10_000], Fraction(1, 2), source) == 1
    assert source.drawn * 8 >= 5000 / math.log(2)  # as many bits as -log2 of its probability


@pytest.mark.parametrize("gaps", [[0, 9, 9, 9], [9, 9, 9, 0], [5, 5, 5, 5], [0, 1, 10**9, 3]])
def test_the_bits_that_are_drawn_do_not_depend_on_the_outcome(gaps):
    gaps = np.array(gaps) - min(gaps)
    for seed in range(200):
        for pick, size in ((choose, 16), (flip, 16 * 4)):
            source = Scripted(Seeded(seed).bytes(64), then=77)
            arguments = (np.ones_like(gaps), gaps) if pick is choose else (gaps,)
            pick(*arguments, Fraction(1, 5), source)
            assert source.drawn == size


def flip_law(gaps, rate):
    """Permute-and-flip by its definition, over all orders."""
    heads = [math.exp(-gap * rate) for gap in gaps]
    found = [0.0] * len(gaps)
    orders = list(permutations(range(len(gaps))))
    for order in orders:
        left = 1.0
        for place in order:
            found[place] += left * heads[place] / len(orders)
            left *= 1 - heads[place]
    return found


@pytest.mark.statistical
def test_coins_show_heads_with_their_probability():
    """An exact binomial test of each, two-sided."""
    gaps, number = [0, 1, 2, 5, 400], 200_000
    found = choices._coins(np.tile(gaps, number), Fraction(1, 3), SYSTEM).reshape(number, len(gaps)).sum(axis=0)
    assert found[0] == number
    for gap, heads in zip(gaps[1:], found[1:].tolist(), strict=True):
        assert stats.binomtest(heads, number, math.exp(-gap / 3)).pvalue > ALARM


@pytest.mark.statistical
def test_permute_and_flip_is_its_definition():
    gaps = [3, 1, 0, 0, 8]
    found = [flip(np.array(gaps), Fraction(1, 2), SYSTEM) for _ in range(100_000)]
    assert chi_square(np.bincount(found, minlength=len(gaps)), flip_law(gaps, 0.5)) > ALARM


@pytest.mark.parametrize(("then", "heads"), [(0, True), (255, False)])
def test_a_coin_whose_first_bits_are_those_of_its_probability_is_decided_by_more(then, heads):
    with mp.workdps(60):
        floor = int(mpmath.floor(mpmath.exp(-mpf(3) / 2) * 2**64))
    first = floor.to_bytes(8, "little")
    source = Scripted(first, then)
    assert choices._coins(np.array([3]), Fraction(1, 2), source)[0] == heads
    assert source.drawn > 8


@pytest.mark.parametrize("high", [1, 2, 3, 10**6, 2**52 + 1])
def test_uniform_numbers_fill_their_range(high):
    assert uniform_below(high, Scripted(then=0)) == 0
    assert uniform_below(high, Scripted(bytes([255] * 16), then=255)) == high - 1
    source = Scripted(Seeded(1).bytes(64))
    assert 0 <= uniform_below(high, source) < high
    assert source.drawn == 16


@pytest.mark.statistical
def test_uniform_numbers_are_uniform():
    counts = np.bincount([uniform_below(10, SYSTEM) for _ in range(100_000)], minlength=10)
    assert chi_square(counts, [0.1] * 10) > ALARM


class Number:
    """A source that reveals the bits of one number from 0 to 1, as far as they are asked for."""

    def __init__(self, number):
        self.number, self.revealed = number, 0

    def bytes(self, count):
        self.revealed += 8 * count
        return (int(self.number * 2**self.revealed) % 2 ** (8 * count)).to_bytes(count, "little")


REVEALED = {
    20: 128,
    110: 128,
    140: 256,
    200: 256,
    300: 512,
}  # how many bits tell a number so near to an end apart from it
BESIDE = {Fraction(sign, 2**bits): revealed for bits, revealed in REVEALED.items() for sign in (-1, 1)}


@pytest.mark.parametrize(("lengths", "gaps", "rate"), CASES)
def test_a_number_beside_the_end_of_a_place_is_on_its_side_of_it(lengths, gaps, rate):
    """However near: where the first bits are those of the end itself, more are revealed until it is passed."""
    with mp.workdps(150):
        weights = [
            mpf(length) * mpmath.exp(-mpf(rate.numerator) * gap / rate.denominator)
            for length, gap in zip(lengths, gaps, strict=True)
        ]
        ends = [
            Fraction(int(mpmath.fsum(weights[: n + 1]) / mpmath.fsum(weights) * 2**400), 2**400)
            for n in range(len(weights) - 1)
        ]
    for end in ends:
        for beside, revealed in BESIDE.items():
            number = Number(end + beside)
            assert drawn(lengths, gaps, rate, number) == sum(one < end + beside for one in ends)
            assert number.revealed <= revealed


@pytest.mark.parametrize("high", [1, 2, 3, 7, 10**12, 2**64, 2**127 + 1])
def test_a_uniform_number_is_the_place_of_its_bits(high):
    for place in {0, 1, high // 3, high - 1} - {high}:
        for beside in (Fraction(1, 10**9), Fraction(1, 2), Fraction(10**9 - 1, 10**9)):
            assert uniform_below(high, Number((place + beside) / high)) == place
    for end in {Fraction(high // 3, high), Fraction(high // 2, high)} - {0}:
        for beside in BESIDE:
            assert uniform_below(high, Number(end + beside)) == math.floor((end + beside) * high)


@pytest.mark.parametrize("gap", [1, 3, 255, 256, 257, 65_535, 65_536, 70_000])
@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(1, 10**4), Fraction(3, 10**6)])
def test_a_coin_beside_its_probability_is_on_its_side_of_it(gap, rate):
    """For gaps of one, two and three digits; the least ones of a weight that is nearly nothing too."""
    with mp.workdps(150):
        p = Fraction(int(mpmath.exp(-mpf(rate.numerator) * gap / rate.denominator) * 2**400), 2**400)
    for beside in (Fraction(sign, 2**bits) for bits in (30, 63, 64, 65, 100, 200) for sign in (-1, 1)):
        if 0 <= p + beside < 1:
            assert choices._coins(np.array([gap]), rate, Number(p + beside))[0] == (beside < 0)

"""The samplers against their laws, on both sides of every change of method, and their rare paths forced."""

import math
from fractions import Fraction
from itertools import permutations

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf
from scipy import stats

from sitr.mechanisms.randomness import SYSTEM, Seeded
from sitr.mechanisms.samplers import draws
from sitr.mechanisms.samplers.table import BATCH, CHUNK
from tests.mechanisms.statistics import ALARM, chi_square, fits, tail_fits
from tests.mechanisms.truths import Scripted, laplace_mass

N = 200_000


def gaussian_masses(variance):
    """P(x) for x from -reach to reach, and the reach: all but e^-50 of the law."""
    reach = math.ceil(10 * math.sqrt(variance)) + 3
    x = np.arange(-reach, reach + 1, dtype=np.float64)
    masses = np.exp(-(x**2) / (2 * float(variance)))
    return masses / masses.sum(), reach


def in_batches(sampler, parameter, size, total):
    """Draws by calls of one size: below `BATCH` all go to the second level."""
    return np.concatenate([sampler(parameter, size, SYSTEM) for _ in range(-(-total // size))])


@pytest.mark.statistical
@pytest.mark.parametrize("x", [Fraction(1, 10**6), Fraction(1, 3), Fraction(1), Fraction(7)])
@pytest.mark.parametrize("size", [BATCH - 1, N])
def test_coins_show_heads_with_their_probability(x, size):
    found = in_batches(draws.coins, x, size, N)
    assert set(np.unique(found)) <= {0, 1}
    assert stats.binomtest(int(found.sum()), found.size, math.exp(-x)).pvalue > ALARM


def test_a_coin_of_one_is_certain():
    assert draws.coins(Fraction(0), 1000, SYSTEM).sum() == 1000


@pytest.mark.statistical
@pytest.mark.parametrize("rate", [Fraction(3), Fraction(1, 3), Fraction(1, 60)])
def test_geometric_draws_follow_their_law(rate):
    found = draws.geometric(rate, N, SYSTEM)
    r = math.exp(-rate)
    assert found.min() >= 0
    assert fits(found, 0, [(1 - r) * r**k for k in range(int(20 / rate) + 2)])


@pytest.mark.statistical
@pytest.mark.parametrize("scale", ["1/10", "1", "22/7", "47", "48", "97/2", "255", "1000"])
@pytest.mark.parametrize("size", [BATCH - 1, N])
def test_laplace_draws_follow_their_law(scale, size):
    """Around 48 one table becomes one with digits below it."""
    scale = Fraction(scale)
    found = in_batches(draws.discrete_laplace, scale, size, N)
    reach = math.ceil(15 * scale)
    assert fits(found, -reach, [laplace_mass(float(scale), x) for x in range(-reach, reach + 1)])
    far = math.ceil(9 * scale)
    assert tail_fits(found, far, 2 * math.exp(-far / scale) / (1 + math.exp(-1 / scale)))


@pytest.mark.statistical
@pytest.mark.parametrize("scale", [Fraction(12289), 10**6 + Fraction(1, 3), Fraction(2**40)])
@pytest.mark.parametrize("size", [BATCH - 1, N])
def test_wide_laplace_draws_follow_their_law(scale, size):
    """In cells of about a hundredth of the scale, by the distribution function; and their low digits, by periods."""
    b = float(scale)
    found = in_batches(draws.discrete_laplace, scale, size, N)
    width = round(b / 100)
    groups = found // width
    r, q = math.exp(-1 / b), math.exp(-width / b)
    assert fits(groups, 0, [-math.expm1(-width / b) * q**h / (1 + r) for h in range(1500)])
    assert fits(-1 - groups, 0, [r * -math.expm1(-width / b) * q**h / (1 + r) for h in range(1500)])
    for digit in (0, 8):
        side = -math.expm1(-(2.0**digit) / b) / -math.expm1(-(2.0 ** (digit + 8)) / b)
        j = np.arange(256)
        up, down = np.exp(-(2.0**digit) / b * j), r * np.exp(-(2.0**digit) / b * (255 - j))
        assert chi_square(np.bincount((found >> digit) & 255, minlength=256), side * (up + down) / (1 + r)) > ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("variance", ["1/100", "1/4", "1", "100", "10000/7", "1960000", "1960001", "3000000"])
@pytest.mark.parametrize("size", [BATCH - 1, N])
def test_gaussian_draws_follow_their_law(variance, size):
    """At σ = 1400 the table ends, and bins with rejection begin."""
    variance = Fraction(variance)
    found = in_batches(draws.discrete_gaussian, variance, size, N)
    masses, reach = gaussian_masses(variance)
    assert fits(found, -reach, masses)
    far = math.ceil(3.5 * math.sqrt(variance))
    assert tail_fits(found, far, float(masses[np.abs(np.arange(-reach, reach + 1)) >= far].sum()))


@pytest.mark.statistical
@pytest.mark.parametrize("variance", [Fraction(10**12, 7), Fraction(2**58)])
def test_wide_gaussian_draws_follow_their_law(variance):
    """In cells of a fiftieth of σ; so wide that sums are integrals, to 1e-10."""
    sigma = math.sqrt(variance)
    found = draws.discrete_gaussian(variance, N, SYSTEM)
    width = round(sigma / 50)
    edges = (np.arange(-300, 301) * width - 0.5) / sigma
    assert fits(found // width, -300, np.diff(stats.norm.cdf(edges)))
    assert chi_square(np.bincount(found & 255, minlength=256), np.full(256, 1 / 256)) > ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("band", [2.0**-40, 2.0**-6])
@pytest.mark.parametrize("size", [1000, N])
def test_bins_and_rejection_are_exact_where_bins_are_wide_and_floats_are_not_trusted(band, size, monkeypatch):
    """With four bins to a σ of 40 much is rejected; with a wide band a part of it is decided by integers."""
    monkeypatch.setattr(draws, "DIRECT_SIGMA", 10)
    monkeypatch.setattr(draws, "BINS", 4)
    monkeypatch.setattr(draws, "BAND", band)
    found = in_batches(draws.discrete_gaussian, Fraction(1601), size, N // 4)
    masses, reach = gaussian_masses(1601)
    assert fits(found, -reach, masses)


@pytest.mark.parametrize("then", [0, 255])
def test_floats_decide_only_far_from_the_boundary(then):
    """A uniform number that begins as e^{-x} does is decided by what follows, whatever floats make of it."""
    with mp.workdps(60):
        floor = int(mpmath.floor(mpmath.exp(-mpf(2) / 7) * 2**64))
    first = (floor >> 48).to_bytes(2, "little") + (floor << 16 & (2**64 - 1)).to_bytes(8, "little")
    source = Scripted(first, then)
    assert draws.accepted(np.array([2]), Fraction(7), source)[0] == (then == 0)
    assert source.drawn > 10


@pytest.mark.parametrize(
    "x", [Fraction(top, 10_007) for top in (1, 3, 50, 1000, 7001, 30_000, 10**6)] + [Fraction(1, 2**31)]
)
def test_a_coin_of_many_is_decided_by_all_of_its_bits(x):
    """Of all first 16 bits, with nothing or with ones after them, it is known how many are under the probability."""
    first = np.arange(2**16, dtype=np.uint16).tobytes()
    with mp.workdps(60):
        whole = int(mpmath.floor(mpmath.exp(-mpf(x.numerator) / x.denominator) * 2**16))
    for then, heads in ((0, whole + 1), (255, whole)):
        found = draws.accepted(np.full(2**16, x.numerator), Fraction(x.denominator), Scripted(first, then))
        assert found.tolist() == [True] * heads + [False] * (2**16 - heads)


@pytest.mark.statistical
@pytest.mark.parametrize("high", [1, 2, 6, 255, 256, 257, 1000, 65537])
def test_uniform_integers_are_uniform(high):
    found = draws.uniform_integers(high, N, SYSTEM)
    assert (
        chi_square(np.bincount(found, minlength=high), np.full(high, 1 / high)) > ALARM
        if high > 1
        else found.max() == 0
    )


@pytest.mark.statistical
@pytest.mark.parametrize("high", [2**31 + 11, 10**12, 2**63 - 1])
def test_wide_uniform_integers_are_uniform(high):
    found = draws.uniform_integers(high, N, SYSTEM)
    assert found.min() >= 0
    assert found.max() < high
    assert chi_square(np.bincount((found / high * 100).astype(int), minlength=100), np.full(100, 0.01)) > ALARM
    assert chi_square(np.bincount(found & 63, minlength=64), np.full(64, 1 / 64)) > ALARM


@pytest.mark.statistical
@pytest.mark.parametrize("size", [2, 3, 4])
def test_all_orders_are_alike(size):
    orders = {order: place for place, order in enumerate(permutations(range(size)))}
    found = [orders[tuple(draws.shuffled(size, SYSTEM).tolist())] for _ in range(24_000)]
    assert chi_square(np.bincount(found, minlength=len(orders)), np.full(len(orders), 1 / len(orders))) > ALARM


@pytest.mark.statistical
def test_neighbours_in_a_long_shuffle_are_in_either_order():
    """Disjoint pairs of a uniform shuffle are ordered independently: an exact binomial test."""
    found = draws.shuffled(100_000, SYSTEM)
    assert np.array_equal(np.sort(found), np.arange(100_000))
    assert stats.binomtest(int(np.sum(found[0::2] < found[1::2])), 50_000, 0.5).pvalue > ALARM


def test_equal_keys_are_drawn_again():
    """Two equal keys have no order of their own: sorting would favour the first."""
    same, different = bytes(16), (5).to_bytes(8, "little") + (3).to_bytes(8, "little")
    source = Scripted(same + different)
    assert draws.shuffled(2, source).tolist() == [1, 0]
    assert source.drawn == 32


@pytest.mark.parametrize("count", [0, 1, BATCH, CHUNK, CHUNK + 1])
def test_as_many_are_drawn_as_asked_and_a_seed_repeats_them(count):
    samplers = {
        draws.coins: Fraction(1, 3),
        draws.bernoulli: Fraction(1, 3),
        draws.geometric: Fraction(1, 3),
        draws.discrete_laplace: Fraction(1000),
        draws.discrete_gaussian: Fraction(10**8),
        draws.uniform_integers: 6,
    }
    for sampler, parameter in samplers.items():
        first, second = (sampler(parameter, count, Seeded(5)) for _ in range(2))
        assert first.size == count
        assert first.dtype == np.int64
        assert np.array_equal(first, second)
    assert sorted(draws.shuffled(count, Seeded(5))) == list(range(count))


@pytest.mark.parametrize("count", [0, 1, CHUNK, CHUNK + 1, 2 * CHUNK - 1])
def test_places_are_chosen_among_as_many_as_there_are(count):
    assert np.array_equal(draws.included(Fraction(1), count, Seeded(5)), np.arange(count))
    assert draws.included(Fraction(0), count, Seeded(5)).size == 0
    found = draws.included(Fraction(2, 3), count, Seeded(5))
    assert np.all(np.diff(found) > 0)
    assert np.all((found >= 0) & (found < count))


@pytest.mark.statistical
def test_draws_of_one_call_are_independent():
    """Signs of neighbours, of neighbours across a chunk, and of the two halves: exact binomial tests."""
    found = draws.discrete_gaussian(Fraction(10**6), 4 * CHUNK, SYSTEM)
    positive = found > 0
    for gap in (1, 2, CHUNK, 2 * CHUNK):
        same = positive[gap:][: 2 * CHUNK] == positive[:-gap][: 2 * CHUNK]
        p = float(np.mean(positive))  # near a half, where the chance of equal signs hardly moves with it
        assert stats.binomtest(int(same.sum()), same.size, p**2 + (1 - p) ** 2).pvalue > ALARM

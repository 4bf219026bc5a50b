"""Every known attack on noise: the naive twin falls to it, and ours does not.

Underflow in the exponential mechanism is attacked in test_selection.py, with its twin.
"""

import json
import math
import os
import warnings
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sitr.mechanisms import gaussian, laplace
from sitr.mechanisms.grid import FARTHEST_INTEGER, Grid
from sitr.mechanisms.randomness import System
from sitr.mechanisms.samplers import draws
from sitr.mechanisms.samplers.table import BATCH
from tests.mechanisms import twins
from tests.mechanisms.statistics import ALARM

# --- Low-order bits and precision -------------------------------------------------------------------------------------

N = 20_000
NAIVE = [twins.float_laplace, twins.float_gaussian, twins.four_gaussians]


def ours_laplace(value, n):
    return laplace(epsilon=1.0, sensitivity=1.0, length=n).release(np.full(n, value)).value


def ours_gaussian(value, n):
    return gaussian(scale=1.0, sensitivity=1.0, length=n).release(np.full(n, value)).value


OURS = [ours_laplace, ours_gaussian]


def has_low_bits(outputs):
    """Small answers with a bit below 2^-53: of a sum with 1 no such number can come (Haney and others 2022)."""
    scaled = np.ldexp(outputs, 53)
    return (np.abs(outputs) < 0.5) & (scaled != np.rint(scaled))


def told_apart(event, first, second, epsilon):
    """Whether P(event | first) > e^ε P(event | second) for sure: Clopper and Pearson, false alarms 1e-9 in all."""
    seen, other = int(event(first).sum()), int(event(second).sum())
    low = stats.beta.ppf(ALARM / 2, seen, first.size - seen + 1) if seen else 0.0
    high = stats.beta.isf(ALARM / 2, other + 1, second.size - other) if other < second.size else 1.0
    return low > math.exp(epsilon) * high


@pytest.mark.statistical
@pytest.mark.parametrize("twin", NAIVE)
def test_low_order_bits_betray_the_twin(twin):
    assert told_apart(has_low_bits, twin(0.0, N), twin(1.0, N), 2.0)


@pytest.mark.statistical
@pytest.mark.parametrize("release", OURS)
def test_low_order_bits_say_nothing_of_ours(release):
    for first, second in ((0.0, 1.0), (1.0, 0.0), (0.0, 1 / 3), (1e-9, 1.0)):
        assert not told_apart(has_low_bits, release(first, N), release(second, N), 1.0)


def finest(outputs):
    """The exponent of the lowest bit that is set in any answer."""
    mantissas, exponents = np.frexp(outputs[outputs != 0])
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    return int(np.min(exponents - 53 + np.log2(whole & -whole).astype(int)))


@pytest.mark.statistical
def test_precision_depends_on_the_value_in_the_twin_alone():
    """Ours reaches the lowest bit of its grid for any value: that all points are even has probability 2^-20000."""
    assert finest(twins.float_laplace(0.0, N)) < finest(twins.float_laplace(2.0**20, N))
    for release in OURS:
        assert finest(release(0.0, N)) == finest(release(1 / 3, N)) == finest(release(2.0**20, N))


# --- Support ----------------------------------------------------------------------------------------------------------


def possible_for_numpy(output, value):
    """Whether value + NumPy's Laplace noise can be this float: log(U + U) or -log(2 - U - U), U a multiple of 2^-53."""
    ratio = math.exp(-abs(output - value))
    if output < value:
        near = round(ratio * 2**52)
        return any(k > 0 and value + math.log(k / 2**52) == output for k in range(near - 4, min(near + 5, 2**52)))
    near = 2**53 - round(ratio * 2**52)
    ends = (k / 2**53 for k in range(max(near - 4, 2**52), min(near + 5, 2**53)))
    return any(value - math.log(2.0 - u - u) == output for u in ends)


@pytest.mark.statistical
def test_the_support_betrays_the_twin():
    """Mironov (2012): most answers cannot come of the neighbour, and one such answer is enough.

    Fewer than 400 of 2000, at a rate of 0.4 or more, have a probability under 1e-70.
    """
    for value, neighbour in ((0.0, 1.0), (1.0, 0.0)):
        outputs = twins.float_laplace(value, 2000).tolist()
        assert all(possible_for_numpy(output, value) for output in outputs)  # the attacker's model is right
        excluded = sum(not possible_for_numpy(output, neighbour) for output in outputs)
        assert excluded > 400


@pytest.mark.parametrize("make", [laplace, gaussian])
@pytest.mark.parametrize("scale", [1e-7, 0.3, 1.0, 12345.0, 1e9])
def test_all_answers_lie_on_one_lattice_whatever_the_value(make, scale):
    """Every grid point is possible for every value: the noise is any whole number of steps."""
    mechanism = make(scale=scale, sensitivity=scale, length=1000)
    step = float(mechanism.grid.step)
    for value in (0.0, scale / 3, math.pi * scale, -1e4 * scale, math.nextafter(scale, 0)):
        steps = mechanism.release(np.full(1000, value)).value / step
        assert np.array_equal(steps, np.rint(steps))
        assert set(np.unique(steps % 2)) == {0.0, 1.0}  # not a coarser one: all even has probability 2^-1000


# --- Overflow and summation -------------------------------------------------------------------------------------------


def test_a_sum_wraps_around_in_the_twin_alone():
    """Three rows of at most 2^62: one of them moves the wrapping sum by four times that."""
    bound = 2**62
    rows = [bound, bound - 1]
    assert abs(twins.wrapping_sum([*rows, 1]) - twins.wrapping_sum(rows)) == 4 * bound - 1
    mechanism = laplace(scale=1.0, sensitivity=1, integers=True)
    first, second = (mechanism.release(sum(data), unsafe_without_noise=True).value for data in (rows, [*rows, 1]))
    assert abs(second - first) <= 1


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 2**63, 10**30, -(10**30)])
def test_noise_does_not_carry_a_count_over_the_end(value):
    if -(2**63) <= value < 2**63:
        wrapped = {twins.wrapping_release(value, noise) > 0 for noise in (-1, 0, 1)}
        assert wrapped == {True, False}
    for make in (laplace, gaussian):
        mechanism = make(scale=1e6, sensitivity=1, integers=True)
        released = [mechanism.release(value).value for _ in range(50)]
        assert all(abs(one - math.copysign(FARTHEST_INTEGER, value)) < 1e9 for one in released)
    most = laplace(scale=1e12, sensitivity=1, integers=True, length=5000)
    ends = most.release([value] * 5000).value
    assert np.all(np.sign(ends) == np.sign(value))


@pytest.mark.parametrize(("dtype", "large", "small"), [(np.float16, 2048, 1024), (np.float32, 2**24, 2000)])
def test_the_order_of_rows_moves_the_sum_of_the_twin_alone(dtype, large, small):
    """The same people in another order, rows of 0 to 1 beside an offset: the twin loses all the small ones."""
    one_way, other_way = [large] + [1.0] * small, [1.0] * small + [large]
    assert abs(twins.float_sum(one_way, dtype) - twins.float_sum(other_way, dtype)) >= small / 2
    for exponent in (-20, -3, 0):
        grid = Grid(exponent, small + 1)
        sums = {int(grid.placed("rows", np.array(rows, dtype=dtype)).sum()) for rows in (one_way, other_way)}
        assert sums == {(large + small) * 2**-exponent}


def test_one_person_moves_a_rounded_sum_too_far_in_the_twin_alone():
    """Rows of at most 1024: one of 1024 before many of just over a half makes each of these round up to 1."""
    others = [0.5 + 2.0**-11] * 1024
    apart = twins.float_sum([1024.0, *others], np.float16) - twins.float_sum([0.0, *others], np.float16)
    assert apart > 1.49 * 1024
    grid = Grid(-10, 1025)  # and the others lie between two points
    with_one, without = (int(grid.placed("rows", np.array([own, *others])).sum()) for own in (1024.0, 0.0))
    assert with_one - without == 1024 * 2**10


# --- Work that depends on the value -----------------------------------------------------------------------------------


class Counting(System):
    """The system's bytes, with what was asked for."""

    def __init__(self):
        self.calls = []

    def bytes(self, count):
        self.calls.append(count)
        return super().bytes(count)


def work(draw, times):
    """What single draws ask of the source, and what they draw: calls and bytes, not the clock."""
    found = defaultdict(list)
    for _ in range(times):
        source = Counting()
        drawn = draw(source)
        found[tuple(source.calls)].append(abs(drawn))
    return found


@pytest.mark.statistical
def test_work_betrays_the_twin():
    """The mean |noise| of the draws with least work and with most differ: Mann and Whitney's test."""
    by_work = work(lambda source: twins.Rejection(source).laplace(10), 4000)
    sizes = sorted((sum(calls), drawn) for calls, several in by_work.items() for drawn in several)
    little, much = [drawn for _, drawn in sizes[:1000]], [drawn for _, drawn in sizes[-1000:]]
    assert len(by_work) > 20
    assert stats.mannwhitneyu(little, much).pvalue < ALARM


SAMPLERS = {
    "coins": lambda n, source: draws.coins(Fraction(1, 3), n, source),
    "bernoulli": lambda n, source: draws.bernoulli(Fraction(1, 3), n, source),
    "geometric": lambda n, source: draws.geometric(Fraction(1, 100), n, source),
    "uniform": lambda n, source: draws.uniform_integers(8, n, source),
    **{
        f"laplace {scale}": lambda n, source, scale=scale: draws.discrete_laplace(Fraction(scale), n, source)
        for scale in (1, 10, 1000, 10**6)
    },
    **{
        f"gaussian {sigma}": lambda n, source, sigma=sigma: draws.discrete_gaussian(Fraction(sigma) ** 2, n, source)
        for sigma in (1, 1000, 1401, 10**6)
    },
}


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("count", [1, 7, 300])
def test_few_draws_take_the_same_work_whatever_they_are(name, count):
    """Rare levels, which take more, are met with probability 2^-40 or less."""
    assert len(work(lambda source: SAMPLERS[name](count, source)[0], 1500 // count + 50)) == 1


def test_the_first_and_the_last_size_that_is_few():
    for count in (BATCH - 1 - (BATCH // 128 + 16), BATCH - 1):
        assert len(work(lambda source, n=count: draws.discrete_laplace(Fraction(1000), n, source)[0], 20)) == 1
    wide = BATCH - 1 - (BATCH // 128 + 16)
    assert len(work(lambda source: draws.discrete_gaussian(Fraction(10**8), wide, source)[0], 20)) == 1


@pytest.mark.parametrize("make", [laplace, gaussian])
@pytest.mark.parametrize("integers", [True, False])
def test_a_release_takes_the_same_work_for_every_value(make, integers, monkeypatch):
    mechanism = make(scale=10.0, sensitivity=1, integers=integers)
    asked = set()
    for value in (0, 1, -1, 10**6, -(10**15), 2**63, 10**30) * 20:
        source = Counting()
        monkeypatch.setattr("sitr.mechanisms.mechanism.source_of", lambda seed, source=source: source)
        mechanism.release(value)
        asked.add(tuple(source.calls))
    assert len(asked) == 1


# --- Fork and seeds ---------------------------------------------------------------------------------------------------


def in_children(release, number=4):
    """What children of a fork release, and then their parent."""
    found = []
    for _ in range(number):
        receive, send = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # later Pythons warn of threads, which we do not use
            child = os.fork()
        if child == 0:  # whatever happens, a child must not go on with the tests
            try:
                os.write(send, json.dumps([float(x) for x in release()]).encode())
            finally:
                os._exit(0)
        os.close(send)
        with os.fdopen(receive, "rb") as pipe:
            found.append(tuple(json.loads(pipe.read())))
        os.waitpid(child, 0)
    return [*found, tuple(float(x) for x in release())]


def test_children_of_a_fork_share_their_noise_in_the_twin_alone():
    """Sixteen floats on a grid of 2^20 steps to the scale agree by chance with probability under 2^-300."""
    twin = twins.Forked(seed=1)
    assert len(set(in_children(lambda: twin.release(0.0, 16)))) == 1
    for make in (laplace, gaussian):
        mechanism = make(scale=1.0, sensitivity=1.0, length=16)
        mechanism.release([0.0] * 16)  # all tables are made, and whatever a source would keep is there
        assert len(set(in_children(lambda mechanism=mechanism: mechanism.release([0.0] * 16).value))) == 5

"""Half widths: closed forms, mpmath at fifty digits, convolutions; laws of a norm; the table for many sums."""

import math
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from sitr.errors import InvalidArgument
from sitr.query.half_widths import half_width, half_widths

weights = st.lists(st.floats(0.01, 100), min_size=1, max_size=9)
confidences = st.floats(0.5, 0.999)


def laplace_mass(scale, last):
    ratio = math.exp(-1 / scale)
    return (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(-last, last + 1))


def gaussian_mass(scale, last):
    mass = np.exp(-((np.arange(-last, last + 1) / scale) ** 2) / 2)
    return mass / mass.sum()


def least_within(mass, confidence):
    """The least k whose central masses add up to the confidence."""
    middle = len(mass) // 2
    return next(k for k in range(middle + 1) if mass[middle - k : middle + k + 1].sum() >= confidence)


def excess(spreads, x):
    """P(|Σ aᵢXᵢ| > x) for different aᵢ, by partial fractions at fifty digits."""
    with mpmath.workdps(50):
        total = mpmath.mpf(0)
        for place, one in enumerate(spreads):
            square = mpmath.mpf(one) ** 2
            others = [square / (square - mpmath.mpf(a) ** 2) for i, a in enumerate(spreads) if i != place]
            total += mpmath.fprod(others) * mpmath.exp(-mpmath.mpf(x) / mpmath.mpf(one))
        return float(total)


@pytest.mark.parametrize("scale", [0.05, 0.3, 1.0, 2.5, 17.0, 400.0])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_one_integer_laplace_noise_is_exact(scale, confidence):
    found = half_width([3.0], scale, "laplace", confidence, integers=True)
    assert found == 3 * least_within(laplace_mass(scale, int(20 * scale) + 20), confidence)


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize(("scales", "confidence"), [([1.0, 1.0], 0.95), ([0.4, 3.0, 7.0], 0.9), ([5.0] * 6, 0.99)])
def test_sums_of_integers_are_exact(kind, scales, confidence):
    mass = np.ones(1)
    for scale in scales:
        mass = np.convolve(mass, (laplace_mass if kind == "laplace" else gaussian_mass)(scale, int(40 * scale) + 5))
    assert half_width(np.ones(len(scales)), scales, kind, confidence, integers=True) == least_within(mass, confidence)


def test_integers_far_apart_are_rounded_up():
    for scale in (1e6, 3e9):
        exact = [scale * math.log(20), half_width([1, 1], scale, "laplace")]
        assert [half_width(np.ones(k), scale, "laplace", integers=True) for k in (1, 2)] == pytest.approx(exact, abs=99)
        assert half_width([1], scale, "gaussian", integers=True) == math.ceil(-ndtri(0.025) * scale * (1 + 1e-8))


@pytest.mark.parametrize("scale", [0.3, 0.7, 1.0, 2.0])
@pytest.mark.parametrize("sizes", [(1, 0.5), (0.9, 0.1), (0.5, 0.51), (1, 0.3, 0.7), (0.25, 0.5, 0.25)])
def test_weighted_integers_are_covered(scale, sizes):
    places = np.arange(-25, 26)
    sums = np.array([0.0])
    chances = np.array([1.0])
    for size in sizes:
        sums = (sums[:, None] + size * places).ravel()
        chances = (chances[:, None] * laplace_mass(scale, 25)).ravel()
    for confidence in (0.8, 0.95, 0.99):
        x = half_width(sizes, scale, "laplace", confidence, integers=True)
        assert chances[np.abs(sums) <= x].sum() >= confidence
        assert half_widths(sizes, scale, "laplace", confidence, step=1.0) >= x * (1 - 1e-15)


def test_one_and_two_laplace_noises_by_their_closed_forms():
    assert half_width([2.0], 3.0, "laplace") == pytest.approx(6 * math.log(20), rel=1e-7)
    for a, b in [(1.0, 0.5), (3.0, 2.9), (1.0, 0.001)]:
        x = half_width([a, -b], 1.0, "laplace")
        assert excess([a, b], x) <= 0.05 < excess([a, b], x * (1 - 1e-6))
    x = half_width([1.0, 1.0], 2.0, "laplace")
    assert (1 + x / 4) * math.exp(-x / 2) == pytest.approx(0.05, rel=1e-6)


@given(st.lists(st.integers(1, 400), min_size=3, max_size=9, unique=True), confidences)
@settings(max_examples=60)
def test_many_laplace_noises_by_partial_fractions(sizes, confidence):
    x = half_width(sizes, 0.1, "laplace", confidence)
    spreads = [size / 10 for size in sizes]
    assert excess(spreads, x) <= 1 - confidence < excess(spreads, x * (1 - 1e-6))


def test_one_large_weight_beside_small_ones():
    spreads = [1.0, 1e-3, 1.1e-3, 1.2e-3]
    x = half_width(spreads, 1.0, "laplace")
    assert excess(spreads, x) <= 0.05 < excess(spreads, x * (1 - 1e-6))


@pytest.mark.parametrize("count", [3, 20])
def test_equal_laplace_noises_by_their_density(count):
    x = half_width(np.ones(count), 1.0, "laplace")
    order = mpmath.mpf(count) - mpmath.mpf(1) / 2

    def density(y):
        return y**order * mpmath.besselk(order, y)

    mass = mpmath.quad(density, [0, x]) / mpmath.quad(density, [0, x, 4 * x, 20 * x])
    assert 0.95 <= float(mass) < 0.95 + 1e-6


@pytest.mark.parametrize("kurtosis", [3e-4])
def test_ten_thousand_cells(kurtosis):
    """By Cornish and Fisher's expansion, whose next term is of order 1e-8; excess kurtosis of the sum 3/count."""
    z = -float(ndtri(0.025))
    expected = z + (z**3 - 3 * z) * kurtosis / 24 - (3 * z**5 - 24 * z**3 + 29 * z) * kurtosis**2 / 384
    assert half_width(np.ones(10_000), 1.0, "laplace") / math.sqrt(2e4) == pytest.approx(expected, rel=1e-6)
    scales = np.linspace(0.5, 2, 10_000)
    assert half_width(np.ones(10_000), scales, "laplace") == pytest.approx(
        z * math.sqrt(2 * np.sum(scales**2)), rel=1e-4
    )
    assert half_width(np.ones(10_000), 2.0, "gaussian") == pytest.approx(200 * z, rel=1e-7)


@given(weights, st.floats(1e-6, 1e6), confidences, st.sampled_from(["laplace", "gaussian"]))
@settings(max_examples=60)
def test_a_half_width_scales_and_does_not_look_at_signs_or_order(sizes, factor, confidence, kind):
    found = half_width(sizes, 1.0, kind, confidence)
    turned = [-size * factor for size in reversed(sizes)]
    assert half_width(turned, 1.0, kind, confidence) == pytest.approx(found * factor, rel=1e-6)
    assert half_width(np.array(sizes) * factor, 1.0, kind, confidence) == pytest.approx(
        half_width(sizes, factor, kind, confidence), rel=1e-6
    )


@given(weights, confidences, confidences, st.booleans())
@settings(max_examples=60)
def test_more_confidence_is_wider(sizes, one, other, integers):
    low, high = sorted([one, other])
    found = [half_width(sizes, 1.0, "laplace", confidence, integers=integers) for confidence in (low, high)]
    assert found[0] <= found[1] * (1 + 1e-6)


@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=2, max_size=6), confidences)
@settings(max_examples=60)
def test_it_is_a_norm(sizes, confidence):
    one, other = np.array(sizes).T
    parts = half_width(one, 1.0, "laplace", confidence) + half_width(other, 1.0, "laplace", confidence)
    assert half_width(one + other, 1.0, "laplace", confidence) <= parts * (1 + 1e-6)


@given(weights, confidences)
@settings(max_examples=150)
def test_the_table_is_above_and_near(sizes, confidence):
    exact = half_width(sizes, 1.0, "laplace", confidence)
    found = float(half_widths(sizes, 1.0, "laplace", confidence))
    assert exact * (1 - 1e-6) <= found <= exact * (1 + 1e-6 if len(sizes) < 3 else 1.03 if confidence >= 0.9 else 1.1)


def test_the_table_is_above_wherever_weights_are_alike():
    for big, small, size in product(range(1, 5), range(1, 6), [0.03, 0.2, 0.5, 0.8, 0.97]):
        sizes = [1.0] * big + [size] * small
        for confidence in (0.95, 0.952, 0.99, 0.999):
            exact = half_width(sizes, 1.0, "laplace", confidence)
            assert exact <= half_widths(sizes, 1.0, "laplace", confidence) <= 1.03 * exact


def test_no_noise_has_no_width():
    assert half_width([], 1.0, "laplace") == half_width([0.0, 1.0], [1.0, 0.0], "gaussian") == 0
    assert half_widths([[0.0, 0.0], [0.0, 1.0]], 1.0, "laplace")[0] == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "cauchy"},
        {"confidence": 1.0},
        {"confidence": float("nan")},
        {"scales": -1.0},
        {"scales": [1.0, 2.0, 3.0]},
        {"weights": [[1.0]]},
        {"weights": [float("inf"), 1.0]},
    ],
)
def test_what_is_no_half_width_is_refused(wrong):
    with pytest.raises(InvalidArgument):
        half_width(**{"weights": [1.0, 1.0], "scales": 1.0, "kind": "laplace", **wrong})

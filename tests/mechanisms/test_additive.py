"""Laplace and Gaussian noise: what is charged is what is drawn, errors are covered, bad input is refused quietly."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sitr.accounting import DiscreteGaussian, DiscreteLaplace, ZeroConcentrated
from sitr.errors import InvalidArgument
from sitr.mechanisms import additive, gaussian, laplace
from sitr.mechanisms.grid import FARTHEST, FARTHEST_INTEGER
from sitr.mechanisms.samplers.draws import LARGEST_SIGMA
from tests.accounting.helpers import brute_delta, law, logs
from tests.mechanisms.statistics import ALARM, fits
from tests.mechanisms.truths import delta_of, keeps_its_promise, laplace_mass, refuses_quietly

BOTH = [laplace, gaussian]


def gaussian_law(variance):
    reach = math.ceil(9 * math.sqrt(variance)) + 3
    weights = {x: math.exp(-(x**2) / (2 * float(variance))) for x in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {x: weight / total for x, weight in weights.items()}


def laplace_law(scale):
    """All but e^-35 of it."""
    reach = math.ceil(36 * float(scale)) + 1
    return {x: laplace_mass(float(scale), x) for x in range(-reach, reach + 1)}


def moved_law(law, by):
    """The law of an answer whose exact value is `by`."""
    return {x + by: p for x, p in law.items()}


@pytest.fixture
def drawn(monkeypatch):
    """What the samplers are asked for: the name of the law and its parameter."""
    asked = []
    for name in ("discrete_laplace", "discrete_gaussian"):
        real = getattr(additive, name)

        def spy(parameter, count, source, name=name, real=real):
            asked.append((name, parameter, count))
            return real(parameter, count, source)

        monkeypatch.setattr(additive, name, spy)
    return asked


# --- What is charged is what is drawn ---------------------------------------------------------------------------------


@pytest.mark.parametrize("integers", [True, False])
@pytest.mark.parametrize("length", [None, 3])
@pytest.mark.parametrize("target", [{"epsilon": 0.7}, {"scale": 3.5}])
def test_the_laplace_event_is_that_of_the_noise(integers, length, target, drawn):
    mechanism = laplace(sensitivity=2, integers=integers, length=length, **target)
    value = 5 if length is None else [5, 6, 7]
    release = mechanism.release(value)
    assert release.event == mechanism.event
    assert drawn == [("discrete_laplace", Fraction(mechanism.event.scale), length or 1)]
    assert mechanism.scale == mechanism.event.scale * float(mechanism.grid.step)
    assert mechanism.event.sensitivity >= 2 / mechanism.grid.step
    if "epsilon" in target:
        assert mechanism.event.pure() <= 0.7 * (1 + 1e-12)


@pytest.mark.parametrize("integers", [True, False])
@pytest.mark.parametrize("length", [None, 3])
@pytest.mark.parametrize("target", [{"epsilon": 0.7, "delta": 1e-6}, {"rho": 0.1}, {"scale": 3.5}])
def test_the_gaussian_event_is_that_of_the_noise(integers, length, target, drawn):
    mechanism = gaussian(sensitivity=2, integers=integers, length=length, **target)
    mechanism.release(5 if length is None else [5, 6, 7])
    ((name, variance, count),) = drawn
    assert (name, count) == ("discrete_gaussian", length or 1)
    sigma = Fraction(mechanism.scale) / mechanism.grid.step
    assert variance == sigma**2
    least = Fraction(2) / mechanism.grid.step
    if length is None:
        assert isinstance(mechanism.event, DiscreteGaussian)
        assert Fraction(mechanism.event.scale) == sigma
        assert mechanism.event.sensitivity >= least
    else:
        assert isinstance(mechanism.event, ZeroConcentrated)
        assert Fraction(mechanism.event.rho) >= least**2 / (2 * variance)
    if "epsilon" in target:
        assert float(mechanism.event.epsilon(delta=1e-6)) <= 0.7
    if "rho" in target:
        assert Fraction(mechanism.event.zcdp().rho if length is None else mechanism.event.rho) <= Fraction(0.1) * (
            1 + Fraction(1, 10**9)
        )


@pytest.mark.parametrize("sensitivity", [1, 3])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 2.5])
def test_whole_numbers_with_laplace_noise_keep_the_promise_and_it_is_tight(sensitivity, epsilon, drawn):
    """All answers of two neighbours, by the law that the sampler is asked for."""
    mechanism = laplace(sensitivity=sensitivity, epsilon=epsilon, integers=True)
    mechanism.release(0)
    noise = laplace_law(drawn[0][1])
    for moved in range(1, sensitivity + 1):
        keeps_its_promise(mechanism.event, noise, moved_law(noise, moved))
    outcomes = sorted(noise.keys() | moved_law(noise, sensitivity).keys())
    p, q = [noise.get(x, 0.0) for x in outcomes], [moved_law(noise, sensitivity).get(x, 0.0) for x in outcomes]
    assert delta_of(mechanism.event, epsilon / 2) <= brute_delta(p, q, epsilon / 2) * (1 + 1e-3)
    with pytest.raises(AssertionError):  # one step farther is not promised
        keeps_its_promise(mechanism.event, noise, moved_law(noise, sensitivity + 1), (0.0, epsilon / 2))


@pytest.mark.parametrize("sensitivity", [1, 3])
@pytest.mark.parametrize("rho", [0.02, 0.5])
def test_whole_numbers_with_gaussian_noise_keep_the_promise_and_it_is_tight(sensitivity, rho, drawn):
    mechanism = gaussian(sensitivity=sensitivity, rho=rho, integers=True)
    mechanism.release(0)
    noise = gaussian_law(drawn[0][1])
    for moved in range(1, sensitivity + 1):
        keeps_its_promise(mechanism.event, noise, moved_law(noise, moved))
    outcomes = sorted(noise.keys() | moved_law(noise, sensitivity).keys())
    p, q = [noise.get(x, 0.0) for x in outcomes], [moved_law(noise, sensitivity).get(x, 0.0) for x in outcomes]
    assert delta_of(mechanism.event, rho) <= brute_delta(p, q, rho) * (1 + 1e-3)
    with pytest.raises(AssertionError):
        keeps_its_promise(mechanism.event, noise, moved_law(noise, sensitivity + 1), (0.0, rho))


@pytest.mark.parametrize("move", [(1, 0), (1, 1), (2, -1)])
def test_vectors_with_gaussian_noise_keep_the_promise(move, drawn):
    mechanism = gaussian(sensitivity=math.hypot(*move), scale=1.5, integers=True, length=2)
    mechanism.release([0, 0])
    one = gaussian_law(drawn[0][1])
    both = {(x, y): p * q for x, p in one.items() for y, q in one.items()}
    moved = {(x + move[0], y + move[1]): p for (x, y), p in both.items()}
    keeps_its_promise(mechanism.event, both, moved)


def test_vectors_with_laplace_noise_keep_the_promise(drawn):
    mechanism = laplace(sensitivity=2, scale=1.5, integers=True, length=2)
    mechanism.release([0, 0])
    one = {x: p for x, p in laplace_law(drawn[0][1]).items() if abs(x) <= 60}
    both = {(x, y): p * q for x, p in one.items() for y, q in one.items()}
    for move in ((2, 0), (1, 1), (1, -1)):
        keeps_its_promise(mechanism.event, both, {(x + move[0], y + move[1]): p for (x, y), p in both.items()})


# --- Answers ----------------------------------------------------------------------------------------------------------


@pytest.mark.statistical
@pytest.mark.parametrize("make", BOTH)
def test_answers_follow_the_law_around_the_value(make):
    n = 200_000
    mechanism = make(scale=4.0, sensitivity=1, integers=True, length=n)
    noise = laplace_law(4) if make is laplace else gaussian_law(16)
    for value in (0, -7, 10**15):
        found = mechanism.release(np.full(n, value)).value - value
        assert fits(found, min(noise), list(noise.values()))


@pytest.mark.statistical
@pytest.mark.parametrize("make", BOTH)
def test_floats_are_answered_around_their_value(make):
    """The middle of the noise: an exact sign test; the grid moves the value by 2^-21 of the scale at most."""
    n = 100_000
    mechanism = make(scale=0.01, sensitivity=1.0, length=n)
    for value in (0.0, 1 / 3, -123.456):
        above = int(np.sum(mechanism.release(np.full(n, value)).value > value))
        assert stats.binomtest(above, n, 0.5).pvalue > ALARM


@pytest.mark.parametrize("make", BOTH)
def test_answers_have_the_kind_and_shape_of_what_was_asked(make):
    assert type(make(scale=1.0, sensitivity=1, integers=True).release(3).value) is int
    assert type(make(scale=1.0, sensitivity=1).release(3).value) is float
    assert make(scale=1.0, sensitivity=1, integers=True, length=3).release([1, 2, 3]).value.dtype == np.int64
    found = make(scale=1.0, sensitivity=1, length=1).release([1]).value
    assert (found.dtype, found.shape) == (np.float64, (1,))
    exact = make(scale=1.0, sensitivity=1, length=2).release((0.5, -2.25), unsafe_without_noise=True)
    assert exact.value.tolist() == [0.5, -2.25]


@pytest.mark.parametrize("make", BOTH)
def test_huge_values_are_moved_to_the_farthest_point_and_not_refused(make):
    """An error would tell how large the value is."""
    whole, floats = make(scale=1.0, sensitivity=1, integers=True), make(scale=1.0, sensitivity=1.0)
    for value in (2**63, 2**64, 10**400):
        assert whole.release(value, unsafe_without_noise=True).value == FARTHEST_INTEGER
        assert floats.release(value, unsafe_without_noise=True).value == FARTHEST * float(floats.grid.step)
        assert floats.release(-value, unsafe_without_noise=True).value == -FARTHEST * float(floats.grid.step)
    assert floats.release(1e308, unsafe_without_noise=True).value == FARTHEST * float(floats.grid.step)
    both = make(scale=1.0, sensitivity=1, integers=True, length=2)
    assert both.release([2**63, -1], unsafe_without_noise=True).value.tolist() == [FARTHEST_INTEGER, -1]


# --- Errors -----------------------------------------------------------------------------------------------------------


@law(150)
@given(logs(1e-3, 2**30))
def test_laplace_error95_is_the_least_that_covers(scale):
    def beyond(k):
        """P(|X| ≥ k)."""
        return 2 * math.exp(-k / scale) / (1 + math.exp(-1 / scale))

    k = additive.laplace95(scale)
    assert beyond(k + 1) <= 0.05 * (1 + 1e-12)
    assert k == 0 or beyond(k) > 0.05 * (1 - 1e-12)


@pytest.mark.parametrize("scale", [0.011, 0.3, 0.5, 0.7, 1.0, 1.5, 3.3, 40.0, 300.0])
def test_gaussian_error95_covers(scale):
    mechanism = gaussian(scale=scale, sensitivity=1, integers=True)
    inside = math.fsum(p for x, p in gaussian_law(scale**2).items() if abs(x) <= mechanism.error95)
    assert inside >= 0.95
    assert mechanism.error95 <= 1.96 * scale + 1


@pytest.mark.statistical
@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_error_of_a_float_is_covered_95_times_in_100(make, scale):
    """With the rounding of the value; two-sided, as on a fine grid the cover is 95 % to five digits."""
    n = 100_000
    mechanism = make(scale=scale, sensitivity=scale, length=n)
    value = scale / 3
    inside = int(np.sum(np.abs(mechanism.release(np.full(n, value)).value - value) <= mechanism.error95))
    assert stats.binomtest(inside, n, 0.95).pvalue > ALARM


# --- Calibration ------------------------------------------------------------------------------------------------------


@law(100)
@given(logs(1e-6, 1e3), logs(1e-3, 1e3), st.booleans())
def test_laplace_meets_epsilon_and_wastes_little(sensitivity, epsilon, integers):
    sensitivity = math.ceil(sensitivity) if integers else sensitivity
    mechanism = laplace(sensitivity=sensitivity, epsilon=epsilon, integers=integers)
    event = mechanism.event
    assert isinstance(event, DiscreteLaplace)
    assert Fraction(event.sensitivity) / Fraction(event.scale) <= Fraction(epsilon)
    assert event.sensitivity / event.scale >= epsilon * (1 - 1e-12)
    assert mechanism.scale <= sensitivity / epsilon * (1 + 2.0**-18 * max(1, 1 / epsilon))


@pytest.mark.parametrize("make", BOTH)
def test_adjacency_is_passed_on(make):
    assert make(scale=1.0, sensitivity=1.0, adjacency="replace_one").event.adjacency == "replace_one"
    assert make(scale=1.0, sensitivity=1.0, length=2, adjacency="replace_one").event.adjacency == "replace_one"
    assert make(scale=1.0, sensitivity=1.0).release(1.0).adjacency == make(scale=1.0, sensitivity=1.0).event.adjacency


# --- Bad input --------------------------------------------------------------------------------------------------------

NO_NUMBER = [math.nan, math.inf, -math.inf, -1, 0, True, "1", 1j, [1.0], np.array(1.0, dtype=object), Decimal(1), b"1"]


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize("value", [*NO_NUMBER, None, 1e-300, 1e300, 10**400], ids=lambda value: str(value)[:12])
def test_a_bad_sensitivity_is_refused(make, value):
    with pytest.raises(InvalidArgument, match="sensitivity"):
        make(scale=1.0, sensitivity=value)


@pytest.mark.parametrize("value", [*NO_NUMBER, 1e-300, 1e300, 10**400], ids=lambda value: str(value)[:12])
def test_a_bad_target_is_refused(value):
    for name in ("epsilon", "scale"):
        with pytest.raises(InvalidArgument, match=name):
            laplace(sensitivity=1.0, **{name: value})
    for name in ("rho", "scale"):
        with pytest.raises(InvalidArgument, match=name):
            gaussian(sensitivity=1.0, **{name: value})
    with pytest.raises(InvalidArgument, match="epsilon"):
        gaussian(sensitivity=1.0, epsilon=value, delta=1e-6)


@pytest.mark.parametrize("value", [0, 1, 2, -1e-9, math.nan, math.inf, True, "0.1", 1j, np.array(0.1, dtype=object)])
def test_a_bad_delta_is_refused(value):
    with pytest.raises(InvalidArgument, match="delta"):
        gaussian(sensitivity=1.0, epsilon=1.0, delta=value)


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize("length", [0, -1, 1.0, True, "3", math.nan, 10**9, [3]])
def test_a_bad_length_is_refused(make, length):
    with pytest.raises(InvalidArgument, match="length"):
        make(scale=1.0, sensitivity=1.0, length=length)


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize("adjacency", ["add", 1, [], True])
def test_a_bad_adjacency_is_refused(make, adjacency):
    with pytest.raises(InvalidArgument, match="adjacency"):
        make(scale=1.0, sensitivity=1.0, adjacency=adjacency)


@pytest.mark.parametrize(
    ("make", "targets"),
    [
        (laplace, {}),
        (laplace, {"epsilon": 1.0, "scale": 1.0}),
        (gaussian, {}),
        (gaussian, {"epsilon": 1.0}),
        (gaussian, {"delta": 1e-6}),
        (gaussian, {"rho": 0.1, "delta": 1e-6}),
        (gaussian, {"rho": 0.1, "scale": 1.0}),
        (gaussian, {"epsilon": 1.0, "delta": 1e-6, "rho": 0.1}),
    ],
)
def test_there_is_exactly_one_target(make, targets):
    with pytest.raises(InvalidArgument, match="not one target"):
        make(sensitivity=1.0, **targets)


@pytest.mark.parametrize(("make", "most"), [(laplace, 1e12), (gaussian, LARGEST_SIGMA)])
def test_noise_that_no_sampler_draws_is_refused(make, most):
    make(scale=float(most), sensitivity=1, integers=True)
    for scale in (4.0 * most, 1e-5):
        with pytest.raises(InvalidArgument, match="grid steps"):
            make(scale=scale, sensitivity=1, integers=True)


NOT_DATA = [
    math.nan,
    math.inf,
    -math.inf,
    None,
    True,
    np.bool_(True),
    "secret",
    b"31337",
    31337j,
    Decimal(31337),
    Fraction(31337, 2),
    np.datetime64("2001-01-01"),
    object(),
    {31337: 1},
    {31337},
    [],
    [None],
    [31337, None],
    ["secret", 1],
    [True, False],
    [[31337, 1]],
    [[31337], [1, 2]],
    np.array([31337, 1], dtype=object) + 0.5j,
    np.array([math.nan, 31337.0]),
    [math.inf, 31337.0],
    [10**30, math.nan],
    (number for number in (31337, 1)),
]


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize("integers", [True, False])
@pytest.mark.parametrize("length", [None, 2])
@pytest.mark.parametrize("place", range(len(NOT_DATA)))
def test_bad_data_are_refused_without_being_shown_and_nothing_is_drawn(make, integers, length, place, monkeypatch):
    mechanism = make(scale=1.0, sensitivity=1, integers=integers, length=length)
    refuses_quietly(mechanism, NOT_DATA[place], monkeypatch)


@pytest.mark.parametrize("make", BOTH)
def test_data_of_the_wrong_shape_or_kind_are_refused(make, monkeypatch):
    number, pair = (make(scale=1.0, sensitivity=1, length=length) for length in (None, 2))
    for value in ([31337], [31337, 1], np.array([31337.0])):
        refuses_quietly(number, value, monkeypatch)
    for value in (31337, [31337], [31337, 1, 2], [[31337, 1]], np.zeros((2, 1)), np.zeros((1, 2))):
        refuses_quietly(pair, value, monkeypatch)
    for value in (31337.0, 0.5, np.float32(31337)):
        refuses_quietly(make(scale=1.0, sensitivity=1, integers=True), value, monkeypatch)
    for value in ([31337.0, 1], [0.5, 2**70], np.array([31337.0, 1])):
        refuses_quietly(make(scale=1.0, sensitivity=1, integers=True, length=2), value, monkeypatch)


@pytest.mark.parametrize("make", BOTH)
def test_one_error_is_worded_alike_for_all_data(make):
    """What is refused tells nothing but that it was: the words depend on the mechanism alone."""
    mechanism = make(scale=1.0, sensitivity=1)
    words = set()
    for value in (math.nan, math.inf, None, "secret", [31337]):
        with pytest.raises(InvalidArgument) as caught:
            mechanism.release(value)
        words.add(str(caught.value))
    assert len(words) == 1

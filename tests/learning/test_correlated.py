"""Correlated noise: its sensitivity by brute force, its stream by linear algebra, its cost by second ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.linalg import sqrtm, toeplitz
from scipy.special import gammaln, logsumexp

from sitr.accounting import Event, Gaussian, PoissonSampled
from sitr.errors import IncompatibleAdjacency, InvalidArgument
from sitr.learning.correlated import BandedNoise, Stream

Floats = NDArray[np.float64]

COEFFICIENTS = st.lists(st.integers(-300, 300), max_size=4).flatmap(
    lambda later: st.integers(1, 300).map(lambda first: (first, *later))
)


def matrix(noise: BandedNoise) -> NDArray[np.int64]:
    """M, written down."""
    column = np.zeros(noise.steps, np.int64)
    column[: noise.bands] = noise.coefficients
    return np.tril(toeplitz(column))


def patterns(steps: int, apart: int, most: int) -> Iterator[tuple[int, ...]]:
    """All sets of steps that one person may be in: `apart` from each other, `most` of them."""
    for count in range(1, most + 1):
        for chosen in combinations(range(steps), count):
            if all(later - earlier >= apart for earlier, later in pairwise(chosen)):
                yield chosen


def farthest(noise: BandedNoise, apart: int, most: int) -> float:
    """The squared sensitivity by trying every pattern with every sign: ‖Mu‖² is convex, so largest in a corner."""
    squares = matrix(noise).T @ matrix(noise)
    return max(
        float(np.array(signs) @ squares[np.ix_(chosen, chosen)] @ np.array(signs))
        for chosen in patterns(noise.steps, apart, most)
        for signs in product((-1, 1), repeat=len(chosen))
    )


class TestSensitivity:
    @pytest.mark.parametrize("coefficients", [(4,), (4, 3), (4, 3, 2), (4, -3, 2), (4, 3, 2, 1)])
    @pytest.mark.parametrize("most", [1, 2, 3])
    def test_of_participations_at_least_bands_apart_is_the_root_of_their_number(
        self, coefficients: tuple[int, ...], most: int
    ) -> None:
        noise = BandedNoise(coefficients, steps=9)
        truth, formula = farthest(noise, noise.bands, most), most * noise.norm_squared
        fits = most * noise.bands <= noise.steps
        assert truth == formula if fits else truth <= formula

    def test_is_more_where_participations_are_nearer(self) -> None:
        noise = BandedNoise((4, 3, 2), steps=9)
        assert farthest(noise, 2, 2) > 2 * noise.norm_squared

    @settings(deadline=None)
    @given(COEFFICIENTS, st.data())
    def test_bounds_what_a_person_does_to_exact_sums(self, coefficients: tuple[int, ...], data: st.DataObject) -> None:
        """In several dimensions, with signs and sizes at will: ‖M(x-x')‖² ≤ k Σm² Δ², in whole numbers."""
        noise = BandedNoise(coefficients, steps=data.draw(st.integers(len(coefficients), 12)))
        moved = np.zeros((noise.steps, 3), np.int64)
        step, count, sensitivity_squared = data.draw(st.integers(0, noise.steps - 1)), 0, 0
        while step < noise.steps:
            moved[step] = data.draw(st.lists(st.integers(-50, 50), min_size=3, max_size=3))
            sensitivity_squared = max(sensitivity_squared, int((moved[step] ** 2).sum()))
            count += 1
            step += noise.bands + data.draw(st.integers(0, 3))
        released = matrix(noise) @ moved
        assert int((released**2).sum()) <= count * noise.norm_squared * sensitivity_squared

    def test_variance_is_exact(self) -> None:
        noise = BandedNoise((256, 171, 150), steps=10)
        assert noise.variance(0.1, Fraction(7, 3)) == Fraction(0.1) ** 2 * Fraction(49, 9) * (256**2 + 171**2 + 150**2)


class TestStream:
    @pytest.mark.parametrize("bands", [1, 2, 5, 12])
    def test_is_the_inverse_of_the_matrix(self, bands: int) -> None:
        """Fed with the rows of the identity it writes down M⁻¹, and with it the covariance M⁻¹M⁻ᵀ of the noise."""
        noise = BandedNoise.best(bands, steps=12)
        inverse = np.array(list(Stream(noise, np.eye(12))))
        whole = matrix(noise).astype(np.float64)
        np.testing.assert_allclose(whole @ inverse, np.eye(12), atol=1e-12)
        np.testing.assert_allclose(inverse @ inverse.T, np.linalg.inv(whole.T @ whole), atol=1e-12)

    @settings(deadline=None)
    @given(COEFFICIENTS, st.data())
    def test_of_whole_numbers_is_post_processing_of_what_is_released(
        self, coefficients: tuple[int, ...], data: st.DataObject
    ) -> None:
        """x + w is found from y = Mx + z alone, to the last bit, though x and z are not known."""
        steps = data.draw(st.integers(len(coefficients), 8))
        noise = BandedNoise(coefficients, steps)
        numbers = st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=2)
        sums = np.array(data.draw(st.lists(numbers, min_size=steps, max_size=steps)), np.int64)
        drawn = np.array(data.draw(st.lists(numbers, min_size=steps, max_size=steps)), np.int64)
        try:
            seen = sums + np.array(list(Stream(noise, drawn)))
        except InvalidArgument:
            reject()  # an inverse that explodes, as that of 1, 210, is refused before a number overflows
        assert seen.tolist() == recovered(noise, (matrix(noise) @ sums + drawn).tolist())

    def test_of_whole_numbers_is_near_the_inverse(self) -> None:
        noise = BandedNoise.best(8, steps=200)
        drawn = np.random.default_rng(1).integers(-(2**29), 2**29, (200, 50))
        made = np.array(list(Stream(noise, drawn)))
        inverse = np.linalg.inv(matrix(noise).astype(np.float64))
        rounding = noise.coefficients[0] / 2 * np.abs(inverse).sum(axis=1).max()  # z moved by m_0/2 at most
        assert np.abs(made - inverse @ drawn).max() <= rounding + 1e-3
        assert rounding < 2  # steps of the grid of sums

    @settings(deadline=None)
    @given(st.integers(1, 4), st.integers(1, 6))
    def test_asks_for_noise_once_a_step_and_only_when_it_is_due(self, bands: int, extra: int) -> None:
        steps = bands + extra
        asked: list[int] = []

        def drawn() -> Iterator[Floats]:
            while True:
                asked.append(len(asked))
                yield np.zeros(2)

        stream = Stream(BandedNoise.best(bands, steps), drawn())
        for step in range(steps):
            next(stream)
            assert len(asked) == step + 1
        with pytest.raises(StopIteration):
            next(stream)
        assert len(asked) == steps

    def test_keeps_as_many_vectors_as_there_are_bands_but_one(self) -> None:
        stream = Stream(BandedNoise.best(4, 50), np.zeros((50, 3)))
        for _ in range(20):
            next(stream)
        assert len(stream._past) == 3

    @pytest.mark.parametrize("kind", [np.int32, np.uint64, np.float16])
    def test_refuses_numbers_that_are_too_small(self, kind: type) -> None:
        with pytest.raises(InvalidArgument, match="dtype"):
            next(Stream(BandedNoise.best(2, 5), [np.zeros(2, kind)]))

    def test_refuses_noise_that_would_overflow(self) -> None:
        with pytest.raises(InvalidArgument, match="64 bits"):
            next(Stream(BandedNoise.best(2, 5), [np.array([2**61])]))
        large = Stream(BandedNoise((1, 2**16), 100), (np.array([2**40]) for _ in range(100)))
        with pytest.raises(InvalidArgument, match="64 bits"):
            list(large)

    def test_of_no_numbers_is_none(self) -> None:
        """A process may hold no rows of a small weight."""
        made = list(Stream(BandedNoise.best(3, 5), np.zeros((5, 0, 2), np.int64)))
        assert [one.shape for one in made] == [(0, 2)] * 5

    def test_refuses_noise_of_another_shape_or_kind(self) -> None:
        for second in (np.zeros(3), np.zeros(2, np.float32)):
            stream = Stream(BandedNoise.best(2, 5), [np.zeros(2), second])
            next(stream)
            with pytest.raises(InvalidArgument, match="differs"):
                next(stream)

    def test_takes_tensors(self) -> None:
        torch = pytest.importorskip("torch")
        noise = BandedNoise.best(3, 6)
        drawn = np.random.default_rng(2).integers(-1000, 1000, (6, 4))
        for kind in (np.int64, np.float64):
            ours = list(Stream(noise, drawn.astype(kind)))
            theirs = list(Stream(noise, torch.from_numpy(drawn.astype(kind))))
            assert [one.tolist() for one in ours] == [one.tolist() for one in theirs]


def recovered(noise: BandedNoise, released: list[list[int]]) -> list[list[int]]:
    """What anybody makes of y, in Python's whole numbers: x̂_t = ⌊(y_t - Σ m_i x̂_{t-i})/m_0 + ½⌋."""
    found: list[list[int]] = []
    first = noise.coefficients[0]
    for step, row in enumerate(released):
        rest = list(row)
        for back in range(1, min(noise.bands, step + 1)):
            for place in range(len(rest)):
                rest[place] -= noise.coefficients[back] * found[step - back][place]
        found.append([(2 * one + first) // (2 * first) for one in rest])
    return found


class TestError:
    @pytest.mark.parametrize(("bands", "steps"), [(1, 7), (2, 7), (3, 30), (30, 30)])
    def test_is_that_of_the_matrices(self, bands: int, steps: int) -> None:
        noise = BandedNoise.best(bands, steps)
        whole = matrix(noise).astype(np.float64)
        sums = np.tril(np.ones((steps, steps))) @ np.linalg.inv(whole)
        largest_column = np.linalg.norm(whole, axis=0).max()
        assert noise.error == pytest.approx(largest_column * np.sqrt((sums**2).sum() / steps), rel=1e-12)

    @pytest.mark.parametrize("steps", [2, 8, 40])
    def test_without_bands_is_near_the_best_of_all_factorisations(self, steps: int) -> None:
        """At least the optimum, which another method bounds from below, and at most 4 % over it."""
        best = optimum(steps)
        assert best * (1 - 1e-9) <= BandedNoise.best(steps, steps).error <= 1.04 * best

    def test_falls_with_every_band(self) -> None:
        ratios = [BandedNoise.best(bands, 200).ratio for bands in (1, 2, 3, 4, 6, 8, 16, 32, 64)]
        assert ratios[0] == 1.0
        assert ratios == sorted(ratios, reverse=True)

    @pytest.mark.parametrize(("bands", "ratio"), [(2, 0.7116), (8, 0.3733), (64, 0.1804)])
    def test_of_a_thousand_steps(self, bands: int, ratio: float) -> None:
        assert BandedNoise.best(bands, 1000).ratio == pytest.approx(ratio, abs=5e-5)

    @pytest.mark.parametrize("bands", [2, 3])
    def test_no_coefficients_nearby_are_better(self, bands: int) -> None:
        """A scan of whole numbers, for what a search by gradients found."""
        noise = BandedNoise.best(bands, 60)
        nearby = product(*(range(one - 3, one + 4) for one in noise.coefficients[1:]))
        best = min(BandedNoise((noise.coefficients[0], *later), 60).error for later in nearby)
        assert noise.error <= best * (1 + 1e-4)

    def test_whole_numbers_cost_little(self) -> None:
        """Beside the closed form, which is of real numbers, for as many bands as steps."""
        half = np.arange(1, 200)
        shape = np.concatenate([[1.0], np.cumprod((2 * half - 1) / (2 * half))])
        closed = float(np.sqrt((shape @ shape) * (np.arange(200, 0, -1) @ shape**2) / 200))
        assert BandedNoise.best(200, 200).error <= closed * (1 + 1e-4)


def optimum(steps: int) -> float:
    """The least error of any factorisation for people who take part once, by a fixed point of its dual.

    For u ≥ 0 with Σu = 1 the least of tr(AᵀA X⁻¹) over X with Σ u_i X_ii ≤ 1 is (tr √(U^½ AᵀA U^½))², and no X with
    diagonal at most 1 has less; at the fixed point, where u is as the diagonal of that root, it is reached.
    """
    gram = np.tril(np.ones((steps, steps))).T @ np.tril(np.ones((steps, steps)))
    weights = np.full(steps, 1 / steps)
    for _ in range(300):
        root = np.real(sqrtm(np.sqrt(np.outer(weights, weights)) * gram))
        weights = np.diag(root) / np.trace(root)
    return float(np.trace(root) / np.sqrt(steps))


class TestPoisson:
    def test_one_band_is_plain_sampling(self) -> None:
        event = BandedNoise((256,), steps=50).poisson_event(1.5, n=1000, batch=100)
        assert event == PoissonSampled(Gaussian(1.5), 0.1) * 50

    def test_counts_turns_of_the_group_that_has_most(self) -> None:
        noise = BandedNoise.best(4, steps=10)
        for first, last in combinations(range(11), 2):
            turns = max(sum(noise.group(step) == group for step in range(first, last)) for group in range(4))
            event = noise.poisson_event(2.0, n=1000, batch=10, first=first, last=last)
            assert event == PoissonSampled(Gaussian(2.0), 0.04) * turns

    def test_is_under_the_moments_accountant(self) -> None:
        """THEORY 2.7 and 3.2, written down again: an upper bound that is not far."""
        noise = BandedNoise.best(16, steps=1000)
        found = noise.poisson_event(2.0, n=60_000, batch=600).epsilon(1e-5)
        bound = moments(2.0, rate=0.16, times=63, delta=1e-5)
        assert found.upper <= bound <= 1.2 * found.lower

    @pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
    def test_holds_for_gradients_that_depend_on_what_was_released(self, epsilon: float) -> None:
        """Three steps of two bands by numerical integration, in both orders."""
        own, others = (lambda a, b: np.tanh(a + b)), (lambda a: -np.cos(2 * a))
        event = PoissonSampled(Gaussian(1.2), 0.3) * 2
        for order in densities(own, others), densities(own, others)[::-1]:
            assert hockey_stick(*order, epsilon) <= 1.001 * event.delta(epsilon).upper

    def test_is_exact_for_gradients_of_full_length(self) -> None:
        """But for the last column, of which the third step cuts the second row off: its norm is 0.8."""
        full = densities(lambda a, b: 1.0, lambda a: 0.0)
        event = PoissonSampled(Gaussian(1.2), 0.3) + PoissonSampled(Gaussian(1.2 / 0.8), 0.3)
        for epsilon in (0.0, 0.3, 1.0):
            worse = max(hockey_stick(*full, epsilon), hockey_stick(*full[::-1], epsilon))
            assert worse == pytest.approx(event.delta(epsilon).upper, rel=1e-3)

    def test_does_not_hold_where_everyone_is_sampled_in_every_step(self) -> None:
        """Why groups take turns: with the same rate in every step one person moves rows twice."""
        event = PoissonSampled(Gaussian(1.2), 0.3) * 3
        every = densities(lambda a, b: 1.0, lambda a: 1.0, group=False)
        assert hockey_stick(*every, 1.0) > 1.1 * event.delta(1.0).upper

    def test_steps_made_again_by_a_new_stream_cost_their_event(self) -> None:
        """Turns in the old stream and in the new one, counted for every group, time of death and checkpoint."""
        noise = BandedNoise.best(3, steps=10)
        for saved, died in combinations(range(11), 2):
            turns = max(
                sum(noise.group(step) == group for step in [*range(died), *range(saved, 10)]) for group in range(3)
            )
            charged = noise.poisson_event(2.0, 100, 10), noise.poisson_event(2.0, 100, 10, first=saved, last=died)
            assert turns <= sum(count for event in charged for _, count in event.parts)

    def test_refuses_groups_that_are_smaller_than_a_batch(self) -> None:
        assert BandedNoise.best(10, 20).rate(n=100, batch=10) == 1
        with pytest.raises(InvalidArgument, match="groups"):
            BandedNoise.best(11, 20).poisson_event(1.0, n=100, batch=10)

    def test_speaks_of_people_added_or_removed(self) -> None:
        noise = BandedNoise.best(2, 20)
        with pytest.raises(IncompatibleAdjacency):
            noise.poisson_event(1.0, 100, 10) + noise.passes_event(1.0, 100, 10)


def moments(sigma: float, rate: float, times: int, delta: float) -> float:
    bounds = []
    for order in range(2, 200):
        k = np.arange(order + 1)
        chosen = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
        terms = chosen + (order - k) * np.log1p(-rate) + k * np.log(rate) + k * (k - 1) / (2 * sigma**2)
        cost = times * logsumexp(terms) / (order - 1)
        bounds.append(cost + np.log((order - 1) / order) - (np.log(delta) + np.log(order)) / (order - 1))
    return float(min(bounds))


Own = Callable[[Floats, Floats], Floats | float]
Others = Callable[[Floats], Floats | float]
SIDE = np.linspace(-7.0, 9.0, 161)


def densities(own: Own, others: Others, group: bool = True) -> tuple[Floats, Floats]:
    """The law of (y_1, y_2, y_3) with a person and without, two bands (0.8, 0.6), σ = 1.2, rate 0.3.

    The person is in the group of the first step and of the third; another is in that of the second, and what both do
    depends on what was released before. Not in groups, the person may be in all three steps.
    """
    y1, y2, y3 = np.meshgrid(SIDE, SIDE, SIDE, indexing="ij", sparse=True)
    gradient, other = own(y1, y2), others(y1)
    with_person, without = np.zeros((2, 161, 161, 161))
    for chosen in product((0, 1), repeat=3):
        weight = float(np.prod(np.where(chosen, 0.3, 0.7)))
        first, second, third = chosen
        between, alone = second * other, (0.0 if not group else second * other)
        with_person += weight * (
            bell(y1 - 0.8 * first)
            * bell(y2 - 0.6 * first - 0.8 * between)
            * bell(y3 - 0.6 * between - 0.8 * third * gradient)
        )
        without += weight * bell(y1) * bell(y2 - 0.8 * alone) * bell(y3 - 0.6 * alone)
    return with_person, without


def bell(distance: Floats) -> Floats:
    return np.asarray(np.exp(-((distance / 1.2) ** 2) / 2) / (1.2 * np.sqrt(2 * np.pi)), np.float64)


def hockey_stick(upper: Floats, lower: Floats, epsilon: float) -> float:
    return float(np.maximum(upper - np.exp(epsilon) * lower, 0).sum() * (SIDE[1] - SIDE[0]) ** 3)


class TestPasses:
    def test_is_gaussian_noise_with_the_sensitivity_of_brute_force(self) -> None:
        """Twelve steps in passes of four: the worst pattern is found by trying, and to replace counts twice."""
        noise = BandedNoise((4, 3, 2), steps=12)
        squared = farthest(noise, apart=4, most=3)
        multiplier = 3.0 * np.sqrt(noise.norm_squared)  # the standard deviation of z, for a sensitivity of 1
        expected = Gaussian(multiplier / (2 * np.sqrt(squared)))
        found = noise.passes_event(3.0, n=40, batch=10)
        assert found.epsilon(1e-5).upper == pytest.approx(expected.epsilon(1e-5).upper, rel=1e-9)

    def test_counts_passes_that_are_begun(self) -> None:
        noise = BandedNoise.best(4, steps=10)
        for first, last in combinations(range(11), 2):
            most = max(sum(step % 5 == place for step in range(first, last)) for place in range(5))
            event = noise.passes_event(4.0, n=49, batch=10, first=first, last=last)
            assert float(event.epsilon(1e-5)) == pytest.approx(float((Gaussian(2.0) * most).epsilon(1e-5)), rel=1e-9)

    def test_refuses_passes_that_are_shorter_than_the_bands(self) -> None:
        assert isinstance(BandedNoise.best(10, 20).passes_event(1.0, n=100, batch=10), Event)
        with pytest.raises(InvalidArgument, match="bands"):
            BandedNoise.best(11, 20).passes_event(1.0, n=100, batch=10)


class TestRefusals:
    @pytest.mark.parametrize(
        ("coefficients", "steps"), [((), 5), ((0, 1), 5), ((-1,), 5), ((1.5,), 5), ((1, 1, 1), 2), ((1,), 0)]
    )
    def test_of_what_is_no_correlation(self, coefficients: tuple[int, ...], steps: int) -> None:
        with pytest.raises(InvalidArgument):
            BandedNoise(coefficients, steps)

    @pytest.mark.parametrize(("bands", "steps"), [(0, 5), (6, 5), (2, 10**7)])
    def test_of_what_cannot_be_searched(self, bands: int, steps: int) -> None:
        with pytest.raises(InvalidArgument):
            BandedNoise.best(bands, steps)

    @pytest.mark.parametrize(("first", "last"), [(-1, 3), (3, 3), (0, 11)])
    def test_of_steps_outside_the_run(self, first: int, last: int) -> None:
        with pytest.raises(InvalidArgument):
            BandedNoise.best(2, 10).poisson_event(1.0, 100, 10, first=first, last=last)

    @pytest.mark.parametrize("multiplier", [0.0, -1.0, float("nan"), "1"])
    def test_of_what_is_no_noise(self, multiplier: float) -> None:
        noise = BandedNoise.best(2, 10)
        for refused in (
            lambda: noise.poisson_event(multiplier, 100, 10),
            lambda: noise.passes_event(multiplier, 100, 10),
            lambda: noise.variance(multiplier, 1),
            lambda: noise.variance(1.0, multiplier),
        ):
            with pytest.raises(InvalidArgument):
                refused()

"""Noise: as much as is charged, independent over numbers, tensors and steps, and of no seed."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, norm

from sitr.errors import InvalidArgument
from sitr.learning.noise import CELLS, StepNoise, discrete_variance, float_noise_like, in_cells
from sitr.learning.plan import LEAST_SCALE, MOST_CELLS, SMOOTHING, TrainingPlan, plan
from sitr.mechanisms.randomness import SYSTEM, Seeded
from sitr.mechanisms.samplers.draws import LARGEST_SIGMA
from tests.learning.loops import off_white

FALSE_ALARM = 1e-9
SHAPES = {"weight": (40, 250), "bias": (7,), "scalar": ()}


def made(**options: object) -> TrainingPlan:
    base = {"n": 100, "batch": 10, "max_grad_norm": 1.0, "delta": 1e-5, "steps": 5, "noise_multiplier": 2.0}
    return plan(**{**base, **options})  # type: ignore[arg-type]


def zeros(kind: torch.dtype) -> dict[str, torch.Tensor]:
    return {name: torch.zeros(shape, dtype=kind) for name, shape in SHAPES.items()}


def noise_of(noise: str, norm_: float = 0.3) -> tuple[StepNoise, dict[str, torch.Tensor]]:
    if noise == "exact":
        return StepNoise(made(max_grad_norm=norm_), norm_, 2.0**-18), zeros(torch.int64)
    return StepNoise(made(max_grad_norm=norm_, noise="float"), norm_, None), zeros(torch.float32)


@pytest.mark.statistical
@pytest.mark.parametrize("noise", ["exact", "float"])
def test_is_what_is_charged_and_independent(noise: str) -> None:
    """20 steps of 10,008 numbers each: Σ (x/σC)² is χ² with that many degrees; no two draws go together.

    The mean product of M independent pairs is near normal with deviation 1/√M: of neighbours in a tensor, of tensors
    in a step, and of steps. Four tests share the false alarm.
    """
    each = FALSE_ALARM / 8
    drawer, sums = noise_of(noise)
    steps = [drawer.on_sums(sums) for _ in range(20)]
    values = np.stack([np.concatenate([one.numpy().ravel() for one in step.values()]) for step in steps]) / (2.0 * 0.3)
    total = float((values**2).sum())
    assert chi2.ppf(each, values.size) < total < chi2.isf(each, values.size)
    pairs = {
        "numbers": values[:, :-1:2] * values[:, 1::2],
        "steps": values[:-1:2] * values[1::2],
        "tensors": values[:, :7] * values[:, 10_000:10_007],
    }
    for both in pairs.values():
        assert abs(both.mean()) * math.sqrt(both.size) < norm.isf(each)


@pytest.mark.parametrize("noise", ["exact", "float"])
def test_does_not_follow_the_seed_of_torch(noise: str) -> None:
    """T11: the same seed, and the same noise object, and yet other noise."""
    drawer, sums = noise_of(noise)
    found = []
    for _ in range(2):
        torch.manual_seed(7)
        found.append(drawer.on_sums(sums)["weight"])
    assert not torch.equal(found[0], found[1])


@pytest.mark.parametrize("noise", ["exact", "float"])
def test_leaves_the_generator_of_torch_alone(noise: str) -> None:
    drawer, sums = noise_of(noise)
    torch.manual_seed(7)
    before = torch.get_rng_state()
    drawer.on_sums(sums)
    assert torch.equal(before, torch.get_rng_state())


def test_is_in_fp32_at_least() -> None:
    """T12: bf16 sums are refused, noise has many values, and exact sums become doubles."""
    drawer, _ = noise_of("float")
    with pytest.raises(InvalidArgument, match="less than fp32"):
        drawer.on_sums({"w": torch.zeros(3, dtype=torch.bfloat16)})
    found = float_noise_like(torch.zeros(4096, dtype=torch.bfloat16), SYSTEM)
    assert found.unique().numel() > 4000
    exact, sums = noise_of("exact")
    assert {one.dtype for one in exact.on_sums(sums).values()} == {torch.float64}


@given(st.floats(0.01, 1e3), st.fractions(4096, 2**20))
def test_variance_is_no_less_than_what_passes_for_the_charged(multiplier: float, cells: Fraction) -> None:
    """THEORY 3.5: σ² less what is given up is at least (multiplier × K)²; and not much more."""
    found = discrete_variance(multiplier, cells)
    charged = (Fraction(multiplier) * cells) ** 2
    assert charged <= found - Fraction(SMOOTHING) <= charged + Fraction(1, 2**19)


def test_is_added_and_nothing_else() -> None:
    drawer, sums = noise_of("exact")
    seeded = [StepNoise(drawer.plan, 0.3, 2.0**-18, Seeded(7)) for _ in range(2)]
    shifted = {name: one + 1000 for name, one in sums.items()}
    without, beside = seeded[0].on_sums(sums), seeded[1].on_sums(shifted)
    for name in sums:
        assert torch.equal(beside[name] - without[name], torch.full(SHAPES[name], 1000 * 2.0**-18, dtype=torch.float64))


@pytest.mark.statistical
def test_numbers_beside_gradients_have_their_own() -> None:
    """χ² of 2,000 draws around 3 examples, at the multiplier that the plan says."""
    drawer = StepNoise(made(clipping="adaptive"), 1.0, 2.0**-18)
    drawn = np.array([drawer.on_number(3 * CELLS) for _ in range(2000)])
    total = float((((drawn - 3) / drawer.plan.beside_multiplier) ** 2).sum())
    assert chi2.ppf(FALSE_ALARM / 2, 2000) < total < chi2.isf(FALSE_ALARM / 2, 2000)


def test_gradients_have_more_where_more_is_measured() -> None:
    """T14: the noise is split."""
    one = StepNoise(made(), 1.0, 2.0**-18)
    other = StepNoise(made(clipping="adaptive"), 1.0, 2.0**-18)
    assert other.scale / one.scale == pytest.approx(1 / math.sqrt(1 - (2.0 / 8.0) ** 2))


@given(st.lists(st.floats(allow_nan=True), max_size=20), st.floats(1e-3, 1e3))
def test_one_example_moves_a_number_by_one_at_most(values: list[float], bound: float) -> None:
    counts = [in_cells(torch.tensor(values[:k], dtype=torch.float64), bound) for k in range(len(values) + 1)]
    assert counts[0] == 0
    assert all(0 <= after - before <= CELLS for before, after in pairwise(counts))


BANDED = {"n": 1000, "batch": 10, "bands": 4, "steps": 24}


def banded(noise: str, size: int, **options: object) -> tuple[StepNoise, dict[str, torch.Tensor]]:
    kind = torch.int64 if noise == "exact" else torch.float32
    grid = 2.0**-22 if noise == "exact" else None
    made_ = made(**{**BANDED, "noise": noise, **options})
    return StepNoise(made_, 1.0, grid, size=size), {"w": torch.zeros(size, dtype=kind)}


class TestCorrelated:
    @pytest.mark.statistical
    @pytest.mark.parametrize("noise", ["exact", "float"])
    def test_has_the_covariance_of_its_matrix(self, noise: str) -> None:
        """Mw is white: 24 steps of 2,000 numbers; and the test would see noise that is not correlated so."""
        drawer, sums = banded(noise, 2000)
        found = np.stack([drawer.on_sums(sums)["w"].numpy() for _ in range(24)])
        correlation = drawer.plan.correlation
        assert correlation is not None
        assert 1 - 1e-12 < drawer.scale / (2.0 * math.sqrt(correlation.norm_squared)) < 1.0005, "the grid is coarser"
        limit, statistics = off_white(found / drawer.scale, correlation.coefficients)
        assert all(abs(one) < limit for one in statistics)
        independent = np.random.default_rng(1).normal(size=found.shape) * (found / drawer.scale).std()
        assert any(abs(one) > limit for one in off_white(independent, correlation.coefficients)[1])

    @pytest.mark.statistical
    def test_begins_anew_where_a_step_was_left_out(self) -> None:
        """Of two steps one after the other the noise is correlated, by -m_1/m_0 at first; behind `forget` it is not."""
        drawer, sums = banded("float", 10_000)
        first, second = (drawer.on_sums(sums)["w"].numpy() for _ in range(2))
        drawer.forget()
        third = drawer.on_sums(sums)["w"].numpy()
        apart = [
            float((one * other).mean() / (one.std() * other.std())) for one, other in pairwise((first, second, third))
        ]
        assert apart[0] < -0.3
        assert abs(apart[1]) * 100 < norm.isf(FALSE_ALARM / 2)
        assert third.std() == pytest.approx(first.std(), rel=0.1)

    @given(st.integers(1, 200), st.sampled_from([2, 4, 16]), st.data())
    def test_sums_move_no_further_than_the_coarser_grid_says(self, size: int, bands: int, data: st.DataObject) -> None:
        """Whatever the sums of others are: what is released moves by whole steps, of ℓ2 norm at most `cells`."""
        sizes = st.lists(st.integers(-(2**40), 2**40), min_size=size, max_size=size)
        sums = torch.tensor(data.draw(sizes), dtype=torch.int64)
        moved = np.array(data.draw(sizes), dtype=np.float64)
        moved = np.trunc(moved * min(1, 2**22 / max(np.linalg.norm(moved), 1)))
        plan_ = made(**{**BANDED, "bands": bands})
        ends = [
            StepNoise(plan_, 1.0, 2.0**-22, Seeded(1), size=size).on_sums({"w": total})["w"]
            for total in (sums, sums + torch.from_numpy(moved).long())
        ]
        noise = StepNoise(plan_, 1.0, 2.0**-22, size=size)
        found = (ends[1] - ends[0]).numpy() / (2.0**-22 * noise.coarser)
        steps = np.rint(found)
        assert np.abs(found - steps).max() < 1e-3, "whole steps, but for the rounding of doubles"
        assert float((steps**2).sum()) <= noise.cells**2

    @given(st.floats(0.05, 200), st.integers(1, 10**6), st.sampled_from([2, 8, 64]))
    def test_variance_is_no_less_than_what_passes_for_the_charged(self, noise: float, size: int, bands: int) -> None:
        """THEORY 3.5 and decision 0034: (σ‖m‖K)² + 4, on a grid on which ‖m‖K is not too large; and not much more."""
        plan_ = made(**{**BANDED, "bands": bands, "steps": 100, "noise_multiplier": noise})
        drawer = StepNoise(plan_, 1.0, 2.0**-22, size=size)
        assert plan_.correlation is not None
        norm_squared = plan_.correlation.norm_squared
        assert drawer.cells >= Fraction(2**22, drawer.coarser) + Fraction(math.sqrt(size)).limit_denominator(10**6)
        assert drawer.variance - Fraction(SMOOTHING) >= (Fraction(noise) * drawer.cells) ** 2 * norm_squared
        assert drawer.cells**2 * norm_squared <= MOST_CELLS**2
        assert LEAST_SCALE**2 <= drawer.variance <= LARGEST_SIGMA**2
        finer = Fraction(2**22, drawer.coarser - 1) + math.isqrt(size - 1) + 2
        assert max(finer / MOST_CELLS, finer * Fraction(noise) / LARGEST_SIGMA) ** 2 * norm_squared > 1

    def test_too_many_weights_are_refused(self) -> None:
        with pytest.raises(InvalidArgument, match="no room for so many weights"):
            StepNoise(made(**BANDED), 1.0, 2.0**-22, size=2**36)
        with pytest.raises(InvalidArgument, match="no room for so many weights"):
            StepNoise(made(**{**BANDED, "noise_multiplier": 1e5}), 1.0, 2.0**-22, size=1000)


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="steps of the grid"):
        StepNoise(made(), 1.0, 4.0 / LEAST_SCALE)
    with pytest.raises(InvalidArgument, match="steps of the grid"):
        StepNoise(made(), 1.0, 2.0**-30)
    with pytest.raises(InvalidArgument, match="not of that kind"):
        StepNoise(made(noise="float"), 1.0, 2.0**-18)
    with pytest.raises(InvalidArgument, match="whole numbers"):
        StepNoise(made(), 1.0, 2.0**-18).on_sums({"w": torch.zeros(3)})
    with pytest.raises(InvalidArgument, match="sensitivity"):
        StepNoise(made(), math.nan, 2.0**-18)

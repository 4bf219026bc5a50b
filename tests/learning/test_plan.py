"""Plans: what they cost, by formulas written down a second time; what is solved; what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp, ndtr

from sitr.accounting import Composed, PoissonSampled, ShuffledEpochs
from sitr.accounting.notions import discrete_gdp
from sitr.errors import InvalidArgument, InvalidRecord
from sitr.learning.correlated import BandedNoise
from sitr.learning.plan import LEAST_SCALE, MOST_CELLS, OUTSIDE, SMOOTHING, TrainingPlan, at_least, plan

BASE = {"n": 1000, "batch": 50, "max_grad_norm": 1.0, "delta": 1e-5}


@st.composite
def plans(draw: st.DrawFn) -> TrainingPlan:
    n = draw(st.integers(1, 10**6))
    batch = draw(st.integers(max(n // 1000, 1), n))
    sampling = draw(st.sampled_from(["poisson", "shuffle"]))
    per_epoch = -(-n // batch)
    bands = draw(st.integers(1, min(n // batch, 8)))
    steps = draw(st.integers(1, 50)) * per_epoch if sampling == "shuffle" else draw(st.integers(bands, 50))
    clipping = draw(st.sampled_from(["flat", "per_layer", "automatic", "adaptive"]))
    return plan(
        n=n,
        batch=batch,
        steps=steps,
        sampling=sampling,
        clipping=clipping,
        noise=draw(st.sampled_from(["exact", "float"])),
        noise_multiplier=draw(st.floats(0.7, 20)),
        max_grad_norm=draw(st.floats(1e-3, 1e3)),
        delta=draw(st.sampled_from([1e-3, 1e-5, 1e-9])),
        loss_bound=draw(st.none() | st.floats(0.1, 10)),
        bands=bands,
    )


def gaussian_delta(epsilon: float, m: float) -> float:
    """THEORY 2.3."""
    return float(ndtr(m / 2 - epsilon / m) - math.exp(epsilon) * ndtr(-m / 2 - epsilon / m))


def renyi_epsilon(q: float, noise: float, steps: int, delta: float) -> float:
    """Abadi's accountant, by the sum of THEORY 2.7 and the conversion of 3.2, at whole orders."""
    best = math.inf
    for order in range(2, 65):
        terms = [
            gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
            + ((order - k) * math.log1p(-q) if k < order else 0.0)
            + k * math.log(q) + k * (k - 1) / (2 * noise**2)
            for k in range(order + 1)
        ]  # fmt: skip
        rdp = steps * float(logsumexp(terms)) / (order - 1)
        best = min(best, rdp + math.log((order - 1) / order) - (math.log(delta) + math.log(order)) / (order - 1))
    return max(best, 0.0)


class TestCost:
    @given(plans())
    def test_is_that_of_a_second_formula(self, made: TrainingPlan) -> None:
        found = made.epsilon()
        if made.sampling == "shuffle":
            m = 2 / made.noise_multiplier * math.sqrt(made.steps / made.steps_per_epoch)
            assert gaussian_delta(float(found), m) <= made.delta * (1 + 1e-9)
            if found.lower > 0:
                assert gaussian_delta(found.lower * (1 - 1e-6), m) >= made.delta * (1 - 1e-6)
            return
        q, turns = made.batch * made.bands / made.n, math.ceil(made.steps / made.bands)
        if q == 1:
            m = math.sqrt(turns) / made.noise_multiplier
            assert gaussian_delta(float(found), m) <= made.delta * (1 + 1e-9)
            return
        assert found.lower <= renyi_epsilon(q, made.noise_multiplier, turns, made.delta)
        if turns == 1:  # exactly, in the order that leads
            inner = math.log1p(math.expm1(float(found)) / q)
            assert q * gaussian_delta(inner, 1 / made.noise_multiplier) <= made.delta * (1 + 1e-6)

    @given(plans())
    def test_wrong_curve_cannot_be_claimed(self, made: TrainingPlan) -> None:
        """T5: what is charged says how examples were drawn."""
        kinds = (
            {type(event) for event, _ in made.event.events} if isinstance(made.event, Composed) else {type(made.event)}
        )
        assert (PoissonSampled in kinds) == (made.sampling == "poisson")
        assert (ShuffledEpochs in kinds) == (made.sampling == "shuffle")
        assert made.event.adjacency == made.adjacency

    def test_of_shuffled_passes_is_more(self) -> None:
        one = plan(**BASE, steps=200, noise_multiplier=2.0)
        other = plan(**BASE, steps=200, noise_multiplier=2.0, sampling="shuffle")
        assert other.epsilon().lower > 3 * one.epsilon().upper

    @given(plans())
    def test_parts_add_up(self, made: TrainingPlan) -> None:
        assume(made.steps > 1)
        middle = made.steps // 2 if made.sampling == "poisson" else 1
        both = made.event_between(0, middle) + made.event_between(middle, made.steps)
        assert both.epsilon(made.delta).upper >= made.epsilon().lower * (1 - 1e-9)

    def test_of_a_part_of_a_pass_is_that_of_the_pass(self) -> None:
        made = plan(**BASE, steps=60, noise_multiplier=2.0, sampling="shuffle")
        assert made.event_between(3, 5).epochs == 1
        assert made.event_between(19, 21).epochs == 2
        assert made.event.epochs == 3

    @given(plans(), st.data())
    def test_of_correlated_noise_is_that_of_its_proof(self, made: TrainingPlan, data: st.DataObject) -> None:
        """Any stretch of steps costs what `BandedNoise` says of it, by whatever coefficients."""
        assume(made.bands > 1)
        first = data.draw(st.integers(0, made.steps - 1))
        last = data.draw(st.integers(first + 1, made.steps))
        noise = BandedNoise((256, *[100] * (made.bands - 1)), made.steps)
        event = noise.poisson_event if made.sampling == "poisson" else noise.passes_event
        proved = event(made.noise_multiplier, made.n, made.batch, first=first, last=last)
        charged = replace(made, noise="float", clipping="flat", quantile=None, loss_bound=None)
        assert charged.event_between(first, last) == proved

    def test_of_correlated_noise_is_more_at_the_same_noise_and_less_at_the_same_error(self) -> None:
        """Decision 0034: plain DP-SGD at ε = 2, and eight bands with as much error on running sums."""
        numbers = {"n": 60_000, "batch": 600, "max_grad_norm": 1.0, "delta": 1e-5, "steps": 1000}
        plain = plan(**numbers, epsilon=2.0)
        same = plan(**numbers, noise_multiplier=plain.noise_multiplier, bands=8)
        assert same.epsilon().lower > plain.epsilon().upper
        assert same.correlation is not None
        less = plan(**numbers, noise_multiplier=plain.noise_multiplier / same.correlation.ratio, bands=8)
        assert float(less.epsilon()) == pytest.approx(1.481, abs=5e-4)

    def test_discrete_noise_passes_for_gaussian_but_for_what_is_charged(self) -> None:
        """THEORY 3.5, with as many coordinates as may move by a whole step, where an example is replaced."""
        for scale in (LEAST_SCALE, 1e3, 1e8):
            assert (2 * MOST_CELLS) ** 2 * discrete_gdp(scale, 1, SMOOTHING)[1] < OUTSIDE

    def test_is_the_same_for_float_noise_but_for_a_hair(self) -> None:
        one, other = (plan(**BASE, steps=200, noise_multiplier=2.0, noise=noise) for noise in ("exact", "float"))
        assert float(one.epsilon()) == pytest.approx(float(other.epsilon()), rel=1e-9)
        assert one.event != other.event

    @given(plans())
    def test_of_what_is_measured_beside_is_part_of_it(self, made: TrainingPlan) -> None:
        """T14: 1/σ² of the gradients and of every number beside them add up to that of the plan, or to less."""
        beside = (made.clipping == "adaptive") + (made.loss_bound is not None)
        total = Fraction(made.gradient_multiplier) ** -2 + beside * Fraction(made.beside_multiplier) ** -2
        assert total <= Fraction(made.noise_multiplier) ** -2
        assert made.gradient_multiplier <= 1.08 * made.noise_multiplier


class TestSolved:
    @pytest.mark.parametrize("sampling", ["poisson", "shuffle"])
    @pytest.mark.parametrize("noise", ["exact", "float"])
    def test_noise_is_the_least(self, sampling: str, noise: str) -> None:
        made = plan(**BASE, epsilon=2.0, steps=200, sampling=sampling, noise=noise)
        assert made.epsilon().upper <= 2.0
        less = plan(**BASE, noise_multiplier=made.noise_multiplier * 0.999, steps=200, sampling=sampling, noise=noise)
        assert less.epsilon().lower > 2.0

    def test_steps_are_the_most(self) -> None:
        made = plan(**BASE, epsilon=2.0, noise_multiplier=2.0)
        assert made.epsilon().upper <= 2.0
        assert plan(**BASE, steps=made.steps + 1, noise_multiplier=2.0).epsilon().lower > 2.0

    def test_steps_of_shuffled_passes_are_whole_passes(self) -> None:
        made = plan(
            n=1003, batch=50, max_grad_norm=1.0, delta=1e-5, epsilon=4.0, noise_multiplier=8.0, sampling="shuffle"
        )
        assert made.steps_per_epoch == 21
        assert made.steps % 21 == 0
        assert made.epsilon().upper <= 4.0
        more = plan(
            n=1003,
            batch=50,
            max_grad_norm=1.0,
            delta=1e-5,
            steps=made.steps + 21,
            noise_multiplier=8.0,
            sampling="shuffle",
        )
        assert more.epsilon().lower > 4.0

    @pytest.mark.parametrize("sampling", ["poisson", "shuffle"])
    def test_with_bands(self, sampling: str) -> None:
        """Steps are whole turns, or whole passes; one more costs too much, and so does less noise."""
        numbers = {**BASE, "sampling": sampling, "bands": 6}
        turn = 6 if sampling == "poisson" else 20
        made = plan(**numbers, epsilon=4.0, noise_multiplier=4.0)
        assert made.steps % turn == 0
        more = plan(**numbers, steps=made.steps + turn, noise_multiplier=4.0)
        assert made.epsilon().upper <= 4.0 < more.epsilon().lower
        solved = plan(**numbers, epsilon=4.0, steps=made.steps)
        assert solved.noise_multiplier <= 4.0
        less = plan(**numbers, noise_multiplier=solved.noise_multiplier * 0.999, steps=made.steps)
        assert solved.epsilon().upper <= 4.0 < less.epsilon().lower

    @pytest.mark.parametrize(
        "two",
        [{}, {"epsilon": 1.0}, {"steps": 10}, {"epsilon": 1.0, "steps": 10, "noise_multiplier": 2.0}],
    )
    def test_exactly_one(self, two: dict[str, float]) -> None:
        with pytest.raises(InvalidArgument, match="exactly one"):
            plan(**BASE, **two)


class TestNumbers:
    @given(st.integers(1, 5000), st.data())
    def test_are_taken_as_given(self, n: int, data: st.DataObject) -> None:
        """T6, T7, T8: the batch is not rounded, q is batch/n, and steps are whole."""
        batch = data.draw(st.integers(1, n))
        made = plan(n=n, batch=batch, max_grad_norm=1.0, delta=1e-6, steps=7, noise_multiplier=3.0)
        assert (made.batch, made.n, made.steps) == (batch, n, 7)
        assert made.rate == Fraction(batch, n)
        assert made.steps_per_epoch == math.ceil(Fraction(n, batch))
        charged = Fraction(at_least(made.rate))
        assert made.rate <= charged <= made.rate * (1 + Fraction(1, 2**51))

    @pytest.mark.parametrize(
        "wrong",
        [
            {"n": 0}, {"n": 100.0}, {"batch": 0}, {"batch": 1001}, {"batch": 2.5}, {"steps": 0}, {"steps": 10.0},
            {"steps": True}, {"noise_multiplier": 0}, {"noise_multiplier": math.nan}, {"max_grad_norm": 0},
            {"max_grad_norm": math.inf}, {"delta": 0}, {"delta": 1}, {"sampling": "balls"}, {"clipping": "none"},
            {"noise": "none"}, {"quantile": 0.5}, {"clipping": "adaptive", "quantile": 1}, {"loss_bound": 0},
            {"sampling": "shuffle", "steps": 30}, {"bands": 0}, {"bands": 2.0}, {"bands": 1025}, {"bands": 21},
            {"bands": 21, "sampling": "shuffle"}, {"bands": 8, "steps": 7}, {"bands": 2, "steps": 10**6 + 1},
        ],
    )  # fmt: skip
    def test_out_of_range_are_refused(self, wrong: dict[str, object]) -> None:
        with pytest.raises(InvalidArgument):
            plan(**{**BASE, "steps": 100, "noise_multiplier": 1.0, **wrong})


class TestJSON:
    @given(plans())
    def test_is_read_back(self, made: TrainingPlan) -> None:
        assert TrainingPlan.from_json(made.to_json()) == made

    @pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"type": "training_plan", "version": 1}'])
    def test_of_something_else_is_refused(self, text: str) -> None:
        with pytest.raises(InvalidRecord):
            TrainingPlan.from_json(text)

    @pytest.mark.parametrize("change", [{"version": 2}, {"steps": 0}, {"more": 1}, {"n": "100"}])
    def test_that_is_changed_is_refused(self, change: dict[str, object]) -> None:
        record = plan(**BASE, steps=100, noise_multiplier=1.0).to_dict()
        with pytest.raises(InvalidRecord):
            TrainingPlan.from_dict(record | change)


def test_is_told_in_words() -> None:
    told = str(plan(**BASE, steps=100, noise_multiplier=2.0, clipping="adaptive", loss_bound=3.0))
    assert "each example is in a step with probability 50/1,000" in told
    assert "ε = 1.10 at δ = 1e-05, for one example added or removed" in told
    assert "0.5-quantile" in told
    shuffled = str(plan(**BASE, steps=100, noise_multiplier=2.0, sampling="shuffle", noise="float"))
    assert "5 passes over shuffled examples;" in shuffled
    assert "replaced by another" in shuffled
    assert "not covered" in shuffled
    turns = str(plan(**BASE, steps=100, noise_multiplier=2.0, bands=4))
    assert "4 groups take turns, and each example of a step's group is in it with probability 200/1,000" in turns
    assert "correlated over 4 steps: running sums have 55 % of the error of independent noise" in turns
    assert "always in one order" in str(plan(**BASE, steps=100, noise_multiplier=2.0, bands=4, sampling="shuffle"))

"""Draws: each example by itself, with exactly its chance, whatever torch was seeded with."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom, chi2, norm

from sitr.learning.plan import plan
from sitr.learning.sampling import (
    PoissonSampler,
    ShuffledSampler,
    TurnSampler,
    microbatches,
    most_drawn,
    sampler_of,
)
from sitr.mechanisms.randomness import SYSTEM, Seeded
from sitr.mechanisms.samplers.draws import included

FALSE_ALARM = 1e-9
STEPS, N = 4000, 200


def drawn(rate: Fraction) -> NDArray[np.float64]:
    """Whether each example is in each step."""
    sampler = PoissonSampler(N, rate)
    inside = np.zeros((STEPS, N))
    for step in range(STEPS):
        inside[step, sampler.draw(step)] = 1
    return inside


@pytest.mark.statistical
@pytest.mark.parametrize("rate", [Fraction(3, 200), Fraction(1, 3), Fraction(9, 10)])
def test_each_example_has_its_chance_by_itself(rate: Fraction) -> None:
    """Marginals q, pairs q² within a step and across steps, and sizes spread as those of independent examples.

    Four tests share the false alarm. The sum of squares of N standardised counts is near χ² with N degrees; a mean of
    M products of independent indicators is near normal, each of variance q²(1-q²) at most; and of `STEPS` sizes the
    sum of squares is near χ² with `STEPS` degrees.
    """
    inside, q = drawn(rate), float(rate)
    each = FALSE_ALARM / 8
    spread = ((inside.sum(0) - STEPS * q) ** 2).sum() / (STEPS * q * (1 - q))
    assert chi2.ppf(each, N) < spread < chi2.isf(each, N)
    within, across = inside[:, 0::2] * inside[:, 1::2], inside[0::2] * inside[1::2]
    for both in (within, across):
        off = (both.mean() - q**2) / math.sqrt(q**2 * (1 - q**2) / both.size)
        assert abs(off) < norm.isf(each)
    sizes = ((inside.sum(1) - N * q) ** 2).sum() / (N * q * (1 - q))
    # A size is binomial, whose fourth moment is a little more than a normal one's.
    wide = math.sqrt(1 + max(1 / (2 * N * q * (1 - q)), 0))
    assert (chi2.ppf(each, STEPS) - STEPS) * wide < sizes - STEPS < (chi2.isf(each, STEPS) - STEPS) * wide


@pytest.mark.statistical
def test_rates_under_a_first_word_are_drawn() -> None:
    """A chance of 2^-20 is under what sixteen bits tell: 10^7 places hold a binomial number, near Poisson(9.54)."""
    found = included(Fraction(1, 2**20), 10**7, SYSTEM)
    # P[Poisson(9.54) ≥ 40] < 1e-9 (its Chernoff bound), P[0] = 7e-5 is no alarm.
    assert found.size < 40


@given(st.integers(1, 300), st.data())
def test_bits_decide_as_fractions_say(n: int, data: st.DataObject) -> None:
    """The same bits, read as one number each, are under p just where an example is chosen."""
    p = Fraction(data.draw(st.integers(0, n)), n)
    chosen = included(p, 50, Seeded(n))
    first = np.frombuffer(Seeded(n).bytes(100), dtype=np.uint16)
    surely = np.flatnonzero([Fraction(int(word) + 1, 2**16) <= p for word in first])
    perhaps = np.flatnonzero([Fraction(int(word), 2**16) < p for word in first])
    assert set(surely) <= set(chosen) <= set(perhaps)


def test_draws_do_not_follow_the_seed_of_torch() -> None:
    """T11, of sampling: two runs of one seed have different batches, and so have two samplers of one plan."""
    made = plan(n=1000, batch=500, max_grad_norm=1.0, delta=1e-5, steps=10, noise_multiplier=1.0)
    found = []
    for _ in range(2):
        torch.manual_seed(7)
        found.append(sampler_of(made, order=7).draw(0).tolist())
    assert found[0] != found[1]


@pytest.mark.statistical
@pytest.mark.parametrize("rate", [Fraction(3, 50), Fraction(1, 3), Fraction(9, 10)])
def test_in_turns_each_example_has_its_chance_in_its_group_and_none_elsewhere(rate: Fraction) -> None:
    """Four groups of fifty. Outside of its turns nobody is drawn; in them each has the chance q, by itself.

    Three tests share the false alarm, as above: of an example's turns, of pairs within a step, and of pairs of turns.
    """
    sampler, groups, q, each = TurnSampler(N, rate, groups=4, seed=11), 4, float(rate), FALSE_ALARM / 6
    inside = np.zeros((STEPS, N))
    for step in range(STEPS):
        inside[step, sampler.draw(step)] = 1
    turn = inside.reshape(-1, groups, N).sum(0)
    of = turn.argmax(0)
    assert (np.sort(turn, axis=0)[:-1] == 0).all(), "drawn in the turn of one group only"
    assert np.bincount(of).tolist() == [N // groups] * groups
    apart = np.stack([inside[group::groups, of == group] for group in range(groups)])  # group, turn, example
    times = apart.shape[1]
    spread = ((apart.sum(1) - times * q) ** 2).sum() / (times * q * (1 - q))
    assert chi2.ppf(each, N) < spread < chi2.isf(each, N)
    for both in (apart[..., 0::2] * apart[..., 1::2], apart[:, 0::2] * apart[:, 1::2]):
        off = (both.mean() - q**2) / math.sqrt(q**2 * (1 - q**2) / both.size)
        assert abs(off) < norm.isf(each)


@pytest.mark.statistical
def test_groups_are_random() -> None:
    """Of 4,000 seeds, so that nobody's group says where they are: each place is in each of four groups equally often.

    Group sizes are fixed, so the counts of one group over N places are a little less spread than χ² with N degrees.
    """
    found = np.zeros((4, N))
    for seed in range(STEPS):
        sampler = TurnSampler(N, Fraction(1), groups=4, seed=seed)
        for group in range(4):
            found[group, sampler.draw(group)] += 1
    assert (found.sum(0) == STEPS).all()
    spread = ((found - STEPS / 4) ** 2).sum(1) / (STEPS * 3 / 16)
    assert (spread < chi2.isf(FALSE_ALARM / 4, N)).all()


@given(st.integers(1, 60), st.integers(1, 60), st.integers(1, 8), st.sampled_from(["poisson", "shuffle"]), st.data())
def test_with_bands_nobody_is_in_two_steps_that_the_noise_connects(
    n: int, batch: int, bands: int, sampling: str, data: st.DataObject
) -> None:
    """Also where a run is resumed, with a sampler of its own, at any step: turns and places go on by its number."""
    batch = min(batch, n)
    bands, whole = min(bands, n // batch), -(-n // batch)
    made = plan(
        n=n, batch=batch, max_grad_norm=1.0, delta=1e-5, steps=8 * whole, noise_multiplier=1.0,
        sampling=sampling, bands=bands,
    )  # fmt: skip
    samplers = [sampler_of(made, order=7) for _ in range(2)]
    resumed = data.draw(st.integers(0, made.steps))
    last = np.full(n, -made.steps)
    for step in range(made.steps if bands > 1 else 0):
        drawn = samplers[step >= resumed].draw(step)
        assert (step - last[drawn] >= bands).all()
        last[drawn] = step


def test_draws_may_be_empty_and_everyone() -> None:
    assert PoissonSampler(0, Fraction(1, 2)).draw(0).size == 0
    assert PoissonSampler(10, Fraction(0)).draw(0).size == 0
    assert PoissonSampler(10, Fraction(1)).draw(0).tolist() == list(range(10))


@given(st.integers(1, 100), st.integers(1, 100), st.integers(0, 2**63))
def test_a_pass_has_each_example_once(n: int, batch: int, seed: int) -> None:
    sampler, steps = ShuffledSampler(n, min(batch, n), seed), -(-n // min(batch, n))
    for epoch in (0, 3):
        found = [sampler.draw(epoch * steps + step) for step in range(steps)]
        assert sorted(np.concatenate(found)) == list(range(n))
    assert sampler.draw(0).tolist() == ShuffledSampler(n, min(batch, n), seed).draw(0).tolist()


def test_passes_have_orders_of_their_own_or_all_one() -> None:
    sampler = ShuffledSampler(100, 100, 7)
    assert sampler.draw(0).tolist() != sampler.draw(1).tolist()
    same = ShuffledSampler(100, 25, 7, same=True)
    assert [same.draw(step).tolist() for step in range(4)] == [same.draw(step).tolist() for step in range(4, 8)]


@given(st.integers(0, 50), st.none() | st.integers(1, 60))
def test_microbatches_are_the_batch(size: int, most: int | None) -> None:
    parts = list(microbatches(np.arange(size), most))
    assert np.concatenate([np.arange(0), *parts]).tolist() == list(range(size))
    assert all(0 < part.size <= (most or size) for part in parts)


@pytest.mark.parametrize("batch", [1, 30, 5000])
@pytest.mark.parametrize("bands", [1, 4])
def test_no_step_draws_more_than_is_said(batch: int, bands: int) -> None:
    """The chance of one of 500 steps, by the binomial law itself, and that it is not said far too large."""
    made = plan(
        n=10**5, batch=batch, max_grad_norm=1.0, delta=1e-6, steps=500, noise_multiplier=4.0, bands=bands, noise="float"
    )
    most = most_drawn(made)
    law = binom(10**5 // bands, batch * bands / 10**5)
    assert 500 * law.sf(most) < 1e-50
    assert 500 * law.sf(batch + 0.8 * (most - batch) - 2) > 1e-50
    assert most <= -(-(10**5) // bands)
    whole = plan(n=50, batch=10, max_grad_norm=1.0, delta=1e-3, steps=10, noise_multiplier=4.0, sampling="shuffle")
    assert most_drawn(whole) == 10


@given(st.integers(1, 5000), st.integers(1, 40), st.data())
def test_the_largest_group_draws_no_more_than_is_said(n: int, bands: int, data: st.DataObject) -> None:
    """Which may have one example more than n/bands: the bound of the chance, of its mean, in exact arithmetic."""
    bands = min(bands, n)
    batch = data.draw(st.integers(1, n // bands))
    made = plan(
        n=n, batch=batch, max_grad_norm=1.0, delta=1e-6, steps=500, noise_multiplier=4.0, bands=bands, noise="float"
    )
    most, largest = most_drawn(made), -(-n // bands)
    assert most <= largest
    if most < largest:
        mean = Fraction(largest * batch * bands, n)
        assert most >= mean
        assert float(mean - most) + most * math.log(most / mean) >= math.log(500) - math.log(1e-50) - 1e-9

"""Theorems by name (THEORY 1.6, 4.1-4.6), for study and for the figures; for a budget, ask the event itself.

Each theorem reads an event step by step and answers with a `Guarantee`: the least ε that it proves at a total δ. Most
know nothing of a step but its (ε,δ); the moments accountant knows its Rényi curve, and `tightest` its loss. So they can
be laid side by side.

Example:
    >>> from sitr.accounting import Laplace
    >>> event = Laplace(noise_multiplier=4) * 200
    >>> for theorem in (advanced, advanced_halved, advanced_tanh, kairouz_oh_viswanath, moments_accountant, tightest):
    ...     print(f"{theorem.__name__:20} {theorem(event, delta=1e-6).epsilon:.3f}")
    advanced             32.786
    advanced_halved      25.685
    advanced_tanh        24.802
    kairouz_oh_viswanath 21.912
    moments_accountant   23.305
    tightest             20.875
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from .. import _validate
from ..errors import InvalidArgument, NoSuchGuarantee
from .curve import Curve
from .engines.mix import minimise
from .events import ApproximateDP, Event, compose

__all__ = [
    "Guarantee",
    "advanced",
    "advanced_halved",
    "advanced_tanh",
    "bad_outcome_advanced",
    "bad_outcome_basic",
    "bad_outcome_generic_rdp",
    "basic",
    "generic_rdp",
    "kairouz_oh_viswanath",
    "kairouz_oh_viswanath_points",
    "loss_tail_concentrated",
    "loss_tail_renyi",
    "moments_accountant",
    "murtagh_vadhan",
    "murtagh_vadhan_exact",
    "tightest",
]

MOMENTS = range(1, 65)  # the λ of the moments accountant
MOST_STEPS = 10**6  # terms of the Kairouz–Oh–Viswanath sum
MOST_SUBSETS = 20  # steps whose subsets are summed one by one
EPS = float(np.finfo(float).eps)

Floats = NDArray[np.float64]


class Guarantee(NamedTuple):
    """(ε,δ)-differential privacy, as a theorem states it (THEORY 1.3).

    Example:
        >>> epsilon, delta = Guarantee(epsilon=1.0, delta=1e-6)
        >>> epsilon
        1.0
    """

    epsilon: float
    delta: float


class _Steps(NamedTuple):
    """What a theorem sees of an event: the (ε,δ) of each kind of step, and how often it comes."""

    epsilons: Floats
    deltas: Floats
    counts: Floats

    def total(self, each: Floats) -> float:
        return math.fsum(self.counts * each)

    @property
    def squares(self) -> float:
        return self.total(self.epsilons**2)

    def finite_share(self, delta: float) -> float:
        """Return 1 - (1-δ)/Π(1-δ_i), rounded down: what a total δ leaves where no step fails outright (THEORY 4.4)."""
        if self.counts.sum() == 1 and self.deltas[0] == delta:
            return 0.0
        whole, failing = math.log1p(-delta), self.total(np.log1p(-self.deltas))
        rounding = 8 * EPS * abs(failing) * (1 + EPS) if failing else 0.0
        share = -math.expm1(whole - failing) * (1 - 8 * EPS) - rounding
        return share if share >= 0 else _refuse(self, delta)


def basic(event: Event) -> Guarantee:
    """Return basic composition: the ε add, and the δ add (THEORY 4.1).

    Privacy: holds for adaptive queries, under the event's adjacency.

    Example:
        >>> from sitr.accounting import ApproximateDP
        >>> basic(ApproximateDP(epsilon=0.1, delta=1e-8) * 100)
        Guarantee(epsilon=10.0, delta=1e-06)
    """
    steps = _steps(event)
    return Guarantee(steps.total(steps.epsilons), min(steps.total(steps.deltas), 1.0))


def advanced(event: Event, delta: float) -> Guarantee:
    """Return the advanced composition of Dwork, Rothblum and Vadhan (2010), the classical form (THEORY 4.2).

    ε = √(2 ln(1/δ') Σε_i²) + Σ ε_i (e^{ε_i} - 1), where δ' = δ - Σδ_i. The root says how far losses stray from their
    mean, the sum bounds that mean. `advanced_halved` and `advanced_tanh` keep the root and have a smaller sum.

    Args:
        event: What was done; each step must be (ε,δ)-DP.
        delta: The total δ, more than the steps' δ together.

    Privacy: holds for adaptive queries, under the event's adjacency.

    Example:
        >>> from sitr.accounting import PureDP
        >>> round(advanced(PureDP(epsilon=0.1) * 100, delta=1e-6).epsilon, 4)
        6.3082
    """
    return _concentrate(event, delta, lambda e: e * np.expm1(e))


def advanced_halved(event: Event, delta: float) -> Guarantee:
    """Return Theorem 1 of seed 000: `advanced` with half its bound on the mean, Σ ε_i (e^{ε_i} - 1)/2 (THEORY 4.2).

    Where steps are small that bound is nearly exact; where they are large it grows as e^ε, and no mean is above ε.

    Args:
        event: What was done; each step must be (ε,δ)-DP.
        delta: The total δ, more than the steps' δ together.

    Privacy: holds for adaptive queries, under the event's adjacency.

    Example:
        >>> from sitr.accounting import PureDP
        >>> event = PureDP(epsilon=0.1) * 100
        >>> halved = advanced_halved(event, delta=1e-6).epsilon
        >>> round(halved, 4), round(advanced(event, delta=1e-6).epsilon - halved, 4)
        (5.7824, 0.5259)
    """
    return _concentrate(event, delta, lambda e: e * np.expm1(e) / 2)


def advanced_tanh(event: Event, delta: float) -> Guarantee:
    """Return `advanced` with the largest mean there is, Σ ε_i tanh(ε_i/2), in place of a bound (THEORY 3.1, 4.2).

    Randomized response has that mean, so no smaller sum is true. Below, only this form stays under the 25 of `basic`.

    Args:
        event: What was done; each step must be (ε,δ)-DP.
        delta: The total δ, more than the steps' δ together.

    Privacy: holds for adaptive queries, under the event's adjacency.

    Example:
        >>> from sitr.accounting import PureDP
        >>> event = PureDP(epsilon=0.5) * 50
        >>> [round(form(event, delta=1e-6).epsilon, 2) for form in (advanced, advanced_halved, advanced_tanh)]
        [34.8, 26.69, 24.71]
    """
    return _concentrate(event, delta, lambda e: e * np.tanh(e / 2))


def kairouz_oh_viswanath(event: Event, delta: float) -> Guarantee:
    """Return the optimal composition of equal (ε,δ)-DP steps (Kairouz, Oh and Viswanath 2015; THEORY 4.3).

    The theorem lists ((k-2i)ε, δ_i), all of which hold at once; between two of them the profile is a chord in e^ε.

    Args:
        event: One kind of step, repeated; at most a million times.
        delta: The total δ.

    Privacy: holds for adaptive queries, under the event's adjacency; no smaller ε holds for all (ε,δ)-DP steps.

    Example:
        >>> from sitr.accounting import PureDP
        >>> round(kairouz_oh_viswanath(PureDP(epsilon=0.1) * 100, delta=1e-6).epsilon, 4)
        4.7746
    """
    delta = _total(delta)
    steps = _equal_steps(event)
    return Guarantee(_least_epsilon(*_lattice(steps), steps, delta), delta)


def kairouz_oh_viswanath_points(event: Event) -> tuple[Guarantee, ...]:
    """Return every (ε,δ) that `kairouz_oh_viswanath` lists: ((k-2i)ε, 1-(1-δ)^k (1-δ_i)), i = 0..⌊k/2⌋ (THEORY 4.3).

    Args:
        event: One kind of step, repeated; at most a million times.

    Privacy: all hold at once for adaptive queries, under the event's adjacency.

    Example:
        >>> from sitr.accounting import PureDP
        >>> [(round(e, 4), round(d, 4)) for e, d in kairouz_oh_viswanath_points(PureDP(epsilon=0.5) * 3)]
        [(1.5, 0.0), (0.5, 0.1525)]
    """
    steps = _equal_steps(event)
    epsilons, log_masses = _lattice(steps)
    raised = _log_profile(epsilons, log_masses) + _rounding(epsilons, log_masses)
    finite = np.exp(np.minimum(raised, 0.0))
    failing = -math.expm1(steps.total(np.log1p(-steps.deltas))) * (1 + 8 * EPS)
    deltas = np.minimum(failing + (1 - failing) * finite * (1 + 8 * EPS), 1.0)
    return tuple(Guarantee(float(e), float(d)) for e, d in zip(epsilons, deltas, strict=True) if e >= 0)


def murtagh_vadhan(event: Event, delta: float) -> Guarantee:
    """Return the optimal composition of unequal (ε,δ)-DP steps (Murtagh and Vadhan 2016; THEORY 4.4).

    Exactly it is #P-hard; this is the upper end of the numerical composition of the steps (THEORY 4.5).

    Args:
        event: What was done; each step must be (ε,δ)-DP.
        delta: The total δ.

    Privacy: holds for adaptive queries, under the event's adjacency.

    Example:
        >>> from sitr.accounting import PureDP
        >>> event = PureDP(epsilon=0.1) * 60 + PureDP(epsilon=0.17) * 40
        >>> round(murtagh_vadhan(event, delta=1e-6).epsilon, 4)
        6.5386
    """
    delta = _total(delta)
    steps = _steps(event)
    claims = (ApproximateDP(e, d) * int(n) for e, d, n in zip(*steps, strict=True))
    epsilon = compose(*claims).epsilon(delta).upper
    return Guarantee(epsilon, delta) if math.isfinite(epsilon) else _refuse(steps, delta)


def murtagh_vadhan_exact(event: Event, delta: float) -> Guarantee:
    """Return what `murtagh_vadhan` bounds, by the sum over all subsets of at most 20 steps (THEORY 4.4).

    Args:
        event: What was done; each step must be (ε,δ)-DP.
        delta: The total δ.

    Privacy: holds for adaptive queries, under the event's adjacency; no smaller ε holds for all such steps.

    Example:
        >>> from sitr.accounting import PureDP
        >>> event = PureDP(epsilon=0.1) * 6 + PureDP(epsilon=0.17) * 4
        >>> round(murtagh_vadhan_exact(event, delta=1e-2).epsilon, 6)
        0.702834
    """
    delta = _total(delta)
    steps = _steps(event)
    _validate.integer("the number of steps", int(steps.counts.sum()), 1, MOST_SUBSETS)
    losses, logs = np.zeros(1), np.zeros(1)
    for epsilon in np.repeat(steps.epsilons, steps.counts.astype(int)):
        losses = np.concatenate([losses - epsilon, losses + epsilon])
        logs = np.concatenate([logs, logs - epsilon]) - np.log1p(np.exp(-epsilon))
    order = np.argsort(-losses)
    return Guarantee(_least_epsilon(losses[order], logs[order], steps, delta), delta)


def generic_rdp(event: Event, delta: float) -> Guarantee:
    """Return what Proposition 4 of seed 002 says about (ε,δ) (THEORY 4.6).

    Proposition 4 bounds the probability of an outcome by p e^{2√(s ln 1/p)}, s = Σε_i². Wherever that exceeds δ, it is
    at most e^ε p with ε = 2√s (√s + √(s + ln 1/δ)). √2 may replace the 2: √(2s) (√(s/2) + √(s/2 + ln 1/δ)) holds too.

    Args:
        event: What was done; each step must be pure ε-DP.
        delta: The total δ.

    Privacy: holds for adaptive queries, under the event's adjacency.

    Example:
        >>> from sitr.accounting import PureDP
        >>> round(generic_rdp(PureDP(epsilon=0.1) * 100, delta=1e-6).epsilon, 4)
        9.6982
    """
    delta = _total(delta)
    squares = _pure_steps(event).squares
    root = math.sqrt(squares) + math.sqrt(squares - math.log(delta))
    return Guarantee(2 * math.sqrt(squares) * root, delta)


def moments_accountant(event: Event, delta: float) -> Guarantee:
    """Return the moments accountant of seed 004: the best of the moments λ = 1..64 (Abadi et al. 2016; THEORY 3.2).

    ε = (K(λ) + ln 1/δ)/λ with K(λ) = λ D_{λ+1}, the larger of both orders: Mironov's conversion at order λ+1.

    Args:
        event: What was done.
        delta: The total δ.

    Raises:
        NoSuchGuarantee: Some loss is infinite.

    Privacy: holds for adaptive queries, under the event's adjacency.

    Example:
        >>> from sitr.accounting import Gaussian, PoissonSampled
        >>> sgd = PoissonSampled(Gaussian(noise_multiplier=1.1), sampling_prob=256 / 60000) * 14062
        >>> round(moments_accountant(sgd, delta=1e-5).epsilon, 4)
        3.0091
    """
    delta = _total(delta)
    moments = np.array(MOMENTS, dtype=np.float64)
    bounds = _event(event).rdp(moments + 1) - math.log(delta) / moments
    return Guarantee(float(bounds.min()), delta)


def tightest(event: Event, delta: float) -> Guarantee:
    """Return the numerical composition of the steps' own losses, its upper end: `event.epsilon(delta)` (THEORY 4.5).

    Args:
        event: What was done.
        delta: The total δ.

    Privacy: holds for adaptive queries, under the event's adjacency.

    Example:
        >>> from sitr.accounting import Laplace
        >>> round(tightest(Laplace(noise_multiplier=10) * 100, delta=1e-6).epsilon, 4)
        4.6927
    """
    delta = _total(delta)
    return Guarantee(_event(event).epsilon(delta).upper, delta)


def bad_outcome_basic(event: Event, p: float) -> float:
    """Bound the probability of an outcome by basic composition: e^{Σε_i} p + Σδ_i (THEORY 4.1, 4.7).

    Args:
        event: What was done; each step must be (ε,δ)-DP.
        p: The outcome's probability on one data set; the bound is for the neighbouring one, whichever it is.

    Privacy: holds for adaptive queries, under the event's adjacency.

    Example:
        >>> from sitr.accounting import RandomizedResponse
        >>> round(bad_outcome_basic(RandomizedResponse(p=0.52) * 50, 1e-3), 6)
        0.054715
    """
    p = _validate.real("p", p, 0, 1)
    epsilon, delta = basic(event)
    return _raised(p, epsilon, delta)


def bad_outcome_advanced(event: Event, p: float) -> float:
    """Bound the probability of an outcome by `advanced` with the best δ: least e^{ε(δ)} p + δ (THEORY 4.2, 4.7).

    Args:
        event: What was done; each step must be (ε,δ)-DP.
        p: The outcome's probability on one data set; the bound is for the neighbouring one, whichever it is.

    Privacy: holds for adaptive queries, under the event's adjacency.

    Example:
        >>> from sitr.accounting import RandomizedResponse
        >>> round(bad_outcome_advanced(RandomizedResponse(p=0.52) * 50, 1e-3), 6)
        0.012236
    """
    p = _validate.real("p", p, 0, 1)
    steps = _steps(event)
    spread = math.sqrt(steps.squares)
    if p == 0 or spread == 0:
        return min(p + steps.total(steps.deltas), 1.0)
    with np.errstate(over="ignore"):
        mean = steps.total(steps.epsilons * np.expm1(steps.epsilons))

    # With δ' = e^{-u²/2} the bound is p e^{mean + spread u} + e^{-u²/2}, and its slope changes sign with `falling`:
    # once, at the least value, right of the top of `falling`; where that is not above 0 nothing under 1 is proved.
    def falling(u: float) -> float:
        return math.log(u) - u * u / 2 - spread * u - math.log(spread) - math.log(p) - mean

    top = (math.sqrt(spread**2 + 4) - spread) / 2
    if not falling(top) > 0:
        return 1.0
    low, high = top, top + 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if falling(middle) > 0 else (low, middle)
    return _raised(p, mean + spread * high, math.exp(-high * high / 2) + steps.total(steps.deltas))


def bad_outcome_generic_rdp(event: Event, p: float) -> float:
    """Bound the probability of an outcome by Proposition 4 of seed 002: p e^{2√(Σε_i² ln 1/p)} (THEORY 4.6, 4.7).

    The seed states it for n equal steps, where the exponent is 2ε√(n ln 1/p). √2 may replace the 2, and the best order
    of the Rényi curve, `event.bad_outcome(p, method="renyi")`, is better still.

    Args:
        event: What was done; each step must be pure ε-DP.
        p: The outcome's probability on one data set; the bound is for the neighbouring one, whichever it is.

    Privacy: holds for adaptive queries, under the event's adjacency.

    Example:
        >>> from sitr.accounting import RandomizedResponse
        >>> round(bad_outcome_generic_rdp(RandomizedResponse(p=0.52) * 50, 1e-3), 6)
        0.019592
    """
    p = _validate.real("p", p, 0, 1)
    squares = _pure_steps(event).squares
    return _raised(p, 2 * math.sqrt(-squares * math.log(p)), 0.0) if p > 0 else 0.0


def loss_tail_concentrated(event: Event, x: float) -> float:
    """Bound the chance of a loss above x by seed 000: e^{-t²/2} where x = μ + tτ, for (μ,τ)-concentrated DP.

    The loss of a (μ,τ)-concentrated event has a mean of at most μ, and around it tails no heavier than those of a
    Gaussian with standard deviation τ (THEORY 1.4, 1.6). `event.loss_tail(x)` knows the loss itself.

    Args:
        event: What was done; `event.cdp()` gives its (μ,τ).
        x: At least 0; up to μ the bound is 1.

    Raises:
        NoSuchGuarantee: The event is not concentrated: some loss is infinite, or no (μ,τ) is proved.

    Privacy: holds for every pair of neighbours under the event's adjacency, in both orders, and for adaptive queries.

    Example:
        >>> from sitr.accounting import Gaussian
        >>> event = Gaussian(noise_multiplier=10) * 100
        >>> round(loss_tail_concentrated(event, 3.5), 6), round(event.loss_tail(3.5).upper, 6)
        (0.011109, 0.003155)
    """
    x = _validate.real("x", x, 0, 1e15)
    claim = _event(event).cdp()
    if x <= claim.mu:
        return 1.0
    return math.exp(-(((x - claim.mu) / claim.tau) ** 2) / 2) if claim.tau > 0 else 0.0


def loss_tail_renyi(event: Event, x: float) -> float:
    """Bound the chance of a loss above x by Markov's inequality: e^{(α-1)(D_α - x)} for the best order α > 1.

    For Gaussian noise this is `loss_tail_concentrated`, and it is never larger (THEORY 1.6, 3.3).

    Args:
        event: What was done.
        x: At least 0.

    Raises:
        NoSuchGuarantee: Some loss is infinite.

    Privacy: holds for every pair of neighbours under the event's adjacency, in both orders, and for adaptive queries.

    Example:
        >>> from sitr.accounting import Laplace
        >>> event = Laplace(noise_multiplier=10) * 100
        >>> bounds = loss_tail_concentrated(event, 4.0), loss_tail_renyi(event, 4.0), event.loss_tail(4.0).upper
        >>> " ".join(f"{bound:.2g}" for bound in bounds)
        '0.0021 0.0013 0.00034'
    """
    x = _validate.real("x", x, 0, 1e15)
    curve = _event(event).curve

    def log_bound(c: float) -> float:
        return c * (float(curve.rdp(1 + c)) - x)

    return math.exp(min(log_bound(minimise(log_bound, 1.0, 1e-4)), 0.0))


def _event(event: Any) -> Event:
    if not isinstance(event, Event):
        raise InvalidArgument(
            f"event={_validate.shown(event)} is not an event.", do="Pass one, such as PureDP(0.1) * 100."
        )
    return event


def _steps(event: Event) -> _Steps:
    """Read each part of the event as its (ε,δ): the largest finite loss, and the mass of infinite loss."""
    counts: dict[tuple[float, float], int] = {}
    for part, count in _event(event).parts:
        curve = Curve(((part, 1),))
        try:
            step = curve.pure(delta_part=True), curve.infinite_mass
        except NoSuchGuarantee:
            raise NoSuchGuarantee(
                "this theorem does not speak of the event: the privacy loss of a step is unbounded.",
                why="it composes (ε,δ)-DP steps, and the δ of a Gaussian step is a matter of choice (THEORY 2.3).",
                do="use tightest, or state each step as ApproximateDP(epsilon, delta).",
            ) from None
        counts[step] = counts.get(step, 0) + count
    epsilons, deltas = (np.array(column) for column in zip(*counts, strict=True))
    return _Steps(epsilons, deltas, np.array(list(counts.values()), dtype=np.float64))


def _pure_steps(event: Event) -> _Steps:
    steps = _steps(event)
    if steps.deltas.any():
        raise NoSuchGuarantee(
            "this theorem does not speak of the event: a step is (ε,δ)-DP with δ > 0.",
            why="Proposition 4 of seed 002 composes pure ε-DP steps (THEORY 4.6).",
            do="use advanced_halved or tightest.",
        )
    return steps


def _equal_steps(event: Event) -> _Steps:
    steps = _steps(event)
    if steps.counts.size > 1:
        raise NoSuchGuarantee(
            f"this theorem does not speak of the event: its steps have {steps.counts.size} different (ε,δ).",
            why="Kairouz, Oh and Viswanath compose equal steps (THEORY 4.3).",
            do="use murtagh_vadhan, which composes unequal ones.",
        )
    _validate.integer("the number of steps", int(steps.counts[0]), 1, MOST_STEPS)
    return steps


def _total(delta: float) -> float:
    return _validate.real("delta", delta, 0, 1, open_low=True, open_high=True)


def _concentrate(event: Event, delta: float, mean_loss: Callable[[Floats], Floats]) -> Guarantee:
    """The mean loss, and Azuma's bound on how far losses of at most ±ε_i stray from it."""
    delta = _total(delta)
    steps = _steps(event)
    left = delta - steps.total(steps.deltas)
    if left <= 0:
        _refuse(steps, delta)
    with np.errstate(over="ignore"):
        mean = steps.total(mean_loss(steps.epsilons))
    return Guarantee(math.sqrt(-2 * math.log(left) * steps.squares) + mean, delta)


def _refuse(steps: _Steps, delta: float) -> NoReturn:
    raise NoSuchGuarantee(
        f"no ε holds at delta={delta:g}: the steps' own δ take {steps.total(steps.deltas):.3g}.",
        why="each step may fail outright with its δ, and no ε helps against that (THEORY 1.2).",
        do="ask at a larger δ, or make the steps' δ smaller.",
    )


def _raised(p: float, epsilon: float, delta: float) -> float:
    """e^ε p + δ, at most 1."""
    return min((math.exp(min(epsilon + math.log(p), 0.0)) if p > 0 else 0.0) + delta, 1.0)


def _lattice(steps: _Steps) -> tuple[Floats, Floats]:
    """The losses (k-2l)ε of k equal steps, falling past 0, and ln of their mass under Q."""
    k, epsilon = int(steps.counts[0]), float(steps.epsilons[0])
    flips = np.arange(min(k, k // 2 + 1) + 1, dtype=np.float64)
    logs = gammaln(k + 1) - gammaln(flips + 1) - gammaln(k - flips + 1)
    logs += flips * epsilon - k * (epsilon + math.log1p(math.exp(-epsilon)))
    return (k - 2 * flips) * epsilon, logs + 8 * EPS * (gammaln(k + 1) + k * epsilon)


def _log_profile(losses: Floats, log_masses: Floats) -> Floats:
    """Return ln δ at every loss of a falling list, from the masses under Q; a sum of positive terms, so it is stable.

    As a function of y = e^ε, δ falls between two losses with slope -Q[loss above]: THEORY 4.3 without its cancellation.
    """
    slopes = np.logaddexp.accumulate(log_masses[:-1])
    with np.errstate(divide="ignore"):
        drops = losses[:-1] + np.log(-np.expm1(np.diff(losses)))
    return np.concatenate([[-math.inf], np.logaddexp.accumulate(slopes + drops)])


def _rounding(losses: Floats, log_masses: Floats) -> float:
    """By how much a log of δ may be rounded: every loss and log carries a few units of its size, and sums do."""
    size = float(np.max(np.abs(losses))) + float(np.max(np.abs(log_masses)))
    return 16 * EPS * (size + math.sqrt(losses.size) + 4)


def _least_epsilon(losses: Floats, log_masses: Floats, steps: _Steps, delta: float) -> float:
    """Return the least ε ≥ 0 with δ(ε) at most what the steps' own δ leave of `delta`; on the safe side of it."""
    target = steps.finite_share(delta)
    if target == 0:
        return float(losses[0])
    epsilon, step = _near_epsilon(losses, log_masses, target), 0.0
    while epsilon + step < losses[0] and _delta_above(losses, log_masses, epsilon + step) > target:
        step = max(2 * step, EPS * float(losses[0]))
    return min(epsilon + step, float(losses[0]))


def _delta_above(losses: Floats, log_masses: Floats, epsilon: float) -> float:
    """Bound δ(ε) from above: the sum of Q (e^loss - e^ε) over larger losses, all positive, raised for rounding."""
    shifted = epsilon - 8 * EPS * float(np.max(np.abs(losses)))
    above = losses > shifted
    terms = np.exp(log_masses[above] + losses[above]) * -np.expm1(shifted - losses[above])
    return math.fsum(terms) * (1 + _rounding(losses, log_masses))


def _near_epsilon(losses: Floats, log_masses: Floats, target: float) -> float:
    """Solve δ(ε) = target in its cell, where δ is linear in e^ε; nothing rests on it."""
    logs = _log_profile(losses, log_masses)
    after = int(np.searchsorted(logs, math.log(target), side="right"))  # the first loss whose δ is above the target
    if after == losses.size:
        return 0.0
    at = after - 1
    # From losses[at], where δ is low enough, ε can fall until e^ε has lost (target - δ) / Q[loss above].
    slope = float(np.logaddexp.reduce(log_masses[:after]))
    share = math.exp(logs[at] - math.log(target))
    if share >= 1:
        return max(float(losses[at]), 0.0)
    room = math.log(target) + math.log1p(-share) - slope - float(losses[at])
    return max(float(losses[at]) + math.log1p(-math.exp(room)), 0.0) if room < 0 else 0.0

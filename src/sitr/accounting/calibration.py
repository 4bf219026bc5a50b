"""Solve for one parameter: the least noise, the most steps, the split of a budget, always on the safe side."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from typing import NamedTuple

from scipy.special import ndtri

from .. import _validate
from ..display import rounded_up, scientific
from ..errors import CannotCalibrate, InvalidArgument, NoSuchGuarantee
from .bracket import Bracket
from .engines.delta import NARROW
from .engines.ways import ENOUGH, Purse
from .events import (
    LARGEST,
    MOST_COUNT,
    MOST_EPSILON,
    SMALLEST,
    Composed,
    Event,
    Gaussian,
    Laplace,
    ZeroConcentrated,
    compose,
)
from .filters.filter import MOST, in_units

SLOW = 2  # steps in a row that do not halve what is left: then it is halved
STEEPEST = 50.0  # a cost that grows faster than this power of the parameter jumps, and no secant finds where
CLOSE = 1e-7  # a real parameter is found to this relative accuracy
CAUTION = 0.2  # of the way back to a value that meets the target: where the last try is made
STRIDE = 4  # by what factor a search walks at most before it halves
LITTLE = 1e-3  # and by what share at least
BEYOND = 3.0  # as often as what is missing: costs grow with the root of a count, say
PATIENT = 4  # so many steps; then they grow
ALLOWANCE = 5 * ENOUGH  # what all questions of a search may cost; one that costs more is answered less closely
QUESTION = ENOUGH / 15  # what a question costs at least
ROUNDING = 2.0**-50  # relative rounding error of a sum of a few correctly rounded terms
NOISES: dict[str, type[Gaussian] | type[Laplace]] = {"gaussian": Gaussian, "laplace": Laplace}
HALF = 0.5  # up to this δ seed 004's rule was checked; it is false from about .75 on


@dataclass(frozen=True)
class Calibration:
    """A parameter that meets a target, the event it makes, and what that event costs (THEORY 4.5).

    Attributes:
        value: The parameter; a whole number where one was asked for.
        event: What `value` makes.
        achieved: The ε at the target's δ, or the ρ; its `upper` is at most the target. A whole number of costs that add
            up, ρ or pure ε, may fill the target as it may fill a filter, to one part in 2^40 (decision 0006).

    Example:
        >>> found = calibrate_noise(Gaussian, epsilon=1.0, delta=1e-6)
        >>> round(found.value, 4), found.achieved.upper <= 1.0
        (4.2247, True)
    """

    value: float
    event: Event
    achieved: Bracket


@dataclass(frozen=True)
class Split:
    """A budget shared out over planned queries, composed as one batch (THEORY 4.5, 5.1).

    Attributes:
        noise: The noise multiplier of each query, by name.
        events: The event of each query, by name.
        event: All of them, composed.
        achieved: What they cost together; its `upper` is at most the target.

    Example:
        >>> split_budget({"count": 1.0, "mean": 3.0}, rho=0.5).event
        Gaussian(noise_multiplier=1.054...) + Gaussian(noise_multiplier=3.162...)
    """

    noise: dict[str, float]
    events: dict[str, Event]
    event: Event
    achieved: Bracket


def calibrate(
    make: Callable[[float], Event] | Callable[[int], Event],
    *,
    bounds: tuple[float, float],
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    whole: bool = False,
) -> Calibration:
    """Return the last value inside `bounds` whose event still meets the target, coming from the cheaper end.

    Whether the cost rises or falls with the parameter is read off the two ends; in between it is taken to be
    monotone. A real parameter is found to a relative accuracy of 1e-7, a whole one exactly; a search through events
    that take long to account ends earlier, with what it has found to meet the target.

    Args:
        make: From a value of the parameter to the event; `Gaussian` itself will do for its noise.
        bounds: The two positive ends of the search.
        epsilon: The target, together with `delta`; at `delta=0` it is pure.
        delta: In [0, 1).
        rho: The target, instead of the two: a zCDP budget.
        whole: Search whole numbers only.

    Raises:
        CannotCalibrate: No value inside `bounds` meets the target.
        NoSuchGuarantee: The event has no guarantee of the target's kind.

    Privacy: the event returned was itself accounted, and the `upper` end of its bracket meets the target; if the
    cost were not monotone, the value might not be the best, never unsafe (THEORY 4.5).

    Example:
        >>> from sitr.accounting import RandomizedResponse
        >>> found = calibrate(lambda p: RandomizedResponse(p) * 10, bounds=(0.5, 0.999), epsilon=1.0, delta=1e-6)
        >>> round(found.value, 5)
        0.52499
    """
    target = _Target.of(epsilon, delta, rho, whole)
    low, high = _ends(bounds, 1e15, whole)
    purse = target.purse()
    ends = [_attempt(make, value, target, purse) for value in (low, high)]
    cheap, dear = sorted(ends, key=lambda end: end.upper)
    if target.met(dear.upper):
        return target.calibration(dear)
    if not target.met(cheap.upper):
        raise _out_of_reach(cheap, low, high, target)
    return target.calibration(_narrow(make, target, purse, cheap, dear, whole))


def calibrate_noise(
    make: Callable[[float], Event],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    bounds: tuple[float, float] = (SMALLEST, LARGEST),
) -> Calibration:
    """Return the least noise that meets the target.

    Args:
        make: From a noise multiplier (or a scale) to the event.
        epsilon: The target, together with `delta`.
        delta: In [0, 1).
        rho: The target, instead of the two.
        bounds: The least and the most noise to consider.

    Privacy: the certified upper end for the noise returned meets the target (THEORY 2.3, 4.5).

    Example:
        >>> round(calibrate_noise(Gaussian, epsilon=1.0, delta=1e-6).value, 5)
        4.22468
        >>> found = calibrate_noise(lambda noise: Gaussian(noise) * 1000, epsilon=1.0, delta=1e-6)
        >>> round(found.value, 3)
        133.596
    """
    low, high = _ends(bounds, 1e15)
    start = min(max(1.0, low), high)
    return _search(make, _Target.of(epsilon, delta, rho), start, cheap=high, dear=low)


def calibrate_count(
    event: Event, *, epsilon: float | None = None, delta: float | None = None, rho: float | None = None
) -> Calibration:
    """Return how many times an event may be repeated within the target: training steps, or queries.

    For a target of ρ, or of pure ε, that is as many as a `ZCDPFilter` or a `PureFilter` of that limit admits.

    Privacy: for a number of repetitions fixed in advance; an analyst who decides on the way needs a filter
    (THEORY 4.5, 5.1).

    Example:
        >>> from sitr.accounting import PoissonSampled
        >>> step = PoissonSampled(Gaussian(noise_multiplier=1.1), sampling_prob=256 / 60000)
        >>> calibrate_count(step, epsilon=2.0, delta=1e-5).value
        10207
        >>> calibrate_count(Laplace(noise_multiplier=5), rho=0.3).value  # 15 times 1/50
        15
    """
    _check_event("event", event)
    target = _Target.of(epsilon, delta, rho, whole=True)
    return _search(lambda k: event * k, target, 1, cheap=1, dear=MOST_COUNT, whole=True)


def calibrate_sampling_prob(
    make: Callable[[float], Event],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    bounds: tuple[float, float] = (1e-9, 1.0),
) -> Calibration:
    """Return the largest sampling rate that meets the target.

    Args:
        make: From a sampling probability to the event.
        epsilon: The target, together with `delta`.
        delta: In [0, 1).
        rho: The target, instead of the two.
        bounds: The least and the largest rate to consider.

    Privacy: Poisson sampling, under `add_remove` (THEORY 2.7).

    Example:
        >>> from sitr.accounting import PoissonSampled
        >>> steps = lambda q: PoissonSampled(Gaussian(noise_multiplier=1.1), q) * 1000
        >>> round(calibrate_sampling_prob(steps, epsilon=2.0, delta=1e-5).value, 5)
        0.01288
    """
    low, high = _ends(bounds, 1.0)
    start = min(max(1e-3, low), high)
    return _search(make, _Target.of(epsilon, delta, rho), start, cheap=low, dear=high)


def split_budget(
    plan: Mapping[str, float],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    noise: str = "gaussian",
) -> Split:
    """Share a budget out over planned queries, so that their errors stand in the proportions asked for.

    Args:
        plan: For each query by name, how large its error may be relative to the others: a query at 2 gets twice the
            noise of one at 1.
        epsilon: The target of all together, with `delta`.
        delta: In [0, 1).
        rho: The target, instead of the two.
        noise: "gaussian" or "laplace".

    Privacy: the queries are composed as one batch, declared as a whole, and the certified upper end meets the target
    (THEORY 4.5, 5.1).

    Example:
        >>> split = split_budget({"count": 1.0, "mean": 2.0, "variance": 4.0}, epsilon=1.0, delta=1e-6)
        >>> {name: round(value, 3) for name, value in split.noise.items()}
        {'count': 4.84, 'mean': 9.68, 'variance': 19.36}
    """
    kind = NOISES[_validate.choice("noise", noise, NOISES)]
    if not isinstance(plan, Mapping):
        raise InvalidArgument(f"plan={_validate.shown(plan)} is not a dictionary.", do='Pass one: {"count": 1.0}.')
    errors = {name: _validate.real(f"plan[{name!r}]", e, 1e-6, 1e6) for name, e in plan.items()}
    if not errors:
        raise InvalidArgument("plan has no query.", do='Pass one at least, such as {"count": 1.0}.')

    def events(factor: float) -> dict[str, Event]:
        return {name: kind(factor * error) for name, error in errors.items()}

    low, high = SMALLEST / min(errors.values()), LARGEST / max(errors.values())
    found = _search(
        lambda factor: compose(*events(factor).values()),
        _Target.of(epsilon, delta, rho),
        start=min(max(1.0, low), high),
        cheap=math.nextafter(high, 0),
        dear=math.nextafter(low, math.inf),
    )
    shares = {name: found.value * error for name, error in errors.items()}
    return Split(shares, events(found.value), found.event, found.achieved)


def noise_for_error(
    error: float, *, confidence: float = 0.95, noise: str = "gaussian", sensitivity: float = 1.0
) -> float:
    """Return the most noise, over sensitivity, whose size stays within `error` with probability `confidence`.

    The Gaussian exceeds z σ with probability 2Φ(-z), the Laplace exceeds t λ with probability e^-t.

    Args:
        error: How far an answer may be off.
        confidence: In (0, 1).
        noise: "gaussian" or "laplace".
        sensitivity: Of the query: ℓ2 for Gaussian noise, ℓ1 for Laplace.

    Privacy: this is about accuracy; what the noise costs is that of `Laplace` and `Gaussian` (THEORY 2.2, 2.3).

    Example:
        >>> round(noise_for_error(10.0), 4), round(noise_for_error(10.0, noise="laplace"), 4)
        (5.1021, 3.3381)
    """
    error = _validate.real("error", error, 0, 1e15, open_low=True)
    return error / error_of_noise(1.0, confidence=confidence, noise=noise, sensitivity=sensitivity)


def error_of_noise(
    noise_multiplier: float, *, confidence: float = 0.95, noise: str = "gaussian", sensitivity: float = 1.0
) -> float:
    """Return the size that noise stays within with probability `confidence`: the inverse of `noise_for_error`.

    Args:
        noise_multiplier: Noise over sensitivity.
        confidence: In (0, 1).
        noise: "gaussian" or "laplace".
        sensitivity: Of the query: ℓ2 for Gaussian noise, ℓ1 for Laplace.

    Privacy: this is about accuracy; what the noise costs is that of `Laplace` and `Gaussian` (THEORY 2.2, 2.3).

    Example:
        >>> round(error_of_noise(4.224679), 4), round(error_of_noise(1.0, noise="laplace"), 4)
        (8.2802, 2.9957)
    """
    noise_multiplier = _validate.real("noise_multiplier", noise_multiplier, 0, 1e15, open_low=True)
    confidence = _validate.real("confidence", confidence, 0, 1, open_low=True, open_high=True)
    sensitivity = _validate.real("sensitivity", sensitivity, 0, 1e15, open_low=True)
    _validate.choice("noise", noise, NOISES)
    outside = 1 - confidence
    size = -float(ndtri(outside / 2)) if noise == "gaussian" else -math.log(outside)
    return noise_multiplier * sensitivity * size


def calibrate_queries(
    error: float,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    confidence: float = 0.95,
    noise: str = "gaussian",
    sensitivity: float = 1.0,
) -> Calibration:
    """Return how many queries can be answered, each within `error` at `confidence`, inside the target.

    Privacy: one batch of queries with the same noise, composed (THEORY 4.5).

    Example:
        >>> calibrate_queries(100.0, epsilon=1.0, delta=1e-6).value
        145
        >>> calibrate_queries(100.0, epsilon=1.0, delta=1e-6, noise="laplace").value
        65
    """
    multiplier = noise_for_error(error, confidence=confidence, noise=noise, sensitivity=sensitivity)
    return calibrate_count(NOISES[noise](multiplier), epsilon=epsilon, delta=delta, rho=rho)


def classical_gaussian_noise(epsilon: float, delta: float) -> float:
    """Return √(2 ln(1.25/δ))/ε, the classical rule for one Gaussian query; for comparison (seed 003, THEORY 2.3).

    Args:
        epsilon: In (0, 1): the proof needs ε < 1.
        delta: In (0, 1).

    Privacy: holds, and gives away much: `calibrate_noise` finds the least noise there is.

    Example:
        >>> least = calibrate_noise(Gaussian, epsilon=0.5, delta=1e-6).value
        >>> round(classical_gaussian_noise(0.5, 1e-6), 4), round(least, 4)
        (10.5976, 8.0576)
    """
    epsilon = _validate.real("epsilon", epsilon, 0, 1, open_low=True, open_high=True)
    delta = _validate.real("delta", delta, 0, 1, open_low=True, open_high=True)
    return _rule(1.25, epsilon, delta)


def abadi_gaussian_noise(epsilon: float, delta: float) -> float:
    """Return √(2 ln(0.8/δ))/ε, from δ ≥ (4/5) e^{-(σε)²/2}; for comparison (seed 004, THEORY 2.3).

    Args:
        epsilon: In (0, 1), as the rule says.
        delta: In (0, 0.5]: the rule is false from about 0.75 on.

    Privacy: holds wherever it was checked, with ε < 1 and δ ≤ 0.5, and gives away much, as the classical rule does.

    Example:
        >>> round(abadi_gaussian_noise(0.5, 1e-6), 4)
        10.4278
    """
    epsilon = _validate.real("epsilon", epsilon, 0, 1, open_low=True, open_high=True)
    delta = _validate.real("delta", delta, 0, HALF, open_low=True)
    return _rule(0.8, epsilon, delta)


def abadi_gaussian_delta(noise_multiplier: float, epsilon: float) -> float:
    """Return (4/5) e^{-(σε)²/2}, the δ that seed 004 states for one Gaussian query; for comparison (THEORY 2.3).

    Args:
        noise_multiplier: σ over sensitivity.
        epsilon: In (0, 1), as the rule says.

    Raises:
        NoSuchGuarantee: The rule would state a δ above 0.5; from about 0.75 on it is false.

    Privacy: holds wherever it was checked, with ε < 1 and δ ≤ 0.5; `Gaussian(noise_multiplier).delta` is exact.

    Example:
        >>> round(abadi_gaussian_delta(4.0, 0.9), 6), round(float(Gaussian(4.0).delta(0.9)), 6)
        (0.001227, 1.5e-05)
    """
    noise_multiplier = _validate.real("noise_multiplier", noise_multiplier, SMALLEST, LARGEST)
    epsilon = _validate.real("epsilon", epsilon, 0, 1, open_low=True, open_high=True)
    delta = 0.8 * math.exp(-((noise_multiplier * epsilon) ** 2) / 2)
    if delta > HALF:
        raise NoSuchGuarantee(
            f"the rule of seed 004 would state delta={delta:.3g}, above {HALF:g}.",
            why="it is false for large δ (THEORY 2.3).",
            do="ask for Gaussian(noise_multiplier).delta(epsilon), which is exact.",
        )
    return delta


@dataclass(frozen=True)
class _Target:
    """What is to be met: ε at a δ, or ρ."""

    limit: float
    delta: float | None
    whole: bool  # whether it is met by a whole number, such as one of repetitions

    @classmethod
    def of(cls, epsilon: float | None, delta: float | None, rho: float | None, whole: bool = False) -> _Target:
        if rho is not None and epsilon is None and delta is None:
            return cls(_validate.real("rho", rho, 0, 1e15, open_low=True), None, whole)
        if rho is not None or epsilon is None or delta is None:
            raise InvalidArgument(
                f"epsilon={epsilon!r}, delta={delta!r}, rho={rho!r} is not one target.",
                do="Pass epsilon and delta, or rho alone.",
            )
        return cls(
            _validate.real("epsilon", epsilon, 0, MOST_EPSILON, open_low=True),
            _validate.real("delta", delta, 0, 1, open_high=True),
            whole,
        )

    def purse(self) -> Purse:
        """What a search for this target may cost."""
        return Purse(ALLOWANCE, self.limit)

    def searched(self, event: Event, purse: Purse) -> Bracket:
        """The cost for a search, which asks for the upper end, near the target: the lower one may be 0."""
        if self.delta is None:
            return self.cost(event)
        purse.spend(QUESTION)
        return event._searched_epsilon(self.delta, Purse(2 * ENOUGH, self.limit, whole=purse))

    def cost(self, event: Event) -> Bracket:
        if self.delta is not None:
            return event.epsilon(self.delta)
        return _rho(event)

    def met(self, cost: float) -> bool:
        """Return whether a cost is within the limit: where equal ones add up to it, as a filter decides that."""
        if self.delta or not self.whole:
            return cost <= self.limit
        units = in_units(cost, self.limit)
        return units is not None and units <= MOST

    def calibration(self, tried: _Tried) -> Calibration:
        """Return what was found, with both ends of its cost; what the search knows of the upper one holds as well."""
        cost = tried.cost if tried.lower >= tried.upper * (1 - NARROW) else self.cost(tried.event)
        upper = min(float(cost.upper), tried.upper)
        return Calibration(tried.value, tried.event, Bracket(min(float(cost.lower), upper), upper, cost.method))

    def __str__(self) -> str:
        return (
            f"rho={self.limit:g}" if self.delta is None else f"epsilon={self.limit:g}, delta={scientific(self.delta)}"
        )


def _rho(event: Event) -> Bracket:
    """Bracket ρ + ξ, as ξ + ρα ≤ (ξ+ρ)α for α > 1, in fractions: a budget that is filled to the last bit is met.

    Of Gaussian noise ρ is 1/2σ² exactly, and a claim is what it says; what others have is rounded.
    """
    low = high = Fraction(0)
    for step, times in event.events if isinstance(event, Composed) else ((event, 1),):
        if isinstance(step, Gaussian):
            rho, rounding = 1 / (2 * Fraction(step.noise_multiplier) ** 2), Fraction(0)
        else:
            zcdp = step.zcdp()
            rho = Fraction(zcdp.rho) + Fraction(zcdp.xi)
            rounding = Fraction(0) if isinstance(step, ZeroConcentrated) else Fraction(ROUNDING)
        low, high = low + times * rho * (1 - rounding), high + times * rho * (1 + rounding)
    lower, upper = float(low), float(high)
    lower = math.nextafter(lower, 0) if lower > low else lower
    upper = math.nextafter(upper, math.inf) if upper < high else upper
    return Bracket(lower, upper, "zCDP")


class _Tried(NamedTuple):
    """A value of the parameter, the event it makes, and what that costs: its upper end, if not both."""

    value: float
    event: Event
    cost: Bracket

    @property
    def lower(self) -> float:
        return float(self.cost.lower)

    @property
    def upper(self) -> float:
        return float(self.cost.upper)


def _search(
    make: Callable[..., Event], target: _Target, start: float, *, cheap: float, dear: float, whole: bool = False
) -> Calibration:
    """Walk from `start` to the first crossing, then narrow: the far ends, slow to account, are rarely visited."""
    good: _Tried | None = None
    bad: _Tried | None = None
    purse = target.purse()
    tried = _attempt(make, start, target, purse)
    for step in count(1):
        good, bad, end = (tried, bad, dear) if target.met(tried.upper) else (good, tried, cheap)
        if good is not None and bad is not None:
            return target.calibration(_narrow(make, target, purse, good, bad, whole))
        if tried.value == end:
            break
        tried = _attempt(make, _stride(tried.value, end, _factor(tried, target, step), whole), target, purse)
    if good is None:
        raise _out_of_reach(tried, min(cheap, dear), max(cheap, dear), target)
    return target.calibration(good)


def _factor(tried: _Tried, target: _Target, step: int) -> float:
    """Return how far to walk: not far where little is missing."""
    if step > PATIENT:  # a target that is far away, or out of reach
        return float(STRIDE**2 ** min(step - PATIENT, 8))  # a larger power is no number soon
    missing = abs(math.log(tried.upper / target.limit)) if 0 < tried.upper < math.inf else math.inf
    return math.exp(min(BEYOND * max(missing, LITTLE), math.log(STRIDE)))


def _stride(value: float, end: float, factor: float, whole: bool) -> float:
    moved = min(value * factor, end) if end > value else max(value / factor, end)
    if not whole:
        return moved
    return min(max(round(moved), value + 1), end) if end > value else max(min(round(moved), value - 1), end)


def _narrow(
    make: Callable[..., Event], target: _Target, purse: Purse, good: _Tried, bad: _Tried, whole: bool
) -> _Tried:
    """Close in between a value that meets the target and one that does not; only the former is ever returned."""
    slow, width, price = 0, abs(good.value - bad.value), 0.0
    while purse.left > price and width > (1 if whole else CLOSE * good.value):
        left = purse.left
        last = purse.left < 2 * price
        value = _between(good, bad, target, bisect=slow == SLOW, last=last, grain=1 / good.value if whole else CLOSE)
        if whole:
            value = min(max(round(value), min(good.value, bad.value) + 1), max(good.value, bad.value) - 1)
        tried = _attempt(make, value, target, purse)
        good, bad = (tried, bad) if target.met(tried.upper) else (good, tried)
        price = left - purse.left  # what cannot be paid for again would be answered less closely
        before, width = width, abs(good.value - bad.value)
        slow = slow + 1 if slow < SLOW and width > before / 2 else 0
    return good


def _between(good: _Tried, bad: _Tried, target: _Target, *, bisect: bool, last: bool, grain: float) -> float:
    """Return where to try next, on logarithmic scales: the secant, nudged to the middle so that both ends close in.

    Nothing can be made of a last try that does not meet the target: it stays well on the side that does.
    """
    left, right = math.log(good.value), math.log(bad.value)
    middle = (left + right) / 2
    under, over = good.upper / target.limit, bad.upper / target.limit
    jumps = not (0 < under < over < math.inf) or math.log(over / under) > STEEPEST * abs(right - left)
    if (bisect and not last) or jumps:
        return math.exp(middle)
    secant = left - math.log(under) * (right - left) / math.log(over / under)
    if last:
        return math.exp(secant + CAUTION * (left - secant))
    nudge = min(max((right - left) ** 2 / 5, grain / 2), abs(middle - secant))
    return math.exp(secant + math.copysign(nudge, middle - secant))


def _attempt(make: Callable[..., Event], value: float, target: _Target, purse: Purse) -> _Tried:
    _check_callable("make", make)
    event = _check_event("make(value)", make(value))
    return _Tried(value, event, target.searched(event, purse))


def _out_of_reach(nearest: _Tried, low: float, high: float, target: _Target) -> CannotCalibrate:
    least = rounded_up(nearest.upper)
    return CannotCalibrate(
        f"no value in [{low:g}, {high:g}] meets {target}: at {nearest.value:g} it is still {least}.",
        why="the target is the most that may be spent; nothing in the range stays under it.",
        do="allow more noise, fewer repetitions or a lower rate, or raise the target.",
    )


def _rule(constant: float, epsilon: float, delta: float) -> float:
    """√(2 ln(constant/δ))/ε, rounded up: the rules hold for more noise, not for less."""
    return math.nextafter(math.sqrt(2 * math.log(constant / delta)) / epsilon * (1 + ROUNDING), math.inf)


def _check_event(name: str, event: object) -> Event:
    if not isinstance(event, Event):
        raise InvalidArgument(f"{name} is not an event: {type(event).__name__}.", do="Pass one, such as Gaussian(1.1).")
    return event


def _check_callable(name: str, function: object) -> None:
    if not callable(function):
        raise InvalidArgument(
            f"{name}={_validate.shown(function)} cannot be called.",
            do="Pass a function from the parameter to the event: Gaussian, or lambda noise: Gaussian(noise) * 9.",
        )


def _ends(bounds: Sequence[float], most: float, whole: bool = False) -> tuple[float, float]:
    """Check the two ends of a search."""
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"bounds={_validate.shown(bounds)} is not a pair of numbers.", do="Pass (low, high)."
        ) from None
    for bound in (low, high):
        if whole:
            _validate.integer("bounds", bound, 1, MOST_COUNT)
        else:
            _validate.real("bounds", bound, 0, most, open_low=True)
    if not low < high:
        raise InvalidArgument(f"bounds=({low:g}, {high:g}) is not in rising order.", do="Pass (low, high).")
    return (low, high) if whole else (float(low), float(high))

"""Poisson-sampled Gaussian noise: a mixture of moved normals against the unmoved one (THEORY 2.7, 4.8).

With `r(x) = Σ_j w_j e^{(2jx - j²)/2σ²}` and x normal, the *remove* order has M(z) = E r^{1+z} and the *add* order
M(z) = E r^{-z}. One person has w = (1-q, q); a group of s has the binomial weights of (s, q).

The integrals over x are trapezoid sums on the line Im x = ±y, on which the integrand does not oscillate however
large Im z is. They are exact but for an error that the strip theorem bounds, since |r(x+iy)| ≤ r(x) and
|r(x+iy)| ≥ r(x) cos(sy/2σ²): docs/decisions/0003 has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from .gaussian import log_profile
from .law import (
    FARTHEST,
    UNIT,
    Complexes,
    Floats,
    Loss,
    Pair,
    before_sampling,
    complex_expm1,
    complex_log1p,
    log_sum_exp,
    mean_excess,
    small_log_moment,
    waves,
    waves_error,
)

ENDS = 9.3  # standard deviations kept beyond the moved mean: Φ(-9.3) < 1e-20
DIGITS = 41.0  # e^-41 < 2e-18: the quadrature error aimed at
MOST_NODES = 30_000  # of one quadrature, before only its humps are kept
MOST_TERMS = 60_000  # of one quadrature: each node has one for every member of a group
MOST_ABSOLUTE = 150_000  # and on all the lines that bound |M|
TUNING = 2000.0  # multiplications, about, that finding a tilt takes for each term of a quadrature
LEAST_TERMS = 10_000  # as many as one costs at least
MOMENT = 150.0  # multiplications, about, that each node of one moment takes: the ratios of a group are kept
FEW_NODES = 1_000  # up to here a moment takes no time to speak of
BLOCK = 256  # nodes of a group whose ratios are computed together
FEWEST = 64  # cells that are searched for humps first; then each that may have one is cut into eight
TINY = 1e-6  # a log of this size has ten digits where it is that of a sum near one
CANCELS = 1e-5  # a sum of this size beside that of its absolute terms has eleven
FAINT = 48.0  # nodes this many nats under the largest are dropped
NEWTON = 2e-16  # a step that is shorter, relative to where it leads, is the last


@dataclass(frozen=True)
class SampledGaussianLoss(Loss):
    """One order of the pair, for a group of `steps` people; the mean moves by as many sensitivities as are sampled."""

    sigma: float
    sampling_prob: float
    removes: bool
    steps: int = 1
    closed = True

    @classmethod
    def pair(cls, sigma: float, sampling_prob: float, group: int = 1) -> Pair:
        """Return both orders for a group sampled member by member with probability `sampling_prob`."""
        forward, backward = (cls(sigma, sampling_prob, removes, group) for removes in (True, False))
        return Pair(forward, backward, leads=group == 1)

    @cached_property
    def log_weights(self) -> Floats:
        """The logs of the probabilities that 0, 1, … members are sampled."""
        if self.steps == 1:
            return np.array([math.log1p(-self.sampling_prob), math.log(self.sampling_prob)])
        j, s = np.arange(self.steps + 1), self.steps
        choose = np.array([math.log(math.comb(s, k)) for k in range(s + 1)])
        return choose + j * math.log(self.sampling_prob) + (s - j) * math.log1p(-self.sampling_prob)

    @cached_property
    def weights(self) -> Floats:
        """Those probabilities; the least of a large group may be under the smallest number."""
        q = self.sampling_prob
        return np.array([1 - q, q]) if self.steps == 1 else np.exp(self.log_weights)

    def blur(self, epsilon: float) -> float:
        """A log weight and a u_j are rounded: an error of each moves ε by the share that its term has of the ratio."""
        if self.steps == 1:
            return 0.0
        level = epsilon if self.removes else -epsilon
        share = -math.expm1(min(float(self.log_weights[0]) - level, 0.0))
        return 8 * UNIT * share * float(np.max(np.abs(self.log_weights)) + FAINT)

    @property
    def largest(self) -> float:  # type: ignore[override]
        return math.inf if self.removes else -float(self.log_weights[0])

    @property
    def smallest(self) -> float:  # type: ignore[override]
        return float(self.log_weights[0]) if self.removes else -math.inf

    def log_ratio(self, x: Complexes | Floats) -> Complexes | Floats:
        """Return ln r(x), on the principal branch: real x, or complex x inside the strip."""
        # r - 1 = Σ w_j (e^{u_j} - 1), so that a small loss keeps its digits; where some e^{u_j} is too large, its log.
        real = np.isrealobj(x)
        if real and self.steps == 1 and self.sampling_prob <= 0.5 and np.max(x) < 600 * self.sigma**2:  # most often
            return np.log1p(self.sampling_prob * np.expm1(self._shift(1, x)))
        expm1, log1p = (np.expm1, np.log1p) if real else (complex_expm1, complex_log1p)
        x = np.asarray(x)
        most = np.clip(np.real(x), 1, self.steps)
        small = (most * np.real(x) - most**2 / 2) / self.sigma**2 < 600
        if np.all(small):
            grown = self._summed(expm1, x)
        else:
            grown = np.zeros_like(x)
            grown[small] = self._summed(expm1, x[small])
        small = small & (np.real(grown) > -0.5)  # and where r is far under one, its own size keeps the digits
        if np.all(small):
            return log1p(grown)
        result = np.zeros_like(x)
        result[small], result[~small] = log1p(grown[small]), self._large_log_ratio(x[~small])
        return result

    def _summed(self, expm1: Callable[[Any], Any], x: Any) -> Any:
        """Return the sum of w_j (e^{u_j} - 1), in place: a large group has many terms."""
        total = np.zeros_like(x)
        for j in range(1, self.steps + 1):
            term = expm1(self._shift(j, x))
            term *= self.weights[j]
            total += term
        return total

    def _shift(self, j: int | Floats, x: Complexes | Floats) -> Complexes | Floats:
        """Return the log ratio of the normal moved by j to the unmoved one."""
        return (x - j / 2) * (j / self.sigma**2)

    def _large_log_ratio(self, x: Complexes | Floats) -> Complexes | Floats:
        """Return ln r where terms are too large for numbers: the largest is taken out of the sum."""
        # The logs of the terms are concave in j: the largest is the last that is not under the one before.
        j = np.arange(self.steps + 1)
        rises = (2 * j[1:] - 1) / 2 - np.diff(self.log_weights) * self.sigma**2
        most = np.searchsorted(rises, np.real(x))
        top, total = self.log_weights[most] + self._shift(most, np.real(x)), np.zeros_like(x)
        for k, log in enumerate(self.log_weights):
            term = self._shift(k, x)
            term += log - top
            total += np.exp(term)
        return top + np.log(total)

    def power(self, c: float) -> float:
        """The exponent that M(c) puts on r."""
        return 1 + c if self.removes else -c

    def angle(self, c: float) -> float:
        """How far, in angle, to move the line: short of the zeros of r, and where |r|^-c stays near its real size."""
        angle = min(1.4 / self.steps, 1.5 / self.sigma)
        power = self.power(c)
        return angle if power >= 0 else min(angle, 1.2 / (self.steps * math.sqrt(1 - power)))

    def ends(self, c: float) -> tuple[float, float]:
        """Bound the x that carry all but 1e-19 of M(c): r^power lies between no tilt and that of its steepest slope."""
        power, width = self.power(c), ENDS * self.sigma
        if power >= 0:
            return -width, self.steps * power + width
        # Left of -a, r is flat to a factor e: from there a normal tail decides.
        heavier = max(math.log(max(-power, 1e-300)) + _log_expm1(-float(self.log_weights[0])), 0.0)
        return -(self.sigma**2 * heavier + width), width

    def stretch(self, c: float, angle: float) -> float:
        """Nats by which the integrand may grow at `angle` off the real line: y²/2σ², and -c ln cos in the add order."""
        power = self.power(c)
        grown = (angle * self.sigma) ** 2 / 2
        return grown if power >= 0 else grown + power * math.log(math.cos(self.steps * angle / 2))

    def widest_step(self, c: float) -> float:
        """Return the step up to which a trapezoid sum over the real line is M(c) to e^-41, by the strip theorem.

        All terms are positive, so growth off the line costs nodes and no digits, as it would on a moved line (`angle`):
        the strip is as wide as makes the step longest, where growth equals the digits sought, short of the zeros of r.
        """
        angle, power = min(1.4 / self.steps, 1.5 / self.sigma), self.power(c)
        if power < 0:
            angle = min(angle, math.sqrt(DIGITS / (self.sigma**2 / 2 - power * self.steps**2 / 8)))
        return 2 * math.pi * angle * self.sigma**2 / (DIGITS + self.stretch(c, angle))

    @lru_cache(maxsize=128)  # noqa: B019 - laws are frozen and small; one cache serves them all
    def _line(self, c: float) -> tuple[Complexes, Complexes, float]:
        """Return the (complex) losses and weights on the moved line, in units of e^{shift}, and the shift."""
        angle = self.angle(c)
        y = angle * self.sigma**2
        h = 2 * math.pi * y / (DIGITS + self.stretch(c, 2 * angle))
        x = self._nodes(c, h)
        line = x + 1j * y if self.removes else x - 1j * y
        log_r = self.log_ratio(line)
        logs = -(line**2) / (2 * self.sigma**2) + self.power(c) * log_r + self.log_step(h)
        shift = float(np.max(np.real(logs)))
        return (log_r if self.removes else -log_r), np.exp(logs - shift), shift

    def ratios(self, c: float, step: float, count: int) -> tuple[Complexes, float]:
        if self.separated(c):
            return self._separated_ratios(c, step * np.arange(count + 1))
        losses, weights, _ = self._line(c)
        unit = float(np.real(np.sum(weights)))
        values = waves(losses, weights / unit, step, count)
        size = np.abs(weights) / unit
        exponents = UNIT * 4 * float(np.sum(size * np.abs(self.power(c) * losses)))
        return values, waves_error(np.abs(losses), size, step * count) + exponents + 1e-17

    def work(self, c: float) -> int:
        return 2 if self.separated(c) else int(self._line(c)[0].size)

    @lru_cache(maxsize=1024)  # noqa: B019 - see _line
    def separated(self, c: float) -> bool:
        """Whether both normals lie so far from where r turns that M is the sum of two closed forms, to e^-40.

        On the unmoved one r is 1-q and on the moved one q e^u; what lies between is the tails of both, each at most
        2^{1+c} Φ(-12) of its own. In the add order r^-c is largest on the unmoved one.
        """
        if self.steps != 1 or c < -0.3 or (self.removes and c > 20):
            return False
        turn = self.sigma**2 * (DIGITS + math.log1p(c))
        room = 12 * self.sigma + turn
        odds = self.sigma**2 * float(self.log_weights[0] - self.log_weights[1])
        return room <= 0.5 and (not self.removes or room + odds <= 0.5 + c)

    def _separated_logs(self, c: float) -> tuple[float, float]:
        """The logs of both closed forms at c: the unmoved normal and, in the remove order, the moved one."""
        log_stay, log_move = (float(log) for log in self.log_weights)
        if not self.removes:
            return -c * log_stay, -math.inf
        return (1 + c) * log_stay, (1 + c) * log_move + c * (c + 1) / (2 * self.sigma**2)

    def _separated_ratios(self, c: float, t: Floats) -> tuple[Complexes, float]:
        logs = self._separated_logs(c)
        stay, move = (math.exp(log - float(np.logaddexp(*logs))) for log in logs)
        loss = float(self.log_weights[0]) * (1 if self.removes else -1)
        moved, spread = float(self.log_weights[1]) + (2 * c + 1) / (2 * self.sigma**2), 1 / self.sigma
        values = stay * np.exp(1j * t * loss) + move * np.exp(1j * t * moved - (spread * t) ** 2 / 2)
        # Where the moved normal has a phase that matters, t is within forty of its own standard deviations.
        phase = abs(loss) * float(t[-1]) + abs(moved) * min(float(t[-1]), 40 / spread)
        return values, UNIT * (24 + 6 * phase) + 1e-17

    def log_step(self, h: float) -> float:
        """The log of the step over the normalisation of the normal density."""
        return math.log(h / (self.sigma * math.sqrt(2 * math.pi)))

    def log_mgf(self, x: Floats) -> Floats:
        x = np.asarray(x)
        if x.ndim == 0:
            return np.asarray(self._log_moment(float(x)))
        return np.array([self._log_moment(float(c)) for c in x.flat]).reshape(x.shape)

    @lru_cache(maxsize=4096)  # noqa: B019 - see _line
    def _log_moment(self, c: float) -> float:
        if c == 0:
            return 0.0
        if self.separated(c):
            return float(np.logaddexp(*self._separated_logs(c)))
        if c > self.steepest:
            return self._steep_moment(c)
        places, h = self._moment_grid(c)
        if places is None:
            return self._unmixed_moment(c)
        x = places * h
        log_r = self.log_ratio(x) if self.steps == 1 else self._log_ratios(places, h)
        normal = x * x * (-0.5 / self.sigma**2) + self.log_step(h)
        reach = abs(c) * max(abs(float(log_r[0])), abs(float(log_r[-1])))  # ln r rises with x
        if reach > 1:
            plain = float(log_sum_exp(normal + self.power(c) * log_r))
            if abs(plain) > TINY or reach > FARTHEST:
                return plain
        # Powers are near one, or are so but for little mass: nothing of the law without them is beyond the grid.
        losses, masses = (log_r, np.exp(normal + log_r)) if self.removes else (-log_r, np.exp(normal))
        excesses = masses * np.expm1(c * losses)
        excess = float(excesses.sum())
        if abs(excess) > CANCELS * float(np.abs(excesses).sum()):
            return math.log1p(excess)
        return small_log_moment(c, losses, masses)

    @lru_cache(maxsize=4)  # noqa: B019 - see _line; who pays for a moment asks how many nodes it has just before
    def _moment_grid(self, c: float) -> tuple[Any, float]:
        """Return which multiples of a step are nodes of M(c), if they are not too many, and the step."""
        h = self.widest_step(c) if self.steps == 1 else 2 ** (math.floor(8 * math.log2(self.widest_step(c))) / 8)
        return self._grid(c, h, self._most_nodes), h

    def _log_ratios(self, places: Any, h: float) -> Floats:
        """Return ln r of a group at whole multiples of h, which many tilts share: it is computed once for all."""
        blocks, rests = np.divmod(places, BLOCK)
        needed, rows = np.unique(blocks, return_inverse=True)
        return np.stack([self._block(int(block), h) for block in needed])[rows, rests]

    @lru_cache(maxsize=4096)  # noqa: B019 - see _line
    def _block(self, number: int, h: float) -> Floats:
        return self.log_ratio(np.arange(number * BLOCK, (number + 1) * BLOCK) * h)

    def _unmixed_moment(self, c: float) -> float:
        """Return a bound where there would be too many nodes: r is a mean of e^{u_j}, and its powers are convex."""
        if c < 0:
            return math.inf
        j = np.arange(self.steps + 1)
        return min(float(log_sum_exp(self.log_weights + (j / self.sigma) ** 2 * c * (c + 1) / 2)), c * self.largest)

    @cached_property
    def steepest(self) -> float:
        """From this c on one term decides: the far hump (remove), or the largest loss (add)."""
        if self.removes:
            return 4 * self.sigma**2 * (60 - 2 * float(self.log_weights[-1]))
        return max(4e6 * self.sigma**2, 1e4)

    @cached_property
    def tuning(self) -> float:  # type: ignore[override]
        if self.steps == 1:
            return 0.0
        places = self._grid(1.0, self.widest_step(1.0), self._most_nodes)
        return 0.0 if places is None else TUNING * max(places.size * self.steps, LEAST_TERMS)

    def moment_work(self, c: float) -> float:
        if c == 0 or c > self.steepest or self.separated(c):
            return 0.0
        low, high = self.ends(c)
        if (high - low) / self.widest_step(c) <= FEW_NODES:
            return 0.0
        places, _ = self._moment_grid(c)
        return 0.0 if places is None else MOMENT * places.size

    @property
    def tilt_limit(self) -> float:  # type: ignore[override]
        return math.inf if self.removes or self.separated(1.0) else self.steepest

    def _steep_moment(self, c: float) -> float:
        """Remove: the hump at s(1+c), all else being e^-60 of it. Add: at most c times the largest loss."""
        if not self.removes:
            return c * self.largest
        return (1 + c) * float(self.log_weights[-1]) + (self.steps / self.sigma) ** 2 * c * (1 + c) / 2

    def _log_density(self, x: Floats) -> Floats:
        """The log density of x under this order's P: the mixture (remove) or the unmoved normal (add)."""
        normal = -(x**2) / (2 * self.sigma**2) - math.log(self.sigma * math.sqrt(2 * math.pi))
        return normal + self.log_ratio(x) if self.removes else normal

    def log_decay(self, c: float, t: Floats) -> Floats:
        """Bound |M(c+it)| by the integral of absolute values on Im x = y, for the best of several y.

        arg r grows with y while angles stay under π/2, so the bound falls with t; the same strip theorem
        (with half-width v) makes the trapezoid sum of the bound itself exact to 1e-17.
        """
        if self.separated(c):
            logs = self._separated_logs(c)
            falls = np.logaddexp(logs[0], logs[1] - (t / self.sigma) ** 2 / 2) - float(np.logaddexp(*logs))
            return np.minimum(falls + 1e-15, 0.0)
        sizes, angles = self._absolute(c)
        bounds = [np.min(np.sum(sizes * np.exp(-when * angles), axis=-1)) for when in t]
        return np.minimum(np.log(np.array(bounds) + 1e-15), 0.0)

    @lru_cache(maxsize=128)  # noqa: B019 - see _line
    def _absolute(self, c: float) -> tuple[Floats, Floats]:
        """Return |integrand| / M(c) and arg r on the lines y = v, v/2, v/4 and so on."""
        half = min(0.7 / self.steps, 1.5 / self.sigma)
        if self.power(c) < 0:
            half = min(half, 0.6 / (self.steps * math.sqrt(1 - self.power(c))))
        h = 2 * math.pi * half * self.sigma**2 / (DIGITS + self.stretch(c, 2 * half))
        x = self._nodes(c, h)
        most = MOST_ABSOLUTE // (x.size * self.steps)
        lines = max(min(_SHIFTS, most), 3)  # spread over the same range, however few they are
        y = half * self.sigma**2 * 2.0 ** -np.linspace(0, _SHIFTS - 1, lines)[:, None]
        log_r = self.log_ratio(x + 1j * y)
        logs = -(x**2 - y**2) / (2 * self.sigma**2) + self.power(c) * np.real(log_r)
        unit = self.log_step(h) - self._log_moment(c)
        return np.exp(logs + unit), np.imag(log_r)

    def _nodes(self, c: float, h: float) -> Floats:
        """The real parts of the quadrature nodes, without those that are too faint to count."""
        places = self._grid(c, h, self._most_nodes)
        if places is None:
            raise OverflowError("too many nodes")
        x = places * h
        real = -(x**2) / (2 * self.sigma**2) + self.power(c) * self.log_ratio(x)
        return np.asarray(x[real > np.max(real) - FAINT])

    @property
    def _most_nodes(self) -> int:
        """How many nodes a moment may have, of which a search for a tilt asks for a hundred."""
        return min(MOST_NODES, MOST_TERMS // self.steps)

    def _grid(self, c: float, h: float, most: int) -> Any:
        """Which multiples of h are nodes between the ends of M(c); only around its humps where all would be too many.

        None where even those are: then nothing is said of this tilt.
        """
        low, high = self.ends(c)
        first, last = math.floor(low / h), math.ceil(high / h)
        if last - first <= most:
            return np.arange(first, last + 1)
        if ENDS * self.sigma / h > 8 * most:  # no hump is narrower
            return None
        humps = self._humps(c)
        if humps is None:
            return None
        kept, end = [], first
        for a, b in humps:
            start, stop = max(math.floor(max(a, low) / h), end), math.ceil(min(b, high) / h) + 1
            kept.append((start, max(start, stop)))
            end = max(end, stop)
        if sum(stop - start for start, stop in kept) > 8 * most:
            return None
        return np.concatenate([np.arange(start, stop) for start, stop in kept])

    def _humps(self, c: float) -> list[tuple[float, float]] | None:
        """Return intervals outside which the integrand is e^-96 of its maximum; None where rounding hides them."""
        return self._one_hump(c) if self.power(c) <= 0 else self._several_humps(c)

    def _height(self, c: float, x: Floats) -> Floats:
        """The log integrand."""
        j = np.arange(self.steps + 1)
        return self.power(c) * log_sum_exp(self.log_weights + self._shift(j, x[:, None])) - x**2 / (2 * self.sigma**2)

    def _several_humps(self, c: float) -> list[tuple[float, float]] | None:
        """Search cells for humps where the power is positive, and cut those that may have one.

        ln r is convex, and so is the log integrand with x²/2σ² added: inside a cell it is above the higher of its ends
        by an eighth of the squared width, in units of σ, at most.
        """
        edges = np.linspace(*self.ends(c), FEWEST + 1)
        left, right, top = edges[:-1], edges[1:], -math.inf
        while True:
            width = float(right[0] - left[0])
            heights = np.maximum(self._height(c, left), self._height(c, right))
            top = max(top, float(np.max(heights)))
            if not 64 * UNIT * float(np.max(np.abs(heights))) < FAINT:  # then their differences say nothing
                return None
            kept = heights + (width / self.sigma) ** 2 / 8 > top - 2 * FAINT
            left, right = left[kept], right[kept]
            if width <= 2 * self.sigma:
                break
            edges = left[:, None] + width / 8 * np.arange(9)
            left, right = edges[:, :-1].ravel(), edges[:, 1:].ravel()
        apart = np.flatnonzero(left[1:] - right[:-1] > width / 2)
        return list(zip(left[np.append(0, apart + 1)].tolist(), right[np.append(apart, -1)].tolist(), strict=True))

    def _one_hump(self, c: float) -> list[tuple[float, float]]:
        """The log integrand is concave where the power of r is not positive."""
        x, span = np.array([self._only_maximum(self.power(c), 1e-3 * self.sigma)]), []
        least = float(self._height(c, x)[0]) - 2 * FAINT
        for sign in (-1, 1):
            reach = 2 * ENDS * self.sigma
            while self._height(c, x + sign * reach)[0] > least and reach < 1e6 * self.sigma:
                reach *= 1.5
            span.append(float(x[0]) + sign * reach)
        return [(span[0], span[1])]

    def _only_maximum(self, power: float, near: float) -> float:
        """Bisect for x = power · E[j | x] where the power is not positive: the left side rises, and the right falls."""
        low, high = power * self.steps, 0.0
        j = np.arange(self.steps + 1)
        while high - low > near:
            middle = (low + high) / 2
            if middle in (low, high):
                break
            logs = self.log_weights + self._shift(j, middle)
            shares = np.exp(logs - logs.max())
            low, high = (middle, high) if middle < power * float(shares @ j / shares.sum()) else (low, middle)
        return (low + high) / 2

    def profile(self, epsilon: Floats) -> Floats:
        one = self._profile_of_one if self.steps == 1 else self._profile_of_group
        return np.vectorize(one, otypes=[float])(epsilon)

    def _profile_of_one(self, epsilon: float) -> float:
        """THEORY 2.7: q δ(ln(1 + (e^ε - 1)/q)) in the remove order; in the add order that of `_profile_of_group`."""
        q, m = self.sampling_prob, 1 / self.sigma
        if self.removes:
            if epsilon <= math.log1p(-q):
                return -math.expm1(epsilon)
            return q * math.exp(float(log_profile(m, np.float64(before_sampling(epsilon, q)))))
        gap = -math.expm1(epsilon + math.log1p(-q))  # 1 - (1-q) e^ε
        if gap <= 0:
            return 0.0
        return gap * math.exp(float(log_profile(m, np.float64(epsilon - math.log(gap / q)))))

    def _profile_of_group(self, epsilon: float) -> float:
        """Return Σ w_j δ_j(u_j): at the x where ln r is ε each moved normal has its own profile, at its own loss there.

        In the add order both sides are exchanged: the loss is over ε left of the x where ln r is -ε, and there
        Σ w_j e^{u_j + ε} δ_j(-u_j) is the same difference, term by term. No term of either sum is negative.
        """
        level = epsilon if self.removes else -epsilon
        if level <= self.log_weights[0]:
            return -math.expm1(epsilon) if self.removes else 0.0
        losses, m = self._losses_at(self._first_loss(level)), np.arange(1, self.steps + 1) / self.sigma
        own = log_profile(m, losses) if self.removes else epsilon + losses + log_profile(m, -losses)
        return math.fsum(np.exp(self.log_weights[1:] + own))

    def where(self, level: float) -> float:
        """Return the x at which ln r(x) is `level`."""
        if not self.log_weights[0] < level < math.inf:
            raise ValueError("no x has this loss")
        if self.steps == 1:
            return 0.5 + self.sigma**2 * before_sampling(level, self.sampling_prob)
        return 0.5 + self.sigma**2 * self._first_loss(level)

    def _losses_at(self, first: float) -> Floats:
        """Return all u_j, j > 0, at the x where u_1 is `first`: so told, x keeps its digits however low the noise."""
        j = np.arange(1, self.steps + 1)
        return j * first - j * (j - 1) / (2 * self.sigma**2)

    def _first_loss(self, level: float) -> float:
        """Return u_1 at the x where ln r is `level`: there the log of Σ_{j>0} w_j e^{u_j} is ln(e^level - w_0).

        That log is convex in u_1, with a slope of at least 1. Newton's steps start where its largest term alone is as
        much, and fall to the solution.
        """
        logs, j = self.log_weights[1:], np.arange(1, self.steps + 1)
        left = level + math.log(-math.expm1(float(self.log_weights[0]) - level))
        first = float(np.min((left - logs + j * (j - 1) / (2 * self.sigma**2)) / j))
        while True:
            terms = logs + self._losses_at(first) - left
            masses = np.exp(terms)
            total = float(masses.sum())
            before, first = first, first - math.log(total) * total / float(masses @ j)
            if not first < before - NEWTON * max(abs(first), 1.0):
                return first

    def mean(self) -> float:
        return self._mean

    @cached_property
    def _mean(self) -> float:
        if self.separated(0.0):
            stay, move = self.weights * self.log_weights
            return float(stay + move + self.sampling_prob / (2 * self.sigma**2)) if self.removes else self.largest
        h = self.sigma * min(0.05, 0.05 * math.pi * self.sigma / self.steps)
        # Also where only the moved normals lie: E e^-L is over all of x.
        places = replace(self, removes=True)._grid(0.0, h, MOST_NODES)
        if places is None:  # as a bound: without sampling it would be this
            return (self.steps / self.sigma) ** 2 / 2
        x = places * h
        losses = self.log_ratio(x) * (1 if self.removes else -1)
        density = np.exp(self._log_density(x))
        if float(np.max(np.abs(losses) * (density > 0))) > 1e-2:  # no cancellation to fear, and e^-L may be no number
            return float(h * np.sum(density * losses))
        terms = mean_excess(losses)
        return float(h * np.sum(density * np.where(np.isfinite(terms), terms, 0.0)))


_SHIFTS = 12


def _log_expm1(x: float) -> float:
    """Ln of e^x - 1, for x > 0."""
    return x + math.log(-math.expm1(-x))

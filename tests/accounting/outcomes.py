"""Pairs of outcome laws, composed without the accountant: at 100 digits while few, then bounded from both sides.

A pair has outcomes with probabilities p and q under P and Q, and what only one of the two can produce. Merging
outcomes is post-processing, so what it makes is dominated; spreading the outcomes of a cell to the cell's two ends,
keeping both its masses, undoes such a merge, so what it makes dominates (THEORY 4.5). Both commute with composition
and with sampling.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import mpmath
import numpy as np
from scipy.special import ndtr

DIGITS = 100
MP = mpmath.mp.clone()
MP.dps = DIGITS
SAME = MP.mpf(10) ** (10 - DIGITS)  # ratios this near are one outcome

MOST_EXACT = 2500  # products of outcomes that are made at 100 digits
MOST_BINOMIAL = 600  # repetitions of two outcomes that are summed as a binomial
MOST_KEPT = 40  # outcomes beside which a continuous law is left whole
CELLS = 512
MOST_LOSS = 600.0  # of an outcome in doubles
TAIL = 1e-26  # what is cut off
TINY = 1e-300
FINEST = 1e-6  # a rate under this makes P so near Q that doubles do not say by how much they differ
SLACK = 1e-9  # relative error of what is computed in doubles, by far
FLOOR = 1e-23  # and absolute, for tails that were cut off


@dataclass(frozen=True)
class Pairs:
    """Outcomes with their probabilities: objects of 100 digits, or doubles."""

    p: np.ndarray
    q: np.ndarray
    p_only: object = 0.0
    q_only: object = 0.0

    @classmethod
    def exact(cls, rows, p_only=0, q_only=0):
        """From (p, q); a zero on either side is what only the other can produce."""
        rows = [(MP.mpf(p), MP.mpf(q)) for p, q in rows]
        p_only = MP.mpf(p_only) + MP.fsum(p for p, q in rows if q == 0)
        q_only = MP.mpf(q_only) + MP.fsum(q for p, q in rows if p == 0)
        both = [(p, q) for p, q in rows if p > 0 and q > 0]
        p, q = (np.array([row[i] for row in both], dtype=object) for i in (0, 1))
        return cls(p, q, p_only, q_only)

    @property
    def is_exact(self):
        return self.p.dtype == object

    @cached_property
    def losses(self):
        return np.log(self.p) - np.log(self.q)

    @property
    def swapped(self):
        return Pairs(self.q, self.p, self.q_only, self.p_only)

    def doubles(self, above):
        """In doubles; what they cannot hold is told apart (above), or taken for as likely as they can say (below)."""
        if not self.is_exact:
            return self
        p, q = (np.array([float(x) for x in side]) for side in (self.p, self.q))
        p_only, q_only = float(self.p_only), float(self.q_only)
        if not above:
            return Pairs(np.maximum(p, TINY), np.maximum(q, TINY), p_only, q_only)
        far = np.array([abs(float(MP.log(a / b))) > MOST_LOSS for a, b in zip(self.p, self.q, strict=True)], dtype=bool)
        far |= (p < TINY) | (q < TINY)
        return Pairs(p[~far], q[~far], p_only + p[far].sum(), q_only + q[far].sum())

    def sampled(self, rate):
        """(1-q)Q + qP against Q (THEORY 2.7): what only Q could produce, both can."""
        if self.is_exact:
            rate = MP.mpf(rate)
            rows = [(rate * p + (1 - rate) * q, q) for p, q in zip(self.p, self.q, strict=True)]
            rows += [((1 - rate) * self.q_only, self.q_only)] if rate < 1 else []
            return Pairs.exact(rows, rate * self.p_only, self.q_only if rate == 1 else 0)
        rate = float(rate)  # doubles stay doubles
        p, q = np.append(self.p, 0.0), np.append(self.q, self.q_only)
        kept = q > 0
        return Pairs((rate * p + (1 - rate) * q)[kept], q[kept], rate * self.p_only)

    def delta(self, epsilon):
        """Σ (P - e^ε Q)_+ (THEORY 1.3), in this order."""
        if self.is_exact:
            factor = MP.exp(epsilon)
            gains = [(p, p - factor * q) for p, q in zip(self.p, self.q, strict=True)]
            return self.p_only + MP.fsum(gain for p, gain in gains if gain > SAME * p)  # what is less is rounding
        if epsilon > MOST_LOSS:
            return float(self.p_only)
        return float(self.p_only + np.maximum(self.p - math.exp(epsilon) * self.q, 0.0).sum())

    def rounding(self, epsilon):
        """How far `delta` may be off: in doubles P - e^ε Q loses digits of what is nearly as likely by either law."""
        if self.is_exact or epsilon > MOST_LOSS:
            return 0.0
        return 8 * 2.0**-53 * float(self.p[self.p > math.exp(epsilon) * self.q * (1 - 2.0**-50)].sum())

    def power(self, x):
        """The largest P(S) with Q(S) ≤ x (Neyman and Pearson; THEORY 1.5), in this order."""
        if self.is_exact:
            rows = sorted(zip(self.p, self.q, strict=True), key=lambda row: row[0] / row[1], reverse=True)
            total, left = self.p_only, MP.mpf(x)
            for p, q in rows:
                share = min(1, left / q)
                total, left = total + share * p, left - share * q
                if share < 1:
                    break
            return min(total, 1)
        order = np.argsort(-self.losses)
        spent = np.append(0.0, np.cumsum(self.q[order]))[:-1]
        share = np.clip((x - spent) / self.q[order], 0.0, 1.0)
        return min(float(self.p_only + (share * self.p[order]).sum()), 1.0)

    def renyi(self, alpha):
        """D_α of the finite part as it stands, in this order."""
        if self.is_exact:
            if alpha == 1:
                return MP.fsum(p * MP.log(p / q) for p, q in zip(self.p, self.q, strict=True))
            if math.isinf(alpha):
                return max(MP.log(p / q) for p, q in zip(self.p, self.q, strict=True))
            total = MP.fsum(p * (p / q) ** (MP.mpf(alpha) - 1) for p, q in zip(self.p, self.q, strict=True))
            return MP.log(total) / (MP.mpf(alpha) - 1)
        raise NotImplementedError


NOTHING = Pairs.exact([(1, 1)])
EVERYTHING = Pairs.exact([], 1, 1)


def merged(pairs):
    """Join outcomes of one ratio, at 100 digits."""
    rows = sorted(((p / q, p, q) for p, q in zip(pairs.p, pairs.q, strict=True)), key=lambda row: row[0])
    kept = []
    for ratio, p, q in rows:
        if kept and ratio - kept[-1][0] <= SAME * ratio:
            kept[-1] = (kept[-1][0], kept[-1][1] + p, kept[-1][2] + q)
        else:
            kept.append((ratio, p, q))
    return Pairs.exact([(p, q) for _, p, q in kept], pairs.p_only, pairs.q_only)


def spread(p, q, low, high):
    """Move each cell's outcomes to its two ends, keeping the masses of P and of Q."""
    gap = np.exp(low - high)
    at_low = np.clip((q * np.exp(low) - p * gap) / (1 - gap), 0.0, p)
    at_high = p - at_low
    return np.concatenate([at_low, at_high]), np.concatenate([at_low * np.exp(-low), at_high * np.exp(-high)])


@dataclass(frozen=True)
class Cells:
    """Cells of the loss, narrow in the middle and wider outwards: evenly spaced in asinh((l - middle) / scale)."""

    low: float
    high: float
    middle: float
    scale: float

    def stretch(self, losses):
        return np.arcsinh((losses - self.middle) / self.scale)

    @cached_property
    def edges(self):
        ends = np.linspace(*self.stretch(np.array([self.low, self.high])), CELLS + 1)
        return self.middle + self.scale * np.sinh(ends)

    def places(self, losses):
        start, end = self.stretch(np.array([self.low, self.high]))
        return np.floor((self.stretch(losses) - start) * (CELLS / (end - start))).astype(np.int64)


def in_cells(p, q, losses, cells, above):
    """Thin outcomes to those of cells: spread to the ends (above; beyond them, told apart) or merged (below)."""
    places = cells.places(losses)
    p_far = q_far = 0.0
    if above:
        far = (places < 0) | (places >= CELLS)
        if far.any():
            p_far, q_far = float(p[far].sum()), float(q[far].sum())
            p, q, places = p[~far], q[~far], places[~far]
    else:
        places = np.clip(places, 0, CELLS - 1)
    p, q = np.bincount(places, p, CELLS), np.bincount(places, q, CELLS)
    kept = (p > TINY) & (q > TINY)
    if not above:  # what is too small is left out of both, which can only lower δ
        return Pairs(p[kept], q[kept])
    p_far, q_far = p_far + float(p[~kept].sum()), q_far + float(q[~kept].sum())
    p, q = _adjacent(*spread(p[kept], q[kept], cells.edges[:-1][kept], cells.edges[1:][kept]))
    return Pairs(p, q, p_far, q_far)


def _adjacent(p, q):
    kept = (p > TINY) & (q > TINY)
    return p[kept], q[kept]


def product(first, second, above):
    """Both pairs, independent of each other."""
    if first.is_exact and second.is_exact and first.p.size * second.p.size <= MOST_EXACT:
        p, q = (np.multiply.outer(a, b).ravel() for a, b in ((first.p, second.p), (first.q, second.q)))
        return merged(Pairs(p, q, *_only(first, second)))
    first, second = first.doubles(above), second.doubles(above)
    only = _only(first, second)
    if not first.p.size or not second.p.size:
        return Pairs(np.empty(0), np.empty(0), *only)
    p, q = (np.multiply.outer(a, b).ravel() for a, b in ((first.p, second.p), (first.q, second.q)))
    losses = np.add.outer(first.losses, second.losses).ravel()
    if p.size <= 2 * CELLS and np.min(p) > TINY and np.min(q) > TINY:
        return Pairs(p, q, *only)
    if np.ptp(losses) < 1e-3:
        return EVERYTHING if above else NOTHING.doubles(above)  # too fine for them: nothing is said, and no exact truth
    thin = in_cells(p, q, losses, _cells(first, second, losses), above)
    return replace(thin, p_only=thin.p_only + only[0], q_only=thin.q_only + only[1])


def _only(first, second):
    """What one of the laws alone can produce, in either of two."""
    one, other = (first.p_only, first.q_only), (second.p_only, second.q_only)
    return tuple(a + b - a * b for a, b in zip(one, other, strict=True))


def _cells(first, second, losses):
    """Cells up to where Chernoff's bound leaves TAIL on either side."""
    high = min(_reach(first, second), float(losses.max()), MOST_LOSS)
    low = max(-_reach(first.swapped, second.swapped), float(losses.min()), -MOST_LOSS)
    high = max(high, low + 1e-3)  # where next to nothing is left
    room = 1e-9 * (high - low)
    moments = [_moments(pairs.p, pairs.losses) + _moments(pairs.q, pairs.losses) for pairs in (first, second)]
    mean, variance, other_mean, other_variance = (sum(each) for each in zip(*moments, strict=True))
    spread_out = 3 * math.sqrt(max(variance, other_variance)) + abs(mean - other_mean)
    middle = min(max((mean + other_mean) / 2, low), high)
    return Cells(low - room, high + room, middle, min(max(spread_out, 1e-3 * (high - low)), high - low))


def _moments(masses, losses):
    total = masses.sum()
    mean = float(masses @ losses / total)
    return mean, float(masses @ (losses - mean) ** 2 / total)


def _reach(first, second):
    tilts = np.geomspace(1e-3, 1e3, 61)
    logs = sum(_log_moments(pairs, tilts) for pairs in (first, second))
    return float(np.min((logs - math.log(TAIL)) / tilts))


def _log_moments(pairs, tilts):
    powers = np.log(pairs.p) + tilts[:, None] * pairs.losses
    top = powers.max(axis=1)
    return top + np.log(np.exp(powers - top[:, None]).sum(axis=1))


def repeated(pairs, count, above):
    """`count` independent copies."""
    if pairs.is_exact and pairs.p.size == 2 and count <= MOST_BINOMIAL:
        return _binomial(pairs, count)
    result, base = None, pairs
    while count:
        if count & 1:
            result = base if result is None else product(result, base, above)
        count >>= 1
        if count:
            base = product(base, base, above)
    return result


def _binomial(pairs, count):
    (a, b), (c, d) = pairs.p, pairs.q
    ways = [MP.mpf(math.comb(count, j)) for j in range(count + 1)]
    rows = [(ways[j] * a**j * b ** (count - j), ways[j] * c**j * d ** (count - j)) for j in range(count + 1)]
    only = (-MP.expm1(count * MP.log1p(-mass)) if mass < 1 else mass for mass in (pairs.p_only, pairs.q_only))
    return merged(Pairs.exact(rows, *only))  # 100 digits do not hold 1 - 1e-300


# --- Continuous laws: a profile at 100 digits, and cells in doubles ---------------------------------------------------


class Continuous:
    """A continuous law that is equal in both orders: its profile, and its masses in cells of the loss."""

    def profile(self, epsilon):
        """δ(ε) at 100 digits, for any real ε, as (this order, the other)."""
        raise NotImplementedError

    def cells(self, above):
        """As pairs, dominating or dominated."""
        raise NotImplementedError


@dataclass(frozen=True)
class Normal(Continuous):
    """Gaussian noise: L ~ N(m²/2, m²) (THEORY 2.3)."""

    m: object

    def profile(self, epsilon):
        m = self.m
        value = MP.ncdf(m / 2 - epsilon / m) - MP.exp(epsilon) * MP.ncdf(-m / 2 - epsilon / m)
        return value, value

    def cells(self, above):
        m = float(self.m)
        far = m * m / 2 + 10.8 * m
        if m < 1e-3 or far > MOST_LOSS:
            return EVERYTHING if above else Pairs.exact([(x, y) for x, y in _halves(self.m)])
        edges = np.linspace(-far, far, 2 * CELLS + 1)
        p, q = _normal_masses((edges - m * m / 2) / m), _normal_masses((edges + m * m / 2) / m)
        tail = 4e-27
        return _from_masses(p, q, edges, above, tail)


def _halves(m):
    """What a threshold in the middle makes of Gaussian noise."""
    right, wrong = MP.ncdf(m / 2), MP.ncdf(-m / 2)
    return (right, wrong), (wrong, right)


def _normal_masses(z):
    """Φ(b) - Φ(a) for neighbours, from the nearer tail."""
    left, right = ndtr(z), ndtr(-z)
    return np.where(z[:-1] > 0, right[:-1] - right[1:], left[1:] - left[:-1])


def _from_masses(p, q, edges, above, tail, rows=()):
    """Cells of known masses, with atoms of their own; `tail` is what lies outside, told apart or left out."""
    p, q = np.maximum(p, TINY), np.maximum(q, TINY)
    if above:
        p, q = _adjacent(*spread(p, q, edges[:-1], edges[1:]))
    atoms = np.array(rows, dtype=float).reshape(-1, 2)
    only = tail if above else 0.0
    return Pairs(np.append(p, atoms[:, 0]), np.append(q, atoms[:, 1]), only, only)


@dataclass(frozen=True)
class Double(Continuous):
    """Laplace noise with ε = e0 (THEORY 2.2)."""

    e0: object

    def profile(self, epsilon):
        if epsilon >= self.e0:
            value = MP.mpf(0)
        else:
            value = -MP.expm1((epsilon - self.e0) / 2) if epsilon > -self.e0 else -MP.expm1(epsilon)
        return value, value

    def cells(self, above):
        e0 = float(self.e0)
        if e0 < 1e-3 or e0 > MOST_LOSS:
            half, far = MP.mpf(1) / 2, MP.exp(-self.e0) / 2
            middle = half - far
            exact = Pairs.exact([(half, far), (middle, middle), (far, half)])
            return EVERYTHING if above else exact
        edges = np.linspace(-e0, e0, 2 * CELLS + 1)
        ends = np.exp((edges - e0) / 2) / 2
        p = ends[1:] - ends[:-1]
        far = math.exp(-e0) / 2
        return _from_masses(p, p[::-1], edges, above, 0.0, [(0.5, far), (far, 0.5)])


@dataclass(frozen=True)
class Bounded(Continuous):
    """What dominates every selection of bounded range e0 (THEORY 2.5)."""

    e0: object

    def profile(self, epsilon):
        e0 = self.e0
        if epsilon >= e0:
            value = MP.mpf(0)
        elif epsilon <= -e0:
            value = -MP.expm1(epsilon)
        else:
            value = (MP.exp(e0 / 2) - MP.exp(epsilon / 2)) ** 2 / MP.expm1(e0)
        return value, value

    def cells(self, above):
        assert above
        e0 = float(self.e0)
        if e0 < 1e-3 or e0 > MOST_LOSS:
            return EVERYTHING
        edges = np.linspace(-e0, e0, 2 * CELLS + 1)
        # P(L > l) = δ(l) - δ'(l) = (1 - e^{(l-e0)/2}) / (1 - e^{-e0})
        ends = np.exp((edges - e0) / 2) / -math.expm1(-e0)
        p = ends[1:] - ends[:-1]
        return _from_masses(p, p[::-1], edges, above, 0.0)


@dataclass(frozen=True)
class Sampled(Continuous):
    """A continuous law on a Poisson sample (THEORY 2.7)."""

    inside: Continuous
    rate: object

    def profile(self, epsilon):
        # Σ (qP + (1-q)Q - e^ε Q)_+ and Σ (Q - e^ε (qP + (1-q)Q))_+
        rate, factor = self.rate, MP.exp(epsilon)
        removed = MP.expm1(epsilon) + rate
        added = 1 - (1 - rate) * factor
        remove = rate * self.inside.profile(MP.log(removed / rate))[0] if removed > 0 else -MP.expm1(epsilon)
        add = added * self.inside.profile(MP.log(rate * factor / added))[1] if added > 0 else MP.mpf(0)
        return remove, add

    def cells(self, above):
        return self.inside.cells(above).sampled(float(self.rate))


@dataclass(frozen=True)
class Batched(Continuous):
    """What dominates a continuous law on a batch without replacement, under replace-one (THEORY 2.8)."""

    inside: Continuous
    rate: object

    def profile(self, epsilon):
        if epsilon < 0:
            value = -MP.expm1(epsilon) + MP.exp(epsilon) * self.profile(-epsilon)[0]
        else:
            value = self.rate * max(self.inside.profile(MP.log1p(MP.expm1(epsilon) / self.rate)))
        return value, value

    def cells(self, above):
        assert above
        return mirrored(self.inside.cells(above).sampled(float(self.rate)))


def mirrored(pairs):
    """What P is likelier to produce, and its mirror image; the rest has no loss (THEORY 2.8)."""
    kept = pairs.p > pairs.q
    p, q = np.append(pairs.p[kept], pairs.q[kept]), np.append(pairs.q[kept], pairs.p[kept])
    rest = 1 - pairs.p_only - p.sum()
    some = rest > (0 if pairs.is_exact else TINY)
    p, q = (np.append(side, [rest] if some else []) for side in (p, q))
    return Pairs(p, q, pairs.p_only, pairs.p_only)


# --- One side of a truth ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Side:
    """A bound on a composed pair, from above (it dominates the truth) or below: outcomes, and one continuous law."""

    pairs: Pairs
    whole: Continuous | None = None
    above: bool = False

    def together(self, other):
        """Both, composed."""
        if isinstance(self.whole, Normal) and isinstance(other.whole, Normal):
            whole = Normal(MP.sqrt(self.whole.m**2 + other.whole.m**2))
            return Side(product(self.pairs, other.pairs, self.above), whole, self.above).settled()
        if self.whole is not None and other.whole is not None:
            return self.together(other.cut())
        pairs = product(self.pairs, other.pairs, self.above)
        return Side(pairs, self.whole or other.whole, self.above).settled()

    def times(self, count):
        """`count` copies, composed."""
        if count == 1:
            return self
        if isinstance(self.whole, Normal):
            return Side(
                repeated(self.pairs, count, self.above), Normal(self.whole.m * MP.sqrt(count)), self.above
            ).settled()
        side = self.cut()
        return Side(repeated(side.pairs, count, self.above), None, self.above)

    def sampled(self, rate):
        """On a Poisson sample."""
        if rate == 1:
            return self
        if self.whole is not None and self.pairs.p.size == 1 and not (self.pairs.p_only or self.pairs.q_only):
            if isinstance(self.whole, Sampled):
                return replace(self, whole=Sampled(self.whole.inside, self.whole.rate * MP.mpf(rate)))
            return replace(self, whole=Sampled(self.whole, MP.mpf(rate)))
        side = self.cut()
        if not side.is_exact and rate < FINEST:
            return Side(EVERYTHING if self.above else NOTHING, None, self.above)
        return Side(side.pairs.sampled(rate), None, self.above)

    def batched(self, rate):
        """On a batch without replacement, of what is equal in both orders; from below, one order throughout."""
        if rate == 1 or not self.above:
            return self.sampled(rate)
        if self.whole is not None and self.pairs.p.size == 1 and not (self.pairs.p_only or self.pairs.q_only):
            return replace(self, whole=Batched(self.whole, MP.mpf(rate)))
        side = self.cut()
        if not side.is_exact and rate < FINEST:
            return Side(EVERYTHING, None, True)
        return Side(mirrored(side.pairs.sampled(rate)), None, True)

    def cut(self):
        """With the continuous law cut into cells."""
        if self.whole is None:
            return self
        return Side(product(self.pairs, self.whole.cells(self.above), self.above), None, self.above)

    def settled(self):
        """With the continuous law cut where there are many outcomes beside it."""
        many = self.whole is not None and (not self.pairs.is_exact or self.pairs.p.size > MOST_KEPT)
        return self.cut() if many else self

    @property
    def is_exact(self):
        return self.pairs.is_exact

    def delta(self, epsilon):
        """The larger δ of both orders, rounded to this side."""
        epsilon = MP.mpf(epsilon) if self.is_exact else float(epsilon)
        if self.whole is None:
            both, sign = (self.pairs, self.pairs.swapped), 1 if self.above else -1
            value = max(pairs.delta(epsilon) + sign * pairs.rounding(epsilon) for pairs in both)
        else:
            value = max(self._mixed(epsilon))
        return self._rounded(min(value, 1))

    def _mixed(self, epsilon):
        totals = [MP.mpf(self.pairs.p_only), MP.mpf(self.pairs.q_only)]
        for p, q in zip(self.pairs.p, self.pairs.q, strict=True):
            loss = MP.log(p / q)
            totals[0] += p * self.whole.profile(epsilon - loss)[0]
            totals[1] += q * self.whole.profile(epsilon + loss)[1]
        return totals

    def power(self, x):
        """The larger power of both orders, rounded to this side."""
        side = self.cut()
        value = max(pairs.power(x) for pairs in (side.pairs, side.pairs.swapped))
        return side._rounded(min(value, 1))

    def _rounded(self, value):
        if self.is_exact:
            return value
        return min(value * (1 + SLACK) + FLOOR, 1.0) if self.above else max(value * (1 - SLACK) - FLOOR, 0.0)

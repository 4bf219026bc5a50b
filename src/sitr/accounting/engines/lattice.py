"""Laws that live on a lattice or have few atoms: composed without any discretisation error.

On a common lattice the tilted law is convolved by one transform over the window that carries it; what lies outside
the window wraps around, is at least 0, and is bounded by Chernoff. Tilting keeps δ = 1e-30 as accurate as δ = 1e-3.
A few laws on different lattices are enumerated, atom by atom.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from scipy.fft import fft, ifft, next_fast_len
from scipy.special import gammaln

from ..losses.atoms import Atoms, common_divisor
from ..losses.law import UNIT, Floats, Lattice, log_sum_exp
from .delta import Finite
from .line import ALIAS
from .mix import Mix, log_kappa

LONGEST = 1 << 21
STEEPEST = 300.0  # nats over which exponentials are summed at once
MOST_ATOMS = 300_000
MOST_SUMS = 4096  # of several losses of one law, counted one by one


class LatticeSum:
    """δ(ε) of a mix on one lattice, with two-sided bounds."""

    method, asked = "lattice", 1.0

    def __init__(self, mix: Mix, c: float, lattices: list[Lattice], spacing: float, low: float, high: float) -> None:
        self.mix, self.c, self.spacing, self.work = mix, c, spacing, 64 * (high - low) / spacing
        counts = [count for _, count in mix.parts]
        self.shift = math.fsum(n * lattice.rounding for n, lattice in zip(counts, lattices, strict=True))
        offset = math.fsum(n * lattice.offset for n, lattice in zip(counts, lattices, strict=True))
        first = math.floor((low - offset) / spacing)
        size = next_fast_len(math.ceil((high - low) / spacing) + 2)
        log_size, turn, noise = np.zeros(size // 2 + 1), np.zeros(size // 2 + 1), 0.0
        for count, lattice in zip(counts, lattices, strict=True):
            stride = round(lattice.spacing / spacing)
            wrapped = np.zeros(size)
            np.add.at(wrapped, (lattice.places * stride) % size, lattice.weights)
            ratios = fft(wrapped)[: size // 2 + 1]
            log_size += count * np.log(np.maximum(np.abs(ratios), 1e-300))
            turn += count * np.angle(ratios)
            noise += count * UNIT * (24 + 8 * math.log2(size))
        half = np.exp(np.minimum(log_size, 0.0) + 1j * np.mod(turn, 2 * math.pi))
        spectrum = np.concatenate([half, np.conj(half[1 : (size + 1) // 2][::-1])])
        masses = np.roll(np.real(ifft(spectrum)), -(first % size))
        self.losses: Floats = offset + spacing * (first + np.arange(size))
        self.base = float(mix.log_mgf(c))
        places = abs(offset) + spacing * (abs(first) + size)
        self.noise = noise + mix.log_mgf_error(c) + 8 * UNIT * (1 + c * places)
        self.error = float(np.mean(np.abs(spectrum))) * self.noise + 16 * UNIT * math.log2(size) * float(
            np.sqrt(np.sum(masses**2))
        )
        self.outside = _outside(mix, c, float(self.losses[0]), float(self.losses[-1]))
        # Σ f e^{-c(l - l_j)} and Σ f e^{-(1+c)(l - l_j)} over all l from l_j on
        self.plain, self.other = (_decaying_sums(masses, rate * spacing) for rate in (c, 1 + c))

    def _value(self, epsilon: float) -> tuple[float, float]:
        """Return δ(ε) and the bound on its error, both over e^{K(c) - cε}."""
        j = int(np.searchsorted(self.losses, epsilon, side="right"))
        if j == self.losses.size:
            return 0.0, self.error
        gap = float(self.losses[j]) - epsilon
        plain, other = math.exp(-self.c * gap) * self.plain[j], math.exp(-(1 + self.c) * gap) * self.other[j]
        room = 1 / -math.expm1(-self.c * self.spacing)
        return plain - other, self.error * room + self.noise * max(plain - other, 0.0) + 16 * UNIT * abs(plain)

    def upper(self, epsilon: float) -> Finite:
        """Return an upper bound on δ(ε)."""
        value, error = self._value(epsilon - self.shift)
        wrapped = math.exp(float(log_kappa(self.c))) * self.outside  # mass above the window may have come down under ε
        return Finite(math.exp(min(self.base - self.c * (epsilon - self.shift), 700.0)) * (value + error + wrapped))

    def lower(self, epsilon: float) -> Finite:
        """Return a lower bound on δ(ε)."""
        value, error = self._value(epsilon + self.shift)
        alias = math.exp(float(log_kappa(self.c))) * self.outside
        return Finite(math.exp(min(self.base - self.c * (epsilon + self.shift), 700.0)) * (value - error - alias))

    def guess(self, log_delta: float) -> float:
        """Solve δ(ε) = δ inside its cell, where e^ε is linear in δ."""
        low, high = 0, self.losses.size - 1
        while high - low > 1:
            middle = (low + high) // 2
            value, _ = self._value(float(self.losses[middle]))
            above = value > 0 and math.log(value) + self.base - self.c * float(self.losses[middle]) > log_delta
            low, high = (middle, high) if above else (low, middle)
        top = float(self.losses[high])
        level = math.exp(min(log_delta - self.base + self.c * top, 700.0))
        remaining = (self.plain[high] - level) / self.other[high] if self.other[high] > 0 else 0.0
        inside = top + math.log(remaining) if remaining > 0 else float(self.losses[low])
        return min(max(inside, float(self.losses[low])), top)


def _decaying_sums(masses: Floats, rate: float) -> Floats:
    """Return Σ_{i ≥ j} masses[i] e^{-rate (i-j)} for every j, by rows so short that no exponential overflows."""
    width = max(min(int(STEEPEST / rate), masses.size), 1)
    rows = np.zeros((-(-masses.size // width), width))
    rows.flat[: masses.size] = masses
    falls = np.exp(-rate * np.arange(width))
    sums = np.cumsum((rows * falls)[:, ::-1], axis=1)[:, ::-1] / falls
    carried, carry = np.zeros(rows.shape[0]), 0.0
    for row in range(rows.shape[0] - 1, -1, -1):
        carried[row] = carry
        carry = float(sums[row, 0]) + math.exp(-rate * width) * carry
    sums += carried[:, None] * np.exp(-rate * (width - np.arange(width)))
    return np.asarray(sums.ravel()[: masses.size])


def lattice_sum(mix: Mix, c: float, log_main: float) -> LatticeSum | None:
    """Put the mix on its common lattice, over a window outside which a share ALIAS of δ lies; None if it has none."""
    if mix.m2 or not mix.parts:
        return None
    lattices = [loss.lattice(c) for loss, _ in mix.parts]
    found = [lattice for lattice in lattices if lattice is not None]
    if len(found) < len(lattices):
        return None
    spacing = _common_spacing([lattice.spacing for lattice in found])
    if spacing is None:
        return None
    found = [_snapped(lattice, spacing) for lattice in found]
    low, high = _window(mix, c, log_main)
    if (high - low) / spacing > LONGEST:
        return None
    return LatticeSum(mix, c, found, spacing, low, high)


def _common_spacing(spacings: list[float]) -> float | None:
    largest = max(spacings)
    return common_divisor(np.array(sorted(spacings)), 1e-13 * largest)


def _snapped(lattice: Lattice, spacing: float) -> Lattice:
    """Move the lattice onto the common one, and charge how far its points moved."""
    stride = round(lattice.spacing / spacing)
    moved = abs(lattice.spacing - stride * spacing) * float(np.max(np.abs(lattice.places), initial=0))
    return lattice._replace(spacing=stride * spacing, rounding=lattice.rounding + moved)


def _around(mix: Mix, c: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Tilts on both sides of c, with K there relative to K(c)."""
    up = c * np.array([1.003, 1.01, 1.03, 1.1, 1.3, 2.0, 4.0, 16.0])
    down = c * np.array([0.997, 0.99, 0.97, 0.9, 0.7, 0.3, 0.0, -0.5, -2.0, -8.0])
    base = mix.log_mgf(c)
    return up, mix.log_mgf(up) - base, down, mix.log_mgf(down) - base


def _window(mix: Mix, c: float, log_main: float) -> tuple[float, float]:
    nats = -math.log(ALIAS) - log_main + 3
    up, rise, down, fall = _around(mix, c)
    high = float(np.min((rise + nats) / (up - c)))
    low = float(np.max((fall + nats) / (down - c)))
    return max(low, mix.smallest), min(high, mix.largest)


def _outside(mix: Mix, c: float, low: float, high: float) -> float:
    """Bound the tilted mass outside [low, high] by Chernoff on both sides."""
    up, rise, down, fall = _around(mix, c)
    total = 0.0
    if high < mix.largest:
        total += math.exp(min(float(np.min(rise - (up - c) * high)), 0.0))
    if low > mix.smallest:
        total += math.exp(min(float(np.min(fall - (down - c) * low)), 0.0))
    return total


def enumerated(mix: Mix) -> tuple[Atoms, float] | None:
    """Return every atom of the composed law and a bound on the relative error of its masses, if they are few."""
    if mix.m2 or not mix.parts or not all(isinstance(loss, Atoms) for loss, _ in mix.parts):
        return None
    losses, logs, work = np.zeros(1), np.zeros(1), 0.0
    for loss, count in mix.parts:
        assert isinstance(loss, Atoms)
        own = _self_composed(loss, count)
        if own is None or losses.size * own[0].size > MOST_ATOMS:
            return None
        losses = (losses[:, None] + own[0]).ravel()
        logs = (logs[:, None] + own[1]).ravel()
        work += count + float(gammaln(count + 1))
    order = np.argsort(losses, kind="stable")
    size = float(np.max(np.abs(logs))) + float(np.max(np.abs(losses)))
    return Atoms(losses[order], logs[order]), UNIT * (16 * work + 8 * size + 4 * losses.size**0.5)


def _self_composed(loss: Atoms, count: int) -> tuple[Floats, Floats] | None:
    """Return the atoms of `count` copies: by repeated convolution of masses that are all positive."""
    if count == 1 or loss.losses.size == 1:
        return count * loss.losses, loss.logs
    if math.comb(count + loss.losses.size - 1, count) <= MOST_SUMS:
        return _multinomial(loss, count)
    lattice = loss.lattice(0.0)
    if lattice is None or lattice.rounding > 0 or count > 2000:
        return None
    span = int(lattice.places[-1]) * count + 1
    if span > 20_000:
        return None
    single = np.zeros(int(lattice.places[-1]) + 1)
    np.add.at(single, lattice.places, np.exp(loss.logs))
    masses = _power(single, count)
    kept = masses > 0
    places = np.flatnonzero(kept)
    logs = np.log(masses[kept])
    return count * lattice.offset + lattice.spacing * places, logs - log_sum_exp(logs)


def _multinomial(loss: Atoms, count: int) -> tuple[Floats, Floats]:
    """Return the atoms of `count` copies by how often each loss comes."""
    times, factorials = _shared_out(count, loss.losses.size), gammaln(np.arange(1.0, count + 2))
    logs = factorials[count] - np.sum(factorials[times], axis=1) + times @ loss.logs
    return times @ loss.losses, logs - log_sum_exp(logs)


def _shared_out(count: int, kinds: int) -> Floats:
    """Return all ways to share `count` out among some kinds, a row each: as `count` stars and a few bars say."""
    if kinds == 2:
        first = np.arange(count + 1)
        return np.array([first, count - first]).T
    slots = count + kinds - 1
    bars = np.array(list(combinations(range(slots), kinds - 1)), dtype=np.int64)
    ends = np.full((bars.shape[0], 1), slots)
    return np.diff(np.hstack([np.full_like(ends, -1), bars, ends])) - 1


def _power(masses: Floats, count: int) -> Floats:
    result, square = np.ones(1), masses
    while count:
        if count & 1:
            result = np.convolve(result, square)
        count >>= 1
        if count:
            square = np.convolve(square, square)
    return result


class AtomSum:
    """δ(ε) of enumerated atoms: a sum of non-negative terms."""

    method = "enumeration"

    def __init__(self, atoms: Atoms, relative_error: float) -> None:
        self.work, self.asked = 64.0 * atoms.losses.size, 16.0 * atoms.losses.size
        self.losses, self.masses = atoms.losses, np.exp(atoms.logs)
        self.relative_error = relative_error
        self.shift = 8 * UNIT * float(np.max(np.abs(atoms.losses)))

    def _value(self, epsilon: float) -> float:
        j = self.losses.searchsorted(epsilon, side="right")
        return float(np.add.reduce(self.masses[j:] * -np.expm1(epsilon - self.losses[j:])))

    def upper(self, epsilon: float) -> Finite:
        """Return an upper bound on δ(ε)."""
        return Finite(self._value(epsilon - self.shift) * (1 + self.relative_error))

    def lower(self, epsilon: float) -> Finite:
        """Return a lower bound on δ(ε)."""
        return Finite(self._value(epsilon + self.shift) * (1 - self.relative_error))

    def guess(self, log_delta: float) -> float:
        """Solve δ(ε) = δ: find the cell, then its linear equation in e^ε."""
        delta = math.exp(log_delta)
        low, high = int(np.searchsorted(self.losses, 0.0)) - 1, self.losses.size - 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._value(float(self.losses[middle])) > delta else (low, middle)
        least = float(self.losses[high])
        plain = float(np.sum(self.masses[high:]))
        other = float(np.sum(self.masses[high:] * np.exp(least - self.losses[high:])))
        return (
            least + math.log((plain - delta) / other)
            if plain > delta and other > 0
            else float(self.losses[max(low, 0)])
        )

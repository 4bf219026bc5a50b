"""What a composition dominates: its outcomes merged into a few cells, which is post-processing (THEORY 4.5).

Sums of positive masses under both laws, in the rounding model of decision 0004; masses that underflow say nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from .atoms import Atoms
from .gaussian import GaussianLoss
from .interval import IntervalLoss
from .law import Floats, Pair

CELLS = 512  # that are kept
FAR = 9.0  # standard deviations: beyond, a Gaussian's outcomes are one cell on each side
MOST_M = 20.0  # of a Gaussian: beyond, masses underflow
MOST_COUNT = 10_000


@dataclass(frozen=True)
class Outcomes:
    """Masses of cells under P and Q, by ascending loss, and the masses that only one of them has."""

    p: Floats
    q: Floats
    only_p: float = 0.0
    only_q: float = 0.0

    def then(self, other: Outcomes) -> Outcomes | None:
        """Return both, one after the other, merged; None where masses underflow."""
        if self.p.size > CELLS or other.p.size > CELLS:
            return self.merged().then(other.merged())
        p, q = np.outer(self.p, other.p).ravel(), np.outer(self.q, other.q).ravel()
        if p.min() < 1e-290 or q.min() < 1e-290:
            return None
        only_p = self.only_p + other.only_p - self.only_p * other.only_p
        only_q = self.only_q + other.only_q - self.only_q * other.only_q
        return Outcomes(p, q, only_p, only_q).merged()

    def merged(self) -> Outcomes:
        """Return neighbouring cells joined, so that no more than CELLS are left."""
        losses = np.log(self.p) - np.log(self.q)
        order = np.argsort(losses, kind="stable")
        ends = np.linspace(losses[order[0]], losses[order[-1]], CELLS, endpoint=False)
        starts = np.unique(np.searchsorted(losses[order], ends))
        p, q = (np.add.reduceat(masses[order], starts) for masses in (self.p, self.q))
        return Outcomes(p, q, self.only_p, self.only_q)

    def repeated(self, count: int) -> Outcomes | None:
        """Return `count` runs of these, by squaring."""
        half = self if count == 1 else self.repeated(count // 2)
        if half is None or count == 1:
            return half
        twice = half.then(half)
        return twice.then(self) if twice is not None and count % 2 else twice

    def pair(self) -> Pair:
        """Return both orders as laws of atoms."""
        losses = np.log(self.p) - np.log(self.q)
        order = np.argsort(losses, kind="stable")
        losses, p, q = losses[order], self.p[order], self.q[order]
        return Pair(Atoms.of(losses, p, self.only_p), Atoms.of(-losses[::-1], q[::-1], self.only_q))


def merged_pair(parts: list[tuple[Pair, int]]) -> Pair | None:
    """Return a pair that the composition of all parts dominates, or None; parts that have no cells are forgotten."""
    total: Outcomes | None = None
    for pair, count in parts:
        single = _outcomes(pair) if count <= MOST_COUNT else None
        own = None if single is None else single.repeated(count)
        if own is not None:
            total = own if total is None else total.then(own) or total
    return None if total is None else total.pair()


def _outcomes(pair: Pair) -> Outcomes | None:
    loss = pair.forward
    if isinstance(loss, GaussianLoss) and loss.m <= MOST_M:
        edges = np.linspace(-FAR, loss.m + FAR, CELLS // 2)
        return Outcomes(_normal_cells(edges - loss.m), _normal_cells(edges))
    if isinstance(loss, IntervalLoss):
        p = loss.masses(np.linspace(-loss.e0, loss.e0, CELLS // 2))
        ends = ([loss.bottom], p, [loss.top]) if loss.top else (p,)
        both = np.concatenate(ends)
        return Outcomes(both, both[::-1])
    if isinstance(loss, Atoms) and isinstance(pair.backward, Atoms):
        p = np.exp(loss.logs + math.log1p(-loss.infinite_mass))
        return Outcomes(p, p * np.exp(-loss.losses), loss.infinite_mass, pair.backward.infinite_mass)
    return None


def _normal_cells(edges: Floats) -> Floats:
    """The masses of a normal between the edges and beyond them, each difference taken in the nearer tail."""
    upper = np.concatenate([[-np.inf], edges]), np.concatenate([edges, [np.inf]])
    left, right = ndtr(upper[1]) - ndtr(upper[0]), ndtr(-upper[0]) - ndtr(-upper[1])
    return np.where(upper[0] > 0, right, left)

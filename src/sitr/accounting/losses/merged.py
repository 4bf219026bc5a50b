"""What a composition dominates: its outcomes merged into a few cells, which is post-processing (THEORY 4.5).

Sums of positive masses under both laws, in the rounding model of decision 0004; masses that underflow say nothing.
"""

from __future__ import annotations

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
LEAST_M = 1e-9  # under it, rounding would move the losses of cells by more than merging does
MOST_COUNT = 10_000


@dataclass(frozen=True)
class Outcomes:
    """Masses of cells under P with their losses ln P/Q, and the masses that only one of P and Q has.

    Losses are kept, rather than masses under Q: of two masses that nearly agree, no difference would be left.
    """

    p: Floats
    losses: Floats
    only_p: float = 0.0
    only_q: float = 0.0

    @property
    def q(self) -> Floats:
        """The masses under Q."""
        with np.errstate(over="ignore", invalid="ignore"):  # where a mass under P underflows, which is noticed
            return self.p * np.exp(-self.losses)

    def then(self, other: Outcomes) -> Outcomes | None:
        """Return both, one after the other, merged; None where masses underflow."""
        if self.p.size > CELLS or other.p.size > CELLS:
            return self.merged().then(other.merged())
        p, losses = np.outer(self.p, other.p).ravel(), np.add.outer(self.losses, other.losses).ravel()
        only_p = self.only_p + other.only_p - self.only_p * other.only_p
        only_q = self.only_q + other.only_q - self.only_q * other.only_q
        made = Outcomes(p, losses, only_p, only_q)
        return None if min(p.min(), made.q.min()) < 1e-290 else made.merged()

    def merged(self) -> Outcomes:
        """Return neighbouring cells joined, so that no more than CELLS are left."""
        order = np.argsort(self.losses, kind="stable")
        p, losses = self.p[order], self.losses[order]
        ends = np.linspace(losses[0], losses[-1], CELLS, endpoint=False)
        starts = np.unique(np.searchsorted(losses, ends))
        # Q/P of a cell is the mean of e^-l over it; beside a middle loss, so that nothing overflows or cancels.
        masses, middle = np.add.reduceat(p, starts), losses[starts]
        beside = losses - np.repeat(middle, np.diff(np.append(starts, losses.size)))
        joined = middle - np.log1p(np.add.reduceat(p * np.expm1(-beside), starts) / masses)
        return Outcomes(masses, joined, self.only_p, self.only_q)

    def repeated(self, count: int) -> Outcomes | None:
        """Return `count` runs of these, by squaring."""
        half = self if count == 1 else self.repeated(count // 2)
        if half is None or count == 1:
            return half
        twice = half.then(half)
        return twice.then(self) if twice is not None and count % 2 else twice

    def pair(self) -> Pair:
        """Return both orders as laws of atoms."""
        order = np.argsort(self.losses, kind="stable")
        losses, p, q = self.losses[order], self.p[order], self.q[order]
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
    if isinstance(loss, GaussianLoss) and LEAST_M <= loss.m <= MOST_M:
        edges = np.linspace(-FAR, loss.m + FAR, CELLS // 2)
        p, q = _normal_cells(edges - loss.m), _normal_cells(edges)
        return Outcomes(p, np.log(p) - np.log(q))
    if isinstance(loss, IntervalLoss):
        edges = np.linspace(-loss.e0, loss.e0, CELLS // 2)
        p, losses = loss.masses(edges), (edges[:-1] + edges[1:]) / 2  # the mirrored cell has e^{-loss} times the mass
        if not loss.top:
            return Outcomes(p, losses)
        ends = np.array([loss.bottom]), np.array([loss.top])
        return Outcomes(np.concatenate([ends[0], p, ends[1]]), np.concatenate([[-loss.e0], losses, [loss.e0]]))
    if isinstance(loss, Atoms) and isinstance(pair.backward, Atoms):
        p = np.exp(loss.logs + loss.log_finite)
        return Outcomes(p, loss.losses, loss.infinite_mass, pair.backward.infinite_mass)
    return None


def _normal_cells(edges: Floats) -> Floats:
    """The masses of a normal between the edges and beyond them, each difference taken in the nearer tail."""
    upper = np.concatenate([[-np.inf], edges]), np.concatenate([edges, [np.inf]])
    left, right = ndtr(upper[1]) - ndtr(upper[0]), ndtr(-upper[0]) - ndtr(-upper[1])
    return np.where(upper[0] > 0, right, left)

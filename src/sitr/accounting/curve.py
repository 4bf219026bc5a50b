"""Everything that can be said of an event's privacy loss, in both orders of the pair."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .. import _validate
from ..errors import NoSuchGuarantee
from ..units import Adjacency
from .bracket import Bracket
from .engines.delta import Found, Total
from .engines.ways import Purse
from .notions import composed_gdp, concentrated_of, zcdp_of
from .orders import Orders
from .parts import Parts, group_part

if TYPE_CHECKING:
    from .events import Concentrated, ZeroConcentrated


MOST_CLAIMED = 1e30  # ρ, ξ, μ and τ²: such a claim promises nothing


class Answers:
    """The questions that every event and every curve answers.

    Brackets contain the truth: for a mechanism whose loss is known, its own; for a claim such as (ε,δ)-DP or zCDP,
    the worst of all mechanisms that satisfy it. Both orders are composed apart and the larger is taken (THEORY 1.3).
    """

    adjacency: Adjacency | None

    @property
    def parts(self) -> Parts:
        """The dominating pairs, or claims, with their counts (THEORY 1.2, 2.6).

        Example:
            >>> from sitr.accounting import Gaussian, Laplace
            >>> [count for _, count in (Gaussian(noise_multiplier=10) * 100 + Laplace(noise_multiplier=20) * 30).parts]
            [100, 30]
        """
        raise NotImplementedError

    @property
    def curve(self) -> Curve:
        """The curve of this event: what can be said of its loss (THEORY 1.3), without what was done.

        Example:
            >>> from sitr.accounting import Laplace
            >>> (Laplace(noise_multiplier=2) * 3).curve.pure()
            1.5
        """
        return Curve(self.parts, self.adjacency)

    def epsilon(self, delta: ArrayLike) -> Bracket:
        """Return the least ε for which (ε,δ)-DP holds (THEORY 1.3, 4.5).

        Args:
            delta: In [0, 1); an array gives a bracket of arrays. At 0 the guarantee is pure.

        Raises:
            NoSuchGuarantee: `delta` is 0 and the loss is unbounded.

        Privacy: (upper, δ)-DP holds for every pair of neighbours under the event's adjacency, in both orders.

        Example:
            >>> from sitr.accounting import Gaussian, PoissonSampled
            >>> event = PoissonSampled(Gaussian(noise_multiplier=1.1), sampling_prob=256 / 60000) * 14062
            >>> round(event.epsilon(delta=1e-5).upper, 6)
            2.381597
        """
        deltas = _validate.reals("delta", delta, 0, 1, open_high=True)
        return _brackets(deltas, lambda d: self._orders.epsilon(Total(d)))

    def _searched_epsilon(self, delta: float, purse: Purse) -> Bracket:
        """Return `epsilon` for a search, as closely as that has to know its upper end and pays for it."""
        return _brackets(np.asarray(delta), lambda d: self._orders.searched_epsilon(Total(d), purse))

    def delta(self, epsilon: ArrayLike) -> Bracket:
        """Return the least δ for which (ε,δ)-DP holds: the privacy profile (THEORY 1.3).

        Args:
            epsilon: At least 0; an array gives a bracket of arrays.

        Privacy: (ε, upper)-DP holds for every pair of neighbours under the event's adjacency, in both orders.

        Example:
            >>> from sitr.accounting import Laplace
            >>> round(float(Laplace(noise_multiplier=1.0).delta(epsilon=0.5)), 6)
            0.221199
        """
        epsilons = _validate.reals("epsilon", epsilon, 0, 1e15)
        return _brackets(epsilons, lambda e: self._orders.delta(e))

    def rdp(self, alpha: ArrayLike, *, delta_part: bool = False) -> Any:
        """Return the Rényi divergence of order α, the larger of both orders of the pair (THEORY 1.4).

        Args:
            alpha: In [1, ∞]; 1 is the Kullback–Leibler divergence, ∞ the largest loss. Arrays give arrays.
            delta_part: Leave out the infinite-loss mass, which `infinite_mass` then states: approximate RDP.

        Raises:
            NoSuchGuarantee: There is infinite-loss mass, and `delta_part` is false.

        Privacy: bounds D_α of every pair of neighbours under the event's adjacency, in both orders, outside the mass
        left out. A float, not a bracket: its rounding is not counted.

        Example:
            >>> from sitr.accounting import Laplace
            >>> import math
            >>> laplace = Laplace(noise_multiplier=2.0)
            >>> laplace.rdp([1, 2, math.inf]).round(6)
            array([0.106531, 0.200304, 0.5     ])
        """
        alphas = _validate.reals("alpha", alpha, 1, math.inf)
        if not delta_part:
            self._refuse_infinite_mass("Rényi")
        with np.errstate(all="ignore"):
            values = np.array([self._orders.rdp(float(a)) for a in alphas.ravel()]).reshape(alphas.shape)
        return values if alphas.ndim else float(values)

    def pure(self, *, delta_part: bool = False) -> float:
        """Return the ε of pure ε-DP: the largest loss (THEORY 1.3).

        Args:
            delta_part: Leave out the infinite-loss mass, which `infinite_mass` then states: (ε,δ)-DP.

        Raises:
            NoSuchGuarantee: The loss is unbounded, as for Gaussian noise.

        Privacy: ε-DP holds for every pair of neighbours under the event's adjacency, in both orders.

        Example:
            >>> from sitr.accounting import RandomizedResponse
            >>> round((RandomizedResponse(p=0.75) * 2).pure(), 6)
            2.197225
        """
        if not delta_part:
            self._refuse_infinite_mass("pure")
        largest = self._orders.largest
        if math.isinf(largest):
            raise NoSuchGuarantee(
                "no pure ε-DP guarantee exists: the privacy loss is unbounded.",
                why="Gaussian noise makes every loss possible, if ever so rarely (THEORY 2.3).",
                do="ask for epsilon(delta) at a δ > 0, or use bounded noise such as Laplace.",
            )
        return max(largest, 0.0)

    def zcdp(self, *, delta_part: bool = False) -> ZeroConcentrated:
        """Return a zero-concentrated guarantee: ρ of each part, added (THEORY 1.4, 2.5, 3.1, 4.1).

        Args:
            delta_part: Let the infinite-loss mass be the δ of the guarantee: approximate zCDP.

        Raises:
            NoSuchGuarantee: There is infinite-loss mass (and `delta_part` is false), or no ρ is known.

        Privacy: D_α ≤ ξ + ρα for all α > 1 and every pair of neighbours under the event's adjacency, in both orders.

        Example:
            >>> from sitr.accounting import Gaussian, PureDP
            >>> (Gaussian(noise_multiplier=10) * 100 + PureDP(epsilon=0.2)).zcdp()
            ZeroConcentrated(rho=0.52)
        """
        from .events import ZeroConcentrated

        mass = self._orders.most_infinite_mass
        if not delta_part or mass >= 1:
            self._refuse_infinite_mass("zCDP")
        pieces = [(zcdp_of(part), count) for part, count in self.parts]
        rho = math.fsum(count * piece[0] for piece, count in pieces)
        xi = math.fsum(count * piece[1] for piece, count in pieces)
        _refuse_useless("zCDP", rho, xi)
        return ZeroConcentrated(rho, xi, mass if delta_part else 0.0, adjacency=self.adjacency)

    def cdp(self) -> Concentrated:
        """Return a concentrated guarantee (μ,τ): means add, standards add in squares (seed 000; THEORY 3.1, 4.1).

        Raises:
            NoSuchGuarantee: There is infinite-loss mass, or no (μ,τ) is proved.

        Privacy: (μ,τ)-concentrated for every pair of neighbours under the event's adjacency, in both orders.

        Example:
            >>> from sitr.accounting import Gaussian
            >>> (Gaussian(noise_multiplier=10) * 100).cdp()
            Concentrated(mu=0.5, tau=1.0)
        """
        from .events import Concentrated

        self._refuse_infinite_mass("CDP")
        with np.errstate(all="ignore"):
            pieces = [(concentrated_of(part), count) for part, count in self.parts]
        mu = math.fsum(count * piece[0] for piece, count in pieces)
        tau = math.sqrt(math.fsum(count * piece[1] * piece[1] for piece, count in pieces))
        _refuse_useless("CDP", mu, tau * tau)
        return Concentrated(mu, tau, adjacency=self.adjacency)

    def gdp(self, *, delta_part: bool = False) -> float:
        """Return μ of Gaussian DP; squares add (THEORY 3.5, 4.1).

        Args:
            delta_part: Leave out the infinite-loss mass, which `infinite_mass` then states.

        Raises:
            NoSuchGuarantee: There is infinite-loss mass (and `delta_part` is false), or no μ is proved.

        Privacy: neighbours under the event's adjacency are no easier to tell apart than N(0, 1) and N(μ, 1).

        Example:
            >>> from sitr.accounting import Laplace
            >>> round(Laplace(noise_multiplier=1.0).gdp(), 6)
            1.030064
        """
        if not delta_part:
            self._refuse_infinite_mass("Gaussian DP")
        mu, outside = composed_gdp(self.parts)
        if outside:
            raise NoSuchGuarantee(
                "no Gaussian DP guarantee exists: the discrete Gaussian lies under the continuous one at its atoms.",
                why=f"it holds outside a mass of {outside:.2g}, which is no infinite loss (THEORY 3.5).",
                do="use zcdp(), or a GDPFilter with a delta.",
            )
        return mu

    def tradeoff(self, x: ArrayLike) -> Bracket:
        """Return the least type-II error of any test with type-I error x; the safe side is `lower` (THEORY 1.5).

        Args:
            x: In [0, 1]; an array gives a bracket of arrays.

        Privacy: no test that tells neighbours apart, in either order, has a smaller error.

        Example:
            >>> from sitr.accounting import Gaussian
            >>> round(float(Gaussian(noise_multiplier=1.0).tradeoff(0.5)), 4)
            0.1587
        """
        errors = _validate.reals("x", x, 0, 1)
        return _brackets(errors, lambda e: self._orders.tradeoff(e), safe="lower")

    def bad_outcome(self, p: ArrayLike, *, method: str = "exact") -> Bracket:
        """Bound the probability of an outcome that has probability p on the neighbouring data (seed 002, Prop. 10).

        Args:
            p: Its probability with the neighbour, in [0, 1].
            method: "exact" takes the worst set there is, 1 - tradeoff(p); "renyi" is Proposition 10, the best order
                of the Rényi curve (THEORY 3.4).

        Privacy: for every set of outcomes and every pair of neighbours under the event's adjacency, in both orders.

        Example:
            >>> from sitr.accounting import RandomizedResponse
            >>> event = RandomizedResponse(p=0.52) * 100
            >>> round(float(event.bad_outcome(1e-3)), 5), round(float(event.bad_outcome(1e-3, method="renyi")), 5)
            (0.01088, 0.01391)
        """
        probabilities = _validate.reals("p", p, 0, 1)
        _validate.choice("method", method, ("exact", "renyi"))
        if method == "renyi":
            self._refuse_infinite_mass("Rényi")
            return _brackets(probabilities, lambda value: self._orders.bad_outcome_by_renyi(value))
        return _brackets(probabilities, lambda value: self._orders.power(value))

    def loss_tail(self, x: ArrayLike, *, order: Literal["forward", "backward"] | None = None) -> Bracket:
        """Return the largest chance of a privacy loss above x, P[L > x], infinite losses included (THEORY 1.6).

        δ(x) is smaller: it counts a loss just above x for little. `theorems.loss_tail_concentrated` is the bound
        e^{-t²/2} of seed 000.

        Args:
            x: At least 0; an array gives a bracket of arrays.
            order: Look at one order alone, "forward" (with the person) or "backward", and at the pair itself, whose
                data sets are as far apart as they can be in every step. Such a bracket is narrow, and for study.

        Raises:
            NoSuchGuarantee: An order is named, and no pair is known: only a Rényi curve, or bounds on a law.

        Privacy: with probability at least 1 - upper the loss is at most x, for every pair of neighbours under the
        event's adjacency, in both orders, also where queries are chosen after seeing answers. Neighbours who are
        closer may have likelier losses above x than the pair, so the bracket of a composition is wide: mostly by less
        than a factor of e. An answer for one `order` promises nothing of them.

        Example:
            >>> from sitr.accounting import Laplace
            >>> counts = Laplace(noise_multiplier=10) * 100
            >>> found = counts.loss_tail(3.0)
            >>> f"{found.lower:.4f} {found.upper:.4f} {float(counts.delta(3.0)):.4f}"
            '0.0050 0.0115 0.0012'
            >>> f"{counts.loss_tail(3.0, order='forward'):.4f}"
            '0.0050'
        """
        losses = _validate.reals("x", x, 0, 1e15)
        if order is None:
            return _brackets(losses, lambda loss: self._orders.tail(loss))
        _validate.choice("order", order, ("forward", "backward"))
        return _brackets(losses, lambda loss: self._orders.pair_tail(loss, forward=order == "forward"))

    def group(self, size: int) -> Curve:
        """Return the curve for a group of `size` people (THEORY 4.8).

        Additive noise moves `size` times as far; sampled noise is the binomial mixture; the rest follows its notion.

        Raises:
            NoSuchGuarantee: The notion has no group property that is proved, such as approximate zCDP.

        Privacy: holds for any two data sets that differ in `size` people, under the event's adjacency.

        Example:
            >>> from sitr.accounting import Gaussian
            >>> round(float(Gaussian(noise_multiplier=10).group(5).epsilon(delta=1e-6)), 4)
            2.2541
        """
        size = _validate.integer("size", size, 1, 10**6)
        return Curve(tuple((group_part(part, size), count) for part, count in self.parts), self.adjacency)

    def expected_loss(self) -> float:
        """Return the mean privacy loss, D_1, the larger of both orders; infinite where some loss is (THEORY 1.2, 1.4).

        Privacy: a mean is no promise by itself: rare losses may be far larger.

        Example:
            >>> from sitr.accounting import RandomizedResponse
            >>> round(RandomizedResponse(p=0.75).expected_loss(), 6)
            0.549306
        """
        return math.inf if self.infinite_mass > 0 else self._orders.rdp(1.0)

    @property
    def infinite_mass(self) -> float:
        """The chance of an infinite loss: seed 003's catastrophic part of δ, below which no ε helps (THEORY 1.2).

        Privacy: the larger of both orders, under the event's adjacency; at a smaller δ no (ε,δ)-DP holds.

        Example:
            >>> from sitr.accounting import ApproximateDP
            >>> round((ApproximateDP(epsilon=0.1, delta=1e-8) * 100).infinite_mass, 15)
            9.99999505e-07
        """
        return self._orders.infinite_mass

    def _refuse_infinite_mass(self, notion: str) -> None:
        if self.infinite_mass > 0:
            raise NoSuchGuarantee(
                f"no {notion} guarantee exists: the loss is infinite with probability {self.infinite_mass:.3g}.",
                why="propose–test–release, selection by threshold and (ε,δ) claims can fail outright (seed 000).",
                do="ask for epsilon(delta) at a larger δ, or for the approximate form with delta_part=True.",
            )

    @cached_property
    def _orders(self) -> Orders:
        return Orders(self.parts)


def _refuse_useless(notion: str, *parameters: float) -> None:
    """Refuse a guarantee whose parameters are larger than any that are accepted as a claim."""
    if max(parameters) > MOST_CLAIMED:
        raise NoSuchGuarantee(
            f"no {notion} guarantee that says anything exists: its parameters would be over {MOST_CLAIMED:g}.",
            do="ask for epsilon(delta), or compose less.",
        )


class Curve(Answers):
    """A privacy-loss curve without a description of what was done; `event.group(size)` returns one (THEORY 4.8).

    Example:
        >>> from sitr.accounting import Laplace
        >>> Laplace(noise_multiplier=2).group(3).pure()
        1.5
    """

    def __init__(self, parts: Parts, adjacency: Adjacency | None = None) -> None:
        self._parts, self.adjacency = parts, adjacency

    @property
    def parts(self) -> Parts:
        """The dominating pairs, or claims, with their counts."""
        return self._parts


def _brackets(values: Any, ask: Callable[[float], Found[Any]], safe: Any = "upper") -> Bracket:
    """Ask for each value; a scalar gives floats, an array arrays. Where numbers end, engines say so, and not NumPy."""
    with np.errstate(all="ignore"):
        found = [ask(float(v)) for v in values.ravel()]
    if values.ndim == 0:
        return Bracket(found[0].lower, found[0].upper, found[0].method, safe)
    lower = np.array([f.lower for f in found]).reshape(values.shape)
    upper = np.array([f.upper for f in found]).reshape(values.shape)
    return Bracket(lower, upper, "; ".join(dict.fromkeys(f.method for f in found)), safe)

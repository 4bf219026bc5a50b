"""The privacy profile of one order on the whole real line: below 0 by duality (THEORY 1.3)."""

from __future__ import annotations

import math

import numpy as np

from ..losses.law import UNIT
from ..losses.rounding import ROUNDED
from .certify import Bounds
from .delta import Finite, Found, Total
from .mix import Mix, log_kappa, saddle_tilt
from .solve import candidates
from .ways import Purse

MOST_TUNINGS = 6  # of one order, for one question
NEARLY = 0.03  # bounds on δ that are so narrow are not improved
TILTS = 17
ROUNDING = 1e-15  # of a sum of two numbers that are not negative


class _Tilts:
    """Chernoff's bound at a few tilts, where nothing better can be paid for."""

    method = "Chernoff"
    work = asked = 1.0

    def __init__(self, mix: Mix, epsilon: float) -> None:
        self.tilts = saddle_tilt(mix, max(epsilon, 1e-6)) * np.geomspace(1e-2, 1e2, TILTS)
        errors = np.array([mix.log_mgf_error(float(c)) for c in self.tilts])
        self.heights = mix.log_mgf(self.tilts) + log_kappa(self.tilts) + errors

    def upper(self, epsilon: float) -> Finite:
        """Return an upper bound on δ(ε)."""
        logs = self.heights - self.tilts * epsilon + 8 * UNIT * (np.abs(self.heights) + self.tilts * epsilon)
        return Finite(math.exp(min(float(np.fmin.reduce(logs)), 0.0)))

    def lower(self, epsilon: float) -> Finite:
        """Return a lower bound on δ(ε): none."""
        return Finite(0.0)


class Order:
    """δ of the finite losses of one order, by bounds that are tuned where they are needed."""

    def __init__(self, mix: Mix) -> None:
        self.mix = mix
        self.tuned: dict[float, Bounds] = {}
        self._tries = 0

    def tune(self, epsilon: float, purse: Purse) -> bool:
        """Take bounds that are best at ε ≥ 0; false where that is nothing new, or nothing is left to pay for it."""
        where = min(max(epsilon, 1e-6), self.mix.largest * 0.999)
        if where in self.tuned or self._tries >= MOST_TUNINGS or (self.tuned and purse.left <= 0):
            return False
        self._tries += 1  # those that end with no bounds, or with some that are too dear, take as long
        bounds = next(candidates(self.mix, where, purse), None)
        if bounds is None and self.tuned:
            return False
        self.tuned[where] = bounds or _Tilts(self.mix, where)
        return True

    def tune_best(self, epsilon: float, purse: Purse) -> None:
        """Take the bounds that are narrowest at ε > 0, of all that are paid for."""
        where = min(epsilon, self.mix.largest * 0.999)
        best = math.inf
        for bounds in candidates(self.mix, where, purse):
            upper = bounds.upper(where)
            width = (upper - bounds.lower(where)) / upper if upper > 0 else math.inf
            if width < best:
                best, self.tuned[where] = width, bounds
            if width <= NEARLY:
                break

    def finite(self, epsilon: float, purse: Purse) -> Found[Finite]:
        """Bracket δ of finite losses at ε ≥ 0, by the bounds that were tuned nearest to it."""
        mix = self.mix
        if epsilon >= mix.largest:
            return Found(Finite(0.0), Finite(max(mix.largest * (1 + ROUNDED) - epsilon, 0.0)), "largest loss")
        gap = min(epsilon - mix.largest * (1 - ROUNDED), 0.0)
        top = math.exp(mix.log_top_mass) * -math.expm1(gap) * (1 - 1e-12)  # the atom there alone
        if not self.tuned:
            self.tune(epsilon, purse)
        bounds = self.tuned[min(self.tuned, key=lambda where: abs(where - epsilon))]
        purse.asks(bounds)
        lower, upper = (min(max(value, 0.0), 1.0) for value in (bounds.lower(epsilon), bounds.upper(epsilon)))
        return Found(Finite(max(lower, top)), Finite(max(upper, top)), bounds.method)


class Profile:
    """δ_PQ on the whole real line: below 0 by duality, δ_PQ(-ε) = 1 - e^-ε + e^-ε δ_QP(ε)."""

    def __init__(self, forward: Order, backward: Order, purse: Purse) -> None:
        self.forward, self.backward, self.purse = forward, backward, purse

    @property
    def pays(self) -> bool:
        """Whether more may be asked."""
        return self.purse.left > 0

    def tune(self, epsilon: float) -> bool:
        """Take bounds that are best at ε; false where there are none to take."""
        return self._order(epsilon).tune(abs(epsilon), self.purse)

    def tune_best(self, epsilon: float) -> None:
        """Take the bounds that are narrowest at ε > 0, of all that are paid for."""
        self.forward.tune_best(epsilon, self.purse)

    def delta(self, epsilon: float) -> Found[Total]:
        """Bracket δ at any real ε, infinite losses included, by the bounds that were tuned nearest to it."""
        order = self._order(epsilon)
        found = order.mix.failure.total(order.finite(abs(epsilon), self.purse))
        if epsilon >= 0:
            return found
        ends = [-math.expm1(epsilon) + math.exp(epsilon) * value for value in (found.lower, found.upper)]
        return Found(Total(ends[0] * (1 - ROUNDING)), Total(ends[1] * (1 + ROUNDING)), found.method)

    def _order(self, epsilon: float) -> Order:
        return self.forward if epsilon >= 0 else self.backward

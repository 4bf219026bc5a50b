"""Two kinds of δ that must not be taken for each other, and the one bridge between them.

Engines compose losses *given that they are finite*. An infinite loss fails at every ε, so its probability stands apart,
and the δ of the whole law is what is asked for and answered. Both are numbers between 0 and 1: their types keep them
apart, and only `Failure` leads from one to the other.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import Generic, NewType, TypeVar

from ..losses.law import UNIT

logger = logging.getLogger("sitr")

Total = NewType("Total", float)  # δ of the whole law: infinite losses count
Finite = NewType("Finite", float)  # δ of the same law, given that its loss is finite
Number = TypeVar("Number", bound=float)

NARROW = 1e-6  # a bracket this narrow, relative to its value, is good enough
COMPOSED = 32 * UNIT  # by how much a probability that was computed from others may be rounded
UNDERFLOW = 8 * math.ulp(0.0)  # and, near the smallest number there is, by how much at least


@dataclass(frozen=True)
class Found(Generic[Number]):
    """A bracket, and how it was found: of an ε, or of one kind of δ."""

    lower: Number
    upper: Number
    method: str

    def __post_init__(self) -> None:
        # A number that is none proves nothing.
        object.__setattr__(self, "lower", 0.0 if math.isnan(self.lower) else float(self.lower))
        object.__setattr__(self, "upper", math.inf if math.isnan(self.upper) else float(self.upper))

    def meet(self, other: Found[Number]) -> Found[Number]:
        """Both hold: keep the better end of each; the method is that of the narrower.

        If they are disjoint one of them is wrong; then only what contains both is safe to say.
        """
        narrower = self if self.upper - self.lower <= other.upper - other.lower else other
        lower, upper = max(self.lower, other.lower), min(self.upper, other.upper)
        if lower > upper * (1 + 1e-12):
            logger.error("two engines disagree: %s and %s", self, other)
            return Found(min(self.lower, other.lower), max(self.upper, other.upper), "disagreement")
        return Found(lower, max(upper, lower), narrower.method)

    def worst(self, other: Found[Number]) -> Found[Number]:
        """The larger of two numbers, each in its bracket."""
        higher = self if self.upper >= other.upper else other
        return Found(max(self.lower, other.lower), higher.upper, higher.method)

    def within(self, relative: float) -> bool:
        return math.isfinite(self.upper) and self.upper - self.lower <= max(relative * self.upper, 1e-10)


@dataclass(frozen=True)
class Failure:
    """The probability of an infinite loss, between two ends: one that was stated is exact, a computed one rounded."""

    lower: float
    upper: float

    @classmethod
    def about(cls, mass: float, *, stated: bool, faint: bool = False) -> Failure:
        """Return the ends of a mass that was stated, or else computed; of a faint one only the upper end is known."""
        if stated or mass == 0:
            return cls(mass, mass)
        rounding = COMPOSED * mass + UNDERFLOW
        return cls(0.0 if faint else max(mass - rounding, 0.0), min(mass + rounding, 1.0))

    def total(self, found: Found[Finite]) -> Found[Total]:
        """Return δ of the whole law: one minus the chance that neither an infinite nor a finite loss fails."""
        if self.upper == 0:
            return Found(Total(min(found.lower, 1.0)), Total(min(found.upper, 1.0)), found.method)
        lower, upper = self.lower, self.upper
        if found.upper > 0:
            lower = (lower + (1 - lower) * max(found.lower, 0.0)) * (1 - 4 * UNIT)
            upper = (upper + (1 - upper) * min(found.upper, 1.0)) * (1 + 4 * UNIT)
        return Found(Total(min(lower, 1.0)), Total(min(upper, 1.0)), found.method)

    def left(self, delta: Total) -> tuple[Finite, Finite]:
        """Return what a δ of the whole law leaves for finite losses: at least, and at most; 0 where it may be nothing.

        The difference is known to a few units of δ, which matters where δ is nearly all infinite-loss mass. Eight are
        more than the four roundings here make of it: each is of what is no larger than δ, before the division.
        """
        if self.upper == 0:
            return Finite(delta), Finite(delta)
        least = (delta * (1 - 8 * UNIT) - self.upper) / (1 - self.upper) if self.upper < 1 else 0.0
        most = (delta * (1 + 8 * UNIT) - self.lower) / (1 - self.lower) if self.lower < 1 else 0.0
        return Finite(max(least, 0.0)), Finite(max(most, 0.0))


NEVER = Failure(0.0, 0.0)

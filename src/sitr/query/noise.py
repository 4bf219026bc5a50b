"""How a measurement is covered: Laplace or Gaussian noise on a vector that one unit moves by a bounded amount."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal

from ..accounting import Event, ZeroConcentrated, calibrate_noise
from ..mechanisms import AdditiveNoise, gaussian, laplace
from ..units import Adjacency

Kind = Literal["laplace", "gaussian"]
ROUNDED_UP = 1 + 2.0**-50  # more than what a root and two products may have lost
LARGEST = {"laplace": 2.0**40, "gaussian": 2.0**29}  # in steps: what the samplers draw


@dataclass(frozen=True)
class Reach:
    """How far one unit moves a vector, in rows: `l1` in ℓ1 and `l2` in ℓ2.

    Under `replace_one` a unit's rows are taken out and others put in, which moves it twice as far.

    Example:
        >>> Reach(5, 5.0).doubled("replace_one")
        Reach(l1=10, l2=10.0)
    """

    l1: int
    l2: float

    def doubled(self, adjacency: Adjacency) -> Reach:
        """Return the reach for a relation between neighbours."""
        return Reach(2 * self.l1, 2 * self.l2) if adjacency == "replace_one" else self


@dataclass(frozen=True)
class Noise:
    """The noise of one measurement.

    Attributes:
        kind: "laplace" or "gaussian".
        cost: ε of Laplace noise, ρ of Gaussian noise.
        reach: How far a unit moves the vector, in rows.
        unit: Steps in a row: statistics are whole numbers of steps.
        adjacency: The relation in which the reach was measured.
    """

    kind: Kind
    cost: float
    reach: Reach
    unit: int
    adjacency: Adjacency

    def mechanism(self, length: int) -> AdditiveNoise:
        """Return the mechanism for a vector of so many numbers; what it costs does not depend on how many there are."""
        if self.kind == "laplace":
            sensitivity = self.reach.l1 * self.unit
            return laplace(
                epsilon=self.cost, sensitivity=sensitivity, integers=True, length=length, adjacency=self.adjacency
            )
        sensitivity_l2 = self.reach.l2 * self.unit * ROUNDED_UP
        return gaussian(
            rho=self.cost, sensitivity=sensitivity_l2, integers=True, length=length, adjacency=self.adjacency
        )

    @cached_property
    def event(self) -> Event:
        """What it costs."""
        return self.mechanism(1).event

    @cached_property
    def scale(self) -> float:
        """Of the noise, in rows: the scale of Laplace noise, the standard deviation of Gaussian noise."""
        return self.mechanism(1).scale / self.unit


def ratio(kind: Kind, cost: float) -> float:
    """Return the scale of the noise over the reach.

    Example:
        >>> ratio("laplace", 0.5), ratio("gaussian", 0.5)
        (2.0, 1.0)
    """
    return 1 / cost if kind == "laplace" else 1 / math.sqrt(2 * cost)


def deviation(kind: Kind, cost: float, reach: Reach) -> float:
    """Return the standard deviation of the noise, in rows."""
    return math.sqrt(2) * ratio(kind, cost) * reach.l1 if kind == "laplace" else ratio(kind, cost) * reach.l2


@lru_cache(maxsize=1024)
def rho_of(epsilon: float, delta: float) -> float:
    """Return the largest ρ of zero-concentrated privacy that costs no more than (ε,δ) (THEORY 3.2).

    Example:
        >>> round(rho_of(1.0, 1e-6), 4)
        0.0244
    """
    found = calibrate_noise(
        lambda noise: ZeroConcentrated(1 / (2 * noise**2)), epsilon=epsilon, delta=delta, bounds=(1e-2, 1e9)
    )
    return 1 / (2 * float(found.value) ** 2)

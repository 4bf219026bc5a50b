"""An exact accountant: events, their curves, and composition to a certified bracket.

Example:
    >>> from sitr.accounting import Gaussian, Laplace, PoissonSampled
    >>> event = PoissonSampled(Gaussian(noise_multiplier=1.1), sampling_prob=256 / 60000) * 14062
    >>> event = event + Laplace(noise_multiplier=20) * 30
    >>> bracket = event.epsilon(delta=1e-5)
    >>> round(bracket.lower, 6), round(bracket.upper, 6)
    (2.647832, 2.647832)
"""

from .bracket import Bracket
from .curve import Curve
from .events import (
    ApproximateDP,
    Composed,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Guarantees,
    Laplace,
    LossDistribution,
    PoissonSampled,
    PrivacyProfile,
    PureDP,
    RandomizedResponse,
    Renyi,
    ZeroConcentrated,
    compose,
)

__all__ = [
    "ApproximateDP",
    "Bracket",
    "Composed",
    "Concentrated",
    "Curve",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "Exponential",
    "Gaussian",
    "Guarantees",
    "Laplace",
    "LossDistribution",
    "PoissonSampled",
    "PrivacyProfile",
    "PureDP",
    "RandomizedResponse",
    "Renyi",
    "ZeroConcentrated",
    "compose",
]

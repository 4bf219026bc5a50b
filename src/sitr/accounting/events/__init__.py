"""Frozen descriptions of what was done, one file a kind: mechanisms that are known, and claims."""

from .claims import (
    ApproximateDP,
    Concentrated,
    Guarantees,
    LossDistribution,
    PrivacyProfile,
    PureDP,
    Renyi,
    ZeroConcentrated,
)
from .event import MOST_COUNT, Composed, Event, compose
from .mechanisms import (
    LARGEST,
    MOST_EPSILON,
    SMALLEST,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    PoissonSampled,
    RandomizedResponse,
)

__all__ = [
    "LARGEST",
    "MOST_COUNT",
    "MOST_EPSILON",
    "SMALLEST",
    "ApproximateDP",
    "Composed",
    "Concentrated",
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

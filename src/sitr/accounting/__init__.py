"""An exact accountant: events, their curves, and composition to a certified bracket.

Example:
    >>> from sitr.accounting import Gaussian, Laplace, PoissonSampled
    >>> event = PoissonSampled(Gaussian(noise_multiplier=1.1), sampling_prob=256 / 60000) * 14062
    >>> event = event + Laplace(noise_multiplier=20) * 30
    >>> bracket = event.epsilon(delta=1e-5)
    >>> round(bracket.lower, 6), round(bracket.upper, 6)
    (2.647832, 2.647832)
"""

from . import theorems
from .allowances import allowance, classical_allowance
from .batches import SampledWithoutReplacement, ShuffledEpochs, ShuffledReports
from .bracket import Bracket
from .calibration import (
    Calibration,
    Split,
    abadi_gaussian_delta,
    abadi_gaussian_noise,
    calibrate,
    calibrate_count,
    calibrate_noise,
    calibrate_queries,
    calibrate_sampling_prob,
    classical_gaussian_noise,
    error_of_noise,
    noise_for_error,
    split_budget,
)
from .curve import Curve
from .divergent import MaximallyDivergent
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
from .filters import (
    AdvancedFilter,
    Filter,
    GDPFilter,
    Odometer,
    PureFilter,
    RDPFilter,
    SingleFilter,
    UnionFilter,
    WholeFilter,
    ZCDPFilter,
    choose_filter,
    choose_union,
)
from .notation import parse_event
from .schema import event_schema

__all__ = [
    "AdvancedFilter",
    "ApproximateDP",
    "Bracket",
    "Calibration",
    "Composed",
    "Concentrated",
    "Curve",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Event",
    "Exponential",
    "Filter",
    "GDPFilter",
    "Gaussian",
    "Guarantees",
    "Laplace",
    "LossDistribution",
    "MaximallyDivergent",
    "Odometer",
    "PoissonSampled",
    "PrivacyProfile",
    "PureDP",
    "PureFilter",
    "RDPFilter",
    "RandomizedResponse",
    "Renyi",
    "SampledWithoutReplacement",
    "ShuffledEpochs",
    "ShuffledReports",
    "SingleFilter",
    "Split",
    "UnionFilter",
    "WholeFilter",
    "ZCDPFilter",
    "ZeroConcentrated",
    "abadi_gaussian_delta",
    "abadi_gaussian_noise",
    "allowance",
    "calibrate",
    "calibrate_count",
    "calibrate_noise",
    "calibrate_queries",
    "calibrate_sampling_prob",
    "choose_filter",
    "choose_union",
    "classical_allowance",
    "classical_gaussian_noise",
    "compose",
    "error_of_noise",
    "event_schema",
    "noise_for_error",
    "parse_event",
    "split_budget",
    "theorems",
]

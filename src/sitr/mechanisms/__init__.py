"""Mechanisms: the only place that draws noise.

Each is made by a plain function and is one object: its `event` is what a release costs, `release(value)` makes one.
"""

from .additive import AdditiveNoise, gaussian, laplace
from .blueprint import Analysis, Blueprint
from .histograms import HistogramQuantiles, QuantileIntervals, histogram_quantiles
from .mechanism import Mechanism
from .partitions import PartitionSelection, select_partitions
from .propose import StableMedian, StableMode, ptr_median, ptr_mode
from .quantiles import Quantile, quantile
from .responses import Estimate, Responses, randomized_response
from .selection import Selection, exponential_mechanism, permute_and_flip
from .sums import BoundedMean, BoundedSum, BoundedVariance, bounded_mean, bounded_sum, bounded_variance
from .threshold import AboveThreshold, above_threshold

__all__ = [
    "AboveThreshold",
    "AdditiveNoise",
    "Analysis",
    "Blueprint",
    "BoundedMean",
    "BoundedSum",
    "BoundedVariance",
    "Estimate",
    "HistogramQuantiles",
    "Mechanism",
    "PartitionSelection",
    "Quantile",
    "QuantileIntervals",
    "Responses",
    "Selection",
    "StableMedian",
    "StableMode",
    "above_threshold",
    "bounded_mean",
    "bounded_sum",
    "bounded_variance",
    "exponential_mechanism",
    "gaussian",
    "histogram_quantiles",
    "laplace",
    "permute_and_flip",
    "ptr_median",
    "ptr_mode",
    "quantile",
    "randomized_response",
    "select_partitions",
]

"""Synthetic data: noisy histograms and tables, and what is drawn from them."""

from .histogram import Histogram, PrivateHistogram, histogram
from .random_dp import RandomDPHistogram, RandomRelease, random_dp_histogram
from .ranges import Estimated, PrivateRanges, Ranges, ranges
from .rules import Determines, Rules
from .sparse import OTHER, PrivateSparseHistogram, SparseHistogram, sparse_histogram
from .synthesizer import Synthesizer, SyntheticRows, synthesizer

__all__ = [
    "OTHER",
    "Determines",
    "Estimated",
    "Histogram",
    "PrivateHistogram",
    "PrivateRanges",
    "PrivateSparseHistogram",
    "RandomDPHistogram",
    "RandomRelease",
    "Ranges",
    "Rules",
    "SparseHistogram",
    "Synthesizer",
    "SyntheticRows",
    "histogram",
    "random_dp_histogram",
    "ranges",
    "sparse_histogram",
    "synthesizer",
]

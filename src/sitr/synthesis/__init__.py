"""Synthetic data: noisy histograms and tables, and what is drawn from them."""

from .histogram import Histogram, PrivateHistogram, histogram
from .ranges import Estimated, PrivateRanges, Ranges, ranges
from .sparse import OTHER, PrivateSparseHistogram, SparseHistogram, sparse_histogram
from .synthesizer import Synthesizer, SyntheticRows, synthesizer

__all__ = [
    "OTHER",
    "Estimated",
    "Histogram",
    "PrivateHistogram",
    "PrivateRanges",
    "PrivateSparseHistogram",
    "Ranges",
    "SparseHistogram",
    "Synthesizer",
    "SyntheticRows",
    "histogram",
    "ranges",
    "sparse_histogram",
    "synthesizer",
]

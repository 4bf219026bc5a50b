"""Synthetic data: noisy histograms and tables, and what is drawn from them."""

from .histogram import Histogram, PrivateHistogram, histogram
from .ranges import Estimated, PrivateRanges, Ranges, ranges
from .synthesizer import Synthesizer, SyntheticRows, synthesizer

__all__ = [
    "Estimated",
    "Histogram",
    "PrivateHistogram",
    "PrivateRanges",
    "Ranges",
    "Synthesizer",
    "SyntheticRows",
    "histogram",
    "ranges",
    "synthesizer",
]

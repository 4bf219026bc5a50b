"""Synthetic data: noisy histograms and tables, and what is drawn from them."""

from .histogram import Histogram, PrivateHistogram, histogram
from .rules import Determines, Rules
from .synthesizer import Synthesizer, SyntheticRows, synthesizer

__all__ = [
    "Determines",
    "Histogram",
    "PrivateHistogram",
    "Rules",
    "Synthesizer",
    "SyntheticRows",
    "histogram",
    "synthesizer",
]

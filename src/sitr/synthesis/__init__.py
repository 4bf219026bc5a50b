"""Synthetic data: noisy histograms and tables, and what is drawn from them."""

from .histogram import Histogram, PrivateHistogram, histogram
from .synthesizer import Synthesizer, SyntheticRows, synthesizer

__all__ = ["Histogram", "PrivateHistogram", "Synthesizer", "SyntheticRows", "histogram", "synthesizer"]

"""Synthetic data: noisy histograms and tables, and what is drawn from them."""

from .histogram import Histogram, PrivateHistogram, histogram

__all__ = ["Histogram", "PrivateHistogram", "histogram"]

"""Tests of draws at a false-alarm rate of 1e-9, never retried."""

import numpy as np
from scipy import stats

ALARM = 1e-9


def chi_square(observed, probabilities):
    """The p-value of counts against exact probabilities; what is expected fewer than twenty times is joined."""
    observed, expected = np.asarray(observed, dtype=float), np.asarray(probabilities) * np.sum(observed)
    few = expected < 20
    observed = np.append(observed[~few], observed[few].sum())
    expected = np.append(expected[~few], expected[few].sum())
    if expected[-1] < 20:  # too little to test by itself
        observed, expected = observed[:-1], expected[:-1]
    return float(stats.chi2.sf(np.sum((observed - expected) ** 2 / expected), max(observed.size - 1, 1)))


def fits(draws, low, probabilities):
    """Whether whole-numbered draws follow `probabilities` at low, low + 1, …; the rest of the law is one more cell."""
    probabilities = np.asarray(probabilities, dtype=float)
    inside = (draws >= low) & (draws < low + probabilities.size)
    counts = np.bincount((draws[inside] - low).astype(np.int64), minlength=probabilities.size)
    rest = max(1 - probabilities.sum(), 0.0)
    return chi_square(np.append(counts, np.sum(~inside)), np.append(probabilities, rest)) > ALARM


def tail_fits(draws, threshold, probability):
    """Whether |draws| ≥ threshold as often as it should: an exact binomial test, two-sided."""
    return stats.binomtest(int(np.sum(np.abs(draws) >= threshold)), draws.size, probability).pvalue > ALARM

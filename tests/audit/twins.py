"""Mechanisms with a known bug, and honest ones, drawn many at a time; none of them is private."""

import numpy as np

from sitr.mechanisms import gaussian, laplace

GRID = 2.0**-20  # of what should have no telling bits
CHANCES = np.random.default_rng()  # a new seed each time: the tests bear it


def on_grid(values):
    return np.rint(values / GRID) * GRID


def naive_laplace(value, n):
    """Floating-point noise of the right scale: its low bits tell what it was added to."""
    return value + CHANCES.laplace(size=n)


def short_laplace(value, n):
    """Four fifths of the noise it should have, and nothing wrong with its bits."""
    return on_grid(value + 0.8 * CHANCES.laplace(size=n))


def half_gaussian(value, n):
    """Half the standard deviation it should have."""
    return on_grid(value + 0.5 * CHANCES.normal(size=n))


def half_gaussian_vectors(value, n):
    return on_grid(value + 0.5 * CHANCES.normal(size=(n, len(value))))


def response(p):
    """Randomized response that tells the truth with probability p, in words."""

    def answers(truth, n):
        told = np.where(CHANCES.random(n) < p, truth, not truth)
        return ["yes" if one else "no" for one in told]

    return answers


def sparse_vector(answers, n, *, stops):
    """AboveThreshold with ε = 1 in all (THEORY 2.5), on n runs; the twin goes on after the first positive."""
    answers = np.asarray(answers, dtype=np.float64)
    threshold = CHANCES.laplace(scale=2.0, size=(n, 1))
    above = answers + CHANCES.laplace(scale=4.0, size=(n, len(answers))) >= threshold
    if not stops:
        return above
    first = np.where(above.any(axis=1), above.argmax(axis=1), len(answers))
    return [(False,) * k + (True,) * (k < len(answers)) for k in first.tolist()]


def leaky(rate):
    """Says nothing, but gives the input away at a certain rate."""

    def outputs(value, n):
        return [value if chance < rate else None for chance in CHANCES.random(n)]

    return outputs


def honest_laplace(value, n):
    """The noise of `laplace(scale=1, sensitivity=1, integers=True)`, n draws at once."""
    return laplace(scale=1.0, sensitivity=1, integers=True, length=n).release([value] * n).value


def honest_gaussian(value, n):
    """The noise of `gaussian(scale=1, sensitivity=1)`, n draws at once."""
    return gaussian(scale=1.0, sensitivity=1.0, length=n).release([value] * n).value

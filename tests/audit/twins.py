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


def failing(rate, how):
    """Laplace noise of the right scale, but with the first input it fails at a certain rate."""

    def outputs(value, n):
        noisy = on_grid(value + CHANCES.laplace(size=n))
        return np.where((CHANCES.random(n) < rate) & (value == 0), how(noisy), noisy)

    return outputs


# What two inputs may differ in, other than in the mean of one column: each changes what it is given with the second.


def correlated(rows):
    rows[:, -1] = 0.6 * rows[:, 1] + 0.8 * rows[:, -1]


def sometimes_equal(rows):
    same = CHANCES.random(len(rows)) < 0.05
    rows[same, -1] = rows[same, 1]


def of_one_sign(rows):
    rows[:, -1] = np.abs(rows[:, -1]) * np.where(CHANCES.random(len(rows)) < 0.9, 1, -1) * np.sign(rows[:, 1])


def close(rows):
    rows[:, -1] = rows[:, 1] + 0.1 * rows[:, -1]


def opposite(rows):
    some = CHANCES.random(len(rows)) < 0.05
    rows[some, -1] = 3 - rows[some, 1]


def wide(rows):
    rows[:, -1] *= 1.6


def of_two_heaps(rows):
    rows[:, -1] = np.sign(rows[:, -1]) + 0.05 * rows[:, -1]


def coarse(rows):
    rows[:, -1] = np.rint(rows[:, -1] * 2**10) / 2**10


def often_the_same(rows):
    rows[CHANCES.random(len(rows)) < 0.05, -1] = 0.3


def even(rows):
    rows[:, -1] = 2 * np.rint(rows[:, -1] / 2)


def of_the_same_parity(rows):
    rows[:, -1] += (rows[:, 1] + rows[:, -1]) % 2


def missing_together(rows):
    rows[:, -1] = np.where(np.isnan(rows[:, 1]), np.nan, CHANCES.normal(size=len(rows)))


PLANTED = [correlated, sometimes_equal, of_one_sign, close, opposite, wide, of_two_heaps, coarse, often_the_same]
PLANTED += [even, of_the_same_parity, missing_together]


def planted(change, width):
    """Normal numbers, of which the inputs differ in nothing but the change; some whole, some missing."""

    def outputs(value, n):
        rows = on_grid(CHANCES.normal(size=(n, width)))
        if change in (even, of_the_same_parity):
            rows = np.rint(100 * rows)
        if change is missing_together:
            rows[:, 1:][CHANCES.random((n, width - 1)) < 0.3] = np.nan
        if value:
            change(rows)
        return rows if change in (sometimes_equal, coarse) else on_grid(rows)

    return outputs

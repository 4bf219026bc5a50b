"""Releases of statistics as the query room makes them, with numpy's noise: for coverage, not for privacy."""

import numpy as np
from scipy import stats

ENDS, SQUARES = np.array([[1, 1], [0, 1]]), np.array([[1, 1, 1], [0, 0.5, 1], [0, 0, 1]])
MOMENTS = {
    "mean": ENDS,
    "variance": SQUARES,
    "covariance": np.kron(ENDS, ENDS),
    "correlation": np.kron(SQUARES, SQUARES)[[0, 1, 2, 3, 4, 6]],
}
SHAPES = {
    "constant": lambda n: np.full(n, 0.3),
    "at the lower bound": np.zeros,
    "at the upper bound": np.ones,
    "at both bounds": lambda n: (np.arange(n) % 2).astype(float),
    "even": lambda n: (np.arange(n) + 0.5) / n,
    "few at a bound": lambda n: (np.arange(n) % 10 == 0).astype(float),
    "near the middle": lambda n: 0.5 + 0.05 * np.sin(1.7 * np.arange(n)),
}


def pair(n, correlation, shape):
    """Two columns: both even, both skewed, or both at the bounds, with about that correlation."""
    random = np.random.default_rng(3)
    if shape == "at both bounds":
        t = (np.arange(n) % 2).astype(float)
        flipped = (np.arange(n) // 2) % 4 < 2 * (1 - correlation)
        return t, np.where(flipped, 1 - t, t)
    t, s = random.random((2, n))
    s = 1 - t if correlation == -1 else np.where(random.random(n) < correlation, t, s)
    return (t**3, s**3 if correlation != -1 else 1 - t**3) if shape == "skewed" else (t, s)


def statistics(aggregate, t, s=None):
    one, two = (lambda x: [1 - x, x]), (lambda x: [(1 - x) ** 2, 2 * x * (1 - x), x**2])
    if aggregate in ("mean", "variance"):
        columns = (one if aggregate == "mean" else two)(t)
    else:
        basis = one if aggregate == "covariance" else two
        columns = [a * b for a in basis(t) for b in basis(s)]
    return np.array([column.sum() for column in columns])


def truth(aggregate, t, s=None):
    """The aggregate itself; NaN for the correlation of a constant column."""
    if aggregate in ("mean", "variance"):
        return t.mean() if aggregate == "mean" else t.var()
    together = np.mean((t - t.mean()) * (s - s.mean()))
    spread = t.std() * s.std()
    return together if aggregate == "covariance" else together / spread if spread > 1e-9 else np.nan


def noises(kind, shape, seed, *, integers=False):
    """Noise of scale 1."""
    random = np.random.default_rng(seed)
    if kind == "gaussian" and integers:
        places = np.arange(-12, 13)
        chances = np.exp(-(places**2) / 2)
        return random.choice(places, shape, p=chances / chances.sum()).astype(float)
    if kind == "gaussian":
        return random.normal(size=shape)
    if integers:
        success = 1 - np.exp(-1.0)
        return (random.geometric(success, shape) - random.geometric(success, shape)).astype(float)
    return random.laplace(size=shape)


def least(releases, cases, covered=0.95):
    """How many of so many releases must be covered: fewer happen once in 1e9 runs of all the cases together.

    Each case is a binomial variable with success at least `covered`; its share of the alarm is 1e-9/cases.
    """
    return int(stats.binom.ppf(1e-9 / cases, releases, covered))

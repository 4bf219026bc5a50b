"""Five shapes that histograms have, of 1,000 cells: what one method does well on, another does badly."""

import numpy as np

CELLS = 1000


def shapes():
    """Each shape by its name: how rows fall into cells."""
    x = np.arange(CELLS)
    sparse = np.zeros(CELLS)
    sparse[np.random.default_rng(2).choice(CELLS, 50, False)] = np.random.default_rng(3).gamma(0.7, size=50) + 0.05
    made = {
        "smooth": 0.6 * _bell(x, 300, 60) + 0.3 * _bell(x, 650, 40) + 0.1 * _bell(x, 800, 100),
        "zipf": np.random.default_rng(1).permutation(np.arange(1, CELLS + 1) ** -1.2),
        "sparse": sparse,
        "uniform": np.ones(CELLS),
        "steps": np.repeat(np.random.default_rng(4).gamma(0.5, size=20), 50),
    }
    return {name: shape / shape.sum() for name, shape in made.items()}


def _bell(x, middle, width):
    return np.exp(-(((x - middle) / width) ** 2) / 2) / width

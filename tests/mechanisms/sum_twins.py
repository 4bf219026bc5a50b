"""Sums as one would write them, and how far one row really moves them (Casacuberta et al. 2022)."""

import numpy as np


def wrapping_sum(values, upper):
    """Clipped and added as int64: past the largest it starts again from the least."""
    with np.errstate(over="ignore"):
        return int(np.sum(np.clip(np.array(values, dtype=np.int64), -upper, upper), dtype=np.int64))


def running_sum(values, upper, kind):
    """Clipped and added in the column's own floats, in the order of the rows."""
    return float(np.cumsum(np.clip(np.array(values, dtype=kind), 0, upper), dtype=kind)[-1])

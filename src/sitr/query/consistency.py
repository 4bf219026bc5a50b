"""Free post-processing: what the numbers have to satisfy anyway, put back after the noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.lattice import LARGEST, nearest_histogram

Floats = NDArray[np.float64]


def counts(raw: Floats) -> NDArray[np.int64]:
    """Return whole counts, none negative, that add up to the rounded total, as near to the noisy ones as can be.

    Clipping at 0 alone would raise the total with every empty group; here all others give way by the same amount.

    Example:
        >>> counts(np.array([10.2, -3.0, 5.1]))
        array([9, 0, 3])
    """
    if raw.size == 0:
        return np.empty(0, dtype=np.int64)
    total = round(float(raw.sum()))
    return nearest_histogram(np.clip(raw, -LARGEST, LARGEST), min(max(total, 0), LARGEST))

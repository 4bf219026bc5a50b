"""Free post-processing: what the numbers have to satisfy anyway, put back after the noise."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def counts(raw: Floats) -> NDArray[np.int64]:
    """Return whole counts, none negative, that add up to the rounded total, as near to the noisy ones as can be.

    Clipping at 0 alone would raise the total with every empty group; here all others give way by the same amount.

    Example:
        >>> counts(np.array([10.2, -3.0, 5.1]))
        array([9, 0, 3])
    """
    total = max(round(float(raw.sum())), 0)
    if raw.size == 0:
        return np.empty(0, dtype=np.int64)
    if total == 0:
        return np.zeros(raw.size, dtype=np.int64)
    falling = np.sort(raw)[::-1]
    shifts = (np.cumsum(falling) - total) / np.arange(1, raw.size + 1)
    shift = shifts[np.nonzero(falling > shifts)[0][-1]]
    spread = np.maximum(raw - shift, 0.0)
    whole = np.floor(spread).astype(np.int64)
    left = total - int(whole.sum())
    order = np.argsort(-(spread - whole), kind="stable")
    whole[order[: max(left, 0)]] += 1
    return np.asarray(whole)

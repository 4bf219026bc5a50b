"""What was learnt, given that columns have one of some values: free, as it is made of what was learnt alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgument
from .bins import held
from .measuring import Learnt
from .mixture import Mixture

COPIES = 10  # components that stand for one on average: they are equally frequent, and some are wanted more than others


def conditioned(learnt: Learnt, allowed: Mapping[int, NDArray[np.bool_]]) -> Learnt:
    """Return what was learnt, given that the values of some columns are among those that are allowed.

    Args:
        learnt: What was learnt.
        allowed: Of each of these columns, by number, whether each of its values is.

    Raises:
        InvalidArgument: The model has no row with such values.

    Privacy: post-processing of what was measured (THEORY 6.3).
    """
    levels, singles = learnt.mixture.levels, list(learnt.singles)
    shares = learnt.mixture.shares.astype(np.float64)
    weights = np.ones(len(shares))
    for column, mask in allowed.items():
        here, bins = levels.slice(0, column), levels.bins[column]
        inside, everything = held(bins, singles[column] * mask), held(bins, singles[column])
        shares[:, here] *= np.divide(inside, everything, out=np.zeros_like(inside), where=everything > 0)
        weights *= shares[:, here].sum(axis=1)
        singles[column] = np.where(mask, singles[column], 0.0)
    if not weights.any():
        raise InvalidArgument(
            "the model has no row with what the condition asks for.",
            why="noise hides what few rows have, and what was never measured cannot be drawn.",
            do="ask for more values, or a wider range.",
        )
    with np.errstate(divide="ignore"):
        logits = np.log(shares[_evenly(weights / weights.sum(), COPIES * len(weights))])
    return Learnt(Mixture(levels, logits.astype(np.float32)), singles, learnt.rows)


def _evenly(weights: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Each place as often as its weight says, to the next whole number."""
    return np.searchsorted(np.cumsum(weights), (np.arange(count) + 0.5) / count * (1 - 1e-12)).astype(np.int64)

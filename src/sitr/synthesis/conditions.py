"""What was learnt, given that columns have one of some values: free, as it is made of what was learnt alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InvalidArgument
from .bins import held
from .measuring import Learnt
from .mixture import Mixture

COPIES = 10  # components that stand for one on average: they are equally frequent, and some are wanted more than others


def share(learnt: Learnt, parts: Mapping[int, NDArray[np.float64]]) -> float:
    """Return which share of all rows has wanted values, by the model.

    Args:
        learnt: What was learnt.
        parts: Of columns, by number, which part of each of their values is wanted, from 0 to 1.

    Privacy: post-processing of what was measured (THEORY 6.3).
    """
    levels, weights = learnt.mixture.levels, np.ones(len(learnt.mixture.shares))
    for column, part in parts.items():
        inside = _inside(learnt, column, part)
        weights *= learnt.mixture.shares[:, levels.slice(0, column)] @ inside
    return float(weights.mean())


def _inside(learnt: Learnt, column: int, part: NDArray[Any]) -> NDArray[np.float64]:
    """Which part of each bin is wanted; of one that holds nothing, nothing."""
    bins, singles = learnt.mixture.levels.bins[column], learnt.singles[column]
    wanted, everything = held(bins, singles * part), held(bins, singles)
    return np.divide(wanted, everything, out=np.zeros_like(wanted), where=everything > 0)


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
        here = levels.slice(0, column)
        shares[:, here] *= _inside(learnt, column, mask)
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

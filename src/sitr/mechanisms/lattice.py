"""The histogram nearest to noisy counts: whole numbers, none negative, of a given total. It costs nothing (THEORY 6.2).

In ℓ1 the nearest one is far from unique, and which of them is taken decides how good it is: so the rule has a name. No
rule looks at anything but the noisy counts; and where those are equal, at their places in an order that is fixed.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _validate
from ..errors import InvalidArgument

Integers = NDArray[np.int64]
Rule = Literal["level", "smallest", "proportional"]
RULES: tuple[Rule, ...] = ("level", "smallest", "proportional")
LARGEST = 2**52  # of a count, and of a total: floats are whole up to there
GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: its multiples spread evenly


def nearest_histogram(noisy: ArrayLike, total: int, *, rule: Rule = "level") -> Integers:
    """Return the counts of a histogram of `total` rows that are nearest to noisy ones in ℓ1.

    Args:
        noisy: Counts with noise, in cells of any shape.
        total: How many rows the histogram shall have: a public number, or a noisy one.
        rule: Which of the nearest ones. "level" takes the same from every cell, or gives it to every cell: of all
            histograms this is the nearest one in ℓ2 and in every ℓp. "smallest" takes from the smallest cells first,
            and gives to the largest: good where most cells are empty. "proportional" takes and gives by size.

    Raises:
        InvalidArgument: There is no cell, or a count that is not finite.

    Privacy: nothing but the noisy counts is looked at, so it is post-processing (THEORY 6.2).

    Example:
        >>> nearest_histogram([10, -3, 5], 12), nearest_histogram([10, -3, 5], 12, rule="smallest")
        (array([9, 0, 3]), array([10,  0,  2]))
    """
    counts, total = _checked(noisy), _validate.integer("total", total, 0, LARGEST)
    _validate.choice("rule", rule, RULES)
    flat = counts.ravel()
    made = _level(flat, total) if rule == "level" else _by_size(flat, total, rule)
    return made.reshape(counts.shape)


def _checked(noisy: ArrayLike) -> NDArray[Any]:
    counts = np.asarray(noisy)
    if counts.size == 0 or counts.dtype.kind not in "iuf":
        raise InvalidArgument("noisy counts are numbers, and at least one.")
    if not (np.isfinite(counts).all() and (np.abs(counts) <= LARGEST).all()):
        raise InvalidArgument("a noisy count is not finite, or beyond 2^52.")
    return counts.astype(np.float64 if counts.dtype.kind == "f" else np.int64)


def _level(counts: NDArray[Any], total: int) -> Integers:
    """Every cell gives way by the same amount, down to 0; then what is left goes where it costs least in ℓ2."""
    lowered = np.maximum(np.floor(counts - _shift(counts, total)), 0).astype(np.int64)
    return _completed(counts, lowered, total)


def _shift(counts: NDArray[Any], total: int) -> float:
    """By how much all cells give way, if what would be negative is 0 and the others add up to the total."""
    falling = np.sort(counts)[::-1].astype(np.float64)
    shifts = (np.cumsum(falling) - total) / np.arange(1, falling.size + 1)
    keeps = np.flatnonzero(falling > shifts)
    return float(shifts[keeps[-1]] if keeps.size else falling[0])  # no cell keeps anything where the total is 0


def _completed(counts: NDArray[Any], made: Integers, total: int) -> Integers:
    """Give or take single rows, one in a cell at a time, where that costs least in ℓ2, until there are enough."""
    while missing := total - int(made.sum()):
        cells = np.flatnonzero(made > 0) if missing < 0 else np.arange(made.size)
        wants = counts[cells] - made[cells]  # a row more costs 1 less twice this
        step = 1 if missing > 0 else -1
        made[cells[_first(step * wants, min(abs(missing), cells.size))]] += step
    return made


def _by_size(counts: NDArray[Any], total: int, rule: Rule) -> Integers:
    """Round so that ℓ1 alone decides; what costs the same in any cell goes by the rule."""
    made: Integers = np.maximum(np.floor(counts), 0).astype(np.int64)
    rests = np.where(counts >= 0, counts - made, -np.inf)
    missing, open_cells = total - int(made.sum()), int((counts >= 0).sum())
    made[_first(rests, min(max(missing, 0), open_cells))] += 1
    missing = total - int(made.sum())
    if missing == 0:
        return made
    if rule == "proportional":
        return _in_proportion(made, total)
    return _from_one_end(made, missing)


def _from_one_end(made: Integers, missing: int) -> Integers:
    """Empty the smallest cells, one after the other; or give all to the largest."""
    if missing > 0:
        made[_first(made, 1)] += missing
        return made
    order = np.lexsort((_places(made.size), made))
    under = np.cumsum(made[order])
    emptied = int(np.searchsorted(under, -missing))
    taken = np.zeros_like(made)
    taken[order[:emptied]] = made[order[:emptied]]
    taken[order[emptied]] = -missing - (int(under[emptied - 1]) if emptied else 0)
    return made - taken


def _in_proportion(made: Integers, total: int) -> Integers:
    """Scale to the total, rounding down, and give what is left to the largest rests: never across a count itself."""
    whole = int(made.sum())
    if whole == 0:
        made = np.ones_like(made)
        whole = made.size
    scaled = made * (total / whole)
    down = np.floor(scaled).astype(np.int64)
    bound = np.minimum(down, made) if total < whole else np.maximum(down, made)
    return _completed(scaled, bound, total)


def _first(values: NDArray[Any], count: int) -> Integers:
    """Return the places of the largest values; of equal ones, those that come first in the order of `_places`."""
    if count == 0:
        return np.empty(0, dtype=np.int64)
    bound = np.partition(values, values.size - count)[values.size - count]
    above, equal = np.flatnonzero(values > bound), np.flatnonzero(values == bound)
    needed = count - above.size
    order = _places(values.size)[equal]
    return np.concatenate([above, equal[np.argpartition(order, needed - 1)[:needed]]])


def _places(count: int) -> NDArray[np.uint64]:
    """A fixed order of places in which neighbours are far apart, so that no part of a range is preferred."""
    return np.arange(count, dtype=np.uint64) * GOLDEN

"""The sparse histogram of seed 001 under random DP: a notion of its own, and no privacy of the kind that is promised.

Nothing here has an event, so that no accountant can add it up and no budget can be charged for it: it is written into a
book as outside the promise (`Ledger.note_outside`), or nowhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from .. import _validate
from .._version import __version__
from ..errors import InvalidArgument
from ..mechanisms.additive import above, in_range
from ..mechanisms.lattice import nearest_histogram
from ..mechanisms.partitions import counted
from ..mechanisms.randomness import source_of
from ..mechanisms.samplers.draws import LARGEST_SCALE, discrete_laplace, shuffled
from .histogram import MOST_ROWS
from .sparse import SparseHistogram

MOST_CELLS = 10**15
UP = 1 + 1e-9  # more than γ may lack by rounding


@dataclass(frozen=True)
class RandomRelease:
    """A histogram under random DP. It is NOT PRIVATE: whoever is alone in a cell is shown to be there.

    Attributes:
        value: The histogram.
        alpha: Ratios of probabilities are at most e^α,
        gamma: but for data of a probability up to this, over how the rows themselves came about.
        cells: How many there may be, which γ rests on,
        rows: and how many rows there are.
        time: When it was made.
        version: The version of sitr that made it.
    """

    value: SparseHistogram
    alpha: float
    gamma: float
    cells: int
    rows: int
    time: datetime = field(default_factory=lambda: datetime.now(UTC), compare=False)
    version: str = __version__

    @property
    def private(self) -> bool:
        """False, always."""
        return False

    @property
    def notion(self) -> str:
        """What holds of it, in words, for a book to note."""
        return _notion(self.alpha, self.gamma)

    def __str__(self) -> str:
        return f"{dict(self.value.counts)}; NOT PRIVATE: {self.notion}, outside every promise"


class RandomDPHistogram:
    """Noise on the counts of cells that are not empty, and on no others; made by `random_dp_histogram`.

    It is no mechanism: it has no event.

    Attributes:
        cells: How many there may be.
        rows: How many there are.
        alpha: See `random_dp_histogram`.
        gamma: See there.
        scale: Of the noise.
    """

    def __init__(self, cells: int, rows: int, alpha: Fraction) -> None:
        self.cells, self.rows, self.alpha, self.gamma = cells, rows, float(alpha), bound(cells, rows)
        self.scale = above(2 / alpha)
        in_range(self.scale, 1e-4, LARGEST_SCALE)

    @property
    def notion(self) -> str:
        """What will hold of a release, in words, for a book to note."""
        return _notion(self.alpha, self.gamma)

    def __repr__(self) -> str:
        return f"RandomDPHistogram(cells={self.cells}, rows={self.rows}, alpha={self.alpha}, gamma={self.gamma:.3g})"

    def release(self, counts: Any, *, unsafe_random_dp: bool = False, unsafe_seed: int | None = None) -> RandomRelease:
        """Return the histogram; nothing is charged, as nothing could be.

        Args:
            counts: {cell: rows} over the cells that occur.
            unsafe_random_dp: True: you know that this is not differential privacy, and that whoever is the only one in
                a cell is shown.
            unsafe_seed: For tests: noise from a seeded stream.

        Raises:
            InvalidArgument: Without `unsafe_random_dp=True`; or these are not counts of as many rows, or of more cells
                than there are.

        Privacy: none for a given dataset, see `random_dp_histogram`.
        """
        require_unsafe(unsafe_random_dp)
        found = counted("counts", counts)
        if int(found.counts.sum()) != self.rows or len(found.keys) > self.cells:
            raise InvalidArgument("the counts are not of the declared number of rows, or of too many cells.")
        source = source_of(unsafe_seed)
        noisy = found.counts + discrete_laplace(Fraction(self.scale), found.counts.size, source)
        made = nearest_histogram(noisy, self.rows)
        order = shuffled(made.size, source)
        named = {found.keys[place]: int(made[place]) for place in order.tolist() if made[place]}
        return RandomRelease(
            SparseHistogram(MappingProxyType(named), self.rows), self.alpha, self.gamma, self.cells, self.rows
        )


def require_unsafe(unsafe_random_dp: bool) -> None:
    """Refuse what nobody said they know.

    Raises:
        InvalidArgument: It is not True.
    """
    if unsafe_random_dp is not True:
        raise InvalidArgument(
            "random DP is not differential privacy: whoever is the only one in a cell is shown to be there.",
            why="no budget can be charged for it, and no promise covers it.",
            do="take sparse_histogram; or pass unsafe_random_dp=True, and note it in the book as outside.",
        )


def random_dp_histogram(cells: int, rows: int, *, alpha: float) -> RandomDPHistogram:
    """Return the sparse histogram of seed 001: noise on cells that are not empty, and nothing on those that are.

    Args:
        cells: How many there may be, k: declared, whether they occur or not.
        rows: How many rows there are, n; public.
        alpha: What ratios of probabilities are bounded by, e^α, where they are.

    Privacy: (α,γ)-random DP under replace_one, a notion of its own (THEORY 6.4) and **not** differential privacy: of
    rows that are drawn independently from one law, whatever it is, X_1 … X_n and X_1 … X_{n-1}, X_{n+1} are told apart
    by at most α, but with probability γ over those rows. Laplace noise of scale 2/α does that where both have the same
    cells that are not empty. They do not only if X_n and X_{n+1} are in different cells, one of which has none of X_1 …
    X_{n-1}: with cells of probability p_j, that has probability at most 2 Σ p_j (1 - p_j)^{n-1}. Each term is largest
    at p_j = 1/n, so γ = (2k/n)(1 - 1/n)^{n-1}, or 1: from the declared numbers, and never from the data.

    It says nothing of a given person: one who is alone in a cell is shown, and cells without rows are shown as such.
    Take `sparse_histogram`, unless you know that γ is what you want.

    Example:
        >>> made = random_dp_histogram(50, 1000, alpha=1.0)
        >>> made.scale, round(made.gamma, 4)
        (2.0, 0.0368)
        >>> print(made.release({"flu": 1000}, unsafe_random_dp=True))
        {'flu': 1000}; NOT PRIVATE: random DP with α = 1, γ = 0.0368, outside every promise
    """
    return RandomDPHistogram(
        _validate.integer("cells", cells, 1, MOST_CELLS),
        _validate.integer("rows", rows, 1, MOST_ROWS),
        Fraction(_validate.real("alpha", alpha, 1e-9, 1e4)),
    )


def _notion(alpha: float, gamma: float) -> str:
    return f"random DP with α = {alpha:.4g}, γ = {gamma:.3g}"


def bound(cells: int, rows: int) -> float:
    """Return γ = (2k/n)(1 - 1/n)^{n-1}, or 1, rounded up: the most that it is for any law of rows in k cells.

    Example:
        >>> [round(bound(cells, rows), 4) for cells, rows in ((50, 1000), (1000, 1000), (1000, 20_000))]
        [0.0368, 0.7361, 0.0368]
    """
    empty = math.exp((rows - 1) * math.log1p(-1 / rows)) if rows > 1 else 1.0
    return min(2 * cells / rows * empty * UP, 1.0)

"""Seed 001 on a database: space is cut into cells by what is declared, and every cell is counted with noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow

from ..accounting import Event
from ..display import counted, reckoned, rounded_up
from ..errors import InvalidArgument
from ..release import NOT_PRIVATE, Paid
from ..tables.codes import CELLS, Code, Coded
from ..tables.crosstab import Crosstab
from ..tables.declaration import Declaration
from ..tables.relations import Relation, require_column
from ..tables.source import Source
from .histogram import Histogram, PrivateHistogram, histogram
from .plan import kept_of_unit


@dataclass(frozen=True, eq=False)
class CellCounts(Paid):
    """How many rows are in each cell: anyone may ask it anything, for ever.

    Attributes:
        value: The histogram: a direction for each column.
        error95: What the noise on a cell stays within, 95 times in 100, before noise is taken off.
        codes: How the columns are cut.
    """

    value: Histogram
    codes: tuple[Code, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(code.name for code in self.codes)

    def to_pandas(self) -> Any:
        """Return a pandas frame with a row for each cell: what it is, its count, and the count as it was measured."""
        places = np.indices(self.value.counts.shape).reshape(len(self.codes), -1)
        texts = {
            code.name: np.array(code.cell_texts(), dtype=object)[place]
            for code, place in zip(self.codes, places, strict=True)
        }
        counts = {"rows": self.value.counts.ravel(), "measured": self.value.noisy.ravel()}
        return pyarrow.table({name: list(column) for name, column in {**texts, **counts}.items()}).to_pandas()

    def sample(self, rows: int, *, seed: int | None = None) -> Any:
        """Return rows that were drawn at random by the counts, as an Arrow table; as often as one likes, for nothing.

        Args:
            rows: How many.
            seed: To draw the same again.

        Privacy: post-processing of the histogram (THEORY 6.3).
        """
        generator = np.random.default_rng(seed)
        cells = self.value.sample(rows, seed=int(generator.integers(2**63)))
        places = np.unravel_index(cells, self.value.counts.shape)
        columns = [code.values_of(place, generator) for code, place in zip(self.codes, places, strict=True)]
        return pyarrow.table(columns, names=list(self.columns))

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it, and as the ledger keeps it."""
        return {
            "columns": [code.to_dict() for code in self.codes],
            "counts": self.value.counts.ravel().tolist(),
            "noisy": self.value.noisy.ravel().tolist(),
            "described_as": self.value.described_as,
            "error95": self.error95,
            **self._written(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], entry: str | None, operation: str | None) -> CellCounts:
        """Return what was kept."""
        codes = tuple(Code.from_dict(one) for one in content["columns"])
        shape = tuple(code.size for code in codes)
        counts, noisy = (np.array(content[name], dtype=np.int64).reshape(shape) for name in ("counts", "noisy"))
        return cls(
            value=Histogram(counts, noisy, content["described_as"]),
            error95=content["error95"],
            **cls._read(content, entry, operation),
            codes=codes,
        )

    def __str__(self) -> str:
        cells = counted(self.value.counts.size, "cell")
        about = f"about {int(self.value.counts.sum()):,} rows in {cells} of {', '.join(self.columns)}"
        stamp = "" if self.private else f"; {NOT_PRIVATE}"
        return "\n".join([about, *self.notes, *self.left, f"{self.charged}{stamp}"])


@dataclass(frozen=True)
class CellExplanation:
    """What counting cells will cost and how wrong it will be; `print` shows it.

    Attributes:
        plan: The plan.
        rows: About how many rows there are, where that is public.
        remaining: For each budget, what is left now and after; as text.
        notes: Remarks.
    """

    plan: CellPlan
    rows: float | None
    remaining: Mapping[str, tuple[str, str]]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        made, codes = self.plan.mechanism, self.plan.coded.codes
        cost = rounded_up(reckoned(made.event.pure(), spent=True))
        cut = ", ".join(f"{code.name} in {counted(code.size, 'cell')}" for code in codes)
        lines = [
            f"This would cost ε = {cost}, once. Nothing has been read.",
            f"{counted(math.prod(made.cells), 'cell')}: {cut}.",
            f"95 % of the noise on a cell is within ± {made.error95:,.0f} rows.",
        ]
        if self.rows:
            wrong = 100 * min(made.scale * math.prod(made.cells) / self.rows / 2, 1)
            lines.append(f"All of it together would put {wrong:.2g} % of the rows into wrong cells; less is left.")
        if self.plan.coded.bound is not None:
            lines.append(f"Of a unit, {counted(self.plan.coded.bound.rows or 1, 'row')} at most will be counted.")
        lines += [f"budget {name}: {left} left, {after} after this." for name, (left, after) in self.remaining.items()]
        return "\n".join([*lines, *self.notes])


@dataclass(frozen=True)
class CellPlan:
    """How cells are counted, and what that costs.

    Attributes:
        coded: Which rows, and how their columns are cut.
        mechanism: Adds noise, and makes a histogram of it.
    """

    coded: Coded
    mechanism: PrivateHistogram

    @property
    def event(self) -> Event:
        """What a release costs."""
        return self.mechanism.event

    def run(self, source: Source, progress: Callable[[str], None] = lambda stage: None) -> CellCounts:
        """Return the counts; they are not charged here."""
        progress("counting")
        codes = self.coded.codes
        crosstab = Crosstab(tuple(code.coder() for code in codes), (tuple(range(len(codes))),))
        (counts,) = source.count(self.coded, crosstab)
        progress("adding noise")
        made = self.mechanism.release(counts)
        return CellCounts(
            value=made.value, error95=made.error95, event=self.event, private=made.private, codes=self.coded.codes
        )


def cell_plan(
    relation: Relation,
    declared: Declaration,
    *,
    epsilon: float,
    columns: Sequence[str],
    max_rows_per_unit: int | None = None,
    cells: int = CELLS,
) -> CellPlan:
    """Return how the cells of some columns are counted at a price.

    Args:
        relation: Which rows.
        declared: The declaration.
        epsilon: The pure ε of the release.
        columns: Which columns.
        max_rows_per_unit: How many rows of a unit are kept at most; as many as are declared unless told.
        cells: Into how many cells the bounds of a number, a date or a time are cut at most.

    Raises:
        InvalidArgument: A column has neither values nor bounds that are public, or there are too many cells.

    Privacy: see `histogram`; a unit is in at most `max_rows_per_unit` of the counted rows.
    """
    schema = relation.schema(declared)
    if not columns or len(set(columns)) < len(columns):
        raise InvalidArgument("columns names none, or one of them twice.")
    for name in columns:
        require_column(name, schema)
    bound = kept_of_unit(relation, declared, max_rows_per_unit)
    codes = tuple(Code.of(name, schema[name], cells) for name in columns)
    mechanism = histogram(
        [code.size for code in codes],
        epsilon=epsilon,
        adjacency=declared.adjacency,
        ordered=len(codes) == 1 and codes[0].ordered,
        max_rows_per_unit=1 if bound is None else bound.rows or 1,
    )
    return CellPlan(Coded(relation, codes, bound), mechanism)

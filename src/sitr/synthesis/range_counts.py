"""Ranges on a database: how many rows have a number, a date or a time between any two, and where quantiles are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
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
from .answers import Count
from .plan import kept_of_unit
from .ranges import Estimated, PrivateRanges, Ranges, ranges


@dataclass(frozen=True, eq=False)
class RangeCounts(Paid):
    """Rows between any two values of a column: anyone may ask it anything, for ever.

    Attributes:
        value: What was measured, by cells.
        rate: What its noise follows from, together with the number of cells.
        codes: How the column is cut: one of them.
    """

    value: Ranges
    rate: Fraction = Fraction(1)
    codes: tuple[Code, ...] = ()

    @property
    def column(self) -> str:
        """The name of the column."""
        return self.codes[0].name

    def count(self, low: Any, high: Any) -> Count:
        """Return how many rows have a value between two, both included; as often as one likes, for nothing.

        Where an end cuts a cell in two, the interval reaches from what lies inside for sure to what may.

        Args:
            low: The least value,
            high: and the largest. What is beyond the declared bounds counts as the bounds.

        Raises:
            InvalidArgument: They are no values of the column.

        Privacy: post-processing of the noisy counts (THEORY 6.2). The interval holds the truth with probability 0.95 at
        least; many of them together hold theirs less often.
        """
        code = self.codes[0]
        parts, (touched, inside) = code.parts((low, high)), code.cells_within(low, high)
        (least, most), begin, end = code.domain.ends, code.domain.measure(low), code.domain.measure(high)
        if not touched or begin > most or end < least:
            return Count(0.0, 0.0, 0.0)
        outer = self.value.count(touched.start, touched.stop - 1)
        inner = self.value.count(inside.start, inside.stop - 1) if inside else Estimated(0.0, 0.0, 0.0)
        if inside == touched:
            return Count(float(outer.estimate), float(outer.low), float(outer.high))
        cut = [self.value.count(cell, cell).estimate * parts[cell] for cell in touched if cell not in inside]
        note = f"{self.column}: the range cuts a cell in two; the interval holds for whatever lies inside."
        return Count(float(inner.estimate + sum(cut)), float(inner.low), float(outer.high), (note,))

    def quantile(self, p: float) -> Estimated:
        """Return the value up to which there are p of all rows that have one, with an interval.

        Args:
            p: Between 0 and 1: 0.5 for the median.

        Returns:
            The first value of the estimated cell; the first of the first cell that it may be, and the last of the last.

        Privacy: post-processing of the noisy counts (THEORY 6.5).
        """
        found, (first, last) = self.value.quantile(p), self.codes[0].cell_ends()
        return Estimated(first[found.estimate], first[found.low], last[found.high])

    def to_pandas(self) -> Any:
        """Return a pandas frame with a row for each cell: how many rows it has and those before it, with intervals."""
        upto = self.value.cumulative()
        columns = {"measured": self.value.noisy, "up_to": upto.estimate, "low": upto.low, "high": upto.high}
        texts = self.codes[0].cell_texts()[: self.value.noisy.size]
        return pyarrow.table({self.column: texts, **columns}).to_pandas()

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON holds it, and as the ledger keeps it."""
        return {
            "columns": [code.to_dict() for code in self.codes],
            "noisy": self.value.noisy.tolist(),
            "under": self.value.under.tolist(),
            "rate": [self.rate.numerator, self.rate.denominator],
            **self._written(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], entry: str | None, operation: str | None) -> RangeCounts:
        """Return what was kept."""
        rate = Fraction(*content["rate"])
        noisy, under = np.array(content["noisy"], dtype=np.int64), np.array(content["under"], dtype=np.float64)
        return cls(
            value=Ranges.of(noisy, under, rate),
            error95=None,
            **cls._read(content, entry, operation),
            rate=rate,
            codes=tuple(Code.from_dict(one) for one in content["columns"]),
        )

    def __str__(self) -> str:
        stamp = "" if self.private else f"; {NOT_PRIVATE}"
        about = f"ranges of {self.column} in {counted(self.value.noisy.size, 'cell')}"
        return "\n".join([about, *self.notes, *self.left, f"{self.charged}{stamp}"])


@dataclass(frozen=True)
class RangePlan:
    """How the ranges of a column are measured, and what that costs.

    Attributes:
        coded: Which rows, and how the column is cut.
        mechanism: Adds noise.
    """

    coded: Coded
    mechanism: PrivateRanges

    @property
    def event(self) -> Event:
        """What a release costs."""
        return self.mechanism.event

    def run(self, source: Source, progress: Callable[[str], None] = lambda stage: None) -> RangeCounts:
        """Return the ranges; they are not charged here."""
        progress("counting")
        (counts,) = source.count(self.coded, Crosstab((self.coded.codes[0].coder(),), ((0,),)))
        progress("adding noise")
        made = self.mechanism.release(counts[: self.mechanism.cells])  # rows without a value lie in no range
        return RangeCounts(
            value=made.value,
            error95=None,
            event=self.event,
            private=made.private,
            rate=self.mechanism.rate,
            codes=self.coded.codes,
        )


@dataclass(frozen=True)
class RangeExplanation:
    """What the ranges of a column will cost and how wrong they will be; `print` shows it.

    Attributes:
        plan: The plan.
        remaining: For each budget, what is left now and after; as text.
        notes: Remarks.
    """

    plan: RangePlan
    remaining: Mapping[str, tuple[str, str]]
    notes: tuple[str, ...]

    @property
    def errors(self) -> tuple[float, float]:
        """What 95 % of the errors of one cell stay within, and those of the worst range from either end."""
        made, cells = self.plan.mechanism, np.arange(self.plan.mechanism.cells)
        from_start, to_end = made.expected_error(0, cells), made.expected_error(cells, cells[-1])
        return float(made.expected_error(0, 0)), float(max(from_start.max(), to_end.max()))

    def __str__(self) -> str:
        made, (code,) = self.plan.mechanism, self.plan.coded.codes
        one, most = self.errors
        lines = [
            f"This would cost ε = {rounded_up(reckoned(made.event.pure(), spent=True))}, once. Nothing has been read.",
            f"{code.name} in {counted(made.cells, 'cell')}: any range of them, and quantiles.",
            f"95 % of the errors are within ± {one:,.0f} rows for one cell, ± {most:,.0f} for ranges from an end.",
        ]
        if code.nulls:
            lines.append("Rows without a value lie in no range.")
        if self.plan.coded.bound is not None:
            lines.append(f"Of a unit, {counted(self.plan.coded.bound.rows or 1, 'row')} at most will be counted.")
        lines += [f"budget {name}: {left} left, {after} after this." for name, (left, after) in self.remaining.items()]
        return "\n".join([*lines, *self.notes])


def range_plan(
    relation: Relation,
    declared: Declaration,
    *,
    epsilon: float,
    column: str,
    max_rows_per_unit: int | None = None,
    cells: int = CELLS,
) -> RangePlan:
    """Return how the ranges of a column are measured at a price.

    Args:
        relation: Which rows.
        declared: The declaration.
        epsilon: The pure ε of the release.
        column: A number, a date or a time.
        max_rows_per_unit: How many rows of a unit are kept at most; as many as are declared unless told.
        cells: Into how many cells the bounds are cut at most.

    Raises:
        InvalidArgument: The column has no order, or no bounds that are public.

    Privacy: see `ranges`; a unit is in at most `max_rows_per_unit` of the counted rows.
    """
    schema = relation.schema(declared)
    require_column(column, schema)
    code = Code.of(column, schema[column], cells)
    if not code.ordered:
        raise InvalidArgument(
            f"{column}: its values have no order, so there are no ranges.", do=f'histogram("{column}").'
        )
    bound = kept_of_unit(relation, declared, max_rows_per_unit)
    most = 1 if bound is None else bound.rows or 1
    mechanism = ranges(code.known, epsilon=epsilon, adjacency=declared.adjacency, max_rows_per_unit=most)
    return RangePlan(Coded(relation, (code,), bound), mechanism)

"""How good a synthetic table is: by its noise alone, which is public, and in a test by the real rows beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..display import counted
from ..release import NOT_PRIVATE
from ..tables.codes import Code
from .answers import Count
from .comparison import Comparison
from .fit import Fit
from .measured import OFF, Measured
from .measuring import Learnt

Floats = NDArray[np.float64]
MINUTES = 16  # characters of a time up to its minutes
NAMED = 12  # pairs that were not measured, by name


class Table(NamedTuple):
    """A table that was measured.

    Attributes:
        columns: Their names.
        shape: How many cells it has, by column.
        noise: What 95 % of the noise on one of its counts stays within, on average, in rows.
        error: How far its noise alone takes its shares from the true ones, on average, in total variation.
    """

    columns: tuple[str, ...]
    shape: tuple[int, ...]
    noise: float
    error: float


class Marginal(NamedTuple):
    """The shares of one column.

    Attributes:
        name: Of the column.
        labels: Of its cells.
        ordered: Whether they are in an order.
        shares: In the model.
    """

    name: str
    labels: tuple[str, ...]
    ordered: bool
    shares: Floats


@dataclass(frozen=True, eq=False)
class Quality:
    """What is known of the errors of a synthetic table; `print` shows it, and `sitr.report.write_quality` draws it.

    Attributes:
        rows: How many rows there were.
        singles: The counts of columns.
        tables: Those of several columns that were measured.
        unmeasured: The pairs of columns of which no table was.
        marginals: The shares of each column.
        fit: How far it is from the real rows, where a part of the price went into that.
        comparison: In a test, how far it is from them, without noise.
        notes: Remarks.
    """

    rows: Count
    singles: tuple[Table, ...]
    tables: tuple[Table, ...]
    unmeasured: tuple[tuple[str, str], ...]
    marginals: tuple[Marginal, ...]
    fit: Fit | None = None
    comparison: Comparison | None = None
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(one.name for one in self.marginals)

    @property
    def pair_errors(self) -> Mapping[tuple[str, str], float]:
        """Of each pair of columns that was measured, the expected error of its finest table."""
        pairs = sorted((one for one in self.tables if len(one.columns) == 2), key=lambda one: math.prod(one.shape))
        return {(one.columns[0], one.columns[1]): one.error for one in pairs}

    @property
    def pair_fit(self) -> Mapping[tuple[str, str], float]:
        """Of each pair of columns, how far it is from the real rows, measured with noise; none where it was not."""
        pairs = combinations(range(len(self.columns)), 2) if self.fit is not None else ()
        return {
            (self.columns[one], self.columns[other]): self.fit.of((one, other)).value  # type: ignore[union-attr]
            for one, other in pairs
        }

    def __str__(self) -> str:
        stamp = [] if self.comparison is None else [f"{NOT_PRIVATE}: the real rows were looked at", ""]
        fit = [] if self.fit is None else ["", *self.fit.lines(self.columns)]
        compared = [] if self.comparison is None else ["", str(self.comparison)]
        total = str(self.rows).splitlines()[0]
        return "\n".join(
            [
                *stamp,
                f"rows: {total}",
                "",
                *_lines(self.singles, "column"),
                "",
                *self._pairs(),
                *fit,
                *compared,
                *self.notes,
            ]
        )

    def _pairs(self) -> list[str]:
        lines = _lines(self.tables, "measured together") if self.tables else ["No pair of columns was measured."]
        if self.unmeasured:
            named = ", ".join(" × ".join(pair) for pair in self.unmeasured[:NAMED])
            more = ", …" if len(self.unmeasured) > NAMED else ""
            lines += [f"{counted(len(self.unmeasured), 'pair')} not measured, because they seemed nearly independent:"]
            lines += [f"  {named}{more}"]
        lines.append("Expected errors are of the noise alone; smoothing and the other tables reduce them further.")
        return lines


def quality_of(learnt: Learnt, codes: Sequence[Code], rows: Count, notes: tuple[str, ...] = ()) -> Quality:
    """Return what the noise tells; it costs nothing.

    Args:
        learnt: What was learnt.
        codes: How the columns are numbered.
        rows: How many rows there were.
        notes: Remarks.

    Privacy: post-processing of what was measured (THEORY 6.3).
    """
    names = [code.name for code in codes]
    tables = [_table(one, names, learnt.rows) for one in learnt.measured]
    known = {pair for one in learnt.measured for pair in combinations(sorted(one.columns), 2)}
    missing = [pair for pair in combinations(range(len(codes)), 2) if pair not in known]
    return Quality(
        rows=rows,
        singles=tuple(one for one in tables if len(one.columns) == 1),
        tables=tuple(one for one in tables if len(one.columns) > 1),
        unmeasured=tuple((names[one], names[other]) for one, other in missing),
        marginals=tuple(
            Marginal(code.name, _labels(code), code.ordered, np.asarray(shares))
            for code, shares in zip(codes, learnt.singles, strict=True)
        ),
        fit=learnt.fit,
        notes=notes,
    )


def _table(one: Measured, names: Sequence[str], rows: int) -> Table:
    deviations = one.deviations
    error = min(OFF * float(deviations.sum()) / max(rows, 1) / 2, 1.0)
    return Table(tuple(names[column] for column in one.columns), one.shape, 1.96 * float(deviations.mean()), error)


def _labels(code: Code) -> tuple[str, ...]:
    missing = ("(missing)",) if code.nulls else ()
    if code.grid is None:
        return (*map(str, code.values), *missing)
    low, high = code.grid.span
    middles = [cell * code.grid.step for cell in range(low, high + 1)]
    if code.domain.kind == "number":
        return (*(f"{float(one):g}" for one in middles), *missing)
    return (*(str(code.domain.moment(int(one)))[:MINUTES] for one in middles), *missing)


def _lines(tables: Sequence[Table], head: str) -> list[str]:
    rows = [(head, "cells", "noise on a count", "expected error")]
    for one in tables:
        error = "more noise than rows" if one.error > 0.5 else f"{100 * one.error:.2g} % of the rows"
        rows.append((" × ".join(one.columns), " × ".join(map(str, one.shape)), f"± {one.noise:,.0f} rows", error))
    widths = [max(len(row[at]) for row in rows) for at in range(4)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]

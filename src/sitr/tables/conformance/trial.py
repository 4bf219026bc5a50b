"""A trial of an engine: small tables of our own, what is asked of them, and how answers are written down."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import pyarrow

from ..declaration import Declaration
from ..domains import Domain
from ..emitter import Emitter
from ..expressions import Case, Column, Constant, Expression, steps_of
from ..relations import Scan
from ..source import Source
from ..tally import Key, Measure, Powers, Tally

ZONE = "America/New_York"
KEY = (1_234_567, 7_654_321, 1_000_003)
_numbers = itertools.count(1)


class Trial:
    """Tables of our own in an engine."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def ask(
        self,
        frame: pyarrow.Table,
        columns: Mapping[str, Any],
        tally: Callable[[Mapping[str, Domain]], Tally],
        *,
        key: tuple[int, int, int] | None = KEY,
        **settings: Any,
    ) -> list[dict[str, Any]]:
        """The rows of a tally over one table."""
        table = {"unit": "row", "columns": columns} | settings
        declared = Declaration.of({"sitr": 1, "name": "trial", "time_zone": ZONE, "tables": {"trial": table}})
        name = f"sitr_sample_{next(_numbers)}"

        def query() -> Any:
            made = self.source.sample(name, frame)
            return Emitter(declared, lambda _: made, self.source, key).tally(tally(declared.tables["trial"].schema))

        rows: list[dict[str, Any]] = self.source.answered(query).to_pylist()
        return rows

    def values(
        self, frame: pyarrow.Table, columns: Mapping[str, Any], asked: Mapping[str, Expression]
    ) -> dict[str, list[Fraction | None]]:
        """Expressions over each row, in the order of its column `place`; missing is None."""

        def tally(schema: Mapping[str, Domain]) -> Tally:
            measures = {f"m{at}": Measure(one, grid_of(one, schema)) for at, one in enumerate(asked.values())}
            sums: list[Powers] = [((name, power),) for name in measures for power in (0, 1)]
            self.grids = {name: one.grid for name, one in measures.items()}
            return Tally(Scan("trial"), (Key("place", Column("place"), None),), None, measures, tuple(sums))

        rows = sorted(self.ask(frame, columns, tally), key=lambda row: int(row["key0"]))
        if [int(row["key0"]) for row in rows] != list(range(frame.num_rows)):
            raise ValueError("rows are missing")
        found: dict[str, list[Fraction | None]] = {}
        for at, name in enumerate(asked):
            grid = self.grids[f"m{at}"]
            low = grid.span[0]
            found[name] = [
                (low + int(row[f"sum{2 * at + 1}"])) * grid.step if int(row[f"sum{2 * at}"]) else None for row in rows
            ]
        return found


def grid_of(one: Expression, schema: Mapping[str, Domain]) -> Domain:
    """Return the steps in which an expression is counted."""
    domain = one.domain(schema)
    return domain if domain.steps else steps_of(domain)


def as_number(condition: Expression) -> Expression:
    """Return a condition as a number: 2 where it is true, 1 where it is false, 0 where it is missing."""
    return Case(condition, Constant(2), Case(~condition, Constant(1), Constant(0)))


def as_numbers(values: list[bool | None]) -> list[Fraction | None]:
    """Return the same of what conditions are known to be."""
    return [Fraction({None: 0, False: 1, True: 2}[value]) for value in values]

"""Random expressions over the columns of a table, of any kind, nested; conditions inside conditions above all."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from sitr.errors import SitrError
from sitr.tables.domains import Domain
from sitr.tables.expressions import Column, Expression, expression

CONSTANTS: dict[str, tuple[Any, ...]] = {
    "boolean": (True, False),
    "number": (0, 1, 2, -1, 3, 18, 0.5, Decimal("5.50"), 100, -0.25),
    "string": ("a", "b", "A", "", "it's", "é", "other", 'a"b', "a,b"),
    "date": (date(2020, 2, 29), date(1970, 1, 1), date(2021, 1, 3)),
    "timestamp": (datetime(2020, 1, 1), datetime(2020, 2, 29, 12, 30), datetime(2021, 3, 28, 2, 30)),
}
KINDS = tuple(CONSTANTS)
DEEPEST = 3
TRIES = 6


class Writer:
    """Writes expressions over the columns of one schema."""

    def __init__(self, rng: random.Random, schema: Mapping[str, Domain]) -> None:
        self.rng, self.schema = rng, schema

    def allowed(self, write: Callable[[], Expression], otherwise: Callable[[], Expression]) -> Expression:
        """An expression that is not refused: numbers without bounds, and what could overflow, are."""
        for _ in range(TRIES):
            try:
                found = write()
                found.domain(self.schema)
                return found
            except SitrError:
                continue
        return otherwise()

    def of(self, kind: str, depth: int | None = None) -> Expression:
        """An expression of a kind."""
        depth = self.rng.choice([0, 1, 2, DEEPEST]) if depth is None else depth
        write = {"boolean": self.condition, "number": self.number}.get(kind, lambda one: self.plain(kind, one))
        return self.allowed(lambda: write(depth), lambda: self.leaf(kind))

    def leaf(self, kind: str) -> Expression:
        """A column, or a constant where there is none."""
        names = [name for name, domain in self.schema.items() if domain.kind == kind]
        if names and self.rng.random() < 0.85:
            return Column(self.rng.choice(names))
        return self.constant(kind)

    def constant(self, kind: str) -> Expression:
        return expression(self.rng.choice(CONSTANTS[kind]))

    def plain(self, kind: str, depth: int) -> Expression:
        """A text, a date or a time."""
        if depth == 0 or self.rng.random() < 0.4:
            return self.leaf(kind)
        choices: list[Callable[[], Expression]] = [
            lambda: self.of("boolean", depth - 1).choose(self.of(kind, depth - 1), self.of(kind, depth - 1)),
            lambda: self.of(kind, depth - 1).fill_null(self.of(kind, depth - 1)),
        ]
        if kind != "string":
            unit = self.rng.choice(["year", "quarter", "month", "week", "day", "hour"])
            choices.append(lambda: self.of(kind, depth - 1).truncate(unit))
        return self.rng.choice(choices)()

    def number(self, depth: int) -> Expression:
        rng = self.rng
        if depth == 0 or rng.random() < 0.25:
            return self.leaf("number")
        one, other = self.of("number", depth - 1), self.of("number", depth - 1)
        return rng.choice(
            [
                lambda: one + other,
                lambda: one - other,
                lambda: one * other,
                lambda: one / other,
                lambda: abs(one),
                lambda: -one,
                lambda: one.fill_null(other),
                lambda: self.of("boolean", depth - 1).choose(one, other),
                lambda: self.of(rng.choice(["date", "timestamp"]), depth - 1).part(
                    rng.choice(["year", "month", "weekday", "day", "hour"])
                ),
            ]
        )()

    def condition(self, depth: int) -> Expression:
        rng = self.rng
        if depth == 0:
            return self.leaf("boolean") if rng.random() < 0.5 else self.compared(0)
        inner = self.of("boolean", depth - 1)
        return rng.choice(
            [
                lambda: self.compared(depth - 1),
                lambda: self.compared(depth - 1),
                lambda: inner & self.of("boolean", depth - 1),
                lambda: inner | self.of("boolean", depth - 1),
                lambda: inner | self.of("boolean", depth - 1),
                lambda: ~inner,
                lambda: inner.is_null(),
                lambda: inner.isin([True, False]),
                lambda: inner.isin([rng.random() < 0.5]),
                lambda: inner == self.of("boolean", depth - 1),
                lambda: inner != self.of("boolean", depth - 1),
                lambda: inner.fill_null(rng.random() < 0.5),
                lambda: inner.choose(self.of("boolean", depth - 1), self.of("boolean", depth - 1)),
                lambda: self.of(rng.choice(KINDS), depth - 1).is_null(),
            ]
        )()

    def mostly(self) -> Expression:
        """A condition that most rows meet, since little can move where little is left."""
        inner = self.of("boolean")
        return self.rng.choice(
            [
                lambda: inner,
                lambda: inner,
                lambda: inner.isin([True, False]),
                lambda: inner | inner.is_null(),
                lambda: inner | self.of("boolean"),
                lambda: inner.fill_null(True),
                lambda: (inner == self.leaf("boolean")).is_null() | inner,
                lambda: ~(~inner & self.of("boolean")),
            ]
        )()

    def compared(self, depth: int) -> Expression:
        """A comparison, or whether a value is in a list."""
        rng, kind = self.rng, self.rng.choice(["number", "number", "string", "date", "timestamp"])
        one = self.of(kind, depth)
        if rng.random() < 0.3:
            return one.isin(rng.sample(CONSTANTS[kind], 2))
        other = self.constant(kind) if rng.random() < 0.6 else self.of(kind, depth)
        if kind == "string":
            return one == other if rng.random() < 0.5 else one != other
        return rng.choice([lambda: one < other, lambda: one <= other, lambda: one >= other, lambda: one == other])()

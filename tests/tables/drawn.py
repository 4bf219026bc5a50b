"""Random expressions of the plan over rows with everything odd in them, and what the reference says of each.

`differences` asks an engine for many of them at once; the tests do so for some, `benchmarks/attack_expressions.py` for
as many as there is time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow

from sitr.errors import EngineFailed, InvalidArgument
from sitr.tables.conformance.trial import Trial, as_number
from sitr.tables.declaration import Declaration
from sitr.tables.expressions import (
    ARITHMETIC,
    COMPARISONS,
    Arithmetic,
    Bucket,
    Case,
    Coalesce,
    Column,
    Comparison,
    Constant,
    Expression,
    In,
    IsNull,
    Logic,
    Not,
    Part,
    Truncated,
    steps_of,
)
from sitr.tables.reference import Reference, truth
from sitr.tables.relations import Filter, Scan
from sitr.tables.source import Source
from sitr.tables.tally import Key, Tally

ROWS = 24
DEEPEST = 4
SMALL = (-20, 20)
FLOATS = [math.nan, math.inf, -math.inf, 0.1, -0.0, 0.0, 5e-324, 1e308, -1e308, 2.0**-13, 3.5, -7.25, 1e22]
LONGS = [2**63 - 1, -(2**63), 2**53 + 1, 0, 1, -1, 5, -7]
MONEY = [Decimal(text) for text in ("99999999.99", "-99999999.99", "0.10", "0.01", "-0.01", "1.00", "12.34", "5.00")]
TEXTS = ["x", "X", "x ", "", "ä", "o'clock", "a\\b", "1:b;", '"q"']
DAYS = [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(2024, 2, 29), date(2023, 1, 1), date(9999, 12, 31)]
TIMES = [
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(1970, 1, 1),
    datetime(2024, 2, 29, 13, 59, 59, 999999),
    datetime(1900, 1, 1, 0, 0, 0, 1),
    datetime(2038, 1, 19, 3, 14, 8),
]
HELD: dict[str, tuple[Sequence[Any], Any, dict[str, Any]]] = {  # values, Arrow's type, declaration
    "small": (range(-9, 10), pyarrow.int16(), {"type": "integer", "bounds": [-5, 5]}),
    "long": (LONGS, pyarrow.int64(), {"type": "int64", "bounds": [-12, 12]}),
    "free": (LONGS, pyarrow.int64(), {"type": "int64"}),
    "real": (FLOATS, pyarrow.float64(), {"type": "float", "bounds": [-100, 100]}),
    "wide": (FLOATS, pyarrow.float64(), {"type": "float", "bounds": [0, 2**22]}),
    "money": (MONEY, pyarrow.decimal128(10, 2), {"type": "decimal(10, 2)", "bounds": [-1000, 1000]}),
    "yes": ([True, False], pyarrow.bool_(), {"type": "boolean"}),
    "no": ([True, False], pyarrow.bool_(), {"type": "boolean"}),
    "text": (TEXTS, pyarrow.string(), {"type": "string"}),
    "word": (TEXTS, pyarrow.string(), {"type": "string", "categories": ["x", "", "ä", "o'clock"], "others": "group"}),
    "day": (DAYS, pyarrow.date32(), {"type": "date", "bounds": [date(1800, 1, 1), date(2100, 1, 1)]}),
    "time": (TIMES, pyarrow.timestamp("us"), {"type": "timestamp"}),
}
COLUMNS: dict[str, Any] = {"place": {"type": "integer"}} | {name: declared for name, (_, _, declared) in HELD.items()}
DECLARED = Declaration.of({"sitr": 1, "name": "t", "tables": {"trial": {"unit": "row", "columns": COLUMNS}}})
SCHEMA = DECLARED.tables["trial"].schema


def rows_of(random: Random) -> list[dict[str, Any]]:
    """Rows of which each cell is missing now and then."""
    return [
        {"place": place}
        | {name: None if random.random() < 0.15 else random.choice(held) for name, (held, _, _) in HELD.items()}
        for place in range(ROWS)
    ]


def frame_of(rows: list[dict[str, Any]]) -> pyarrow.Table:
    kinds = {"place": pyarrow.int64()} | {name: kind for name, (_, kind, _) in HELD.items()}
    return pyarrow.table({name: pyarrow.array([row[name] for row in rows], kind) for name, kind in kinds.items()})


class Draw:
    """Expressions of each kind, nested to a depth."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def one(self) -> Expression:
        """An expression that the plan admits; three in five are conditions."""
        kinds = [self.condition] * 3 + [self.number, self.other]
        while True:
            try:
                made = self.random.choice(kinds)(DEEPEST)
                if admitted(made):
                    return made
            except InvalidArgument:
                continue  # it could leave 64 bits, or has no bounds

    def condition(self, depth: int) -> Expression:
        ways: list[Callable[[], Expression]] = [lambda: Column(self.random.choice(["yes", "no"]))]
        if depth > 0:
            ways += [
                lambda: Comparison(self.choice(COMPARISONS), self.number(depth - 1), self.number(depth - 1)),
                lambda: Comparison(self.choice(COMPARISONS), Column(self.choice(NUMBERS)), self.constant()),
                lambda: Comparison(self.choice(COMPARISONS), *self.moments(depth - 1)),
                lambda: Comparison(self.choice(["==", "!="]), self.text(depth - 1), self.text(depth - 1)),
                lambda: Comparison(self.choice(["==", "!="]), self.condition(depth - 1), self.condition(depth - 1)),
                lambda: In(self.condition(depth - 1), self.choice([(True,), (False,), (True, False)])),
                lambda: In(self.text(depth - 1), tuple(self.random.sample(TEXTS, 3))),
                lambda: In(self.number(depth - 1), tuple(self.random.sample(range(-9, 9), 3))),
                lambda: IsNull(self.any(depth - 1)),
                lambda: Not(self.condition(depth - 1)),
                lambda: Logic(self.choice(["and", "or"]), self.condition(depth - 1), self.condition(depth - 1)),
                lambda: Case(self.condition(depth - 1), self.condition(depth - 1), self.condition(depth - 1)),
                lambda: Coalesce(self.condition(depth - 1), self.condition(depth - 1)),
            ]
        return self.choice(ways)()

    def number(self, depth: int) -> Expression:
        ways: list[Callable[[], Expression]] = [lambda: Column(self.choice(NUMBERS)), self.constant]
        if depth > 0:
            ways += [
                lambda: Arithmetic(self.choice(ARITHMETIC), self.number(depth - 1), self.number(depth - 1)),
                lambda: Arithmetic(self.choice(ARITHMETIC), self.number(depth - 1), self.number(depth - 1)),
                lambda: Case(self.condition(depth - 1), self.number(depth - 1), self.number(depth - 1)),
                lambda: Coalesce(self.number(depth - 1), self.number(depth - 1)),
                lambda: Bucket(self.number(depth - 1), (-3, 0, 2, 7)),
                lambda: self.part(depth - 1),
            ]
        return self.choice(ways)()

    def part(self, depth: int) -> Expression:
        value = self.moment(depth)
        parts = ["year", "quarter", "month", "day", "weekday"]
        timed = value.domain(SCHEMA).kind == "timestamp"
        return Part(value, self.choice([*parts, "hour", "minute"] if timed else parts))

    def constant(self) -> Expression:
        return Constant(self.choice([0, 1, -1, 3, -7, 12, 0.5, -1.25, 0.1, Decimal("0.01"), 2**40]))

    def text(self, depth: int) -> Expression:
        if depth == 0 or self.random.random() < 0.5:
            return self.choice([Column("text"), Column("word"), Constant(self.choice(TEXTS))])
        if self.random.random() < 0.5:
            return Coalesce(self.text(depth - 1), self.text(depth - 1))
        return Case(self.condition(depth - 1), self.text(depth - 1), self.text(depth - 1))

    def moment(self, depth: int, kind: str | None = None) -> Expression:
        kind = kind or self.choice(["day", "time"])
        plain = [Column(kind), Constant(self.choice(DAYS if kind == "day" else TIMES))]
        if depth == 0 or self.random.random() < 0.4:
            return self.choice(plain)
        units = ["year", "quarter", "month", "week", "day"]
        return self.choice(
            [
                lambda: Truncated(self.moment(depth - 1, kind), self.choice(units)),
                lambda: Coalesce(self.moment(depth - 1, kind), self.moment(depth - 1, kind)),
                lambda: Case(self.condition(depth - 1), self.moment(depth - 1, kind), self.moment(depth - 1, kind)),
            ]
        )()

    def moments(self, depth: int) -> tuple[Expression, Expression]:
        return self.moment(depth), self.moment(depth)

    def any(self, depth: int) -> Expression:
        return self.choice([self.condition, self.number, self.text, self.moment])(depth)

    def other(self, depth: int) -> Expression:
        """A text or a moment, as an answer to whether it is one of some values."""
        if self.random.random() < 0.5:
            return In(self.text(depth), tuple(self.random.sample(TEXTS, 4)))
        return Comparison(self.choice(COMPARISONS), *self.moments(depth))

    def choice(self, values: Sequence[Any]) -> Any:
        return self.random.choice(values)


NUMBERS = ["small", "long", "free", "real", "wide", "money"]


def admitted(one: Expression) -> bool:
    """Whether the plan takes it, and it can be measured."""
    domain = one.domain(SCHEMA)
    if domain.kind != "number":
        return domain.kind == "boolean"
    low, high = steps_of(domain).span
    return high - low < 2**62


def differences(source: Source, seed: int, count: int, *, packed: int = 40, lone: int = 4) -> Iterator[str]:
    """Yield each expression of which an engine says something else than the reference.

    Args:
        source: The engine.
        seed: Of rows and expressions.
        count: How many expressions.
        packed: How many are measured in one query.
        lone: How many of these are a filter, and a group, of a query of their own.
    """
    random = Random(seed)
    trial, reference = Trial(source), Reference(SCHEMA)
    for begin in range(0, count, packed):
        rows = rows_of(random)
        frame = frame_of(rows)
        asked = [Draw(random).one() for _ in range(min(packed, count - begin))]
        try:
            yield from _measured(trial, reference, rows, frame, asked)
            for one in [one for one in asked if one.domain(SCHEMA).kind == "boolean"][:lone]:
                yield from _filtered(trial, reference, rows, frame, one)
                yield from _grouped(trial, reference, rows, frame, one)
        except EngineFailed as error:
            yield f"{source.engine} failed at expression {begin} of seed {seed}: {error}"


def _measured(trial: Any, reference: Reference, rows: Any, frame: Any, asked: list[Expression]) -> Iterator[str]:
    logical = [one.domain(SCHEMA).kind == "boolean" for one in asked]
    wanted = {str(at): as_number(one) if logical[at] else one for at, one in enumerate(asked)}
    got = trial.values(frame, COLUMNS, wanted)
    for at, one in enumerate(asked):
        right = [truth(reference.value(one, row)) if logical[at] else reference.steps(one, row) for row in rows]
        for row, found, expected in zip(rows, got[str(at)], right, strict=True):
            if found != expected:
                yield f"{trial.source.engine}: {one} is {found}, and not {expected}, of {row}"
                break


def _filtered(trial: Any, reference: Reference, rows: Any, frame: Any, one: Expression) -> Iterator[str]:
    key = Key("place", Column("place"), None)
    found = trial.ask(frame, COLUMNS, lambda _: Tally(Filter(Scan("trial"), one), (key,), None, {}))
    right = [row["place"] for row in rows if reference.value(one, row) is True]
    if sorted(int(row["key0"]) for row in found) != right:
        yield f"{trial.source.engine}: WHERE {one} keeps other rows"


def _grouped(trial: Any, reference: Reference, rows: Any, frame: Any, one: Expression) -> Iterator[str]:
    """Among public values, beside a filter that stands before it."""
    kept = Column("small") >= 0
    key = Key("key", one, (True, False))
    found = trial.ask(frame, COLUMNS, lambda _: Tally(Filter(Scan("trial"), kept), (key,), None, {}))
    keys = Counter(reference.value(one, row) for row in rows if reference.value(kept, row) is True)
    del keys[None]
    if {row["key0"]: int(row["sum0"]) for row in found} != dict(keys):
        yield f"{trial.source.engine}: GROUP BY {one} makes other groups"

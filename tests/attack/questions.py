"""Random questions to a world, by the verbs of Python, and the same by SQL where it has words for them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import sitr
from sitr.errors import SitrError
from sitr.query.aggregates import Aggregate
from sitr.query.planner import Plan
from sitr.session.database import Database
from sitr.session.question import Question
from sitr.session.table import PrivateTable
from sitr.tables.domains import Domain
from sitr.tables.expressions import Column
from tests.attack.expressions import Writer
from tests.attack.texts import Unwritten, query_text
from tests.attack.worlds import World

BASES = ("visits",) * 5 + ("charges",) * 2 + ("drugs", "stays") + ("single",) * 2
STEPS = ("codes", "codes where", "codes where", "regions", "regions where", "drugs", "per unit", "derive", "filter")
PRICES: tuple[dict[str, float], ...] = (
    {"epsilon": 1.0},
    {"epsilon": 1.0, "delta": 1e-6},
    {"rho": 0.1},
    {"epsilon": 0.1},
)
REFUSALS = 40  # in a row, after which the question is a plain count


@dataclass(frozen=True)
class Asked:
    """A question of a world, by its number: as it was asked, and its plan."""

    number: int
    question: Question
    plan: Plan
    by_sql: bool
    price: dict[str, float]


class Asker:
    """Asks random questions of one world, on a database that holds its declaration."""

    def __init__(self, world: World, database: Database) -> None:
        self.world, self.database, self.spoken = world, database, False

    def asked(self, number: int) -> Asked:
        """The question of a number: no other one bears on it.

        Raises:
            Exception: Whatever is raised that is no refusal: a failure.
        """
        for attempt in range(REFUSALS):
            rng = random.Random(f"question {self.world.seed} {number} {attempt}")
            self.spoken = rng.random() < 0.5  # SQL has no histograms, no listed keys and other limits
            try:
                question = self._question(rng)
                price = rng.choice(PRICES)
                if self.spoken:
                    try:
                        spoken = self.database.sql(query_text(question.query, self.world))
                        return Asked(number, spoken, planned(spoken, price), True, price)
                    except (SitrError, Unwritten):
                        pass
                return Asked(number, question, planned(question, price), False, price)
            except SitrError:
                continue
        question = self._guarded("visits", random.Random(number)).aggregate(n=sitr.count())
        return Asked(number, question, planned(question, PRICES[0]), False, PRICES[0])

    def _question(self, rng: random.Random) -> Question:
        table = self._guarded(rng.choice(BASES), rng)
        for _ in range(rng.choice([0, 1, 1, 2, 3])):
            try:
                table = self._stepped(table, rng)
            except SitrError:
                continue
        groups = self._grouped(table, rng)
        question = groups.aggregate(**self._aggregates(table, rng))
        return question if self.spoken else question.bounded(**self._limits(rng))

    # Rows

    def _guarded(self, name: str, rng: random.Random) -> PrivateTable:
        """A table; where the world is guarded, without the rows that are not live."""
        table, live = self.database.table(name), self.world.tables[name].live
        if live is None:
            return table
        condition = table[live] == 1
        if rng.random() < 0.5:
            other = Writer(rng, table._schema).mostly()
            condition = condition & other if rng.random() < 0.5 else other & condition
        return table.filter(condition)

    def _stepped(self, table: PrivateTable, rng: random.Random) -> PrivateTable:
        step = rng.choice(STEPS)
        write = Writer(rng, table._schema)
        if step == "filter":
            return table.filter(write.mostly())
        if step == "derive":
            name = rng.choice(["new", "newer", *table.columns])
            return table.derive(**{name: write.of(rng.choice(["boolean", "number", "number", "string", "date"]))})
        if step == "per unit":
            return self._per_unit(table, rng)
        name = step.split()[0]
        other = self.database.table(name) if name != "drugs" else self._guarded("drugs", rng)
        if step.endswith("where"):
            other = other.filter(Writer(rng, other._schema).mostly())
        keys = [one for one in table.columns if one.startswith(("k_", "stay", "wing"))]
        there = f"k_{name[0]}"
        if name == "drugs":
            return table.join(other, {rng.choice(keys): there} if keys and rng.random() < 0.5 else ())
        return table.join(other, {rng.choice(keys): there} if keys else (), keep=rng.random() < 0.3)

    def _per_unit(self, table: PrivateTable, rng: random.Random) -> PrivateTable:
        write = Writer(rng, table._schema)
        keys = [name for name in table.columns if rng.random() < 0.15]
        values: dict[str, Aggregate] = {"rows": sitr.count(bounds=(0, rng.choice([1, 3, 6])))}
        if rng.random() < 0.7:
            value = write.of("number", rng.choice([0, 1]))
            make = rng.choice([sitr.sum, sitr.mean, sitr.min, sitr.max])
            values["total"] = make(value, bounds=rng.choice([(0, 25), (-3, 4)]))
        return table.per_unit(*keys, **values)

    # What is asked of them

    def _grouped(self, table: PrivateTable, rng: random.Random) -> Any:
        names: list[str] = []
        listed: dict[str, list[Any]] = {}
        keys: dict[str, Any] = {}
        for _ in range(rng.choice([0, 1, 1, 1, 2])):
            if rng.random() < 0.4:
                keys[f"by{len(keys)}"] = Writer(rng, table._schema).of(
                    rng.choice(["boolean", "number", "string", "date"])
                )
                continue
            name = rng.choice(_public(table) if rng.random() < 0.6 else table.columns)
            if name in names:
                continue
            names.append(name)
            kind = table._schema[name].kind
            if kind == "number" and rng.random() < 0.6 and not self.spoken:
                listed[name] = [0, 1, 2, None]
            if kind == "string" and rng.random() < 0.5 and not self.spoken:
                listed[name] = ["a", "b", "A", "", None]
        return table.group_by(*names, values=listed, **keys)

    def _aggregates(self, table: PrivateTable, rng: random.Random) -> dict[str, Aggregate]:
        write = Writer(rng, table._schema)

        def number() -> Any:
            return write.of("number", rng.choice([0, 0, 1, 2]))

        def bounds() -> dict[str, Any]:
            return {"bounds": rng.choice([(0, 2), (-1, 1), (0, 100)])} if rng.random() < 0.3 else {}

        if rng.random() < 0.2 and not self.spoken:
            return {"h": sitr.histogram(number(), rng.choice([[0, 1, 2], [-1, 0, 2, 3, 9], [-5, 0.5, 1]]))}
        makers: list[Callable[[], Aggregate]] = [
            sitr.count,
            sitr.count,
            sitr.count,
            lambda: sitr.count(Column(rng.choice(table.columns))),
            lambda: sitr.count(write.of("boolean")),
            sitr.count_units,
            lambda: sitr.count_distinct(Column(rng.choice(table.columns))),
            lambda: sitr.count_distinct(write.of("string")),
            *(lambda make=make: make(number(), **bounds()) for make in (sitr.sum, sitr.sum, sitr.mean, sitr.variance)),
            *(lambda make=make: make(number(), **bounds()) for make in (sitr.stddev, sitr.median, sitr.min, sitr.max)),
            lambda: sitr.quantile(number(), rng.choice([0.1, 0.9])),
            lambda: sitr.covariance(number(), number()),
            lambda: sitr.correlation(number(), number()),
        ]
        return {f"out{at}": rng.choice(makers)() for at in range(rng.choice([1, 1, 2, 3]))}

    def _limits(self, rng: random.Random) -> dict[str, int]:
        return rng.choice(
            [
                {},
                {},
                {"max_rows_per_unit": rng.choice([1, 2, 4])},
                {"max_groups_per_unit": rng.choice([1, 2]), "max_rows_per_group": rng.choice([1, 2])},
            ]
        )


def _public(table: PrivateTable) -> list[str]:
    """The columns whose few values are public, so that every group of them is in the answer; or all."""
    few = [name for name, one in table._schema.items() if one.kind == "boolean" or one.categories or _is_narrow(one)]
    return few or list(table.columns)


def _is_narrow(domain: Domain) -> bool:
    return domain.kind == "number" and domain.step == 1 and domain.bounded and domain.span[1] - domain.span[0] < 10


def planned(question: Question, price: dict[str, float]) -> Plan:
    """Return the plan of a question at a price."""
    return question._planned(price.get("epsilon"), price.get("delta"), price.get("rho"))[0]

"""From our plan to an engine's query, by Ibis, which only writes it down: what it may say is fixed by the plan.

Three habits keep engines alike: numbers are whole steps, clipped before anything is computed; NaN is missing; and rows
are chosen by a random column, or a keyed mix of a row's id, never by an engine's hash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from fractions import Fraction
from functools import reduce
from typing import Any

import ibis

from .declaration import Declaration, KeyPath, Table
from .dialect import Dialect, Value
from .domains import EPOCH, FARTHEST, Domain
from .expressions import (
    EXACT,
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
    align,
    steps_of,
)
from .relations import (
    Derive,
    Filter,
    Join,
    PerUnit,
    Relation,
    Scan,
    Select,
    UnitAggregate,
    is_public,
    rows_per_unit,
    table_of,
)
from .tally import THERE, Key, Measure, Powers, Tally

LONG_LIST = 1000  # values; a longer list of keys is a table of its own, not written out
UNIT, ORDER = "unit", "chosen_by"
PRIME = 2**31 - 1
FAR = 2**32  # steps: how far one row may move the sum of its unit, before that is clipped
COMPARE: dict[str, Callable[[Value, Value], Value]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
NOTHINGS: dict[str, Any] = {
    "boolean": False,
    "integer": 0,
    "string": "",
    "date": EPOCH,
    "timestamp": datetime(1970, 1, 1),
}
TRUNCATIONS = {"year": "Y", "quarter": "Q", "month": "M", "week": "W", "day": "D", "hour": "h"}


@dataclass(frozen=True)
class Rows:
    """A relation as the engine sees it.

    Attributes:
        table: Ibis's table.
        names: The engine's name of each column.
        schema: What each holds.
        row_id: The engine's name of the column that tells rows apart, where there is one.
    """

    table: Value
    names: Mapping[str, str]
    schema: Mapping[str, Domain]
    row_id: str | None = None

    def value(self, expression: Expression) -> Value:
        """Return an expression over the rows."""
        return Values(self).of(expression)


@dataclass(frozen=True)
class Emitter:
    """Writes plans for one engine.

    Args:
        declared: The declaration.
        table: Gives Ibis's table for a declared one.
        dialect: How the engine says it.
        key: For the mix of row ids: fresh for each release. None: rows are chosen by a random column.
    """

    declared: Declaration
    table: Callable[[Table], Value]
    dialect: Dialect
    key: tuple[int, int, int] | None = None

    def tally(self, tally: Tally) -> Value:
        """Return the query for a tally: a row for each group that occurs."""
        rows = self.rows(tally.relation)
        keys = [f"key{place}" for place, _ in enumerate(tally.keys)]
        rows = self._known(rows, tally.keys)
        columns: dict[str, Value] = {} if tally.bound is None else {UNIT: rows.table[UNIT]}
        columns |= {name: key_value(rows, key) for name, key in zip(keys, tally.keys, strict=True)}
        carried = _carried(tally)
        columns |= {engine: rows.table[rows.names[name]] for name, engine in carried.items()}
        if tally.distinct is not None:
            columns["value"] = rows.value(tally.distinct)
        if rows.row_id is not None:
            columns["row_id"] = whole_key(rows.table[rows.row_id])
        table = rows.table.select(**(columns or {"row": whole(1)}))
        if tally.distinct is not None:
            return self._distinct(table, keys, tally)
        if tally.bound is not None:
            by, most = (
                ([UNIT], tally.bound.rows)
                if tally.bound.rows is not None
                else ([UNIT, *keys], tally.bound.rows_per_group)
            )
            assert most is not None
            table = self._first(table, by, most)
        # Only what is kept is counted in steps: that costs less, and what is kept does not depend on it.
        kept = Rows(table, carried, rows.schema)
        measures = {name: on_grid(kept, measure) for name, measure in tally.measures.items()}
        others = [name for name in table.columns if name not in carried.values()]
        table = table.select(*others, **measures) if measures else table
        if tally.bound is not None and tally.bound.rows is None:
            return self._by_group(table, keys, tally)
        if tally.units:
            return self._counting_units(table, keys, tally)
        return self._summed(table, [*keys, *_cells(tally)], tally.sums)

    # Rows

    def rows(self, relation: Relation) -> Rows:
        """Return a relation as the engine sees it; rows without a unit are dropped."""
        if isinstance(relation, Scan):
            return self._scan(table_of(self.declared, relation.table))
        if isinstance(relation, Filter):
            source = self.rows(relation.source)
            return replace(source, table=source.table.filter(source.value(relation.condition)))
        if isinstance(relation, Derive):
            return self._derived(self.rows(relation.source), relation)
        if isinstance(relation, Select):
            source = self.rows(relation.source)
            names = {new: source.names[old] for new, old in relation.columns}
            return replace(source, names=names, schema={new: source.schema[old] for new, old in relation.columns})
        if isinstance(relation, PerUnit):
            return self._per_unit(self.rows(relation.source), relation)
        assert isinstance(relation, Join)
        return self._joined(relation)

    def _scan(self, table: Table) -> Rows:
        source = self.table(table)
        names = {name: f"c{place}" for place, name in enumerate(table.columns)}
        if isinstance(table.unit, str):
            source = source.filter(source[table.unit].notnull())
        columns = {names[name]: self._column(source[name], column.domain) for name, column in table.columns.items()}
        if isinstance(table.unit, str):
            columns[UNIT] = self._unit(source[table.unit])
        made = source.select(**columns)
        for name, column in table.columns.items():
            if column.domain.required:
                made = made.filter(made[names[name]].notnull())
        if isinstance(table.unit, KeyPath):
            made = self._with_unit(made, names, table.unit)
        elif table.public and table.key:
            made = self._once(made, [names[name] for name in table.key])
        row_id = names[table.row_id] if table.row_id and not isinstance(table.unit, KeyPath) else None
        return Rows(made, names, table.schema, row_id)

    def _column(self, value: Value, domain: Domain) -> Value:
        """A column as it is read: whatever a row holds, nothing that is computed of it can fail."""
        if domain.float or value.type().is_floating():
            value = value.cast("float64")
            return value.isnan().ifelse(ibis.null("float64"), value)
        if domain.kind in ("date", "timestamp"):
            return self._moment(value, domain.kind)
        return self._text(value) if domain.kind == "string" else value

    def _text(self, value: Value) -> Value:
        """A text whose equality is that of its bytes, whatever collation its column has."""
        return self.dialect.text(value if value.type().is_string() else value.cast("string"))

    def _unit(self, value: Value) -> Value:
        return self._text(value) if value.type().is_string() or value.type().is_uuid() else value

    def _moment(self, value: Value, kind: str) -> Value:
        """A date or a time of the years 1 to 9999; infinity, and what lies beyond, is missing."""
        zone = value.type().timezone if kind == "timestamp" else None
        ends: list[Any] = [datetime(1, 1, 2), datetime(9999, 12, 30)] if kind == "timestamp" else [date.min, date.max]
        low, high = (moment(end.replace(tzinfo=UTC) if zone else end) for end in ends)
        inside = value.between(low, high).ifelse(value, ibis.null(value.type()))
        return self.dialect.local(inside, self.declared.time_zone) if kind == "timestamp" else inside

    def _with_unit(self, table: Value, names: Mapping[str, str], path: KeyPath) -> Value:
        through = table_of(self.declared, path.table)
        other = self.table(through)
        other = other.filter(other[str(through.unit)].notnull())
        keys = {f"there{place}": through.columns[name] for place, (_, name) in enumerate(path.columns)}
        there = other.select(
            **{name: self._column(other[column.name], column.domain) for name, column in keys.items()},
            **{UNIT: self._unit(other[str(through.unit)])},
        ).distinct()
        on = [
            joinable(table[names[here]]) == joinable(there[f"there{place}"])
            for place, (here, _) in enumerate(path.columns)
        ]
        return table.join(there, on, how="inner").select(*table.columns, UNIT)

    @staticmethod
    def _once(table: Value, key: list[str]) -> Value:
        rest = [table[name] for name in table.columns if name not in key]
        numbered = table.mutate(place=ibis.row_number().over(group_by=key, order_by=rest or key))
        return numbered.filter(numbered["place"] < 1).drop("place")

    @staticmethod
    def _derived(source: Rows, relation: Derive) -> Rows:
        names, schema, columns = dict(source.names), dict(source.schema), {}
        for place, (name, expression) in enumerate(relation.columns):
            engine = f"d{len(source.table.columns)}_{place}"  # of all, as a name that is given again adds none
            domain = expression.domain(source.schema)
            columns[engine] = source.value(expression)
            names[name], schema[name] = engine, domain
        return replace(source, table=source.table.mutate(**columns), names=names, schema=schema)

    def _joined(self, join: Join) -> Rows:
        left, right = self.rows(join.left), self.rows(join.right)
        if not is_public(join.right, self.declared):
            left = replace(
                left, table=self._first(left.table, [UNIT], rows_per_unit(join.left, self.declared), left.row_id)
            )
            right = replace(
                right, table=self._first(right.table, [UNIT], rows_per_unit(join.right, self.declared), right.row_id)
            )
        renamed = {name: f"r{place}" for place, name in enumerate(right.table.columns)}
        other = right.table.select(**{new: right.table[old] for old, new in renamed.items()})
        on = [
            joinable(left.table[left.names[one]]) == joinable(other[renamed[right.names[two]]]) for one, two in join.on
        ]
        if not is_public(join.right, self.declared):
            on.append(left.table[UNIT] == other[renamed[UNIT]])
        met = left.table.join(other, on, how="left" if join.keep else "inner")
        fresh = [name for name in right.names if name not in left.names]
        width = len(left.table.columns)
        names = dict(left.names) | {name: f"j{width}_{place}" for place, name in enumerate(fresh)}
        columns = {name: met[name] for name in left.table.columns}
        columns |= {names[name]: met[renamed[right.names[name]]] for name in fresh}
        schema = dict(left.schema) | {name: join.domain(right.schema[name]) for name in fresh}
        return Rows(met.select(**columns), names, schema, None)

    def _per_unit(self, source: Rows, relation: PerUnit) -> Rows:
        keys = {f"k{place}": name for place, name in enumerate(relation.keys)}
        columns: dict[str, Value] = {UNIT: source.table[UNIT]}
        columns |= {engine: source.table[source.names[name]] for engine, name in keys.items()}
        inner = {f"v{place}": one for place, (_, one) in enumerate(relation.values)}
        columns |= {name: row_steps(source, one) for name, one in inner.items() if one.over != "count"}
        table = source.table.select(**columns)
        sums = {name: self._over_unit(table, name, one, source.schema) for name, one in inner.items()}
        made = table.group_by([UNIT, *keys]).aggregate(**sums)
        clipped = {name: clipped_steps(made[name], one.domain(source.schema)) for name, one in inner.items()}
        names = {name: engine for engine, name in keys.items()}
        names |= {name: f"v{place}" for place, (name, _) in enumerate(relation.values)}
        schema = {name: source.schema[name] for name in relation.keys}
        schema |= {name: one.domain(source.schema) for name, one in relation.values}
        return Rows(made.mutate(**clipped), names, schema, None)

    def _over_unit(self, table: Value, name: str, one: UnitAggregate, schema: Mapping[str, Domain]) -> Value:
        """A number over the rows of a unit."""
        if one.over == "count":
            return to_count(table, one.domain(schema))
        column = table[name]
        if one.over == "sum":
            return self.dialect.total(column)
        if one.over == "mean":
            count = column.count().nullif(0).cast("float64")
            return rounded(self.dialect.total(column).cast("float64") / count)
        return getattr(column, one.over)()

    # Bounding

    def _first(self, table: Value, by: list[str], most: int, row_id: str | None = "row_id") -> Value:
        """The rows that come first for each value of `by`, in the order of a random column, or of the mix."""
        order = self._order(table, row_id)
        chosen = table.mutate(**{ORDER: order})
        # Two rows of one id are told apart by what they hold: the choice depends on the rows of the unit alone.
        ties = [chosen[name] for name in table.columns if name not in by] if self._mixes(table, row_id) else []
        numbered = chosen.mutate(place=ibis.row_number().over(group_by=by, order_by=[chosen[ORDER], *ties]))
        # Ibis counts from 0, and the test is `place < most`: DuckDB has a slower plan for `row_number() <= most`.
        return numbered.filter(numbered["place"] < most).drop("place", ORDER)

    def _order(self, table: Value, row_id: str | None) -> Value:
        if not self._mixes(table, row_id):
            return ibis.random()
        assert self.key is not None
        return mixed(whole_key(table[row_id]), self.key)

    def _mixes(self, table: Value, row_id: str | None) -> bool:
        return self.key is not None and row_id is not None and row_id in table.columns

    def _by_group(self, table: Value, keys: list[str], tally: Tally) -> Value:
        assert tally.bound is not None
        assert tally.bound.groups is not None
        first = {"row_id": table["row_id"].min()} if "row_id" in table.columns else {}
        if tally.cells is not None:
            groups = table.group_by([UNIT, *keys]).aggregate(**first)
            there = self._first(groups, [UNIT], tally.bound.groups)
            return self._summed(_in_groups(table, there, keys), [*keys, tally.cells], tally.sums)
        summed = self._sums(table, tally.sums)
        each = table.group_by([UNIT, *keys]).aggregate(**summed, **first)
        each = self._first(each, [UNIT], tally.bound.groups)
        return self._totals(each, keys, list(summed), tally.units)

    def _distinct(self, table: Value, keys: list[str], tally: Tally) -> Value:
        """Each unit's different values once, no more of them than the bound; then how many different ones there are."""
        table = table.filter(table["value"].notnull())
        names = [name for name in (UNIT, *keys, "value") if name in table.columns]
        once = table.select(*names).distinct()
        if tally.bound is not None:
            if tally.bound.rows is not None:
                once = self._first(once, [UNIT], tally.bound.rows)
            else:
                assert tally.bound.groups is not None
                assert tally.bound.rows_per_group is not None
                once = self._first(once, [UNIT, *keys], tally.bound.rows_per_group)
                groups = self._first(once.select(UNIT, *keys).distinct(), [UNIT], tally.bound.groups)
                once = _in_groups(once, groups, keys)
        different = once.select(*keys, "value").distinct()
        counted = {"sum0": different.count()} if not keys else {"sum0": lambda rows: rows.count()}
        return different.aggregate(**counted) if not keys else different.group_by(keys).aggregate(**counted)

    def _known(self, rows: Rows, keys: tuple[Key, ...]) -> Rows:
        """Only rows whose keys are public: the others shall not use up what a unit may contribute."""
        for key in keys:
            value = key_value(rows, key)
            if key.known is None:
                if not key.value.domain(rows.schema).nulls:
                    rows = replace(rows, table=rows.table.filter(value.notnull()))
                continue
            rows = replace(rows, table=rows.table.filter(_listed(value, key)))
        return rows

    # Sums

    def _sums(self, table: Value, sums: tuple[Powers, ...]) -> dict[str, Value]:
        return {f"sum{place}": self._sum(table, powers) for place, powers in enumerate(sums)}

    def _sum(self, table: Value, powers: Powers) -> Value:
        if not powers:
            return table.count()
        there = reduce(lambda a, b: a & b, [table[name].notnull() for name, _ in powers])
        factors = [table[name] for name, power in powers for _ in range(power)]
        if not factors:
            return self.dialect.total(there.ifelse(whole(1), whole(0)))
        product = reduce(lambda a, b: a * b, factors)  # missing where one of its factors is: left out of the sum then
        if all(power > 0 for _, power in powers):
            return self.dialect.total(product)
        return self.dialect.total(there.ifelse(product, whole(0)))

    def _summed(self, table: Value, keys: list[str], sums: tuple[Powers, ...]) -> Value:
        made = self._sums(table, sums)
        return table.group_by(keys).aggregate(**made) if keys else table.aggregate(**made)

    def _totals(self, each: Value, keys: list[str], sums: list[str], units: bool) -> Value:
        made = {name: self.dialect.total(each[name]) for name in sums}
        if units:
            made["units"] = each.count()
        return each.group_by(keys).aggregate(**made) if keys else each.aggregate(**made)

    def _counting_units(self, table: Value, keys: list[str], tally: Tally) -> Value:
        sums = self._sums(table, tally.sums)
        return self._totals(table.group_by([UNIT, *keys]).aggregate(**sums), keys, list(sums), units=True)


class Values:
    """Expressions over the columns of some rows; numbers that were computed are whole steps."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.schema = rows, rows.schema

    def of(self, one: Expression) -> Value:
        """Return an expression as the engine holds it."""
        if isinstance(one, Column):
            return self.rows.table[self.rows.names[one.name]]
        if isinstance(one, Constant):
            return self._constant(one)
        if isinstance(one, Comparison):
            return self._compared(one)
        if isinstance(one, Logic):
            left, right = self.of(one.left), self.of(one.right)
            return left & right if one.operator == "and" else left | right
        if isinstance(one, Not):
            return ~self.of(one.value)
        if isinstance(one, In):
            return self._found(one)
        if isinstance(one, IsNull):
            return self.of(one.value).isnull()
        if isinstance(one, Part):
            return self._part(one)
        if isinstance(one, Truncated):
            return self._truncated(one)
        if isinstance(one, (Case, Coalesce)):
            return self._chosen(one)
        if isinstance(one, Bucket):
            found = self._bucket(one, 0, len(one.edges))
            return self.of(one.value).isnull().ifelse(ibis.null("int64"), found)
        assert isinstance(one, Arithmetic)
        return self._computed(one)

    def steps(self, one: Expression) -> Value:
        """Return a number in whole steps of its own grid."""
        domain = one.domain(self.schema)
        if domain.steps:
            return self.of(one)
        return to_steps(self.of(one), domain, steps_of(domain))

    def _constant(self, one: Constant) -> Value:
        domain = one.domain({})
        if domain.kind == "number":
            return whole(domain.span[0])
        return moment(one.value)

    def _plain(self, one: Expression) -> Value:
        """A side of a comparison that the engine makes on what it holds; a constant as the nearest double."""
        if not isinstance(one, Constant):
            return self.of(one)
        if one.domain({}).kind != "number":
            return moment(one.value)
        exact = one.domain({})
        return whole(exact.span[0]) if exact.step == 1 else real(exact.ends[0])

    def _compared(self, one: Comparison) -> Value:
        if one.native(self.schema):
            return COMPARE[one.operator](*_comparable(self._plain(one.left), self._plain(one.right)))
        left, right = (steps_of(side.domain(self.schema)) for side in (one.left, one.right))
        _, first, second = align(left, right)
        return COMPARE[one.operator](scaled(self.steps(one.left), first), scaled(self.steps(one.right), second))

    def _found(self, one: In) -> Value:
        equal = [Comparison("==", one.value, Constant(value)) for value in one.values]
        if one.value.domain(self.schema).steps:
            return reduce(lambda a, b: a | b, [self.of(each) for each in equal])
        value, *listed = _comparable(self.of(one.value), *(self._plain(each.right) for each in equal))
        return value.isin(listed)

    def _part(self, one: Part) -> Value:
        value = self.of(one.value)
        found = value.day_of_week.index() if one.which == "weekday" else getattr(value, one.which)()
        return found.cast("int64")

    def _bucket(self, one: Bucket, low: int, high: int) -> Value:
        """By halves: of edges low, …, high - 1 it is not known yet whether they lie below."""
        if low == high:
            return whole(low)
        middle = (low + high) // 2
        above, below = self._bucket(one, middle + 1, high), self._bucket(one, low, middle)
        return ibis.cases((self.of(one.reached(one.edges[middle])), above), else_=below)

    def _truncated(self, one: Truncated) -> Value:
        """By way of a timestamp: some engines make one of a date, and one with a time zone at that."""
        value = self.of(one.value)
        cut = value.cast("timestamp").truncate(TRUNCATIONS[one.unit])
        return cut.cast("date") if one.value.domain(self.schema).kind == "date" else cut

    def _chosen(self, one: Case | Coalesce) -> Value:
        first = one.then if isinstance(one, Case) else one.value
        domain = one.domain(self.schema)
        if domain.kind == "number":
            left, right = (steps_of(side.domain(self.schema)) for side in (first, one.other))
            yes = scaled(self.steps(first), int(left.step / domain.step))
            no = scaled(self.steps(one.other), int(right.step / domain.step))
        else:
            yes, no = self.of(first), self.of(one.other)
        if isinstance(one, Coalesce):
            return yes.fill_null(no)
        return ibis.cases((self.of(one.condition), yes), else_=no)

    def _computed(self, one: Arithmetic) -> Value:
        domain = one.domain(self.schema)
        left, right = (steps_of(side.domain(self.schema)) for side in (one.left, one.right))
        first, second = self.steps(one.left), self.steps(one.right)
        if one.operator == "*":
            return first * second
        if one.operator == "/":  # of doubles: whole numbers below 2^53 are exact there, and no divisor is zero
            by = real(left.step / right.step / domain.step)
            divisor = (second == 0).ifelse(ibis.null("float64"), second.cast("float64"))
            return rounded(first.cast("float64") * by / divisor)
        first, second = (
            scaled(value, int(side.step / domain.step)) for value, side in ((first, left), (second, right))
        )
        return first + second if one.operator == "+" else first - second


def scaled(value: Value, factor: int) -> Value:
    """Return steps of one grid in those of a finer one; beyond 64 bits a factor is only of what is 0 in each row."""
    return value if factor == 1 else value * whole(factor if factor <= FARTHEST else 0)


def _comparable(*values: Value) -> list[Value]:
    """Values that an engine compares without a cast that can fail: a whole number may not fit a decimal's digits."""
    if any(value.type().is_decimal() for value in values):
        return [value.cast("float64") for value in values]
    return list(values)


def clipped(value: Value, low: Any, high: Any) -> Value:
    """Return a value no lower and no higher than two constants; missing stays missing."""
    return ibis.cases((value < low, low), (value > high, high), else_=value)


def whole(value: int) -> Value:
    """Return a whole number of 64 bits: the literal alone has 32 in some engines, and would overflow there."""
    return ibis.literal(value).cast("int64")


def real(value: Fraction | float) -> Value:
    """Return the nearest double: the literal alone is a decimal in some engines, of too few digits."""
    return ibis.literal(repr(float(value))).cast("float64")


def moment(value: Any) -> Value:
    """Return a public value that is no number; a time is one with microseconds, as in every engine."""
    return ibis.literal(value)


def rounded(value: Value) -> Value:
    """Return the nearest whole number, halves up: `round` and casts differ between engines."""
    return (value + real(0.5)).floor().cast("int64")


def clipped_steps(value: Value, domain: Domain) -> Value:
    """Return whole steps inside a domain."""
    low, high = domain.span
    return clipped(value, whole(low), whole(high)).cast("int64")


def since_1970(value: Value, kind: str) -> Value:
    """Return the days of a date, or the seconds of a time, rounded down."""
    if kind == "date":
        return value.delta(ibis.literal(EPOCH), unit="day").cast("int64")
    return value.truncate("s").delta(ibis.literal(datetime(1970, 1, 1)), unit="second").cast("int64")


def to_steps(value: Value, domain: Domain, grid: Domain) -> Value:
    """Return what the engine holds as whole steps of a grid: clipped first, so that nothing overflows, then rounded."""
    if domain.kind in ("date", "timestamp"):
        value = since_1970(value, domain.kind)
    if domain.steps:  # already steps, of a finer or another grid
        return _regridded(value, domain, grid)
    low, high = grid.span
    if domain.step == 1 and grid.step == 1 and not domain.float:
        return clipped_steps(value, grid)
    inside = clipped(value.cast("float64"), real(low * grid.step), real(high * grid.step))
    if grid.step > 1:  # to scale a tiny number down is an error in some engines; it is rounded to 0 anyway
        inside = (inside.abs() < real(grid.step / 4)).ifelse(real(0.0), inside)
    steps = rounded(inside * real(1 / grid.step))
    # The ends are multiples of the step, so it stays within; but far from 0 doubles are coarser than the steps.
    return clipped_steps(steps, grid) if max(-low, high) > EXACT else steps


def _regridded(value: Value, domain: Domain, grid: Domain) -> Value:
    low, high = grid.span
    factor = domain.step / grid.step
    if factor.denominator == 1 and low <= domain.span[0] * factor and domain.span[1] * factor <= high:
        return value if factor == 1 else value * whole(factor.numerator)
    if factor.denominator == 1:
        edge = [-(-low // factor.numerator) - 1, high // factor.numerator + 1]
        inside = clipped(value, *(whole(end) for end in edge)) * whole(factor.numerator)
    else:
        inside = rounded(value.cast("float64") * real(factor))
    return clipped(inside, whole(low), whole(high))


def on_grid(rows: Rows, measure: Measure) -> Value:
    """Return a measure of each row: steps from the lower bound."""
    value, domain = rows.value(measure.value), measure.value.domain(rows.schema)
    if measure.grid is THERE:
        return value.isnull().ifelse(ibis.null("int64"), whole(0))
    steps, low = to_steps(value, domain, measure.grid), measure.grid.span[0]
    return steps - whole(low) if low else steps


def key_value(rows: Rows, key: Key) -> Value:
    """Return a key of each row; whole numbers have 64 bits in every engine."""
    value, domain = rows.value(key.value), key.value.domain(rows.schema)
    return whole_key(value) if domain.kind == "number" else value


def joinable(value: Value) -> Value:
    """Return what an engine compares without a cast that could fail on a row: numbers of one type."""
    return whole_key(value) if value.type().is_numeric() else value


def whole_key(value: Value) -> Value:
    """Return a whole number in 64 bits; one that does not fit is missing."""
    kind = value.type()
    if kind.is_decimal() or (kind.is_integer() and not kind.is_signed_integer()):
        value = value.between(whole(-(2**63) + 1), whole(2**63 - 1)).ifelse(value, ibis.null(kind))
    return value.cast("int64")


def _listed(value: Value, key: Key) -> Value:
    """Whether a key is one of its public values."""
    assert key.known is not None
    values = [one for one in key.known if one is not None]
    if len(values) > LONG_LIST:
        import pyarrow

        found = value.isin(ibis.memtable(pyarrow.table({"known": values}))["known"])
    else:
        found = value.isin(values) if values else ibis.literal(False)
    return found | value.isnull() if None in key.known else found


def row_steps(rows: Rows, one: UnitAggregate) -> Value:
    """Return what a row adds to its unit, on the grid of the result; a sum takes steps far beyond it, to cancel."""
    assert one.value is not None
    grid, domain = one.domain(rows.schema), one.value.domain(rows.schema)
    if one.over == "sum":
        grid = replace(grid, lower=-FAR, upper=FAR)
    return to_steps(rows.value(one.value), domain, grid)


def to_count(table: Value, grid: Domain) -> Value:
    """Return how many rows a unit has, in steps of a grid that may be coarser than one."""
    return rounded(table.count().cast("float64") / real(grid.step))


def mixed(row_id: Value, key: tuple[int, int, int]) -> Value:
    """Return a mix of a row's id by a key, below 2^31 throughout, so that no engine overflows.

    Privacy: the place of a row among those of its unit depends on ids of its own unit and on the key alone, whatever
    the mix is; that it is a good mix makes the choice a fair one.
    """
    first, second, third = key
    prime = whole(PRIME)
    low, high = row_id % prime, (row_id.cast("float64") / real(PRIME)).floor().cast("int64") % prime
    once = (low * whole(first) + whole(second)) % prime
    twice = (once * once + high * whole(third)) % prime
    return (((twice * once) % prime) * whole(third) + whole(first)) % prime


def _in_groups(table: Value, groups: Value, keys: list[str]) -> Value:
    """The rows whose unit and keys are among those that were chosen; a missing key is equal to itself.

    A missing key is filled, and said to be missing beside it: engines join by = only, and not by IS NOT DISTINCT FROM,
    without looking at every pair of rows.
    """
    there = groups.select(of_unit=groups[UNIT], **_filled(groups, keys, "of_"))
    here = table.mutate(**_filled(table, keys, "at_"))
    names = [name.removeprefix("of_") for name in there.columns if name != "of_unit"]
    on = [here[UNIT] == there["of_unit"], *(here[f"at_{name}"] == there[f"of_{name}"] for name in names)]
    return here.semi_join(there, on).select(*table.columns)


def _filled(table: Value, keys: list[str], prefix: str) -> dict[str, Value]:
    made = {}
    for name in keys:
        kind = table[name].type()
        nothing = next(value for test, value in NOTHINGS.items() if getattr(kind, f"is_{test}")())
        made[f"{prefix}{name}_missing"] = table[name].isnull()
        made[f"{prefix}{name}"] = table[name].fill_null(ibis.literal(nothing).cast(kind))
    return made


def _carried(tally: Tally) -> dict[str, str]:
    """The columns that measures are computed of, under names of their own."""
    used = {name for measure in tally.measures.values() for name in measure.value.columns()}
    return {name: f"m{place}" for place, name in enumerate(sorted(used))}


def _cells(tally: Tally) -> list[str]:
    return [tally.cells] if tally.cells else []

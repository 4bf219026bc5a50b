"""From our plan to an engine's query, by Ibis, which only writes it down: what it may say is fixed by the plan.

Three habits keep engines alike: numbers are whole steps, clipped before anything is computed; NaN is missing; and rows
are chosen by a random column, or a keyed mix of a row's id, never by an engine's hash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import reduce
from typing import Any

import ibis

from .codes import Code, Coded
from .declaration import Declaration, KeyPath, Table
from .dialect import KNOWN_KEY, PLACE_OF_KEY, Dialect, Value
from .domains import EPOCH, OTHERS, Domain
from .expressions import Column
from .grid import clipped_steps, joinable, real, rounded, to_steps, whole, whole_key
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
from .statement import PLACE, UNIT
from .tally import THERE, Key, Measure, Powers, Tally
from .values import Rows

LONG_LIST = 1000  # values; a longer list of keys is a table of its own, not written out
ORDER = "chosen_by"
PRIME = 2**31 - 1
FAR = 2**32  # steps: how far one row may move the sum of its unit, before that is clipped
NOTHINGS: dict[str, Any] = {
    "boolean": False,
    "integer": 0,
    "string": "",
    "date": EPOCH,
    "timestamp": datetime(1970, 1, 1),
}


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
        places = self._places(tally.keys)
        found = self._aggregated(tally, places)
        for name, known in places.items():
            found = _exchanged(found, name, known, PLACE_OF_KEY, KNOWN_KEY)
        return found

    def coded(self, coded: Coded) -> Value:
        """Return the query for rows whose columns are numbered: steps from 0 of those on a grid, and listed values."""
        rows = self._known(self.rows(coded.relation), tuple(_listed_key(code) for code in coded.codes if _drops(code)))
        columns: dict[str, Value] = {} if coded.bound is None else {UNIT: rows.table[UNIT]}
        carried = {code.name: f"m{place}" for place, code in enumerate(coded.codes)}
        columns |= {engine: rows.table[rows.names[name]] for name, engine in carried.items()}
        if rows.row_id is not None:
            columns["row_id"] = whole_key(rows.table[rows.row_id])
        table = rows.table.select(**columns)
        if coded.bound is not None:
            assert coded.bound.rows is not None
            table = self._first(table, [UNIT], coded.bound.rows)
        kept = Rows(table, carried, rows.schema)
        return table.select(**{f"code{place}": _numbered(kept, code) for place, code in enumerate(coded.codes)})

    def values(self, relation: Relation, keys: tuple[Key, ...], most: int) -> Value:
        """Return the query for the different rows of some keys of a public relation, no more than so many."""
        rows = self.rows(relation)
        columns = {f"key{place}": key_value(rows, key) for place, key in enumerate(keys)}
        return rows.table.select(**columns).distinct().limit(most)

    def _places(self, keys: tuple[Key, ...]) -> dict[str, Value]:
        """Tables of public texts and their places among them: rows are bounded and grouped faster by the latter."""
        found = {
            f"key{at}": self.dialect.places(tuple(dict.fromkeys(key.known)))  # each once: a join would repeat rows
            for at, key in enumerate(keys)
            if key.known and all(isinstance(one, str) for one in key.known)
        }
        return {name: table for name, table in found.items() if table is not None}

    def _aggregated(self, tally: Tally, places: Mapping[str, Value]) -> Value:
        rows = self.rows(tally.relation)
        keys = [f"key{place}" for place, _ in enumerate(tally.keys)]
        rows = self._known(rows, tuple(key for name, key in zip(keys, tally.keys, strict=True) if name not in places))
        columns: dict[str, Value] = {} if tally.bound is None else {UNIT: rows.table[UNIT]}
        columns |= {name: key_value(rows, key) for name, key in zip(keys, tally.keys, strict=True)}
        carried = _carried(tally)
        columns |= {engine: rows.table[rows.names[name]] for name, engine in carried.items()}
        if tally.distinct is not None:
            columns["value"] = rows.value(tally.distinct)
        if rows.row_id is not None:
            columns["row_id"] = whole_key(rows.table[rows.row_id])
        table = rows.table.select(**(columns or {"row": whole(1)}))
        for name, known in places.items():
            table = _exchanged(table, name, known, KNOWN_KEY, PLACE_OF_KEY)
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
        columns = {names[name]: self.held(source[name], column.domain) for name, column in table.columns.items()}
        if isinstance(table.unit, str):
            columns[UNIT] = self.unit(source[table.unit])
        made = source.select(**columns)
        if isinstance(table.unit, str):
            made = made.filter(made[UNIT].notnull())
        for name, column in table.columns.items():
            if column.domain.required:
                made = made.filter(made[names[name]].notnull())
        if isinstance(table.unit, KeyPath):
            made = self._with_unit(made, names, table.unit)
        elif table.public and table.key:
            made = self._once(made, [names[name] for name in table.key])
        row_id = names[table.row_id] if table.row_id and not isinstance(table.unit, KeyPath) else None
        return Rows(made, names, table.schema, row_id)

    def held(self, value: Value, domain: Domain) -> Value:
        """Return a column as it is asked about: what is not declared may be one value."""
        value = self.column(value, domain)
        if not domain.others:
            return value
        return ibis.cases((value.isnull(), ibis.null("string")), (value.isin(domain.listed), value), else_=OTHERS)

    def column(self, value: Value, domain: Domain) -> Value:
        """Return a column as it is read: whatever a row holds, nothing that is computed of it can fail."""
        if domain.float or value.type().is_floating():
            value = value.cast("float64")
            return value.isnan().ifelse(ibis.null("float64"), value)
        if domain.kind in ("date", "timestamp"):
            return self._moment(value, domain.kind)
        return self._text(value) if domain.kind == "string" else value

    def _text(self, value: Value) -> Value:
        """A text whose equality is that of its bytes, whatever collation its column has."""
        return self.dialect.text(value if value.type().is_string() else value.cast("string"))

    def unit(self, value: Value) -> Value:
        """Return what names a unit; who has none is dropped after it is made, or all whose name is no text were one."""
        return self._text(value) if value.type().is_string() or value.type().is_uuid() else value

    def _moment(self, value: Value, kind: str) -> Value:
        """A date or a time of the years 1 to 9999; infinity, and what lies beyond, is missing."""
        zone = value.type().timezone if kind == "timestamp" else None
        ends: list[Any] = [datetime(1, 1, 2), datetime(9999, 12, 30)] if kind == "timestamp" else [date.min, date.max]
        low, high = (ibis.literal(end.replace(tzinfo=UTC) if zone else end) for end in ends)
        inside = value.between(low, high).ifelse(value, ibis.null(value.type()))
        return self.dialect.local(inside, self.declared.time_zone) if kind == "timestamp" else inside

    def _with_unit(self, table: Value, names: Mapping[str, str], path: KeyPath) -> Value:
        there = self.holders(path)
        on = [
            joinable(table[names[here]]) == joinable(there[f"there{place}"])
            for place, (here, _) in enumerate(path.columns)
        ]
        return table.join(there, on, how="inner").select(*table.columns, UNIT)

    def holders(self, path: KeyPath) -> Value:
        """Return to which unit each key of a path leads: the key's parts as `there0`, `there1`, ..."""
        through = table_of(self.declared, path.table)
        other = self.table(through)
        keys = {f"there{place}": through.columns[name] for place, (_, name) in enumerate(path.columns)}
        there = other.select(
            **{name: self.column(other[column.name], column.domain) for name, column in keys.items()},
            **{UNIT: self.unit(other[str(through.unit)])},
        )
        return there.filter(there[UNIT].notnull()).distinct()

    @staticmethod
    def _once(table: Value, key: list[str]) -> Value:
        rest = [table[name] for name in table.columns if name not in key]
        numbered = table.mutate(**{PLACE: ibis.row_number().over(group_by=key, order_by=rest or key)})
        return numbered.filter(numbered[PLACE] < 1).drop(PLACE)

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
            on.append(_same_unit(left.table[UNIT], other[renamed[UNIT]]))
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
        numbered = chosen.mutate(**{PLACE: ibis.row_number().over(group_by=by, order_by=[chosen[ORDER], *ties])})
        # Ibis counts from 0, and the test is `place < most`: DuckDB has a slower plan for `row_number() <= most`.
        return numbered.filter(numbered[PLACE] < most).drop(PLACE, ORDER)

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
        grouped = different.group_by(keys) if keys else different
        return grouped.aggregate(sum0=lambda rows: rows.count())

    def _known(self, rows: Rows, keys: tuple[Key, ...]) -> Rows:
        """Only rows whose keys are public: the others shall not use up what a unit may contribute."""
        for key in keys:
            value = key_value(rows, key)
            if key.known is None:
                if not key.value.domain(rows.schema).nulls:
                    rows = replace(rows, table=rows.table.filter(value.notnull()))
                continue
            rows = replace(rows, table=rows.table.filter(is_listed(value, key.known, self.dialect)))
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


def on_grid(rows: Rows, measure: Measure) -> Value:
    """Return a measure of each row: steps from the lower bound."""
    value, domain = rows.value(measure.value), measure.value.domain(rows.schema)
    if measure.grid is THERE:
        return value.isnull().ifelse(ibis.null("int64"), whole(0))
    steps, low = to_steps(value, domain, measure.grid), measure.grid.span[0]
    return steps - whole(low) if low else steps


def _drops(code: Code) -> bool:
    """Whether rows with a value that is not listed are left out: there is no number for them."""
    return code.grid is None and not code.nulls and code.domain.kind != "boolean"


def _listed_key(code: Code) -> Key:
    return Key(code.name, Column(code.name), code.values)


def _numbered(rows: Rows, code: Code) -> Value:
    """A column of which numbers are made: steps from 0 of a grid, or the values themselves."""
    if code.grid is not None:
        return on_grid(rows, Measure(Column(code.name), code.grid))
    return key_value(rows, _listed_key(code))


def key_value(rows: Rows, key: Key) -> Value:
    """Return a key of each row; whole numbers have 64 bits in every engine."""
    value, domain = rows.value(key.value), key.value.domain(rows.schema)
    return whole_key(value) if domain.kind == "number" else value


def _exchanged(table: Value, name: str, known: Value, old: str, new: str) -> Value:
    """A table with one of two columns of public values in the place of the other; rows without one are left out."""
    known = known.view()  # two keys may have the same values
    joined = table.join(known, table[name] == known[old])
    return joined.select(**{one: joined[new if one == name else one] for one in table.columns})


def is_listed(value: Value, known: tuple[Any, ...], dialect: Dialect) -> Value:
    """Return whether a value is one of those that are public; one that is missing, only if None is listed."""
    values = tuple(one for one in known if one is not None)
    if len(values) > LONG_LIST:
        found = value.isin(dialect.listed(values, value.type().to_pyarrow())["known"])
    else:
        found = value.isin(values) if values else ibis.literal(False)
    return found | value.isnull() if None in known else found


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


def _same_unit(left: Value, right: Value) -> Value:
    """Whether two units are one. Decimals are compared as texts: a cast of one to the digits of another may fail."""
    if left.type().is_decimal() or right.type().is_decimal():
        return left.cast("string") == right.cast("string")
    return left == right


def _cells(tally: Tally) -> list[str]:
    return [tally.cells] if tally.cells else []

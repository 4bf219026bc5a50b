"""The law that privacy rests on: without one unit, no measured vector moves by more than the reach of its plan.

The nastiest small databases are drawn: values outside of their bounds, missing ones, keys that repeat, units with many
rows, joins that multiply, and units whose name is a key as well.
"""

from functools import cache

import pyarrow
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import sitr
import sitr.query.aggregates
import sitr.tables.expressions
from sitr.errors import InvalidArgument, NotAllowed
from sitr.tables.emitter import UNIT, Emitter
from tests.query.databases import KEY, asked, column, plan_of, replaced
from tests.query.measured import broken, measurer, ordered_by_content

NUMBERS = st.one_of(st.none(), st.integers(-3, 14), st.sampled_from([2**62, -(2**63), 2**63 - 1]))
FLOATS = st.one_of(st.none(), st.sampled_from([float("nan"), float("inf"), -float("inf"), 1e300, 0.5, -1.7, 2.9, 3.0]))
SMALL = st.sampled_from([0, 0, 0, 1, 1, 2, None])  # few, so that keys repeat and meet
TEXTS = st.one_of(st.none(), st.sampled_from(["a", "b", "c", "other", "A", ""]))
PERSONS = st.sampled_from([1, 1, 1, 2, 2, 3, None])

SCHEMAS = {
    "visits": {"person": "int64", "id": "int64", "k": "int64", "g": "string", "x": "int64", "f": "float64"},
    "drugs": {"person": "int64", "k2": "int64", "y": "int64"},
    "stays": {"stay": "int64", "person": "int64"},
    "charges": {"stay": "int64", "k": "int64", "g": "string", "x": "int64", "f": "float64"},
    "single": {"k": "int64", "g": "string", "x": "int64", "f": "float64"},
    "codes": {"k": "int64", "w": "int64"},
    "regions": {"k": "int64", "label": "string"},
}
VALUES = {"k": SMALL, "g": TEXTS, "x": NUMBERS, "f": FLOATS}
ROWS = {
    "visits": st.tuples(PERSONS, st.just(0), *VALUES.values()),
    "drugs": st.tuples(PERSONS, SMALL, NUMBERS),
    "stays": st.tuples(SMALL, PERSONS),
    "charges": st.tuples(SMALL, *VALUES.values()),
    "single": st.tuples(*VALUES.values()),
    "codes": st.tuples(SMALL, NUMBERS),
    "regions": st.tuples(SMALL, TEXTS),
}


def declaration(most):
    """Seven tables: people's, by a column or a key path; one whose rows are units; two public, one with a key."""
    values = {
        "k": column("integer"),
        "g": column("string", categories=["a", "b", "c"], nulls="group"),
        "x": column("integer", bounds=[0, 10]),
        "f": column("float", bounds=[-2, 3]),
    }
    whole = column("integer")
    bounded = column("integer", bounds=[-5, 5])
    by_person = {"unit": "person", "max_rows_per_unit": most}
    path = {"through": "stays", "on": {"stay": "stay"}}
    return {
        "privacy": {"delta": 1e-6},
        "tables": {
            "visits": {**by_person, "row_id": "id", "columns": {"person": whole, "id": whole, **values}},
            "drugs": {**by_person, "columns": {"person": whole, "k2": whole, "y": bounded}},
            "stays": {**by_person, "columns": {"stay": whole, "person": whole}},
            "charges": {"unit": path, "max_rows_per_unit": most, "columns": {"stay": whole, **values}},
            "single": {"unit": "row", "dataset": "single", "columns": values},
            "codes": {"public": True, "columns": {"k": whole, "w": bounded}},
            "regions": {"public": True, "key": "k", "columns": {"k": whole, "label": column("string")}},
        },
    }


def frames(rows):
    """Arrow tables; each visit has a number."""
    made = {}
    for name, schema in SCHEMAS.items():
        columns = list(zip(*rows[name], strict=True)) or [()] * len(schema)
        if name == "visits":
            columns[1] = tuple(range(len(rows[name])))
        kinds = [pyarrow.type_for_alias(kind) for kind in schema.values()]
        made[name] = pyarrow.table(
            {column: pyarrow.array(cells, kind) for column, cells, kind in zip(schema, columns, kinds, strict=True)}
        )
    return made


@cache
def database(most):
    made = asked("duckdb", frames({name: [] for name in SCHEMAS}), declaration(most))
    made.source._connection.raw_sql("SET threads = 1")  # quicker for so few rows
    return made


def without(tables, person):
    """The database without a person: their rows, their stays, and what hangs on stays of theirs alone."""
    made = dict(tables)
    stays = tables["stays"].to_pylist()
    alone = {row["stay"] for row in stays} - {row["stay"] for row in stays if row["person"] != person}
    for name in ("visits", "drugs", "stays"):
        made[name] = _kept(tables[name], lambda row: row["person"] != person)
    made["charges"] = _kept(tables["charges"], lambda row: row["stay"] not in alone)
    return made


def _kept(table, keep):
    return table.filter(pyarrow.array([keep(row) for row in table.to_pylist()], pyarrow.bool_()))


def without_row(tables, place):
    single = tables["single"]
    return {**tables, "single": pyarrow.concat_tables([single.slice(0, place), single.slice(place + 1)])}


# Relations

CONSTANTS = st.integers(-1, 4)
STEPS = ["codes", "codes", "regions", "drugs", "drugs on", "per unit", "derive", "override", "filter"]


def _numbers(table):
    return [name for name, domain in table._schema.items() if domain.kind == "number" and domain.bounded]


def _condition(table, draw):
    name = draw(st.sampled_from(table.columns))
    one, kind = table[name], table._schema[name].kind
    tests = [one.is_null(), ~one.is_null()]
    if kind == "number":
        constant = draw(CONSTANTS)
        tests += [one == constant, one <= constant, ~(one > constant), one.isin([constant, 2])]
    if kind == "string":
        tests += [one == "a", one != "b", one.isin(["c", "other"])]
    found = draw(st.sampled_from(tests))
    return found | (one == 0) if kind == "number" and draw(st.booleans()) else found


def _value(table, draw):
    names = _numbers(table)
    if not names:
        return sitr.tables.expressions.expression(draw(CONSTANTS))
    one, other = (table[draw(st.sampled_from(names))] for _ in range(2))
    return draw(
        st.sampled_from([one + 1, one - other, one * other, one / other, one / 2, abs(one), -one, one.fill_null(3)])
    )


def _changed(table, draw):
    """A table after one step, whichever."""
    step = draw(st.sampled_from(STEPS))
    keep = draw(st.booleans())
    if step == "filter":
        return table.filter(_condition(table, draw))
    if step == "derive":
        return table.derive(**{draw(st.sampled_from(["new", "newer"])): _value(table, draw)})
    if step == "override":
        return table.derive(**{draw(st.sampled_from(table.columns)): _value(table, draw)})
    if step in ("codes", "regions"):
        return table.join(step, "k", keep=keep)
    if step == "drugs":
        return table.join("drugs")
    if step == "drugs on":
        return table.join("drugs", {"k": "k2"})
    keys = [name for name in ("k", "g", "person") if name in table.columns and draw(st.booleans())]
    values = {"n": sitr.count()} | ({"s": sitr.sum("x", bounds=(0, 25))} if "x" in _numbers(table) else {})
    values["n"] = sitr.query.aggregates.Aggregate("count", bounds=(0, 6))
    return table.per_unit(*keys, **values)


def _aggregates(table, draw):
    numbers = _numbers(table)
    if numbers and draw(st.integers(0, 5)) == 0:
        return {"h": sitr.histogram(draw(st.sampled_from(numbers)), [-1, 0, 2, 3, 9])}
    asked_for = {
        "n": sitr.count(),
        "u": sitr.count_units(),
        "d": sitr.count_distinct(draw(st.sampled_from(table.columns))),
    }
    for name, make in (("s", sitr.sum), ("m", sitr.mean), ("v", sitr.variance), ("c", sitr.count)):
        if numbers:
            asked_for[name] = make(draw(st.sampled_from(numbers)))
    if len(numbers) > 1:
        asked_for["cov"] = sitr.covariance(*draw(st.permutations(numbers))[:2])
    chosen = draw(st.lists(st.sampled_from(sorted(asked_for)), min_size=1, max_size=3, unique=True))
    return {f"out_{name}": asked_for[name] for name in chosen}


def _grouped(table, draw):
    """Groups that are declared, listed, or found privately."""
    keys = [name for name in ("g", "k", "person", "label") if name in table.columns and draw(st.integers(0, 2)) == 0]
    listed = {}
    for name in keys:
        if table._schema[name].kind == "number" and draw(st.booleans()):
            listed[name] = [0, 1, 2, None]
    return table.group_by(*keys, values=listed)


LIMITS = st.one_of(
    st.just({}),
    st.builds(lambda rows: {"max_rows_per_unit": rows}, st.integers(1, 4)),
    st.builds(lambda a, b: {"max_groups_per_unit": a, "max_rows_per_group": b}, st.integers(1, 3), st.integers(1, 3)),
)


@st.composite
def questions(draw):
    """A question, and the rows of its database."""
    most = draw(st.sampled_from([1, 2, 4]))
    base = draw(st.sampled_from(["visits", "single", "charges"]))
    table = database(most).table(base)
    for _ in range(draw(st.sampled_from([2, 1, 3, 4, 0]))):
        try:
            table = _changed(table, draw)
        except (InvalidArgument, NotAllowed):
            continue
    while True:
        try:
            question = _grouped(table, draw).aggregate(**_aggregates(table, draw)).bounded(**draw(LIMITS))
            plan = plan_of(question)
            break
        except (InvalidArgument, NotAllowed):
            continue
    sizes = {"visits": 14, "drugs": 8, "stays": 5, "charges": 8, "single": 8, "codes": 7, "regions": 5}
    rows = {name: draw(st.lists(one, min_size=sizes[name] // 2, max_size=sizes[name])) for name, one in ROWS.items()}
    return question, plan, frames(rows)


def found_broken(question, plan, tables):
    """Every way in which leaving one unit out moves a vector too far."""
    source, database = question.database.source, question.database
    single = "single" in set(plan.query.relation.tables())
    replaced(database, tables)
    vectors = measurer(plan, source, KEY)
    before = vectors()
    others = (
        [without_row(tables, place) for place in range(tables["single"].num_rows)][:4]
        if single
        else [without(tables, person) for person in (1, 2)]
    )
    found = []
    for other in others:
        replaced(database, other)
        found += list(broken(plan, before, vectors()))
    return found


@pytest.fixture(autouse=True)
def coupled(monkeypatch):
    monkeypatch.setattr(Emitter, "_order", ordered_by_content)


@given(case=questions())
@settings(max_examples=80, suppress_health_check=list(HealthCheck))
def test_without_a_unit_nothing_moves_farther_than_its_reach(case):
    question, plan, tables = case
    note(str(question.query.to_dict()))
    assert not found_broken(question, plan, tables)


def many_rows_in_many_groups():
    rows = {name: [] for name in SCHEMAS}
    rows["visits"] = [(person, 0, 0, g, 5, 0.5) for person in (1, 2) for g in "abc" for _ in range(3)]
    return frames(rows)


def test_the_law_is_broken_by_bounding_after_grouping(monkeypatch):
    """A planted bug is seen: rows are bounded for each unit and group, and charged as if for each unit."""
    question = database(2).table("visits").group_by("g").aggregate(n=sitr.count()).bounded(max_rows_per_unit=2)
    plan = plan_of(question)
    assert not found_broken(question, plan, many_rows_in_many_groups())
    original = Emitter._first

    def first(self, table, by, most, row_id="row_id"):
        by = [UNIT, *(name for name in table.columns if name.startswith("key"))] if by == [UNIT] else by
        return original(self, table, by, most, row_id)

    monkeypatch.setattr(Emitter, "_first", first)
    assert found_broken(question, plan, many_rows_in_many_groups())


def test_the_law_is_broken_by_bounding_before_a_join_that_multiplies(monkeypatch):
    """A planted bug is seen: the rows that a public table multiplied are not bounded again."""
    tables = many_rows_in_many_groups()
    tables["codes"] = pyarrow.table({"k": [0] * 9, "w": list(range(9))})
    question = database(2).table("visits").join("codes", "k").aggregate(n=sitr.count())
    plan = plan_of(question)
    assert not found_broken(question, plan, tables)
    monkeypatch.setattr(Emitter, "_first", lambda self, table, by, most, row_id="row_id": table)
    assert found_broken(question, plan, tables)

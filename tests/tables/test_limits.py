"""Limits: what is too large is refused where it is written, before anything is charged; the largest can be asked."""

import random
from contextlib import suppress
from functools import reduce

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sitr
from sitr.errors import InvalidArgument, NotAllowed, SitrError
from sitr.query.aggregates import MOST_BINS
from sitr.tables.expressions import Arithmetic, Bucket, Case, Column, Comparison, Constant, Expression, In, Not, Part
from sitr.tables.limits import COLUMNS, DEPTH, NODES, NUMBERS, Extent
from sitr.tables.relations import Derive, Filter, Join, PerUnit, Scan, Select, UnitAggregate
from tests.tables import clinic

AGE, URGENT, DAY = Column("age"), Column("urgent"), Column("day")
NINE = range(1, 10)
CATEGORIES = {
    "sitr": 1,
    "name": "d",
    "budgets": {"d": {"epsilon": 100.0}},
    "tables": {
        "t": {
            "unit": "row",
            "columns": {
                "a": {"type": "integer", "categories": list(range(1000))},
                "b": {"type": "integer", "categories": list(range(1000))},
                "c": {"type": "integer", "bounds": [0, 8]},
                "x": {"type": "integer", "bounds": [0, 10**6]},
            },
        }
    },
}


@pytest.fixture(scope="module")
def db():
    return clinic.database()


@pytest.fixture(scope="module")
def many():
    import pyarrow

    from sitr.tables.declaration import Declaration

    frame = pyarrow.table({name: pyarrow.array([1, 2], "int64") for name in "abcx"})
    return sitr.open(Declaration.of(CATEGORIES), ledger="memory://", analyst="amina", frames={"t": frame})


def repeated(times, make, value):
    return reduce(lambda made, _: make(made), range(times), value)


def filtered(table, times):
    return repeated(times, lambda made: made.filter(made["age"] >= 1), table)


def doubled(table):
    return table.derive(even=(table["even"] == table["even"]) & table["urgent"])


TOO_LARGE = {
    "deep": lambda v: v.aggregate(m=sitr.sum(repeated(500, lambda one: one + 1, v["age"]))),
    "doubled": lambda v: v.aggregate(m=sitr.sum(repeated(12, lambda one: one + one, v["age"]))),
    "halved": lambda v: v.aggregate(m=sitr.sum(repeated(12, lambda one: 2 / one, v["age"]))),
    "absolute": lambda v: v.aggregate(m=sitr.sum(repeated(8, abs, v["age"]))),
    "not": lambda v: v.filter(repeated(3000, lambda one: ~one, v["urgent"])).aggregate(n=sitr.count()),
    "filters": lambda v: filtered(v, 3000).aggregate(n=sitr.count()),
    "columns doubled": lambda v: repeated(40, doubled, v.derive(even=v["urgent"])).aggregate(n=sitr.count()),
    "joined with itself": lambda v: repeated(12, lambda one: one.join(one), v).aggregate(n=sitr.count()),
    "aggregates": lambda v: v.aggregate(**{f"a{at}": sitr.sum(v["age"] + at) for at in range(3000)}),
    "quantiles": lambda v: filtered(v, 50).aggregate(**{f"a{at}": sitr.median(v["age"] + at) for at in range(90)}),
    "keys": lambda v: v.group_by(**{f"k{at}": v["urgent"] for at in range(3000)}).aggregate(n=sitr.count()),
    "long list": lambda v: v.filter(v["age"].isin(range(10**12))).aggregate(n=sitr.count()),
    "two lists": lambda v: v.filter(repeated(1, lambda one: one | one, v["age"].isin(range(9000)))).aggregate(
        n=sitr.count()
    ),
    "bins": lambda v: v.aggregate(n=sitr.histogram("age", range(10**12))),
    "bins of much": lambda v: v.aggregate(n=sitr.histogram(v["age"] * 2 + 1, range(1000))),
    "listed groups": lambda v: v.group_by("age", values={"age": range(10**12)}).aggregate(n=sitr.count()),
}


@pytest.mark.parametrize("what", TOO_LARGE)
def test_what_is_too_large_is_refused_and_costs_nothing(db, what):
    head = db.ledger.head
    with pytest.raises((NotAllowed, InvalidArgument)) as caught:
        TOO_LARGE[what](db.table("visits"))
    assert caught.value.do
    assert db.ledger.head == head


def test_many_columns_are_summed_up_by_the_question(db):
    visits = db.table("visits")
    wide = {f"d{at}": visits["age"] + at for at in range(1000)}
    visits.derive(**wide)
    with pytest.raises(NotAllowed, match=f"{NODES:,} parts"):
        visits.derive(**{f"d{at}": visits["age"] + at for at in range(NODES // 3 + 1)})


@pytest.mark.parametrize(
    ("keys", "bins"),
    [(("a", "b", "c"), 1), (("a", "b"), 5), (("a", "c"), 500)],
)
def test_groups_times_bins_are_limited(many, keys, bins):
    head = many.ledger.head
    edges = [at * 10**6 // bins for at in range(bins + 1)]
    with pytest.raises(NotAllowed, match=f"more than {NUMBERS:,}"):
        many.table("t").group_by(*keys).aggregate(n=sitr.histogram("x", edges))
    assert many.ledger.head == head


def test_groups_times_aggregates_are_limited(many):
    """A million groups with count, sum and mean can be asked for."""
    grouped = many.table("t").group_by("a", "b")
    asked = {"n": sitr.count(), "s": sitr.sum("x"), "m": sitr.mean("x")}
    grouped.aggregate(**asked).explain(epsilon=1)
    with pytest.raises(NotAllowed, match=r"1,000,000 groups x 5 aggregates"):
        grouped.aggregate(**asked, v=sitr.variance("x"), d=sitr.stddev("x"))
    with pytest.raises(NotAllowed, match=f"more than {NUMBERS:,}"):
        many.sql("SELECT a, b, c, COUNT(*) AS n FROM t GROUP BY a, b, c")


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT {', '.join(f'SUM(age + {at}) AS a{at}' for at in range(3000))} FROM visits",
        f"SELECT COUNT(*) AS n FROM visits HAVING {' OR '.join(f'SUM(age + {at}) > 1' for at in range(3000))}",
        f"SELECT COUNT(*) AS n FROM visits ORDER BY {', '.join(f'SUM(age + {at})' for at in range(3000))}",
        f"SELECT COUNT(*) AS n FROM visits GROUP BY {', '.join(f'age + {at}' for at in range(3000))}",
        f"SELECT SUM(CASE {' '.join(f'WHEN age = {at} THEN {at}' for at in range(500))} ELSE 0 END) AS s FROM visits",
        f"SELECT SUM({'ABS(' * 30}age{')' * 30}) AS s FROM visits",
        f"SELECT COUNT(*) AS n FROM visits WHERE {' AND '.join(f'age > {at}' for at in range(3000))}",
        f"SELECT COUNT(*) AS a0, {', '.join(f'a{at} + a{at} AS a{at + 1}' for at in range(50))} FROM visits",
        "WITH t0 AS (SELECT patient, age FROM visits), "
        + ", ".join(
            f"t{at + 1} AS (SELECT a.patient, a.age FROM t{at} a JOIN t{at} b USING (patient))" for at in range(9)
        )
        + " SELECT COUNT(*) AS n FROM t9",
    ],
)
def test_sql_has_the_same_limits(db, text):
    with pytest.raises(NotAllowed):
        db.sql(text)


CHAINS = {
    "sum": (lambda one: one + 1, AGE),
    "quotient": (lambda one: one / 2, AGE),
    "case": (lambda one: (one > 3).choose(1, 0), AGE),
    "not": (lambda one: ~one, URGENT),
    "listed": (lambda one: one.isin([True]), URGENT),
    "month": (lambda one: one.truncate("month"), DAY),
}


def below(depth, work):
    """Do something with so many calls standing open, as in a notebook or a server."""
    return work() if depth == 0 else below(depth - 1, work)


@pytest.mark.parametrize("kind", CHAINS)
def test_the_deepest_that_is_allowed_is_asked_from_deep_within_a_program(db, kind):
    make, one = CHAINS[kind]
    with suppress(NotAllowed):
        while (made := make(one)).extent.depth <= DEPTH - 4:  # is_null, the filter, and the question are above it
            one = made
    assert one.extent.depth > DEPTH - 10
    visits = db.table("visits")
    found = visits.filter(one.is_null()).aggregate(n=sitr.count())
    below(250, lambda: found.explain(epsilon=1))
    below(250, lambda: (repr(found.query), str(found.query.relation.condition), hash(found.query.relation)))
    assert found.release(epsilon=1).entry is not None


def test_the_most_bins_and_the_most_columns_can_be_asked_for(db):
    visits = db.table("visits")
    edges = [at * 120 / MOST_BINS for at in range(MOST_BINS + 1)]
    assert visits.aggregate(n=sitr.histogram("age", edges)).query.extent().nodes > 3 * MOST_BINS
    asked = {f"a{at}": sitr.count(visits["age"] + at) for at in range(COLUMNS)}
    assert len(visits.aggregate(**asked).query.aggregates) == COLUMNS


def test_a_long_list_of_what_was_computed_is_one_list(db):
    """A chain of comparisons, one for each value, would be as deep as the list is long."""
    visits = db.table("visits")
    found = visits.filter((visits["age"] + 1).isin(range(700))).aggregate(n=sitr.count())
    assert found.release(epsilon=100.0).value["n"][0] > 0


# Extents, a second time: the tree is written out, and its nodes are counted.


def written_out(one, columns):
    """The number of nodes and the depth of an expression, with computed columns in the place of their names."""
    if isinstance(one, Column) and one.name in columns:
        return columns[one.name]
    parts = [written_out(part, columns) for part in vars(one).values() if isinstance(part, Expression)]
    if isinstance(one, Bucket):
        ((nodes, depth),) = parts
        return 1 + len(one.edges) * (nodes + 2), depth + 2 + len(f"{len(one.edges):b}")
    if isinstance(one, Arithmetic) and one.operator == "/":
        parts.append(parts[1])
    more, deeper = (8, 6) if isinstance(one, Arithmetic) and one.operator == "/" else (1, 1)
    more += len(one.values) // 3 if isinstance(one, In) else 0
    return more + sum(nodes for nodes, _ in parts), deeper + max((depth for _, depth in parts), default=0)


NUMBER = st.recursive(
    st.sampled_from([AGE, Column("x"), Column("y"), Constant(3)]),
    lambda inner: st.one_of(
        st.builds(Arithmetic, st.sampled_from("+-*/"), inner, inner),
        st.builds(Case, st.builds(Comparison, st.just("<"), inner, inner), inner, inner),
        st.builds(Bucket, inner, st.lists(st.integers(), min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)
CONDITION = st.one_of(
    st.builds(Comparison, st.just("=="), NUMBER, NUMBER).map(Not),
    st.builds(In, NUMBER, st.lists(st.integers(0, 9), min_size=1, max_size=20).map(tuple)),
    st.builds(Part, st.just(DAY), st.just("month")).map(lambda part: part > 3),
)


@settings(max_examples=60)
@given(CONDITION, NUMBER, NUMBER)
def test_extents_are_those_of_the_tree_written_out(condition, first, second):
    x = written_out(first, {})
    y = written_out(second, {"x": x})
    found = written_out(condition, {"x": x, "y": y})
    if max(one[0] for one in (x, y, found)) > NODES or max(one[1] for one in (x, y, found)) > DEPTH:
        return
    rows = Derive(Derive(Scan("visits"), (("x", first),)), (("y", second),))
    assert condition.extent == Extent(*written_out(condition, {}))
    assert condition.extent_over(rows.computed) == Extent(*found)
    if 1 + rows.extent.nodes + found[0] <= NODES and found[1] < DEPTH:
        assert Filter(rows, condition).extent.nodes == 1 + rows.extent.nodes + found[0]


def test_the_extent_of_a_relation_is_that_of_all_its_steps():
    scan = Scan("visits")
    rows = Derive(scan, (("x", AGE + 1), ("z", AGE + 2)))
    assert (rows.extent, rows.computed) == (Extent(8, 3), {"x": Extent(3, 2), "z": Extent(3, 2)})
    chosen = Select(rows, (("w", "x"), ("age", "age")))
    assert (chosen.extent, chosen.computed) == (Extent(11, 4), {"w": Extent(3, 2)})
    joined = Join(chosen, scan, (("age", "age"),))
    assert (joined.extent, joined.computed) == (Extent(16, 5), {"w": Extent(3, 2)})
    added = PerUnit(joined, ("w",), (("s", UnitAggregate("sum", Column("w") * 2, (0, 1))),))
    assert (added.extent, added.computed) == (Extent(24, 6), {})


def test_no_random_question_ends_in_a_bare_error(db):
    """Steps and expressions of all sizes, put together at random: each is answered or refused."""
    chance = random.Random(13)
    for _ in range(6):
        table, one = db.table("visits"), AGE
        try:
            for _ in range(chance.choice([3, 30, 300])):
                make = chance.choice([lambda e: e + AGE, lambda e: e + e, lambda e: e.fill_null(1), lambda e: -e])
                one = make(one)
                if chance.random() < 0.2:
                    table = table.derive(x=one).filter(Column("x") > 3)
                    one = chance.choice([AGE, Column("x"), AGE / 2])
            table.aggregate(s=sitr.sum(one), n=sitr.count()).explain(epsilon=1)
        except SitrError:
            continue

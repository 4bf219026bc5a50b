"""The text of a query says what was meant, or it is not run."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import ibis
import pyarrow
import pytest
import sqlglot
from ibis.backends.sql.compilers import DuckDBCompiler, PostgresCompiler, PySparkCompiler
from sqlglot import exp

import sitr
from sitr.errors import EngineFailed, InvalidArgument, MissingExtra
from sitr.tables import statement
from sitr.tables.statement import bounds_in, bounds_of, check, plain, stated
from tests.tables import engines
from tests.tables.exact import exact

ROWS = 240
TABLES = {
    "r": pyarrow.table(
        {
            "who": pyarrow.array([None if one % 7 == 0 else one % 50 for one in range(ROWS)], pyarrow.int64()),
            "k": pyarrow.array([one % 3 for one in range(ROWS)], pyarrow.int64()),
            "age": pyarrow.array([None if one % 11 == 0 else one * 7 % 90 for one in range(ROWS)], pyarrow.int64()),
            "a": pyarrow.array([[True, False, None][one % 3] for one in range(ROWS)], pyarrow.bool_()),
            "b": pyarrow.array([[True, False, None][one // 3 % 3] for one in range(ROWS)], pyarrow.bool_()),
        }
    ),
    "o": pyarrow.table({"k": [0] * 40 + [1, 2], "a": [True] * 42, "b": [True] * 42}),
}
CONTENT: dict[str, Any] = {
    "tables": {
        "r": {
            "unit": "who",
            "max_rows_per_unit": 10,
            "columns": {
                "who": {"type": "integer"},
                "k": {"type": "integer"},
                "age": {"type": "integer", "bounds": [0, 100]},
                "a": {"type": "boolean"},
                "b": {"type": "boolean"},
            },
        },
        "o": {
            "public": True,
            "key": "k",
            "columns": {"k": {"type": "integer"}, "a": {"type": "boolean"}, "b": {"type": "boolean"}},
        },
    }
}


def either(row):
    sides = row["a"], row["b"]
    return True if True in sides else None if None in sides else False


def of_units(*conditions):
    return sum(all(one(row) for one in conditions) for row in TABLES["r"].to_pylist() if row["who"] is not None)


def adult(row):
    return row["age"] is not None and row["age"] >= 18


def test_a_composite_condition_keeps_its_meaning_on_every_engine(engine):
    counted = "SELECT COUNT(*) AS x FROM r"
    with engines.asked(engine, TABLES, CONTENT) as database:

        def answer(text):
            return exact(database.sql(text))

        joined = "JOIN (SELECT * FROM o WHERE (a OR b) IN (TRUE, FALSE)) AS o ON r.k = o.k"
        assert answer(f"{counted} {joined}") == [of_units()]  # not 40 times each row whose key is 0
        assert answer(f"{counted} WHERE (NOT a) IS NULL") == [of_units(lambda row: row["a"] is None)]
        assert answer(f"{counted} WHERE (a = b) IS NOT NULL AND ((age >= 18) = TRUE)") == [
            of_units(lambda row: None not in (row["a"], row["b"]), adult)
        ]
        assert answer(f"{counted} WHERE NOT ((a OR b) IS NULL)") == [of_units(lambda row: either(row) is not None)]
        young = "SELECT age < 18 AS young, COUNT(*) AS x FROM r GROUP BY age < 18"
        assert answer(young) == [
            of_units(adult),
            of_units(lambda row: row["age"] is not None and row["age"] < 18),
            of_units(lambda row: row["age"] is None),
        ]
        grouped = "SELECT a OR b AS any, COUNT(*) AS x FROM r WHERE age >= 18 GROUP BY a OR b"
        assert answer(grouped) == [
            of_units(adult, lambda row, is_it=is_it: either(row) is is_it) for is_it in (False, True, None)
        ]


def test_what_lost_its_parentheses_is_not_charged(monkeypatch):
    """The pass is taken out: the text says something else then, which is seen before anything is charged."""
    with engines.asked("duckdb", TABLES, CONTENT) as database:  # the engine has passed its own test, which is kept
        monkeypatch.setattr(statement, "in_parentheses", lambda tree: tree.copy())
        rows = database.table("r")
        question = rows.filter((rows["a"] | rows["b"]).isin([True, False])).aggregate(x=sitr.count())
        before = len(list(database.ledger.entries()))
        with pytest.raises(EngineFailed, match="does not say what was meant"):
            question.release(epsilon=1.0)
        assert len(list(database.ledger.entries())) == before


def test_sqlglot_in_its_compiled_form_is_refused(monkeypatch):
    """Else every check of an engine fails, and nothing says why."""
    monkeypatch.setattr(sqlglot.generator, "__file__", "generator.cpython-311-x86_64-linux-gnu.so")
    with pytest.raises(MissingExtra, match="sqlglotc"), engines.asked("duckdb", TABLES, CONTENT):
        pass


TABLE = ibis.table({"a": "boolean", "b": "boolean", "n": "int64"}, name="t")


COMPILER = DuckDBCompiler()
COMPILERS = {"duckdb": COMPILER, "postgresql": PostgresCompiler(), "spark": PySparkCompiler()}


def conditions():
    a, b, n = (TABLE[name] for name in TABLE.columns)
    either, small = a | b, n < 3
    parts = [a, ~a, either, a & b, a == b, small, n.between(1, 2), n.isin([1, -2]), a.isnull(), either.notnull()]
    parts += [(n - 1 - (n - 2)) * -n > 0, ~(either == small), (n + 1).isin([n * 2, n - 1])]
    for one in parts:
        yield from (one, one.isnull(), one.notnull(), ~one, one.isin([True, False]), one == either, one & b, b | one)
        yield from ((one == a).isnull(), ibis.cases((one, small), else_=either).isin([True]), one.fill_null(either))


@pytest.mark.parametrize("compiler", COMPILERS.values(), ids=COMPILERS)
def test_every_condition_is_read_as_it_was_meant(compiler):
    for condition in conditions():
        stated(TABLE.filter(condition), compiler)
        stated(TABLE.filter(TABLE["a"], condition).group_by(key=condition).count(), compiler)


def test_the_check_finds_conditions_that_are_read_otherwise():
    """Without the pass, by the text that sqlglot writes of what Ibis made."""
    wrong = 0
    for condition in conditions():
        tree = plain(COMPILER.to_sqlglot(TABLE.filter(condition)))
        try:
            check(tree.copy(), tree.sql("duckdb"), "duckdb", Counter())
        except EngineFailed:
            wrong += 1
    assert wrong > 20


LOST = [
    ("SELECT a FROM t WHERE (p < 1 OR b) AND c", "SELECT a FROM t WHERE p < 1 OR b AND c"),
    ("SELECT a FROM t WHERE b", "SELECT a FROM t"),
    ("SELECT a - (b - c) AS x FROM t", "SELECT a - b - c AS x FROM t"),
    ("SELECT a FROM t JOIN u ON t.a = u.a AND t.b = u.b", "SELECT a FROM t JOIN u ON t.a = u.a"),
    ("SELECT a FROM t LEFT JOIN u ON t.a = u.a", "SELECT a FROM t JOIN u ON t.a = u.a"),
    ("SELECT COUNT(*) AS n FROM t GROUP BY a, b", "SELECT COUNT(*) AS n FROM t GROUP BY a"),
    ("SELECT a FROM t QUALIFY ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) < 3", "SELECT a FROM t"),
    (
        "SELECT ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS n FROM t",
        "SELECT ROW_NUMBER() OVER (PARTITION BY a, c ORDER BY b) AS n FROM t",
    ),
    ("SELECT DISTINCT a FROM t", "SELECT a FROM t"),
    ("SELECT CAST(a AS BIGINT) AS x FROM t", "SELECT CAST(a AS INT) AS x FROM t"),
    ("SELECT a FROM t WHERE a IN ('x', 'y')", "SELECT a FROM t WHERE a IN ('x', 'Y')"),
    ("SELECT a FROM t WHERE a = '1:b;'", "SELECT a FROM t WHERE a = b"),
]


@pytest.mark.parametrize(("said", "read"), LOST)
def test_no_part_of_a_query_is_lost_unseen(said, read):
    tree = sqlglot.parse_one(said, dialect="duckdb")
    check(tree.copy(), said, "duckdb", Counter())
    with pytest.raises(EngineFailed):
        check(tree, read, "duckdb", Counter())


def test_a_bound_counts_only_as_a_conjunct_of_where():
    top = "SELECT * FROM t WHERE ((a OR b) AND (t.place < 4)) AND (NOT (unit IS NULL))"
    assert bounds_in(sqlglot.parse_one(top, dialect="duckdb")) == Counter({"place < 4": 1, "unit": 1})
    for undone in ("place < 4 OR a", "NOT (place < 4)", "(place < 4) = a", "place <= 4", "a IS NULL"):
        text = f"SELECT * FROM t WHERE {undone}"
        assert not bounds_in(sqlglot.parse_one(text, dialect="duckdb"))
        with pytest.raises(EngineFailed):
            check(sqlglot.parse_one(text, dialect="duckdb"), text, "duckdb", Counter({"place < 4": 1}))


def test_only_units_and_their_places_are_bounds_of_a_query():
    rows = ibis.table({"unit": "string", "a": "boolean", "place": "int64", "n": "int64"}, name="t")
    assert bounds_of(rows.filter(rows["unit"].notnull(), rows["place"] < 4)) == Counter({"place < 4": 1, "unit": 1})
    for condition in (rows["a"].notnull(), rows["n"] < 4, rows["place"] <= 4, rows["unit"].isnull()):
        assert not bounds_of(rows.filter(condition))


def test_deep_conditions_are_read_too():
    condition = TABLE["a"]
    for _ in range(60):
        condition = (TABLE["b"] == ~condition).isnull()
    made = stated(TABLE.filter(condition), COMPILER)
    assert made.text.count(" IS NULL") == 60
    assert made.pretty.count(" IS NULL") == 60
    assert isinstance(made.tree, exp.Select)


def test_deep_work_is_given_more_room_and_no_more_than_that():
    def depth(calls):
        return 0 if calls == 0 else 1 + depth(calls - 1)

    limit = sys.getrecursionlimit()
    assert statement._deeply(lambda: depth(2 * limit)) == 2 * limit
    assert sys.getrecursionlimit() == limit
    with pytest.raises(InvalidArgument, match="too deeply nested"):
        statement._deeply(lambda: depth(2 * statement.DEEP))
    assert sys.getrecursionlimit() == limit


def test_the_text_that_is_shown_is_the_one_that_is_sent():
    made = stated(TABLE.filter((TABLE["a"] | TABLE["b"]).isnull()), COMPILER)
    for one in (made, made.changed(lambda tree: tree.limit(0, copy=False))):
        assert " ".join(one.pretty.split()).replace("( ", "(").replace(" )", ")") == one.text
        assert len(one.pretty.splitlines()) > len(one.text.splitlines()) == 1
    assert one.text == f"{made.text} LIMIT 0"


def test_functions_within_functions_are_read_without_copies_of_what_they_hold(monkeypatch):
    """A hundred levels, each copied with all below it, took a minute for a question that is within the limits."""
    tree = exp.column("a")
    for _ in range(50):
        tree = exp.Coalesce(this=tree, expressions=[exp.column("b")])
    sizes, copy = [], exp.Expression.copy

    def counted(self):
        sizes.append(sum(1 for _ in self.walk()))
        return copy(self)

    root = exp.Paren(this=tree)
    before = root.sql()
    monkeypatch.setattr(exp.Expression, "copy", counted)
    statement._spelled_out(root, "duckdb")
    assert max(sizes) < 20
    monkeypatch.undo()
    assert root.sql() == before


def test_a_negative_number_is_the_opposite_of_one():
    """As a text is read, whichever of the two Ibis makes."""
    for literal in (exp.Literal(this="-5", is_string=False), exp.Literal.number(-5)):
        assert plain(exp.select(literal)) == sqlglot.parse_one("SELECT -5")


def test_words_of_an_engine_are_told_without_regard_to_their_case():
    tree = plain(exp.Extract(this=exp.Var(this="month"), expression=exp.column("d")))
    assert [one.name for one in tree.find_all(exp.Var)] == ["MONTH"]


@pytest.mark.parametrize("condition", ["NOT (a IS TRUE)", "NOT (a = NULL)", "a IS NULL", "NOT a"])
def test_only_what_says_that_something_is_there_counts_for_a_unit(condition):
    assert bounds_in(sqlglot.parse_one(f"SELECT 1 FROM r WHERE {condition}", dialect="duckdb")) == Counter()
    there = sqlglot.parse_one("SELECT 1 FROM r WHERE NOT (a IS NULL)", dialect="duckdb")
    assert bounds_in(there).total() == 1

"""One question, one answer, whatever the engine; and what comes out of an engine that fails, is stopped, or lies."""

from __future__ import annotations

import atexit
import math
import os
import signal
import threading
import time
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import psycopg
import pyarrow
import pytest

from sitr.errors import Cancelled, EngineFailed, InvalidDeclaration, MissingExtra
from sitr.query import aggregates as of
from sitr.query.execution import Execution
from sitr.session.database import Database, connect
from sitr.session.database import open as open_database
from sitr.tables.declaration import Declaration
from sitr.tables.expressions import Case, Constant, Expression
from tests.ledger import cluster
from tests.tables import engines

ROWS = 240
DOSES = [one for one in range(ROWS) for _ in range(one % 3)]
REGIONS = ["north", "South", "east ", "ost"]
START = datetime(1969, 12, 1, 22, 30, tzinfo=UTC)


def _visits() -> pyarrow.Table:
    at = range(ROWS)
    return pyarrow.table(
        {
            "id": pyarrow.array([one * 7919 - 500_000 for one in at], pyarrow.int64()),
            "who": pyarrow.array([None if one % 17 == 3 else one * 31 % 29 for one in at], pyarrow.int64()),
            "age": pyarrow.array([None if one % 13 == 5 else one * 11 % 97 for one in at], pyarrow.int8()),
            "cost": pyarrow.array([math.nan if one % 19 == 7 else one * 3.37 - 40 for one in at], pyarrow.float64()),
            "paid": pyarrow.array([Decimal(one * 37) / 100 for one in at], pyarrow.decimal128(10, 2)),
            "region": pyarrow.array([[*REGIONS, None][one * 7 % 5] for one in at], pyarrow.string()),
            "urgent": pyarrow.array([[True, False, None][one % 3] for one in at], pyarrow.bool_()),
            "day": pyarrow.array([date(1969, 11, 20) + timedelta(days=one) for one in at], pyarrow.date32()),
            "seen": pyarrow.array([START + timedelta(hours=11 * one) for one in at], pyarrow.timestamp("us", "UTC")),
        }
    )


TABLES = {
    "visits": _visits(),
    "stays": _visits(),
    "people": pyarrow.table(
        {
            "person": pyarrow.array(range(29), pyarrow.int64()),
            "born": pyarrow.array([1950 + one for one in range(29)], pyarrow.int32()),
        }
    ),
    "doses": pyarrow.table(
        {
            "visit": pyarrow.array([one * 7919 - 500_000 for one in DOSES], pyarrow.int64()),
            "dose": pyarrow.array([one % 50 for one in DOSES], pyarrow.uint16()),
        }
    ),
    "regions": pyarrow.table(
        {"name": pyarrow.array([*REGIONS, "ost"]), "beds": pyarrow.array([10, 20, 30, 40, 50], pyarrow.int64())}
    ),
}
KEYED: dict[str, Any] = {
    "unit": "who",
    "max_rows_per_unit": 4,
    "row_id": "id",
    "columns": {
        "id": {"type": "integer"},
        "who": {"type": "integer"},
        "age": {"type": "integer", "bounds": [0, 90]},
        "cost": {"type": "float", "bounds": [-10, 500]},
        "paid": {"type": "decimal(10, 2)", "bounds": [0, 80]},
        "region": {"type": "string", "categories": REGIONS[:3], "nulls": "group"},
        "urgent": {"type": "boolean", "nulls": "group"},
        "day": {"type": "date", "bounds": [date(1969, 1, 1), date(1971, 1, 1)]},
        "seen": {"type": "timestamp", "bounds": [datetime(1969, 1, 1), datetime(1971, 1, 1)]},
    },
}
CONTENT: dict[str, Any] = {
    "time_zone": "Asia/Kathmandu",
    "tables": {
        "visits": KEYED,
        "stays": KEYED | {"max_rows_per_unit": 50},
        "people": {
            "unit": "person",
            "max_rows_per_unit": 50,
            "columns": {"person": {"type": "integer"}, "born": {"type": "integer", "bounds": [1900, 2000]}},
        },
        "doses": {
            "unit": {"through": "visits", "on": {"visit": "id"}},
            "max_rows_per_unit": 100,
            "columns": {"visit": {"type": "integer"}, "dose": {"type": "uint16", "bounds": [0, 40]}},
        },
        "regions": {
            "public": True,
            "key": "name",
            "columns": {"name": {"type": "string"}, "beds": {"type": "integer", "bounds": [0, 100]}},
        },
    },
}


@cache
def database(engine: str) -> Database:
    made = engines.asked(engine, TABLES, CONTENT)
    atexit.register(made.close)
    return made


def one(condition: Expression) -> Expression:
    return Case(condition, Constant(1), Constant(0))


def conditions(visits: Any) -> dict[str, Expression]:
    """A condition of every kind of expression, some of them missing on some rows."""
    age, cost, paid, region = visits["age"], visits["cost"], visits["paid"], visits["region"]
    day, seen, urgent = visits["day"], visits["seen"], visits["urgent"]
    return {
        "less": age < 40,
        "at_most": cost <= 96.46,
        "decimal": paid == Decimal("22.20"),
        "fraction": paid > 12.345,
        "same": region == "South",
        "other": region != "east ",
        "listed": region.isin(["ost", "north"]),
        "numbers": age.isin([11, 22, 33, 44]),
        "computed": (age * 2).isin([22, 44, 33.5]),
        "nowhere": ~(age + 1).isin([0.5]),
        "both": urgent & (age > 50),
        "either": urgent | (cost > 300),
        "opposite": ~urgent,
        "gone": cost.is_null(),
        "filled": age.fill_null(95) > 80,
        "sum": age + paid > 60,
        "difference": paid - age >= 0,
        "product": age * age < 900,
        "quotient": paid / age > 2,
        "absolute": abs(cost) < 50,
        "between": cost.between(0, 100),
        "case": Case(urgent, age, Constant(7)) == 7,
        "date": day >= date(1970, 2, 1),
        "moment": seen < datetime(1970, 1, 1, 12, 30),
        "week": day.truncate("week") == date(1969, 12, 29),
        "hour": seen.part("hour") < 6,
        "weekday": day.part("weekday") == 6,
    }


QUESTIONS = {
    "rows": lambda db: db.table("visits").aggregate(n=of.count(), known=of.count("cost"), people=of.count_units()),
    "moments": lambda db: (
        db.table("visits")
        .group_by("region")
        .aggregate(n=of.count(), spent=of.sum("cost"), spread=of.variance("cost"), old=of.mean("age"))
    ),
    "together": lambda db: db.table("visits").aggregate(
        both=of.covariance("age", "cost"), r=of.correlation("age", "paid")
    ),
    "groups": lambda db: (
        db.table("visits")
        .group_by("region", "urgent")
        .aggregate(n=of.count(), paid=of.sum("paid"), people=of.count_units())
        .bounded(max_groups_per_unit=2, max_rows_per_group=1)
    ),
    "cells": lambda db: (
        db.table("visits")
        .group_by("region")
        .aggregate(n=of.histogram("cost", [-10, 0, 33.3, 100, 500]))
        .bounded(max_groups_per_unit=2, max_rows_per_group=2)
    ),
    "found groups": lambda db: (
        db.table("visits").group_by(month=db.table("visits")["seen"].truncate("month")).aggregate(n=of.count())
    ),
    "private keys": lambda db: (
        db.table("visits").group_by("age", values={"age": [*range(0, 90, 11), None]}).aggregate(n=of.count_units())
    ),
    "different": lambda db: (
        db.table("stays")
        .aggregate(ages=of.count_distinct("age"), regions=of.count_distinct("region"))
        .bounded(max_rows_per_unit=50)
    ),
    "public join": lambda db: (
        db.table("stays")
        .join("regions", {"region": "name"}, keep=True)
        .aggregate(n=of.count("beds"), beds=of.sum("beds"))
        .bounded(max_rows_per_unit=50)
    ),
    "private join": lambda db: (
        db.table("people")
        .join("doses")
        .aggregate(n=of.count(), dose=of.sum("dose"), born=of.mean("born"))
        .bounded(max_rows_per_unit=100)
    ),
    "through a key": lambda db: (
        db.table("doses").aggregate(n=of.count(), dose=of.variance("dose")).bounded(max_rows_per_unit=100)
    ),
    "per unit": lambda db: (
        db.table("visits")
        .per_unit(
            n=of.Aggregate("count", bounds=(0, 20)),
            spent=of.sum("cost", bounds=(0, 1000)),
            least=of.Aggregate("min", of.Column("age"), bounds=(0, 90)),
            usual=of.mean("paid", bounds=(0, 80)),
        )
        .aggregate(n=of.mean("n", bounds=(0, 20)), spent=of.sum("spent"), least=of.mean("least"), usual=of.sum("usual"))
    ),
    "conditions": lambda db: (
        db.table("visits")
        .derive(**{name: one(test) for name, test in conditions(db.table("visits")).items()})
        .aggregate(**{name: of.sum(name) for name in conditions(db.table("visits"))})
    ),
    "filtered": lambda db: (
        (visits := db.table("visits"))
        .filter((visits["age"] >= 18) & ~visits["region"].isin(["ost"]) & (visits["cost"] < 400.5))
        .derive(ratio=visits["paid"] / visits["age"], late=visits["seen"].part("hour"))
        .aggregate(ratio=of.sum("ratio", bounds=(0, 10)), late=of.mean("late"), n=of.count("ratio"))
    ),
}


def exact(db: Database, question: Any) -> dict[str, list[Any]]:
    made, _ = question._planned(1.0, 1e-6, None)
    answer = Execution(made, db.source, unsafe_without_noise=True, unsafe_key=7).answer()
    assert not answer.private
    return dict(answer.value)


@cache
def by_duckdb(name: str) -> dict[str, list[Any]]:
    db = database("duckdb")
    return exact(db, QUESTIONS[name](db))


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_engine_gives_the_same_answer(engine, name):
    db = database(engine)
    assert exact(db, QUESTIONS[name](db)) == by_duckdb(name)


def test_the_answers_are_about_something():
    """What engines agree on is not nothing."""
    people = Counter(who for who in TABLES["visits"]["who"].to_pylist() if who is not None)
    kept = sum(min(4, rows) for rows in people.values())
    assert by_duckdb("rows")["n"] == [kept]
    assert by_duckdb("rows")["people"] == [len(people)]
    assert 0.9 * kept < by_duckdb("rows")["known"][0] < kept
    found = by_duckdb("conditions")
    assert all(0 < count[0] < kept for name, count in found.items() if name not in ("week", "decimal")), found


FAIL = {
    "duckdb": lambda source: source._connection.raw_sql("SELECT CAST('s3cret' AS INTEGER)").fetchall(),
    "postgresql": lambda source: source._connection.con.execute("SELECT CAST('s3cret' AS INTEGER)"),
    "spark": lambda source: source._session.sql("SELECT raise_error(concat('s3c', id, 'ret')) FROM range(9)").collect(),
}


def test_what_an_engine_says_when_it_fails_stays_inside(engine, monkeypatch, capfd):
    db = database(engine)
    before = db.ledger.remaining("test").value
    fetch, calls = db.source.fetch, []

    def fetched(statement):
        calls.append(statement)
        return fetch(statement) if len(calls) == 1 else FAIL[engine](db.source)

    monkeypatch.setattr(db.source, "fetch", fetched)
    with pytest.raises(EngineFailed) as caught:
        db.table("visits").aggregate(n=of.count()).release(epsilon=0.5)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    assert "s3c" not in str(error)
    said = capfd.readouterr()
    assert "s3c" not in said.out + said.err
    assert db.ledger.remaining("test").value < before  # it may have read rows


@pytest.fixture
def heard():
    """Ctrl-C reaches this process, even where it was started in the background and shall not hear it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_stopped_query_is_cancelled_and_stays_charged(engine, heard):
    """A join that would take a minute, and Ctrl-C after a second."""
    many = pyarrow.table({"k": pyarrow.array([1] * 60_000, pyarrow.int64())})
    columns = {"k": {"type": "integer"}}
    tables = {
        "own": {"unit": "k", "max_rows_per_unit": 100_000, "columns": columns},
        "other": {"public": True, "columns": columns},
    }
    with engines.asked(engine, {"own": many, "other": many.slice(0)}, {"tables": tables}) as db:  # two frames, not one
        before, begun = db.ledger.remaining("test").value, []

        def progress(stage: str) -> None:
            if stage == "aggregating":
                begun.append(time.monotonic())
                threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()

        with pytest.raises(Cancelled) as caught:
            db.table("own").join("other", "k").aggregate(n=of.count()).release(epsilon=0.5, progress=progress)
        assert time.monotonic() - begun[0] < 30
        assert caught.value.__cause__ is None
        assert db.ledger.remaining("test").value < before
        assert exact(db, db.table("own").aggregate(n=of.count())) == {"n": [60_000]}  # the connection lives


def test_a_random_column_chooses_anew_for_each_release(engine):
    """Two of forty rows of one person, chosen twice; that both choices are equal has a chance of 1 in 780 each time."""
    rows = pyarrow.table(
        {"who": pyarrow.array([1] * 40, pyarrow.int64()), "x": pyarrow.array(range(40), pyarrow.int64())}
    )
    columns = {"who": {"type": "integer"}, "x": {"type": "integer", "bounds": [0, 39], "categories": list(range(40))}}
    table = {"unit": "who", "max_rows_per_unit": 2, "columns": columns}
    with engines.asked(engine, {"t": rows}, {"tables": {"t": table}}) as db:
        made, _ = db.table("t").group_by("x").aggregate(n=of.count())._planned(1.0, 1e-6, None)
        drawn = [Execution(made, db.source, unsafe_without_noise=True).answer().value["n"] for _ in range(4)]
    assert all(sum(counts) == 2 for counts in drawn)
    assert len({tuple(counts) for counts in drawn}) > 1


CSV = """who,x,ratio,day,text,extra
1,5,0.5,2024-02-29,a,
2,not a number,nan,2024-02-30,"b, c",
3,7,,1969-12-31,,z
,9,2.5,2024-01-01,d,
4
5,99999999999999999999,1e3,tomorrow,"a",
"""


@pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.xdist_group("spark"))])
def test_in_a_text_file_what_does_not_fit_is_missing(engine, tmp_path):
    if reason := engines.missing(engine):
        pytest.skip(reason)
    (tmp_path / "rows.csv").write_text(CSV)
    columns = {
        "who": {"type": "integer"},
        "x": {"type": "integer", "bounds": [0, 10]},
        "ratio": {"type": "float", "bounds": [0, 10]},
        "day": {"type": "date", "bounds": [date(1960, 1, 1), date(2030, 1, 1)]},
        "text": {"type": "string"},
    }
    table = {"source": "rows.csv", "unit": "who", "max_rows_per_unit": 3, "columns": columns}
    content = {"sitr": 1, "name": "test", "connection": {"engine": engine}, "tables": {"rows": table}}
    content["budgets"] = {"test": {"epsilon": 10}}
    with open_database(Declaration.of(content, tmp_path), analyst="amina", ledger="memory://") as db:
        rows = db.table("rows")
        rows = rows.derive(comma=one(rows["text"] == "b, c"), plain=one(rows["text"] == "a"))
        there = {f"n_{name}": of.count(name) for name in ("x", "ratio", "day")}
        added = {name: of.sum(name) for name in ("comma", "plain")}
        found = exact(db, rows.aggregate(n=of.count(), **there, **added))
    assert found == {"n": [5], "n_x": [2], "n_ratio": [2], "n_day": [2], "comma": [1], "plain": [2]}


# PostgreSQL alone


ODD = {
    "NaN": "infinity",
    "Infinity": "-infinity",
    "-Infinity": "4000-01-01 BC",
    "1e400": "50000-01-01",
    "1e-400": "1975-01-01",
}


def test_what_only_postgresql_holds_is_missing_or_clipped_and_never_raises():
    if reason := engines.missing("postgresql"):
        pytest.skip(reason)
    url = cluster.shared().fresh_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE odd (free numeric, real numeric, day date, at timestamptz, who uuid)")
        for free, moment in ODD.items():
            row = (free, free, moment, moment)
            connection.execute("INSERT INTO odd VALUES (%s, %s, %s, %s, gen_random_uuid())", row)
    columns = {
        "free": {"type": "decimal(20, 2)", "bounds": [0, 100]},
        "real": {"type": "float", "bounds": [0, 100]},
        "day": {"type": "date", "bounds": [date(1970, 1, 1), date(1980, 1, 1)]},
        "at": {"type": "timestamp", "bounds": [datetime(1970, 1, 1), datetime(1980, 1, 1)]},
        "who": {"type": "string"},
    }
    declared = Declaration.of(
        {
            "sitr": 1,
            "name": "test",
            "connection": {"engine": "postgresql", "address": url},
            "budgets": {"test": {"epsilon": 10}},
            "tables": {"odd": {"unit": "who", "max_rows_per_unit": 9, "columns": columns}},
        }
    )
    with open_database(declared, analyst="amina", ledger="memory://") as db:
        odd = db.table("odd")
        odd = odd.derive(year=odd["day"].part("year"))
        there = {name: of.count(name) for name in ("free", "day", "at", "year")}
        found = exact(db, odd.aggregate(n=of.count(), **there))
        assert found == {"n": [5], "free": [4], "day": [1], "at": [1], "year": [1]}
        assert exact(db, odd.aggregate(free=of.sum("free"), real=of.sum("real"))) == {"free": [200.0], "real": [200.0]}
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            db.source._connection.con.execute("DROP TABLE odd")


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("numeric(40, 0)", ["1e39", "1e39 + 1"]),
        ("numeric", ["1.3", "1.4"]),
        ("numeric", ["'Infinity'", "1e60"]),
    ],
)
def test_people_whose_numbers_do_not_fit_are_nobody_and_not_one_unit(kind, names):
    """As one unit, each of them would decide which rows of the others are kept."""
    if reason := engines.missing("postgresql"):
        pytest.skip(reason)
    url = cluster.shared().fresh_database()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE t (who {kind})")
        for name in [*names, "7", "7.0", "-99999999999999999999999999999999999999"]:
            connection.execute(f"INSERT INTO t VALUES ({name})")
    content = {
        "sitr": 1,
        "name": "test",
        "connection": {"engine": "postgresql", "address": url},
        "budgets": {"test": {"epsilon": 10}},
        "tables": {"t": {"unit": "who", "max_rows_per_unit": 9, "columns": {"who": {"type": "integer"}}}},
    }
    with open_database(Declaration.of(content), analyst="amina", ledger="memory://") as db:
        found = exact(db, db.table("t").aggregate(n=of.count(), units=of.count_units()))
    assert found == {"n": [3], "units": [2]}


def test_a_database_that_is_not_in_utf8_is_refused():
    if reason := engines.missing("postgresql"):
        pytest.skip(reason)
    shared = cluster.shared()
    shared.sql("CREATE DATABASE plain OWNER owner ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    content = {**CONTENT, "sitr": 1, "name": "test"}
    content["connection"] = {"engine": "postgresql", "address": shared.url("plain")}
    with pytest.raises(InvalidDeclaration, match="not in UTF-8"):
        connect(Declaration.of(content))


@pytest.mark.parametrize(
    ("engine", "address", "says"),
    [
        ("postgresql", "", "no address"),
        ("postgresql", "postgresql://nobody@/none?host=/nowhere", "cannot be reached"),
    ],
)
def test_a_server_that_is_not_there(engine, address, says):
    content = {**CONTENT, "sitr": 1, "name": "test", "connection": {"engine": engine, "address": address}}
    with pytest.raises(InvalidDeclaration, match=says) as caught:
        connect(Declaration.of(content))
    assert caught.value.__context__ is None


@pytest.mark.parametrize(("engine", "package"), [("postgresql", "psycopg"), ("spark", "pyspark")])
def test_an_engine_that_is_not_installed(engine, package, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    address = "postgresql://a@b/c" if engine == "postgresql" else ""
    content = {**CONTENT, "sitr": 1, "name": "test", "connection": {"engine": engine, "address": address}}
    with pytest.raises(MissingExtra, match=package) as caught:
        connect(Declaration.of(content))
    assert f"sitr[{engine}]" in str(caught.value)

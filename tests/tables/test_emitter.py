"""The emitter: rows that engines fail on are missing instead, and a unit is bounded."""

import itertools
import math
from datetime import UTC, date, datetime
from decimal import Decimal

import ibis
import pyarrow
import pytest

import sitr
from sitr.query.execution import Execution
from sitr.query.facts import Facts
from sitr.query.planner import Target, plan
from sitr.query.sql.postprocessing import COMPARED
from sitr.session.database import open as opened
from sitr.tables.declaration import Declaration
from sitr.tables.duckdb import MOST_PLACES
from sitr.tables.emitter import PRIME, _same_unit
from sitr.tables.expressions import Column, Comparison, Constant
from sitr.tables.relations import Scan
from sitr.tables.tally import Key, Measure, Tally
from tests.tables import clinic, engines
from tests.tables.conftest import PARAMS
from tests.tables.exact import database, exact


def test_rows_are_counted_where_no_column_is_read():
    with database({"x": {"type": "integer"}}, pyarrow.table({"x": [1, 2, 3]})) as one:
        assert exact(one.table("t").aggregate(x=sitr.count())) == [3.0]


BOUNDS = {"bounds": [date(1990, 1, 1), date(2030, 1, 1)]}


def test_a_date_outside_the_calendar_is_missing():
    """Year 5,881,580: DuckDB fails on it in `CAST(day AS TIMESTAMP)`, `date_trunc` and 64-bit products of its year."""
    table = pyarrow.table({"d": pyarrow.array([20_000, 2**31 - 5, -(2**31) + 5, None], pyarrow.date32())})
    with database({"d": {"type": "date"} | BOUNDS}, table) as one:
        rows = one.table("t")
        assert exact(rows.aggregate(x=sitr.count("d"))) == [1.0]
        assert abs((exact(rows.aggregate(x=sitr.median("d")))[0] - date(2024, 10, 4)).days) < 40
        assert exact(rows.derive(y=rows["d"].part("year") * 2**48).aggregate(x=sitr.count("y"))) == [1.0]
        assert sum(exact(rows.group_by(w=rows["d"].truncate("week")).aggregate(x=sitr.count()))) == 1.0
        assert exact(rows.filter(rows["d"] > datetime(2020, 1, 1)).aggregate(x=sitr.count())) == [1.0]


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_time_outside_the_calendar_is_missing(unit, zone):
    one_day = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit] * 10**9
    moments = pyarrow.array([one_day, 2**63 - 10, -(2**63) + 10, None], pyarrow.timestamp(unit, zone))
    bounds = {"bounds": [datetime(1990, 1, 1), datetime(2030, 1, 1)]}
    inside = 3.0 if unit == "ns" else 1.0  # which ends in 1677 and 2262 by itself
    with database({"d": {"type": "timestamp"} | bounds}, pyarrow.table({"d": moments})) as one:
        rows = one.table("t")
        assert exact(rows.aggregate(x=sitr.count("d"))) == [inside]
        assert len(exact(rows.aggregate(x=sitr.median("d")))) == 1
        assert exact(rows.derive(y=rows["d"].truncate("day")).aggregate(x=sitr.count("y"))) == [inside]
        assert exact(rows.derive(y=rows["d"].part("year") * 2**48).aggregate(x=sitr.count("y"))) == [inside]
        assert exact(
            rows.filter(rows["d"].between(datetime(2000, 1, 1), date(2002, 1, 1))).aggregate(x=sitr.count())
        ) == [1.0]


def test_a_found_key_outside_the_calendar_is_no_key():
    days = pyarrow.array([2**31 - 5] * 50 + [0] * 50, pyarrow.date32())
    with database({"d": {"type": "date"}}, pyarrow.table({"d": days})) as one:
        answer = one.table("t").group_by("d").aggregate(x=sitr.count()).release(epsilon=20.0, delta=1e-6)
        assert answer.value["d"] == [date(1970, 1, 1)]


def test_rows_that_match_nothing_are_counted_beside_a_column_that_they_lack():
    tables = clinic.CONTENT["tables"] | {
        "wards": clinic.WARDS | {"columns": {"ward": {"type": "string"}, "beds": {"type": "int16", "nulls": "drop"}}}
    }
    with clinic.database(clinic.CONTENT | {"tables": tables}) as one:
        joined = one.table("visits").join("wards", "ward", keep=True)
        question = joined.aggregate(n=sitr.count(), m=sitr.mean("beds")).bounded(max_rows_per_unit=4)
        assert exact(question, "n") == [600.0]  # ward "c" is not among the wards


def test_a_moment_of_two_values_leaves_out_rows_that_lack_one_of_them():
    """Whatever its powers: a row without y is not in the sum of x, since both are measured of rows that have both."""
    pairs = [(1, 2), (3, None), (None, 5), (None, None), (4, 7), (0, 9)]
    table = pyarrow.table({name: [pair[at] for pair in pairs] for at, name in enumerate("xy")})
    with database({name: {"type": "integer", "bounds": [0, 9]} for name in "xy"}, table) as one:
        schema = one.declared.tables["t"].schema
        measures = {name: Measure(Column(name), schema[name].within(None)) for name in "xy"}
        powers = list(itertools.product(range(3), repeat=2))
        tally = Tally(Scan("t"), (), None, measures, tuple((("x", a), ("y", b)) for a, b in powers))
        (found,) = one.source.run(tally).to_pylist()
    whole = [(x, y) for x, y in pairs if x is not None and y is not None]
    assert [int(found[f"sum{at}"]) for at in range(9)] == [sum(x**a * y**b for x, y in whole) for a, b in powers]


def test_rows_of_a_unit_cancel_before_their_sum_is_clipped():
    """Each row alone may be far outside the bounds of the sum, to either side."""
    rows = {"a": [-90, 93], "b": [95, -91], "c": [-7, -60], "d": [50, 80], "e": [6]}
    pairs = [(who, amount) for who, amounts in rows.items() for amount in amounts]
    columns = {"who": {"type": "string"}, "amount": {"type": "integer", "bounds": [-100, 100]}}
    table = pyarrow.table({name: [pair[at] for pair in pairs] for at, name in enumerate(columns)})
    with database(columns, table, unit="who", max_rows_per_unit=2) as one:
        totals = one.table("t").per_unit(total=sitr.sum("amount", bounds=(0, 10)))
        assert exact(totals.aggregate(x=sitr.sum("total"))) == [3 + 4 + 0 + 10 + 6]


@pytest.mark.parametrize("turned", [False, True])
def test_of_public_rows_of_one_key_the_least_is_taken_whatever_their_order(turned):
    rows = [("a", 30), ("a", 10), ("a", 20), ("b", 7), ("b", 5)]
    wards = pyarrow.table(
        {name: [row[at] for row in rows[:: -1 if turned else 1]] for at, name in enumerate(("w", "n"))}
    )
    table = {"unit": "row", "columns": {"w": {"type": "string"}}}
    public = {
        "public": True,
        "key": "w",
        "columns": {"w": {"type": "string"}, "n": {"type": "integer", "bounds": [0, 50]}},
    }
    frames = {"t": pyarrow.table({"w": ["a", "b", "b"]}), "wards": wards}
    with engines.asked("duckdb", frames, {"tables": {"t": table, "wards": public}}) as one:
        assert exact(one.table("t").join("wards", "w").aggregate(x=sitr.sum("n"))) == [10 + 5 + 5]


def test_a_moment_with_a_zone_is_read_on_the_wall():
    table = pyarrow.table({"d": pyarrow.array([datetime(2024, 1, 1, 22, tzinfo=UTC)], pyarrow.timestamp("us", "UTC"))})
    content = {"sitr": 1, "name": "d", "time_zone": "Asia/Riyadh", "budgets": {"d": {"epsilon": 9.0}},
               "tables": {"t": {"unit": "row", "columns": {"d": {"type": "timestamp"}}}}}  # fmt: skip
    with opened(Declaration.of(content), ledger="memory://", analyst="a", frames={"t": table}) as one:
        rows = one.table("t")
        assert exact(rows.filter(rows["d"].part("hour") == 1).aggregate(x=sitr.count())) == [1.0]


@pytest.mark.parametrize("most", [1, 2, 3])
def test_no_more_rows_of_a_unit_are_kept_than_its_bound(most):
    with clinic.database() as one:
        question = one.table("visits").group_by("region").aggregate(x=sitr.count())
        assert sum(exact(question.bounded(max_rows_per_unit=most))) == 200 * most
        by_group = question.bounded(max_groups_per_unit=1, max_rows_per_group=most)
        assert 200 <= sum(exact(by_group)) <= 200 * most


def test_ids_are_mixed_over_a_prime_field():
    """Where a product with a key takes no two ids to one, as it would if there were divisors; and nothing overflows."""
    assert all(PRIME % divisor for divisor in range(2, math.isqrt(PRIME) + 1))
    assert 2 * PRIME**2 < 2**63


def test_public_texts_go_by_their_places_and_come_back_as_texts():
    """Also if one is listed twice: a row that met both would count twice. Others, and missing ones, are left out."""
    source = clinic.source()
    wards = clinic.labs().column("ward").to_pylist()
    listed = ("b", "a", "b", "nowhere")
    keys = tuple(Key(name, Column("ward"), listed) for name in ("one", "two"))
    found = source.run(Tally(Scan("labs"), keys, None, {})).to_pylist()
    counted = {(row["key0"], row["key1"]): int(row["sum0"]) for row in found}
    assert counted == {(ward, ward): wards.count(ward) for ward in ("a", "b")}
    assert "sitr_known" in source.explain(Tally(Scan("labs"), keys, None, {}))


def test_long_lists_and_missing_keys_are_compared_as_they_are():
    source = clinic.source()
    wards = clinic.labs().column("ward").to_pylist()
    for listed in (("a", None), ("a", *(str(number) for number in range(MOST_PLACES)))):
        key = Key("ward", Column("ward"), listed)
        found = source.run(Tally(Scan("labs"), (key,), None, {})).to_pylist()
        counted = {row["key0"]: int(row["sum0"]) for row in found}
        assert counted == {ward: wards.count(ward) for ward in listed if ward in wards}


WHO = {"type": "string"}
NAMED = pyarrow.table(
    {
        "who": pyarrow.array([b"a", b"\xff1", b"\xff2", b"\xfe", b"b", None] * 8, pyarrow.binary()).view(
            pyarrow.string()
        ),
        "id": pyarrow.array(range(48), pyarrow.int64()),
    }
)
READING = [name for name in PARAMS if name != "postgresql"]  # which holds no such text


@pytest.mark.parametrize("engine", READING)
def test_people_whose_name_is_no_text_are_nobody(engine):
    """They would be one person together: one more of them would move others' rows out of the bound."""
    tables = {"visits": NAMED, "doses": pyarrow.table({"visit": pyarrow.array(range(48), pyarrow.int64())})}
    visits = {"unit": "who", "max_rows_per_unit": 5, "columns": {"who": WHO, "id": {"type": "integer"}}}
    doses = {
        "unit": {"through": "visits", "on": {"visit": "id"}},
        "max_rows_per_unit": 5,
        "columns": {"visit": {"type": "integer"}},
    }
    with engines.asked(engine, tables, {"tables": {"visits": visits, "doses": doses}}) as one:
        for name in tables:
            question = one.table(name).aggregate(x=sitr.count(), units=sitr.count_units())
            assert (exact(question), exact(question, "units")) == ([10.0], [2.0])


@pytest.mark.parametrize("engine", ["duckdb", "postgresql"])
def test_bins_of_what_is_computed_may_lie_anywhere(engine):
    """Edges between two steps of a quotient, and beyond all of them: each row is in the bin that it belongs to."""
    rows = {"x": [0, 1, 2, 3, 4, 5, None], "y": [3, 3, 3, 0, 7, 2, 1]}
    table = {"unit": "row", "columns": {name: {"type": "integer", "bounds": [0, 9]} for name in rows}}
    edges = [-1e15, 1 / 7, 0.4 + 1 / 3, 1e15 + 1 / 3]
    with engines.asked(engine, {"t": pyarrow.table(rows)}, {"tables": {"t": table}}) as one:
        t = one.table("t")
        question = t.aggregate(n=sitr.histogram(t["x"] / t["y"], edges))
        assert question.release(epsilon=1).entry is not None  # rehearsed, charged and answered
        made, _ = question._planned(1.0, None, None)
        found = Execution(made, one.source, unsafe_without_noise=True).answer()
    assert found.value["n"] == [1, 3, 1]  # 0; 1/3, 2/3 and 4/7; 5/2


def test_what_was_computed_is_compared_with_any_constant():
    """A constant between two steps, on one, or beyond all of them, on either side of each comparison."""
    with database({"x": {"type": "integer", "bounds": [0, 9]}}, pyarrow.table({"x": [0, 1, 2, 3, 4, None]})) as one:
        half = one.table("t")["x"] / 2  # 0, 1/2, 1, 3/2, 2
        for constant in (0.5, 1 / 3, 2 / 3, 1, -(2.0**60) - 1 / 3, 1e15 + 1 / 7):
            for sign in ("<", "<=", ">", ">=", "==", "!="):
                for left, right in ((half, Constant(constant)), (Constant(constant), half)):
                    kept = one.table("t").filter(Comparison(sign, left, right)).aggregate(x=sitr.count())
                    a, b = (lambda v: v / 2, lambda v: constant)[:: 1 if left is half else -1]  # noqa: B023
                    assert exact(kept) == [sum(COMPARED[sign](a(v), b(v)) for v in range(5))], (constant, sign)


VISITS = {
    "who": pyarrow.array([1] * 10 + [2, 2, 3]),
    "ward": pyarrow.array(["a"] * 9 + ["b", "a", "b", "b"]),
    "cost": pyarrow.array([1.0] * 9 + [5.0, 7.0, 7.0, 9.0]),
}
COLUMNS = {
    "who": {"type": "integer"},
    "ward": {"type": "string", "categories": ["a", "b"]},
    "cost": {"type": "float", "bounds": [0, 10]},
}


def test_a_unit_has_a_row_for_each_of_its_keys():
    with database(COLUMNS, pyarrow.table(VISITS), unit="who", max_rows_per_unit=20) as one:
        per = one.table("t").per_unit("ward", highest=sitr.max("cost"), rows=sitr.count(bounds=(0, 20)))
        question = per.group_by("ward").aggregate(x=sitr.count(), y=sitr.sum("rows", bounds=(0, 20)))
        question = question.bounded(max_rows_per_unit=4)
        assert exact(question) == [2.0, 3.0]
        assert exact(question, "y") == [10.0, 3.0]


def test_of_rows_with_one_id_the_same_are_chosen_in_whatever_order_they_stand():
    columns = {"who": {"type": "integer"}, "id": {"type": "integer"}, "cost": {"type": "float", "bounds": [0, 10]}}
    found = set()
    for costs in ([1, 5, 9], [9, 5, 1]):
        table = pyarrow.table({"who": [1, 1, 1], "id": [4, 4, 4], "cost": costs})
        with database(columns, table, unit="who", row_id="id", max_rows_per_unit=3) as one:
            found.update(exact(one.table("t").aggregate(x=sitr.sum("cost")).bounded(max_rows_per_unit=1)))
    assert len(found) == 1


def test_what_a_unit_repeats_uses_up_none_of_its_bound():
    """Of ten rows of one person nine say the same: two different values fit into a bound of two, whatever is chosen."""
    with database(COLUMNS, pyarrow.table(VISITS), unit="who", max_rows_per_unit=20) as one:
        question = one.table("t").aggregate(x=sitr.count_distinct("cost")).bounded(max_rows_per_unit=2)
        made = plan(question.query, one.declared, Target(1.0, 1e-6), Facts())
        for key in range(20):
            assert Execution(made, one.source, unsafe_without_noise=True, unsafe_key=key).answer().raw["x"] == [4.0]


def test_a_text_that_names_a_unit_is_what_the_engine_takes_for_one(monkeypatch):
    """Here a text is its small letters: so are two names that differ in nothing else, and they are one unit."""
    table = pyarrow.table({"who": ["a", "A", "b"], "ward": ["a", "a", "b"]})
    columns = {"who": {"type": "string"}, "ward": COLUMNS["ward"]}
    with database(columns, table, unit="who", max_rows_per_unit=20) as one:
        question = one.table("t").aggregate(x=sitr.count_units())
        assert exact(question) == [3.0]
        monkeypatch.setattr(type(one.source), "text", lambda source, value: value.lower())
        one.source._queries.clear()
        assert exact(question) == [2.0]


def test_units_that_are_decimals_are_compared_as_texts():
    """A cast of one to the digits of the other may fail, for one row alone."""
    rows = pyarrow.table(
        {
            "left": pyarrow.array(
                [Decimal("1.50"), Decimal("-2.25"), Decimal(10) ** 35, None], pyarrow.decimal128(38, 2)
            ),
            "right": pyarrow.array(
                [Decimal("1.50"), Decimal("2.25"), Decimal(1), Decimal(1)], pyarrow.decimal128(38, 2)
            ),
        }
    )
    table = ibis.memtable(rows)
    same = _same_unit(table["left"], table["right"])
    assert ibis.duckdb.connect().to_pyarrow(table.select(same=same))["same"].to_pylist() == [True, False, False, None]

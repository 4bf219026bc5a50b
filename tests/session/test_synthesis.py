"""A synthetic table of a database: explained for nothing, charged once, kept, and drawn as often as one likes."""

import base64
import json
from datetime import date, datetime, timedelta

import numpy as np
import pyarrow
import pytest

from sitr.errors import BudgetExceeded, EngineFailed, InvalidArgument
from sitr.synthesis.table import SyntheticTable
from sitr.tables.source import Source
from sitr.tables.tally import Bound
from tests.tables import engines

PEOPLE, DAY = 3000, date(2020, 1, 1)
DECLARED = {
    "privacy": {"delta": 1e-8, "unit": "patient"},
    "budgets": {"test": {"epsilon": 20.0, "delta": 1e-6}},
    "tables": {
        "visits": {
            "unit": "patient",
            "max_rows_per_unit": 4,
            "expected_units": PEOPLE,
            "expected_rows": 2 * PEOPLE,
            "columns": {
                "patient": {"type": "integer"},
                "age": {"type": "integer", "bounds": [0, 99], "nulls": "drop"},
                "cost": {"type": "float", "bounds": [0, 1000]},
                "price": {"type": "decimal(8, 2)", "bounds": [0, 20]},
                "smokes": {"type": "boolean", "nulls": "drop"},
                "region": {"type": "string", "categories": ["north", "south"]},
                "diagnosis": {"type": "string"},
                "day": {"type": "date", "bounds": [DAY, DAY + timedelta(days=365)]},
                "at": {"type": "timestamp", "bounds": [datetime(2020, 1, 1), datetime(2021, 1, 1)]},
            },
        }
    },
}


def visits():
    """Smokers are old and have the flu; every tenth cost is missing."""
    rng = np.random.default_rng(1)
    rows = 2 * PEOPLE
    smokes = rng.random(rows) < 0.4
    cost = np.where(rng.random(rows) < 0.1, np.nan, rng.gamma(2, 100, rows))
    diagnosis = np.where(smokes, "flu", np.where(rng.random(rows) < 0.5, "cold", "cough"))
    days = rng.integers(0, 366, rows)
    return pyarrow.table(
        {
            "patient": np.arange(rows) % PEOPLE,
            "age": np.clip(rng.normal(np.where(smokes, 70, 30), 8).round(), 0, 99).astype(int),
            "cost": cost,
            "price": pyarrow.array((rng.integers(0, 2000, rows) / 100).round(2)).cast(pyarrow.decimal128(8, 2)),
            "smokes": smokes,
            "region": np.where(rng.random(rows) < 0.3, "north", "south"),
            "diagnosis": pyarrow.array(["rare disease of one person", *diagnosis[1:].tolist()]),
            "day": [DAY + timedelta(days=int(one)) for one in days],
            "at": [datetime(2020, 1, 1) + timedelta(days=int(one), seconds=7) for one in days],
        }
    )


@pytest.fixture(scope="module")
def clinic():
    with engines.asked("duckdb", {"visits": visits()}, DECLARED) as database:
        yield database


@pytest.fixture(scope="module")
def made(clinic):
    return clinic.table("visits").synthesize().release(epsilon=4, operation="synthetic visits")


@pytest.mark.parametrize(
    "engine", ["duckdb", "postgresql", pytest.param("spark", marks=pytest.mark.xdist_group("spark"))]
)
def test_on_every_engine(engine):
    with engines.asked(engine, {"visits": visits()}, DECLARED) as database:
        table = database.table("visits").synthesize(["age", "smokes", "diagnosis"])
        found = table.release(epsilon=4).to_pandas(seed=1)
    assert abs(len(found) - 2 * PEOPLE) < 200
    assert abs(found["smokes"].mean() - 0.4) < 0.05
    assert found.loc[found["smokes"], "age"].mean() - found.loc[~found["smokes"], "age"].mean() > 20
    assert found.loc[found["smokes"], "diagnosis"].eq("flu").mean() > 0.7
    assert set(found["diagnosis"].dropna()) == {"flu", "cold", "cough"}


def test_values_leave_as_the_types_they_came_in(made):
    found = made.sample(500, seed=1)
    real = visits()
    assert found.column_names == real.column_names[1:]
    for name in found.column_names:
        kind, expected = found.schema.field(name).type, real.schema.field(name).type
        assert kind == expected or (pyarrow.types.is_decimal(kind) and pyarrow.types.is_decimal(expected))
    frame = found.to_pandas()
    assert frame["age"].between(0, 99).all()
    assert frame["cost"].dropna().between(0, 1000).all()
    assert frame["day"].dropna().between(DAY, DAY + timedelta(days=365)).all()
    assert 0 < frame["cost"].isna().mean() < 0.3  # a null stays possible
    assert not frame["age"].isna().any()


def test_nothing_rare_is_named_and_no_unit(made):
    assert "patient" not in made.columns
    assert "rare disease of one person" not in str(made.to_dict())


def test_the_bill_reads_nothing_and_says_what_it_is_for(clinic, monkeypatch):
    monkeypatch.setattr(Source, "guarded", lambda *_: pytest.fail("something was read"))
    bill = clinic.table("visits").synthesize().explain(epsilon=0.5)
    text = str(bill)
    assert "This would cost ε = 0.500 at δ = 1e-08, once. Nothing has been read." in text
    assert "100 cells" in text
    assert "2 values or missing" in text
    assert "units have" in text
    assert "28 pairs of columns" in text
    assert "budget test" in text
    assert bill.plan.rows_per_unit < 4  # by the declared sizes
    assert float(bill.epsilon) <= 0.5


def test_what_is_charged_is_what_the_bill_says_and_once(clinic, made):
    table = clinic.table("visits").synthesize()
    assert made.event == table.explain(epsilon=4).plan.event
    before = clinic.ledger.head
    again = table.release(epsilon=4, operation="synthetic visits")
    assert again.kept
    assert "nothing was charged" in str(again)
    assert again.sample(100, seed=3).equals(made.sample(100, seed=3))
    assert clinic.ledger.head == before
    assert table.asked_before(epsilon=4) == "synthetic visits"
    (line,) = [one for one in str(clinic.ledger.statement("test")).splitlines() if "synthesize" in one]
    assert "of visits" in line


def test_a_model_can_be_saved_and_read_anywhere(made, tmp_path):
    made.save(tmp_path / "model.json")
    again = SyntheticTable.load(tmp_path / "model.json")
    assert again.sample(200, seed=5).equals(made.sample(200, seed=5))
    assert again.event == made.event
    made.to_parquet(tmp_path / "rows.parquet", 50, seed=5)
    assert pyarrow.parquet.read_table(tmp_path / "rows.parquet").num_rows == 50
    for content in ("", "{}", "[" * 10**5, '{"synthetic": 2}', '{"synthetic": 1, "columns": [1]}'):
        (tmp_path / "other.json").write_text(content)
        with pytest.raises(InvalidArgument, match="holds no synthetic table"):
            SyntheticTable.load(tmp_path / "other.json")


def packed(numbers, kind):
    return base64.b64encode(np.asarray(numbers).astype(kind).tobytes()).decode()


@pytest.mark.parametrize(
    "change",
    [
        lambda model: model.update(rows="many"),
        lambda model: model.update(rows=-1),
        lambda model: model.update(bins=model["bins"] * 2),
        lambda model: model["bins"].__setitem__(0, packed([2**32 - 1], "<u4")),
        lambda model: model.update(columns=model["columns"][1:]),
        lambda model: model["columns"][0]["grid"].update(upper=10**30),  # a cell for each would take for ever
        lambda model: model["columns"][0]["grid"].update(upper=None),
        lambda model: model["columns"][0]["grid"].update(step=[1, 0]),
        lambda model: model["columns"][4].update(values=[1, 2]),
        lambda model: model["shares"].__setitem__(3, packed([np.nan, 0.5], "<f8")),
        lambda model: model["shares"].__setitem__(3, packed([-1, 2], "<f8")),
        lambda model: model.update(shares=[]),
        lambda model: model.update(logits=""),
        lambda model: model.update(logits=packed(np.full(len(base64.b64decode(model["logits"])) // 4, np.nan), "<f4")),
    ],
)
def test_a_model_that_someone_else_wrote_is_refused_or_can_be_drawn_from(made, tmp_path, change):
    model = json.loads(json.dumps(made.to_dict()))
    change(model)
    (tmp_path / "model.json").write_text(json.dumps(model))
    with pytest.raises(InvalidArgument, match="holds no synthetic table"):
        SyntheticTable.load(tmp_path / "model.json")


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"smokes": True}, lambda rows: rows["smokes"].all()),
        ({"age": (60, 80)}, lambda rows: rows["age"].between(60, 80).all()),
        ({"age": 71}, lambda rows: (rows["age"] == 71).all()),
        ({"cost": (100, 101)}, lambda rows: rows["cost"].between(100, 101).all()),
        ({"cost": None}, lambda rows: rows["cost"].isna().all()),
        ({"region": ["north"], "smokes": False}, lambda rows: ((rows["region"] == "north") & ~rows["smokes"]).all()),
        (
            {"day": (date(2020, 3, 1), date(2020, 3, 5))},
            lambda rows: rows["day"].between(date(2020, 3, 1), date(2020, 3, 5)).all(),
        ),
    ],
)
def test_a_condition_holds_in_every_row(made, condition, holds):
    rows = made.to_pandas(2000, condition=condition, seed=1)
    assert len(rows) == 2000
    assert holds(rows)


def test_other_columns_are_drawn_as_they_go_with_a_condition(made):
    old, young = (made.to_pandas(3000, condition={"age": ages}, seed=1) for ages in ((60, 99), (0, 40)))
    assert old["smokes"].mean() > 0.8
    assert young["smokes"].mean() < 0.2


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ({"ages": 3}, "there is no column"),
        ({"region": "west"}, "none of its values"),
        ({"age": (1, 2, 3)}, "a pair of the least and the largest"),
        ({"age": (50, 40)}, "no row"),
        ({"age": "old"}, "is not a number"),
    ],
)
def test_conditions_that_mean_nothing_are_refused(made, condition, said):
    with pytest.raises(InvalidArgument, match=said):
        made.sample(10, condition=condition)


def test_what_does_not_fit_is_refused_before_anything_is_read(clinic, monkeypatch):
    table = clinic.table("visits").synthesize(["age"])
    assert "This does not fit" in str(table.explain(epsilon=50))
    monkeypatch.setattr(Source, "count", lambda *_, **__: pytest.fail("rows were read"))
    with pytest.raises(BudgetExceeded, match="short by"):
        table.release(epsilon=50)


def test_an_engine_that_fails_on_rows_leaves_the_charge_and_says_nothing(clinic, monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("malaria")

    monkeypatch.setattr(Source, "count", fails)
    with pytest.raises(EngineFailed) as refused:
        clinic.table("visits").synthesize(["age"]).release(epsilon=0.01)
    assert "malaria" not in str(refused.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"columns": ["ages"]}, "ages"),
        ({"columns": []}, "names none"),
        ({"columns": ["age", "age"]}, "twice"),
        ({"columns": ["patient"]}, "patient: the values have no bounds"),
        ({"max_rows_per_unit": 9}, "max_rows_per_unit=9"),
        ({"cells": 1}, "cells"),
    ],
)
def test_what_cannot_be_synthesized_is_refused(clinic, options, said):
    with pytest.raises(InvalidArgument, match=said):
        clinic.table("visits").synthesize(**options).explain(epsilon=1)


def test_it_needs_a_delta(clinic):
    with pytest.raises(InvalidArgument, match="needs a δ"):
        clinic.table("visits").synthesize().explain(epsilon=1, delta=0)


def test_filtered_and_derived_rows(clinic):
    table = clinic.table("visits")
    old = table.filter(table["age"] >= 60).derive(double=table["age"] * 2).select("double", "smokes")
    wanted = old.synthesize(max_rows_per_unit=2)
    assert wanted.explain(epsilon=2).plan.coded.bound == Bound(rows=2)
    found = wanted.release(epsilon=2).to_pandas(seed=1)
    assert found["smokes"].mean() > 0.8
    assert found["double"].median() > 110


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows_are_answered_soundly(rows):
    with engines.asked("duckdb", {"visits": visits().slice(0, rows)}, DECLARED) as database:
        found = database.table("visits").synthesize(["age", "smokes", "region"]).release(epsilon=0.5)
        assert found.rows < 1500
        assert found.sample(20, seed=1).num_rows == 20


def test_a_column_of_nulls_and_one_of_a_single_category():
    table = visits().select(["patient", "cost", "region"])
    empty = table.set_column(1, "cost", pyarrow.nulls(table.num_rows, pyarrow.float64()))
    declared = {"cost": {"type": "float", "bounds": [0, 1000]}, "region": {"type": "string", "categories": ["south"]}}
    columns = {"patient": {"type": "integer"}, **declared}
    content = DECLARED | {"tables": {"visits": {"unit": "patient", "max_rows_per_unit": 2, "columns": columns}}}
    with engines.asked("duckdb", {"visits": empty}, content) as database:
        found = database.table("visits").synthesize().release(epsilon=5).to_pandas(seed=1)
    assert found["cost"].isna().mean() > 0.9
    assert 0.6 < found["region"].eq("south").mean() < 0.8


def test_rules_are_kept_in_every_row_and_in_the_model(tmp_path):
    rules = {
        "impossible": [
            {"smokes": True, "age": (0, 50)},
            {"region": "north", "diagnosis": "flu"},
            {"diagnosis": "gout"},
        ],
        "determines": {"smokes": "diagnosis"},
    }
    with engines.asked("duckdb", {"visits": visits()}, DECLARED) as database:
        table = database.table("visits")
        made = table.synthesize(["age", "smokes", "region", "diagnosis"], **rules).release(epsilon=4)
        with pytest.raises(InvalidArgument, match="'sex'"):
            table.synthesize(["age"], impossible=[{"sex": "m"}]).explain(epsilon=1)
        with pytest.raises(InvalidArgument, match="none of its values"):
            table.synthesize(["age", "region"], impossible=[{"region": "west"}]).explain(epsilon=1)
    made.save(tmp_path / "model.json")
    for one in (made, SyntheticTable.load(tmp_path / "model.json")):
        rows = one.to_pandas(4000, seed=1)
        assert not (rows["smokes"] & rows["age"].between(0, 50)).any()
        assert not (rows["region"].eq("north") & rows["diagnosis"].eq("flu")).any()
        assert (rows.groupby("diagnosis", dropna=False)["smokes"].nunique() == 1).all()


def test_counts_come_with_intervals_where_they_were_measured(made):
    rows = visits()
    smokers = made.count({"smokes": True})
    deviation = (smokers.high - smokers.low) / 2 / 1.96
    # Noise, and which rows were kept of whom: 6.5 deviations of a normal number are exceeded with 8e-11.
    assert abs(smokers.value - 0.4 * made.rows) < 6.5 * np.hypot(deviation, np.sqrt(0.25 * made.rows))
    assert smokers.low < smokers.value < smokers.high
    assert f"Counted are rows that were kept: at most {made.rows_per_unit:,} of each unit." in str(smokers)
    assert made.count().low < rows.num_rows  # of two rows of each patient, not all may be kept
    assert made.count({"price": (0, 10)}).low is None
    with pytest.raises(InvalidArgument, match="there is no column"):
        made.count({"ages": 3})


def test_sql_asks_the_rows_that_were_drawn(made):
    found = made.query("SELECT smokes, AVG(age) AS age FROM visits GROUP BY smokes ORDER BY smokes", 3000, seed=1)
    assert found.drawn == 3000
    assert found.to_pandas()["age"].diff().iloc[-1] > 20
    assert "not measured: no interval" in str(found)
    counted = made.query("SELECT smokes, COUNT(*) AS n FROM visits GROUP BY smokes ORDER BY smokes", seed=1).to_pandas()
    assert (counted["n"].between(counted["count_low"] - 400, counted["count_high"] + 400)).all()
    assert counted["count_estimate"].iloc[1] == made.count({"smokes": True}).value


def test_what_was_measured_is_kept_with_the_model(made, tmp_path):
    made.save(tmp_path / "model.json")
    again = SyntheticTable.load(tmp_path / "model.json")
    assert (again.table, again.rows_per_unit) == ("visits", made.rows_per_unit)
    for condition in ({"smokes": True}, {"age": (60, 80)}, {"smokes": True, "diagnosis": "flu"}, {}):
        assert again.count(condition) == made.count(condition)
    assert (
        again.query("SELECT COUNT(*) FROM visits WHERE smokes", seed=2)
        .to_pandas()
        .equals(made.query("SELECT COUNT(*) FROM visits WHERE smokes", seed=2).to_pandas())
    )

"""A synthetic table: rows of the types they came in, also under a condition; its files, and answers from it."""

import base64
import json
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import pyarrow
import pytest

from sitr.errors import InvalidArgument, InvalidRecord
from sitr.release import NOT_PRIVATE
from sitr.synthesis import table as tables
from sitr.synthesis.table import SyntheticTable
from tests.synthesis.visits import DAY, DECLARED, visits
from tests.tables import engines


@pytest.fixture(scope="module")
def made():
    with engines.asked("duckdb", {"visits": visits()}, DECLARED) as database:
        return database.table("visits").synthesize().release(epsilon=4)


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


def test_a_model_can_be_saved_and_read_anywhere(made, tmp_path):
    made.save(tmp_path / "model.json")
    again = SyntheticTable.load(tmp_path / "model.json")
    assert again.sample(200, seed=5).equals(made.sample(200, seed=5))
    assert again.event == made.event
    made.to_parquet(tmp_path / "rows.parquet", 50, seed=5)
    assert pyarrow.parquet.read_table(tmp_path / "rows.parquet").num_rows == 50
    for content in ("", "{}", "[" * 10**5, '{"synthetic": 1}', '{"synthetic": 2, "columns": [1]}'):
        (tmp_path / "other.json").write_text(content)
        with pytest.raises(InvalidArgument, match="holds no synthetic table"):
            SyntheticTable.load(tmp_path / "other.json")


def test_a_model_of_an_earlier_form_is_called_that(made, tmp_path, monkeypatch):
    (tmp_path / "model.json").write_text(json.dumps(made.to_dict() | {"synthetic": 1}))
    with pytest.raises(InvalidArgument, match=r"(?s)holds no synthetic table.*earlier development version"):
        SyntheticTable.load(tmp_path / "model.json")
    with engines.asked("duckdb", {"visits": visits()}, DECLARED) as database:
        asked = database.table("visits").synthesize(["age", "smokes"])
        with monkeypatch.context() as earlier:
            earlier.setattr(tables, "FORMAT", 1)
            asked.release(epsilon=1, operation="mine")
        with pytest.raises(InvalidRecord, match=r"(?s)another form.*earlier development version.*Nothing was charged"):
            asked.release(epsilon=1, operation="mine")


def test_what_protects_nobody_says_so_also_when_it_is_read_again(made, tmp_path):
    replace(made, private=False).save(tmp_path / "seeded.json")
    again = SyntheticTable.load(tmp_path / "seeded.json")
    assert not again.private
    assert NOT_PRIVATE in str(again)
    assert NOT_PRIVATE not in str(SyntheticTable.from_dict(made.to_dict(), "entry", "operation"))


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
        # What is not needed to draw a row, but to answer anything else.
        lambda model: model["measured"]["interactions"][0].update(columns=[0, 99]),
        lambda model: model["measured"]["interactions"][0].update(columns=[-1, 0]),
        lambda model: model["measured"]["interactions"][0].update(columns=[1]),
        lambda model: model["measured"]["interactions"][-1].update(columns=[0, 0]),
        lambda model: model["measured"]["interactions"][0].update(variance=float("inf")),
        lambda model: model["measured"]["margins"][0].update(variance=0),
        lambda model: model["measured"]["margins"][0].update(variance=float("nan")),
        lambda model: model["measured"].update(margins=[]),
        lambda model: model.update(fit={"distances": [[[0], 5]], "deviation": 1.0, "rows": 5.0}),
        lambda model: model.update(rules={"sizes": [2], "impossible": [[[0, [1]]]], "determines": []}),
        lambda model: model.update(table=["visits"]),
        lambda model: model.update(table=""),
        lambda model: model.update(rows_per_unit="many"),
        lambda model: model.update(notes=[1]),
        lambda model: model["columns"][1].update(name="age"),
        lambda model: model["columns"][0]["domain"].update(lower=0.5),
        lambda model: model["columns"][0]["grid"].update(step=[1, 10**400]),
        lambda model: model["bins"].__setitem__(3, packed([1, 1], "<u4")),
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

"""Plans of synthetic tables: which columns, how many rows of a unit, which rules; what means nothing is refused."""

from dataclasses import replace
from datetime import date

import pyarrow
import pytest

from sitr.accounting.notions import SMOOTHING
from sitr.errors import InvalidArgument
from sitr.synthesis import measuring
from sitr.synthesis.plan import chosen_columns, kept_of_unit
from sitr.synthesis.table import SyntheticTable
from sitr.tables.relations import Scan
from sitr.tables.tally import Bound
from tests.synthesis.visits import DECLARED, visits
from tests.tables import engines


@pytest.fixture(scope="module")
def clinic():
    with engines.asked("duckdb", {"visits": visits()}, DECLARED) as database:
        yield database


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
        with pytest.raises(InvalidArgument, match="determines names 'sex'"):
            table.synthesize(["age"], determines={"sex": "age"}).explain(epsilon=1)
        with pytest.raises(InvalidArgument, match="none of its values"):
            table.synthesize(["age", "region"], impossible=[{"region": "west"}]).explain(epsilon=1)
    made.save(tmp_path / "model.json")
    for one in (made, SyntheticTable.load(tmp_path / "model.json")):
        rows = one.to_pandas(4000, seed=1)
        assert not (rows["smokes"] & rows["age"].between(0, 50)).any()
        assert not (rows["region"].eq("north") & rows["diagnosis"].eq("flu")).any()
        assert (rows.groupby("diagnosis", dropna=False)["smokes"].nunique() == 1).all()
        smokers = one.to_pandas(500, condition={"smokes": True}, seed=2)  # what goes with what is the same there
        assert smokers["smokes"].all()
        assert set(smokers["diagnosis"].dropna()) <= set(rows.loc[rows["smokes"], "diagnosis"].dropna())
        assert set(smokers["diagnosis"].dropna()) < set(rows["diagnosis"].dropna())


def test_who_a_row_is_about_is_no_column(clinic):
    assert chosen_columns(Scan("visits"), clinic.declared, None) == tuple(visits().column_names[1:])
    assert chosen_columns(Scan("visits"), clinic.declared, ["day", "age"]) == ("day", "age")


@pytest.mark.parametrize(("most", "kept"), [(None, 4), (1, 1), (3, 3)])
def test_as_many_rows_of_a_unit_are_kept_as_are_declared_unless_told(clinic, most, kept):
    assert kept_of_unit(Scan("visits"), clinic.declared, most) == Bound(rows=kept)


def test_values_that_are_found_are_part_of_the_price(clinic):
    table = clinic.table("visits")
    found, declared = (table.synthesize([name, "age"]).explain(epsilon=1).plan for name in ("diagnosis", "region"))
    assert list(found.found) == ["diagnosis"]
    assert not declared.found
    selection = found.found["diagnosis"].selection
    assert selection.event.epsilon(delta=1e-8).upper <= 0.1
    for plan in (found, declared):
        assert 0.99 < plan.event.epsilon(delta=1e-8).upper <= 1
    assert found.mechanism.costs.mu < declared.mechanism.costs.mu


def test_noise_beside_many_values_that_may_be_found_is_refused_before_it_is_charged(clinic, monkeypatch):
    """A column whose values are found was taken for one of a single value, and took a larger part in the release."""
    asked = clinic.table("visits").synthesize(["smokes", "diagnosis"], max_rows_per_unit=1)
    costs = asked.explain(epsilon=1).plan.mechanism.costs
    assert 30 / costs.mu > max(*costs.deviations([2, 1]), costs.score_deviation(3))
    monkeypatch.setattr(measuring, "LARGEST_SIGMA", 30 / costs.mu)
    with pytest.raises(InvalidArgument, match="more than is drawn"):
        asked.explain(epsilon=1)


def test_a_table_of_one_column_spends_all_on_it(clinic):
    plan = clinic.table("visits").synthesize(["age"], max_rows_per_unit=1).explain(epsilon=1).plan
    (noise,) = plan.mechanism.costs.deviations([100])
    assert noise**2 == pytest.approx(plan.mechanism.costs.mu**-2 + SMOOTHING)


def test_a_combination_in_sql_is_the_same_as_in_python():
    columns = ["age", "smokes", "day", "diagnosis"]
    said = ["smokes AND age <= 50", "diagnosis = 'gout' AND day < DATE '2020-02-01'"]
    same = [{"smokes": True, "age": (0, 50)}, {"diagnosis": "gout", "day": (date(2020, 1, 1), date(2020, 1, 31))}]
    with engines.asked("duckdb", {"visits": visits()}, DECLARED) as database:
        table = database.table("visits")
        bills = [table.synthesize(columns, impossible=rules).explain(epsilon=1) for rules in (said, same)]
        codes = tuple(
            replace(code, values=("flu", "gout")) if code.name == "diagnosis" else code
            for code in bills[0].plan.coded.codes
        )
        one, other = (bill.plan.rules(codes).to_dict() for bill in bills)
        assert one == other
        assert "never smokes AND age <= 50" in str(bills[0])
        with pytest.raises(InvalidArgument, match=r"impossible=\"smokes AND region = 'west'\": region: some of what"):
            table.synthesize(["smokes", "region"], impossible=["smokes AND region = 'west'"]).explain(epsilon=1)


def test_of_values_that_are_found_a_rule_keeps_those_that_are_there():
    """A rule on two values, of which one was not found, was dropped as a whole: the other one could be drawn."""
    with engines.asked("duckdb", {"visits": visits()}, DECLARED) as database:
        asked = database.table("visits").synthesize(["smokes", "diagnosis"])
        for wanted, numbers in (
            (["flu", "gout"], [0]),
            ("gout", []),
            (["flu", None], [0, 2]),
            (None, [2]),
            ("cold", [1]),
        ):
            asked.options["impossible"] = [{"diagnosis": wanted, "smokes": True}]
            made = asked.explain(epsilon=1).plan
            smokes, diagnosis = made.coded.codes
            rules = made.rules((smokes, replace(diagnosis, values=("flu", "cold"))))
            assert rules.to_dict()["impossible"] == [[[1, numbers], [0, [1]]]]

"""What is known beforehand to be useless is said, and nothing is spent on it by mistake."""

import copy

import pyarrow
import pytest

import sitr
from sitr.errors import AccuracyWarning, UselessQuestion
from sitr.query.facts import Facts
from sitr.tables.declaration import Declaration
from tests.session.clinic import DECLARED, visits

MISSPELT = "'nroth' is no declared category of region. Did you mean 'north'?"


@pytest.fixture
def table():
    content = copy.deepcopy(DECLARED)
    content["privacy"] = {"delta": 1e-6}
    content["budgets"] = {"clinic": {"epsilon": 1000.0, "delta": 1e-3}}
    content["tables"]["visits"]["columns"]["reason"] = {"type": "string"}
    rows = visits()
    rows = rows.append_column("reason", pyarrow.array(["flu"] * len(rows)))
    with sitr.open(Declaration.of(content), analyst="amina", ledger="memory://", frames={"visits": rows}) as database:
        database.learn("visits", Facts(2500, 7000, source="by an earlier release"))
        yield database.table("visits")


def count(table):
    return table.aggregate(n=sitr.count())


def spent(table):
    return table.database.ledger.spent("clinic").value


def test_a_filter_that_no_declared_value_passes_is_refused(table):
    wrong = table["region"] == "nroth"
    band = table.derive(band=(table["cost"] < 10).choose("cheap", "dear"))
    for asked in (
        table.filter(wrong),
        table.filter((table["urgent"] == True) & ("nroth" == table["region"])),  # noqa: E712, SIM300
        table.filter(table["region"].isin(["nroth"])).filter(table["cost"] > 3),
        table.filter(wrong).derive(x=table["cost"]).select("x"),
    ):
        with pytest.raises(UselessQuestion, match="'nroth' is no declared category"):
            count(asked).release(epsilon=1)
    with pytest.raises(UselessQuestion, match="Did you mean 'cheap'"):
        count(band.filter(band["band"] == "chaep")).release(epsilon=1)
    assert spent(table) == 0
    assert MISSPELT in str(count(table.filter(wrong)).explain(epsilon=1))


def test_it_is_asked_all_the_same_where_that_is_said(table):
    question = count(table.filter(table["region"] == "nroth"))
    answer = question.release(epsilon=1, operation="typo", anyway=True)
    assert MISSPELT in answer.notes
    again = question.release(epsilon=1, operation="typo")  # for nothing, so there is nothing to refuse
    assert again.raw == answer.raw


def test_a_value_that_may_not_be_meant_is_warned_of(table):
    wrong = table["region"] == "nroth"
    for asked in (
        table.filter(~wrong),
        table.filter(wrong | (table["cost"] > 3)),
        table.filter(table["region"].isin(["nroth", "south"])),
        table.derive(there=wrong.choose(1, 0)),
    ):
        with pytest.warns(AccuracyWarning, match="nroth"):
            answer = count(asked).release(epsilon=1)
        assert MISSPELT in answer.notes


def test_groups_that_nobody_can_be_in_often_enough(table):
    question = table.group_by("reason").aggregate(n=sitr.count_units())
    with pytest.raises(UselessQuestion, match="No group can be listed: that takes"):
        question.release(epsilon=0.01)
    fine = question.bounded(max_groups_per_unit=1, max_rows_per_group=1)
    said = "persons are not listed. A larger ε lists smaller ones."
    assert said in str(fine.explain(epsilon=2))
    assert any(said in note for note in fine.release(epsilon=2).notes)
    assert "or fewer groups of each person (max_groups_per_unit)" in str(question.explain(epsilon=2))


def test_a_mean_whose_noise_fills_its_bounds(table):
    question = table.aggregate(cost=sitr.mean("cost", bounds=(0, 100)))
    with pytest.raises(UselessQuestion, match=r"cost: noise of ± .* says no more than the bounds, 0 to 100"):
        question.release(epsilon=0.001)
    assert spent(table) == 0
    assert "no more than the bounds" not in str(question.explain(epsilon=1))
    question.release(epsilon=1)


def test_a_count_whose_noise_is_larger_than_its_group(table):
    question = table.group_by(day=table["day"].truncate("day")).aggregate(n=sitr.count())
    with pytest.warns(AccuracyWarning, match="is larger than a group, of about"):
        question.release(epsilon=0.01)
    question.release(epsilon=20)


def test_where_nothing_is_known_of_sizes_nothing_is_refused_for_them(table):
    table.database.learn("visits", Facts())
    table.aggregate(cost=sitr.mean("cost", bounds=(0, 100)), n=sitr.count()).release(epsilon=0.001)

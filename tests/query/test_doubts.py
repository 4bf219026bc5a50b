"""What is known beforehand to be useless is said, and nothing is spent on it by mistake."""

import copy
import warnings
from datetime import date, datetime, time

import pyarrow
import pytest

import sitr
from sitr.errors import AccuracyWarning, UselessQuestion
from sitr.query.facts import Facts
from sitr.tables.declaration import Declaration
from tests.session.clinic import DECLARED, visits

YEAR = [datetime(2025, 1, 1), datetime(2025, 12, 31, 23, 59, 59)]
MISSPELT = "'nroth' is no declared category of region. Did you mean 'north'?"


@pytest.fixture
def table():
    content = copy.deepcopy(DECLARED)
    content["privacy"] = {"delta": 1e-6}
    content["budgets"] = {"clinic": {"epsilon": 1000.0, "delta": 1e-3}}
    content["tables"]["visits"]["columns"] |= {
        "reason": {"type": "string"},
        "at": {"type": "timestamp", "bounds": YEAR},
    }
    rows = visits()
    rows = rows.append_column("reason", pyarrow.array(["flu"] * len(rows)))
    times = [datetime.combine(day, time(9, 30)) for day in rows["day"].to_pylist()]
    rows = rows.append_column("at", pyarrow.array(times, pyarrow.timestamp("us")))
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


@pytest.mark.statistical
def test_a_date_beside_times_is_its_midnight(table):
    """As the engine has it, so that such a filter is not refused; at ε = 100 the scale is 0.2, and 14 is far beyond."""
    by_time, by_date = (table.derive(day=table[name].truncate("day")) for name in ("at", "day"))
    for asked in (
        by_time.filter(by_time["day"] == date(2025, 7, 1)),
        by_date.filter(datetime(2025, 7, 1) == by_date["day"]),
        by_time.filter(by_time["day"] == datetime(2025, 7, 1)),
        by_date.filter(by_date["day"].isin([date(2025, 7, 1)])),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert count(asked).release(epsilon=100).value["n"][0] > 5  # of 19
    for asked in (
        by_time.filter(by_time["day"] == date(2026, 7, 1)),
        by_time.filter(by_time["day"] == datetime(2025, 7, 1, 12)),
        by_date.filter(by_date["day"] == datetime(2025, 7, 1, 12)),
        by_date.filter(by_date["day"] == datetime(2026, 7, 1)),
    ):
        with pytest.raises(UselessQuestion, match="is no declared category of day"):
            count(asked).release(epsilon=1)


def test_a_mean_of_groups_of_unknown_size_is_warned_of(table):
    """How large each group is nobody knows: as if all were alike is a guess, so nothing is refused for it."""
    question = table.group_by("urgent").aggregate(cost=sitr.mean("cost", bounds=(0, 100)))
    with pytest.warns(AccuracyWarning, match="cost: noise of ± .* says no more than the bounds"):
        question.release(epsilon=0.001)


def few(table, units, groups=1):
    """Reasons, of which a patient has so many at most, where about so many patients are known."""
    table.database.learn("visits", Facts(units, units, source="by an earlier release"))
    question = table.group_by("reason").aggregate(n=sitr.count_units())
    return question.bounded(max_groups_per_unit=groups, max_rows_per_group=1)


def test_near_the_threshold_noise_may_list_a_group(table):
    """At ε = 1 and δ = 1e-6 a group is listed from 15 on, and one of 14 units about once in four times."""
    for units in (11, 14):
        with pytest.warns(AccuracyWarning, match=f"Perhaps no group is listed: that takes 15 units.* about {units}"):
            few(table, units).release(epsilon=1)
    for units in (1, 3, 10):
        with pytest.raises(UselessQuestion, match="No group can be listed: that takes 15 units"):
            few(table, units).release(epsilon=1)


def test_many_groups_have_as_many_chances_to_be_listed(table):
    """What happens less than once in 100 times to one group happens more often to one of 20."""
    selection = few(table, 10, groups=20).explain(epsilon=1).plan.measurements[0].selection
    rare = next(count for count in range(selection.threshold, 0, -1) if selection.chance(count) < 0.01)
    with pytest.warns(AccuracyWarning, match="Perhaps no group is listed"):
        few(table, rare, groups=20).release(epsilon=1)

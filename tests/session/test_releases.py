"""Questions: explaining reads nothing; a release is rehearsed, charged, run once and kept, in this order."""

from datetime import date

import pytest

import sitr
from sitr.errors import BudgetExceeded, CannotCalibrate, EngineFailed, InvalidArgument, NotAllowed, SitrError
from sitr.tables.duckdb import DuckDB
from tests.tables import clinic


class Watched(DuckDB):
    """DuckDB that writes down what it is asked, and fails where a test wants it to."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.log, self.failing = [], ()

    def rehearse(self, tally):
        self.log.append("rehearse")
        if "rehearse" in self.failing:
            raise EngineFailed("no.")
        super().rehearse(tally)

    def run(self, tally, *, unsafe_key=None):
        self.log.append("run")
        if "run" in self.failing:
            raise EngineFailed("no.")
        return super().run(tally, unsafe_key=unsafe_key)

    def fetch(self, query):
        self.log.append("fetch")
        if "fetch" in self.failing:
            raise AssertionError("a row would have been read")
        return super().fetch(query)


@pytest.fixture
def database():
    budget = {"epsilon": 10.0, "delta": 1e-3}
    content = clinic.CONTENT | {"budgets": {"clinic": budget, "labs": budget}}
    opened = clinic.database(content)
    opened.source.close()
    opened.source = Watched(opened.declared, clinic.frames())
    reserve = opened.ledger.reserve

    def charging(*arguments, **options):
        opened.source.log.append("charge")
        return reserve(*arguments, **options)

    opened.ledger.reserve = charging
    yield opened
    opened.close()


def counted(database):
    return database.table("visits").group_by("region").aggregate(n=sitr.count(), m=sitr.mean("cost"))


def left(database):
    return database.ledger.remaining("clinic").value


def test_explaining_reads_no_row_and_costs_nothing(database):
    database.source.failing = ("fetch", "run", "rehearse")
    before = left(database)
    found = counted(database).explain(epsilon=1.0)
    assert "Nothing has been read." in str(found)
    assert found.epsilon.upper <= 1 + 1e-9
    assert set(found.errors) == {"n", "m"}
    assert "SELECT" in found.queries[0].upper()
    assert counted(database).explain(rho=0.1).epsilon.upper > 0
    assert counted(database).explain(error=30.0).target.epsilon > 0
    assert (database.source.log, left(database)) == ([], before)


def test_a_release_is_rehearsed_then_charged_then_run(database):
    stages = []
    answer = counted(database).release(epsilon=1.0, progress=stages.append)
    assert [one for one in database.source.log if one != "fetch"] == ["rehearse", "charge", "run"]
    assert stages == ["rehearsing on empty tables", "charging", "aggregating", "adding noise"]
    assert answer.private
    assert answer.entry is not None
    assert answer.operation is not None
    assert answer.value["region"] == clinic.REGIONS


def test_what_cannot_run_on_empty_tables_is_not_charged(database):
    database.source.failing, before = ("rehearse",), left(database)
    with pytest.raises(EngineFailed):
        counted(database).release(epsilon=1.0)
    assert (database.source.log, left(database)) == (["rehearse"], before)


def test_what_fails_later_stays_charged(database):
    database.source.failing, before = ("run",), left(database)
    with pytest.raises(EngineFailed):
        counted(database).release(epsilon=1.0)
    assert left(database) < before


def test_a_budget_that_is_exceeded_is_not_charged_and_nothing_is_read(database):
    before = left(database)
    with pytest.raises(BudgetExceeded):
        counted(database).release(epsilon=11.0)
    assert "run" not in database.source.log
    assert left(database) == before


def test_an_operation_returns_the_kept_answer_for_nothing(database):
    first = counted(database).release(epsilon=1.0, operation="monday")
    after, database.source.log[:] = left(database), []
    again = counted(database).release(epsilon=1.0, operation="monday")
    assert "run" not in database.source.log
    assert left(database) == after
    assert (again.value, again.low, again.entry, again.operation) == (first.value, first.low, first.entry, "monday")
    with pytest.raises(SitrError):
        counted(database).release(epsilon=0.5, operation="monday")


def test_the_same_question_again_is_charged_and_told_of_the_first_answer(database):
    first = counted(database).release(epsilon=1.0)
    (dropped,) = first.notes
    assert dropped.startswith("At most 4 rows per person are used.")
    after = left(database)
    again = counted(database).release(epsilon=1.0)
    assert left(database) < after
    assert first.operation in again.notes[-1]
    kept = counted(database).release(epsilon=1.0, operation=first.operation)
    assert kept.value == first.value
    assert kept.notes == first.notes
    other = counted(database).release(epsilon=0.5)
    assert other.notes == (dropped,)


def test_a_refusal_names_the_epsilon_that_fits():
    content = clinic.CONTENT | {"budgets": {"clinic": {"epsilon": 0.5}}}
    with clinic.database(content) as small:
        with pytest.raises(BudgetExceeded) as refused:
            counted(small).release(epsilon=1.0)
        assert refused.value.do == "what is left pays for ε = 0.5 of this question."
        assert "This does not fit: what is left pays for ε = 0.5" in str(counted(small).explain(epsilon=1.0))


def test_an_error_is_solved_for_its_epsilon(database):
    question = database.table("visits").aggregate(n=sitr.count())
    found = question.explain(error=20.0)
    assert max(found.errors.values()) <= 20
    assert max(question.explain(epsilon=found.target.epsilon * 0.9).errors.values()) > 20
    with pytest.raises(CannotCalibrate):
        database.table("visits").aggregate(m=sitr.mean("cost")).explain(error=1e-9)
    with pytest.raises(InvalidArgument, match="were given together"):
        question.explain(error=20.0, epsilon=1.0)
    with pytest.raises(InvalidArgument, match="error=0"):
        question.explain(error=0)


def test_bounds_of_a_question(database):
    question = counted(database)
    assert question.bounded(max_rows_per_unit=2).explain(epsilon=1.0).plan.bound.rows == 2
    assert question.bounded(max_rows_per_unit=99).explain(epsilon=1.0).plan.bound.rows == 4
    bound = question.bounded(max_groups_per_unit=2, max_rows_per_group=1).explain(epsilon=1.0).plan.bound
    assert (bound.groups, bound.rows_per_group) == (2, 1)
    with pytest.raises(InvalidArgument):
        question.bounded(max_rows_per_unit=1, max_groups_per_unit=1)
    with pytest.raises(InvalidArgument):
        question.bounded(max_rows_per_unit=0)


@pytest.mark.parametrize("price", [{}, {"epsilon": 1.0, "rho": 1.0}, {"epsilon": -1.0}, {"epsilon": float("nan")}])
def test_a_release_has_one_price(database, price):
    with pytest.raises(InvalidArgument):
        counted(database).release(**price)
    assert database.source.log == []


def test_a_question_that_makes_no_sense_is_refused_at_once(database):
    visits = database.table("visits")
    with pytest.raises(InvalidArgument, match="nothing is asked"):
        visits.aggregate()
    with pytest.raises(InvalidArgument, match="there is no column"):
        visits.aggregate(m=sitr.mean("cots"))
    with pytest.raises(NotAllowed, match="public tables only"):
        database.table("wards").aggregate(n=sitr.count())
    with pytest.raises(InvalidArgument, match="none twice"):
        visits.group_by("ward", values={"ward": ["a", "a"]}).aggregate(n=sitr.count())
    with pytest.raises(InvalidArgument, match="is no string"):
        visits.group_by("ward", values={"ward": ["a", 1]}).aggregate(n=sitr.count())


def test_dates_come_back_from_the_ledger_as_dates(database):
    question = database.table("visits").aggregate(m=sitr.median("day"))
    first = question.release(epsilon=1.0, operation="days")
    assert isinstance(first.value["m"][0], date)
    assert question.release(epsilon=1.0, operation="days").value == first.value


def test_a_count_where_each_row_is_a_unit(database):
    answer = database.table("labs").aggregate(n=sitr.count()).release(epsilon=5.0)
    assert abs(answer.value["n"][0] - 300) < 30

"""What a question says of itself before it is paid for."""

from concurrent.futures import ThreadPoolExecutor
from datetime import date

import numpy as np
import pyarrow
import pytest

import sitr
from sitr.errors import InvalidArgument, OperationTaken
from sitr.query.facts import Facts
from sitr.tables import Declaration
from tests.session.clinic import opened

KNOWN = Facts(1000, 4000, ((2.0, 0.5), (6.0, 0.5)), source="by an earlier release")


@pytest.fixture
def visits():
    with opened() as clinic:
        clinic.learn("visits", KNOWN)
        yield clinic.table("visits")


def test_bounding_is_told_in_words(visits):
    question = visits.aggregate(n=sitr.count())
    one = str(question.bounded(max_rows_per_unit=1).explain(epsilon=1))
    assert (
        "At most 1 row per person is used: that drops at least about 75 % of the rows (by an earlier release)." in one
    )
    six = str(question.bounded(max_rows_per_unit=6).explain(epsilon=1))
    assert "At most 6 rows per person are used: that drops few of the rows that were seen" in six


def test_a_bound_on_groups_drops_at_least_what_a_bound_on_rows_would(visits):
    question = visits.group_by("region").aggregate(n=sitr.count())
    explained = str(question.bounded(max_groups_per_unit=1, max_rows_per_group=2).explain(epsilon=1))
    assert (
        "At most 1 group per person, with at most 2 rows in each, is used: that drops at least about 50 %" in explained
    )


def test_units_whose_rows_were_added_up_have_one_row_each(visits):
    units = visits.per_unit(cost=sitr.sum("cost", bounds=(0, 500)))
    for table in (units, units.filter(units["cost"] > 10), units.derive(more=units["cost"] + 1)):
        explained = table.aggregate(cost=sitr.mean("cost"), n=sitr.count()).explain(epsilon=1)
        assert explained.plan.bound.rows == 1
        assert explained.size == 1000
        assert "Each person has one row here: none is dropped." in str(explained)


def test_units_in_groups_have_unknown_rows(visits):
    explained = visits.per_unit("region", n=sitr.count(bounds=(0, 10))).aggregate(k=sitr.count()).explain(epsilon=1)
    assert explained.kept is None
    assert explained.plan.bound.rows == 20


def test_quantiles_are_explained_as_if_rows_were_spread_evenly(visits):
    explained = visits.aggregate(middle=sitr.median("cost", bounds=(0, 100))).explain(epsilon=1)
    measured = explained.plan.measurements[0]
    errors = measured.mechanism.expected_errors(explained.size) * float(measured.measure.grid.step)
    assert explained.errors == {"middle": pytest.approx(errors[0])}
    assert "rows, spread evenly" in str(explained)


def test_units_whose_rows_were_added_up_by_the_keys_have_one_row_in_a_group(visits):
    groups = visits.per_unit("region", cost=sitr.sum("cost", bounds=(0, 500))).group_by("region")
    question = groups.aggregate(cost=sitr.sum("cost"))
    for asked, most in ((question, 2), (question.bounded(max_groups_per_unit=1), 1)):
        bound = asked.explain(epsilon=1).plan.bound
        assert (bound.groups, bound.rows_per_group) == (most, 1)
    bound = question.bounded(max_rows_per_unit=3).explain(epsilon=1).plan.bound
    assert bound.rows == 3


def test_the_months_of_a_bounded_date_are_public_under_any_name(visits):
    """A column of months that was derived is grouped by as its expression is."""
    named = visits.derive(month=visits["day"].truncate("month"))
    by_name = named.group_by("month").aggregate(n=sitr.count())
    by_expression = visits.group_by(month=visits["day"].truncate("month")).aggregate(n=sitr.count())
    added_up = named.per_unit("month", n=sitr.count(bounds=(0, 20))).group_by("month").aggregate(n=sitr.sum("n"))
    for question in (by_name, by_expression, added_up):
        assert question.explain(epsilon=1).plan.groups == 12
        assert question.release(epsilon=1).value["month"][0] == date(2025, 1, 1)


@pytest.mark.statistical
def test_a_condition_is_counted_as_a_number(visits):
    """A quarter of 7,000 rows; at ε = 100 and 20 rows a unit the scale is 0.2, and 35 is far beyond ln(1e9) of it."""
    urgent = visits.derive(urgent=visits["urgent"].choose(1, 0))
    answer = urgent.aggregate(rate=sitr.mean("urgent")).bounded(max_rows_per_unit=20).release(epsilon=100)
    assert abs(answer.value["rate"][0] - 0.25) < 0.005


def test_a_mean_of_a_condition_says_how_it_is_made_a_number(visits):
    with pytest.raises(InvalidArgument, match="is true or false, not a number") as refused:
        visits.aggregate(rate=sitr.mean("urgent"))
    assert refused.value.do == 'count what is true as 1: sitr.mean(table["urgent"].choose(1, 0)).'
    with pytest.raises(InvalidArgument, match="is text, not a number") as refused:
        visits.aggregate(region=sitr.mean("region"))
    assert refused.value.do == 'sitr.count_distinct(table["region"]), or group by it.'


def test_an_operation_returns_its_answer_whatever_was_learned_since(visits):
    """What is known of the data chooses bounds, and so the plan; the question is the same."""
    ledger, question = visits.database.ledger, visits.aggregate(n=sitr.count())
    first = question.release(epsilon=1, operation="visits")
    spent = ledger.spent("clinic").value
    visits.database.learn("visits", Facts(1000, 1000, ((1.0, 1.0),)))
    assert question.explain(epsilon=1).plan.event != first.event
    again = question.release(epsilon=1, operation="visits")
    assert (again.raw, again.event, again.entry) == (first.raw, first.event, first.entry)
    assert ledger.spent("clinic").value == spent
    with pytest.raises(OperationTaken):
        question.release(epsilon=2, operation="visits")
    with pytest.raises(OperationTaken):
        question.release(epsilon=1, operation="visits", purpose="audit")


@pytest.mark.parametrize("far", [2**22, 2**28, 2**40])
def test_a_product_of_constants_does_not_leave_32_bits(visits, far):
    """Numbers are counted in thousandths here, and so is the constant that they are compared with."""
    thousandths = visits.derive(cost=visits["urgent"].choose(0.001, 1.5))
    few = thousandths.filter(thousandths["cost"] < far)
    assert few.aggregate(n=sitr.count()).release(epsilon=100).value["n"][0] > 5000
    assert few.aggregate(n=sitr.histogram("cost", [0, 1, far])).release(epsilon=100).value["n"][0] > 1000


def test_two_threads_may_ask_one_question_at_two_prices(visits):
    question = visits.group_by("region").aggregate(n=sitr.count())

    def priced(epsilon):
        return {question._planned(epsilon, None, None)[0].event.pure() for _ in range(200)}

    with ThreadPoolExecutor(2) as threads:
        for epsilon, found in zip((1.0, 0.5), threads.map(priced, (1.0, 0.5)), strict=True):
            assert [float(one) for one in found] == [pytest.approx(epsilon)]


def joined(**expected):
    """Orders of customers, of which each has one row in a table of their own."""
    whole = {"type": "integer"}
    tables = {
        "orders": {"unit": "who", "max_rows_per_unit": 20, "columns": {"who": whole, "x": whole}},
        "customers": {"unit": "who", "max_rows_per_unit": 1, "columns": {"who": whole, "y": whole}},
        "visits": {"unit": "who", "max_rows_per_unit": 9, "columns": {"who": whole, "z": whole}},
    }
    for name, settings in expected.items():
        tables[name] |= settings
    frames = {name: pyarrow.table({column: [1] for column in table["columns"]}) for name, table in tables.items()}
    content = {"sitr": 1, "name": "shop", "tables": tables, "budgets": {"shop": {"epsilon": 10.0}}}
    return sitr.open(Declaration.of(content), ledger="memory://", frames=frames, analyst="amina")


@pytest.mark.parametrize("first", ["orders", "customers"])
def test_facts_of_a_join_are_those_of_the_table_with_many_rows(first):
    """Those of the other, one row of each unit, would have all rows but one dropped, and said to be few."""
    many, one = {"expected_units": 1500, "expected_rows": 5400}, {"expected_units": 1500, "expected_rows": 1500}
    with joined(orders=many, customers=one) as shop:
        other = ({"orders", "customers"} - {first}).pop()
        found = shop.table(first).join(other).aggregate(n=sitr.count()).explain(epsilon=1)
        assert found.facts.rows == 5400
        assert found.plan.bound.rows > 5
        twice = shop.table("orders").join("visits").aggregate(n=sitr.count()).explain(epsilon=1)
        assert twice.facts.rows is None
        assert "How many rows that drops is not known." in str(twice)


def test_where_a_unit_has_one_row_there_are_as_many_rows_as_units():
    with joined(customers={"expected_units": 1500}) as shop:
        found = shop.table("customers").aggregate(n=sitr.count()).explain(epsilon=1)
        assert found.facts.rows == 1500
        assert found.kept == 1


def test_what_a_bound_on_groups_drops_is_not_made_up():
    with joined(orders={"expected_units": 100, "expected_rows": 110}) as shop:
        question = shop.table("orders").group_by("x", values={"x": [1, 2, 3]}).aggregate(n=sitr.count())
        text = str(question.bounded(max_groups_per_unit=2).explain(epsilon=1))
        assert "in each, are used. How many rows that drops is not known." in text


def test_numbers_of_numpy_are_numbers(visits):
    cheap = visits.filter((visits["cost"] < np.float64(5)) & visits["cost"].isin(np.arange(3)))
    assert str(cheap.relation.condition) == str((visits["cost"] < 5.0) & visits["cost"].isin([0, 1, 2]))
    bins = sitr.histogram("cost", np.linspace(0, 100, 5))
    assert bins.edges == (0.0, 25.0, 50.0, 75.0, 100.0)
    assert visits.aggregate(n=bins).explain(epsilon=1).errors
    assert visits.aggregate(m=sitr.mean("cost", bounds=(np.int64(0), np.float64(9.5)))).explain(epsilon=1).errors


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"epsilon": 1, "error": 5}, "epsilon and error"),
        ({"rho": 1, "relative_error": 0.5}, "rho and relative_error"),
        ({"error": 5, "relative_error": 0.5}, "error and relative_error"),
        ({"epsilon": 0, "error": 5}, "epsilon and error"),
    ],
)
def test_the_price_is_said_once(visits, given, named):
    question = visits.aggregate(n=sitr.count())
    for ask in (question.explain, question.release):
        with pytest.raises(InvalidArgument) as refused:
            ask(**given)
        assert refused.value.what == f"{named} were given together."
        assert refused.value.why
        name, value = list(given.items())[-1]
        assert refused.value.do == f"pass {name}={value} alone."


def test_a_price_in_the_question_is_not_said_again_as_an_error(visits):
    text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 1) COUNT(*) AS n FROM visits"
    with pytest.raises(InvalidArgument, match="error was given, but the query itself says epsilon = 1") as refused:
        visits.database.sql(text).explain(error=5)
    assert refused.value.do == "leave error out, or take epsilon out of the OPTIONS of the query."

"""A table of prices to choose from, and prices that an error takes."""

import copy

import pytest

import sitr
from sitr.errors import InvalidArgument, NotAllowed
from sitr.session.prices import LADDER, Prices
from sitr.tables.declaration import Declaration
from tests.session.clinic import DECLARED, visits


@pytest.fixture
def table():
    content = copy.deepcopy(DECLARED)
    content["budgets"] = {"clinic": {"epsilon": 1.5}}
    with sitr.open(
        Declaration.of(content), analyst="amina", ledger="memory://", frames={"visits": visits()}
    ) as database:
        yield database.table("visits")


def question(table):
    return table.group_by("region").aggregate(n=sitr.count(), cost=sitr.median("cost", bounds=(0, 100)))


def test_each_price_is_what_its_own_explanation_says(table):
    found = question(table).explain()
    assert isinstance(found, Prices)
    assert [one.epsilon for one in found.rows] == list(LADDER)
    for one in found.rows:
        alone = question(table).explain(epsilon=one.epsilon)
        assert one.errors == alone.errors
        assert one.after["clinic"] == alone.remaining["clinic"][1]
    assert [one.times for one in found.rows] == [150, 50, 15, 5, 1, 0]
    assert found.rows[-1].after == {"clinic": "does not fit"}
    assert not found.spends_delta


def test_it_is_a_table_to_look_at(table):
    lines = str(question(table).explain()).splitlines()
    assert lines[0].split() == ["ε", "n", "cost", "left", "after", "fits"]
    assert lines[3].split()[0] == "0.1"
    assert lines[3].endswith("15 ×")
    assert len({len(line) for line in lines[:7]}) == 1
    assert "ε is for the whole release." in lines[8]
    assert max(map(len, lines)) <= 100
    assert table.database.ledger.spent("clinic").value == 0


def test_a_notebook_draws_the_table(table):
    drawn = question(table).explain()._repr_html_()
    assert drawn.count("<tr>") == 1 + len(LADDER)
    assert "choose one, as in epsilon=0.1." in drawn


def test_remarks_that_hold_at_every_price_are_said_once(table):
    wrong = table.filter(table["region"] == "nroth").aggregate(n=sitr.count())
    assert str(wrong.explain()).count("Did you mean 'north'?") == 1


def test_by_sql_a_price_that_the_text_states_is_the_price(table):
    text = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS (epsilon = 0.5) COUNT(*) AS n FROM visits"
    assert table.database.sql(text).explain().target.epsilon == 0.5
    assert isinstance(table.database.sql("SELECT COUNT(*) AS n FROM visits").explain(), Prices)


def test_what_is_refused_at_every_price_is_refused_without_one(table):
    with pytest.raises(NotAllowed, match="needs a δ"):
        table.group_by("day").aggregate(n=sitr.count()).explain()
    with pytest.raises(InvalidArgument, match="were given together"):
        question(table).explain(epsilon=0.1, error=3)


def test_a_release_spends_what_an_error_takes(table):
    counts = table.aggregate(n=sitr.count())
    bill = counts.explain(error=200)
    answer = counts.release(error=200)
    assert table.database.ledger.spent("clinic").value == pytest.approx(bill.target.epsilon)
    assert answer.event == bill.plan.event
    with pytest.raises(InvalidArgument, match="were given together"):
        counts.release(epsilon=1, error=200)

"""Queries in words: what was written in Python, as the book keeps it for people."""

import pytest

import sitr
from sitr.query.wording import TOO_DEEP, limits_text, question_text
from tests.tables import clinic


@pytest.fixture(scope="module")
def database():
    with clinic.database() as opened:
        yield opened


def test_questions_are_told(database):
    visits = database.table("visits")
    adults = visits.filter(visits["age"] >= 18).derive(dear=visits["cost"] * 2)
    cases = {
        "n = count() of visits": visits.aggregate(n=sitr.count()),
        "n = count() of visits where age >= 18 with dear = (cost * 2), by region": adults.group_by("region").aggregate(
            n=sitr.count()
        ),
        "n = count() of (home = region of visits), by home": visits.select(home="region")
        .group_by("home")
        .aggregate(n=sitr.count()),
        "n = count() of (visits joined with wards on ward = ward), by m = month_of(day)": visits.join("wards", "ward")
        .group_by(m=visits["day"].truncate("month"))
        .aggregate(n=sitr.count()),
        "n = count() of (visits joined, where it can be, with wards on ward = ward)": visits.join(
            "wards", "ward", keep=True
        ).aggregate(n=sitr.count()),
        "n = count() of (rows = count() of visits, for each unit, region), by region": visits.per_unit(
            "region", rows=sitr.count(bounds=(1, 10))
        )
        .group_by("region")
        .aggregate(n=sitr.count()),
    }
    for text, question in cases.items():
        assert question_text(question.query) == text


def test_bounds_are_told(database):
    question = database.table("visits").group_by("region").aggregate(n=sitr.count())
    assert limits_text(question.query) == ""
    bounded = question.bounded(max_groups_per_unit=2, max_rows_per_group=1)
    assert limits_text(bounded.query) == " (max_groups_per_unit = 2, max_rows_per_group = 1)"


def test_what_is_nested_too_deeply_is_not_written_out(database, monkeypatch):
    def deep(relation):
        raise RecursionError

    monkeypatch.setattr("sitr.query.wording.rows_text", deep)
    assert question_text(database.table("visits").aggregate(n=sitr.count()).query) == TOO_DEEP


def test_the_book_keeps_the_words_of_a_question(database):
    visits = database.table("visits")
    visits.filter(visits["age"] >= 18).aggregate(n=sitr.count()).release(epsilon=0.5, purpose="audit")
    question = database.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward")
    question.release(epsilon=0.5)
    first, second = database.ledger.releases()[-2:]
    assert (first.question, first.price, first.purpose) == ("n = count() of visits where age >= 18", "ε = 0.5", "audit")
    assert second.question == "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    assert second.price == "ε = 0.5 at δ = 1e-06"  # groups are found
    assert second.asked.tables == ("visits",)
    kept = [entry.record["left"] for entry in database.ledger.entries() if entry.kind == "commit"]
    assert kept[-1].keys() == {"clinic"}

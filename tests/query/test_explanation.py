"""Explanations: what they say of price, errors, bounding and budgets."""

import re

import sitr
from sitr.query.explanation import bounding
from sitr.query.facts import Facts
from tests.tables import clinic


def test_an_explanation_says_price_errors_and_bounds():
    with clinic.database() as database:
        found = database.table("visits").group_by("region").aggregate(
            n=sitr.count(), m=sitr.mean("cost"), u=sitr.count_units(), q=sitr.median("age")
        ).explain(epsilon=1.0)  # fmt: skip
        text = str(found)
        assert text.startswith("This would cost ε = 1")
        assert [line.label for line in found.lines] == ["rows and sum of cost", "units", "quantiles of age"]
        assert set(found.errors) == {"n", "m", "u", "q"}
        assert "At most 4 rows per person are used. How many rows that drops is not known" in text
        assert "budget clinic: ε part 100 %, δ part 100 % of" in text
        by_group = database.table("visits").aggregate(n=sitr.count())
        assert "At most 2 groups per person" in str(by_group.bounded(max_groups_per_unit=2).explain(epsilon=1.0))
        assert "Each row is a unit" in str(database.table("labs").aggregate(n=sitr.count()).explain(epsilon=1.0))


def test_a_smaller_price_is_a_larger_error():
    with clinic.database() as database:
        question = database.table("visits").aggregate(n=sitr.count(), m=sitr.mean("cost"), q=sitr.median("age"))
        small, large = (question.explain(epsilon=epsilon).errors for epsilon in (0.1, 1.0))
        assert all(small[name] > large[name] for name in small)


def test_that_no_group_can_be_named_is_said_before():
    with clinic.database() as database:
        question = database.table("visits").group_by("ward").aggregate(n=sitr.count())
        assert not any("can be listed" in note for note in question.explain(epsilon=1.0).notes)
        database.learn("visits", Facts(20, 60))
        assert any("there are about 20" in note for note in question.explain(epsilon=1.0).notes)
        database.learn("visits", Facts(20_000, 60_000))
        assert not any("can be listed" in note for note in question.explain(epsilon=1.0).notes)


def test_what_a_bound_cannot_help_is_not_advised():
    with clinic.database() as database:
        for table, advice in (("visits", "Bound the groups of a unit"), ("labs", "Declare the categories")):
            database.learn(table, Facts(2, 6))
            notes = database.table(table).group_by("ward").aggregate(n=sitr.count()).explain(epsilon=0.5).notes
            (note,) = (note for note in notes if f"there are about 2. {advice}" in note)
            assert ("max_groups_per_unit" in note) == (table == "visits")


def test_a_count_beside_what_may_be_missing_is_remarked_on():
    with clinic.database() as database:
        visits = database.table("visits")
        (note,) = visits.aggregate(n=sitr.count(), m=sitr.mean("cost")).explain(epsilon=1.0).notes
        assert note.startswith("n: rows without cost are counted too, which takes more noise.")
        for alone in ({"m": sitr.mean("cost")}, {"n": sitr.count(), "m": sitr.mean("age")}):  # age: nulls = "drop"
            assert visits.aggregate(**alone).explain(epsilon=1.0).notes == ()


def test_what_is_kept_of_a_unit_is_a_sentence_of_its_own():
    with clinic.database() as database:
        visits = database.table("visits")
        known = Facts(200, 600)
        plan = visits.aggregate(n=sitr.count()).bounded(max_rows_per_unit=2).explain(epsilon=1.0).plan
        assert bounding(plan, known, "person") == (
            "At most 2 rows per person are used: that drops about 44 % of the rows (declared).",
        )
        alone = visits.per_unit(rows=sitr.count(bounds=(0, 9))).aggregate(n=sitr.count())
        assert bounding(alone.explain(epsilon=1.0).plan, known, "person") == ()
        assert "Each person has one row here" in str(alone.explain(epsilon=1.0))
        labs = database.table("labs").aggregate(n=sitr.count()).explain(epsilon=1.0)
        assert bounding(labs.plan, known, "person") == ()


def test_how_far_off_a_quantile_will_be_is_said_in_its_own_measure():
    with clinic.database() as database:
        database.learn("visits", Facts(10_000, 30_000))
        question = database.table("visits").aggregate(day=sitr.median("day"), age=sitr.quantile("age", 0.9))
        text = str(question.explain(epsilon=1.0))
        assert re.search(r"day = .* days in a group of [\d,]+ rows, spread evenly", text)
        found = question.explain(error=2)
        assert 1 < max(found.errors.values()) <= 2

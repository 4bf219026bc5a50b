"""Explanations: what they say of price, errors, bounding and budgets."""

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
        assert set(found.errors) == {"n", "m", "u"}
        assert "4 rows of a unit are kept at most. How many rows that drops is not known" in text
        assert "budget clinic: 100 % of" in text
        by_group = database.table("visits").aggregate(n=sitr.count())
        assert "2 groups of a unit" in str(by_group.bounded(max_groups_per_unit=2).explain(epsilon=1.0))
        assert "Each row is a unit" in str(database.table("labs").aggregate(n=sitr.count()).explain(epsilon=1.0))


def test_a_smaller_price_is_a_larger_error():
    with clinic.database() as database:
        question = database.table("visits").aggregate(n=sitr.count(), m=sitr.mean("cost"))
        small, large = (question.explain(epsilon=epsilon).errors for epsilon in (0.1, 1.0))
        assert all(small[name] > large[name] for name in small)


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
        assert bounding(plan, known) == (
            "2 rows of a unit are kept at most: that drops about 44 % of the rows (declared).",
        )
        alone = visits.per_unit(rows=sitr.count(bounds=(0, 9))).aggregate(n=sitr.count())
        assert bounding(alone.explain(epsilon=1.0).plan, known) == ()
        assert "A unit has one row here" in str(alone.explain(epsilon=1.0))
        labs = database.table("labs").aggregate(n=sitr.count()).explain(epsilon=1.0)
        assert bounding(labs.plan, known) == ()

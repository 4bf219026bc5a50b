"""Explanations: what they say of price, errors, bounding and budgets."""

import sitr
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


def test_that_no_group_can_be_named_is_said_before():
    with clinic.database() as database:
        question = database.table("visits").group_by("ward").aggregate(n=sitr.count())
        assert not any("can be named" in note for note in question.explain(epsilon=1.0).notes)
        database.learn("visits", Facts(20, 60))
        assert any("there are about 20" in note for note in question.explain(epsilon=1.0).notes)
        database.learn("visits", Facts(20_000, 60_000))
        assert not any("can be named" in note for note in question.explain(epsilon=1.0).notes)

"""Names: each stands for one column, as written, or for none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from sitr.errors import NotAllowed, SitrError
from sitr.query.sql import parsed
from sitr.query.sql.names import fresh, matching, scanned
from tests.query.sql.clinic import DECLARED


def test_a_column_that_is_called_like_the_unit_is_not_the_unit() -> None:
    """Flags follow columns, not names: no alias makes a unit of another column, or hides it."""
    fake = "(SELECT age AS patient, cost FROM visits)"
    assert (
        parsed(f"SELECT COUNT(DISTINCT patient) AS n FROM {fake}", DECLARED).query.aggregates["n"].kind
        == "count_distinct"
    )
    for text in (
        f"SELECT COUNT(*) FROM {fake} a JOIN patients p ON a.patient = p.id",
        f"SELECT SUM(s) FROM (SELECT patient, SUM(cost) AS s FROM {fake} GROUP BY patient)",
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(privacy_unit_column = patient) COUNT(*) FROM {fake}",
    ):
        with pytest.raises(SitrError):
            parsed(text, DECLARED)
    renamed = "(SELECT patient AS who, cost FROM visits)"
    assert (
        parsed(f"SELECT COUNT(DISTINCT who) AS n FROM {renamed}", DECLARED).query.aggregates["n"].kind == "count_units"
    )
    parsed(f"SELECT COUNT(*) FROM {renamed} a JOIN patients p ON a.who = p.id", DECLARED)


def test_columns_of_one_name_have_to_be_told_apart() -> None:
    text = "SELECT {} , COUNT(*) FROM visits v JOIN patients p ON v.patient = p.id GROUP BY 1"
    with pytest.raises(NotAllowed, match="2 tables"):
        parsed(text.format("region"), DECLARED)
    assert parsed(text.format("p.region"), DECLARED).query.groupings[0].value.columns() == {"p_region"}
    assert parsed(text.format("v.region"), DECLARED).query.groupings[0].value.columns() == {"region"}


def identifier(name: str, *, quoted: bool = False) -> exp.Identifier:
    return exp.Identifier(this=name, quoted=quoted)


def test_letters_matter_in_quotes_and_where_two_names_differ_in_them_alone() -> None:
    assert matching(identifier("WARD"), ["Ward", "region"], "column") == "Ward"
    assert matching(identifier("ward"), ["Ward", "ward"], "column") == "ward"
    with pytest.raises(NotAllowed, match="there is no column"):
        matching(identifier("WARD", quoted=True), ["Ward"], "column")
    with pytest.raises(NotAllowed, match="may be Ward or ward"):
        matching(identifier("WARD"), ["Ward", "ward"], "column")


@given(st.text(min_size=1, max_size=3), st.lists(st.text(max_size=4), max_size=6))
def test_a_fresh_name_is_not_taken_and_begins_as_it_was_wanted(wanted: str, taken: list[str]) -> None:
    made = fresh(wanted, taken)
    assert made not in taken
    assert made == wanted or (wanted in taken and made.startswith(f"{wanted}_"))


def test_a_table_has_its_declared_columns_and_one_unit() -> None:
    (columns,) = scanned(DECLARED, "visits").sources.values()
    assert [one.name for one in columns] == list(DECLARED.tables["visits"].columns)
    assert [one.name for one in columns if one.unit] == ["patient"]
    (columns,) = scanned(DECLARED, "labs").sources.values()
    assert not any(one.unit for one in columns)  # its unit is found in another table

"""Tables and columns in words: all of it public, as the owner declared it."""

import datetime
from fractions import Fraction

import pytest

from sitr.session.description import SHOWN, about, column_words, columns_text, ends
from sitr.tables.declaration import Declaration
from sitr.tables.domains import Domain


def test_one_row_is_no_rows():
    table = {"unit": "id", "max_rows_per_unit": 1, "expected_units": 1, "columns": {"id": {"type": "integer"}}}
    declared = Declaration.of({"sitr": 1, "name": "clinic", "tables": {"people": table}})
    said = about(declared.tables["people"])
    assert said == "about units named by id, 1 row of each at most; about 1 unit; paid from clinic"


def table(**about):
    """The first of the declared tables."""
    columns = {"columns": {"id": {"type": "integer"}}}
    declared = {"sitr": 1, "name": "clinic", "tables": {"people": {**columns, **about}}}
    if "unit" in about and isinstance(about["unit"], dict):
        declared["tables"]["stays"] = {"unit": "id", "max_rows_per_unit": 2, **columns}
    return Declaration.of(declared).tables["people"]


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"public": True, "key": "id"}, "public, it costs nothing to read"),
        ({"unit": "row", "dataset": "survey"}, "each row is a unit of its own; paid from survey"),
        ({"unit": "row", "expected_rows": 1200}, "each row is a unit of its own; about 1,200 rows; paid from clinic"),
        (
            {"unit": {"through": "stays", "on": {"id": "id"}}, "max_rows_per_unit": 9},
            "about units that are found through stays, 9 rows of each at most; paid from clinic",
        ),
    ],
)
def test_whom_a_table_is_about_and_who_pays(declared, said):
    assert about(table(**declared)) == said


@pytest.mark.parametrize(
    ("domain", "bounds"),
    [
        (Domain("number"), None),
        (Domain("number", Fraction(1, 4), -6, 400), (-1.5, 100)),
        (Domain("date", Fraction(1), -1, 365), ("1969-12-31", "1971-01-01")),
        (Domain("timestamp", Fraction(1), 0, 86399), ("1970-01-01 00:00:00", "1970-01-01 23:59:59")),
    ],
)
def test_bounds_are_told_as_they_were_declared(domain, bounds):
    assert ends(domain) == bounds
    assert column_words(domain)[0] == ("" if bounds is None else f"{bounds[0]} to {bounds[1]}")


def test_the_group_of_all_others_is_told_behind_the_categories():
    listed = tuple(f"c{number}" for number in range(SHOWN + 1))
    told = column_words(Domain("string", categories=("north", "(other)"), others=True))[1]
    assert told == "north; all others are (other)"
    told = column_words(Domain("string", categories=(*listed, "(other)"), others=True))[1]
    assert told.endswith(", … 1 more; all others are (other)")


def test_of_many_categories_some_are_told_and_how_many_more_there_are():
    categories = tuple(f"c{number}" for number in range(SHOWN + 3))
    _, listed, missing = column_words(Domain("string", categories=categories, required=True))
    assert listed == f"{', '.join(categories[:SHOWN])}, … 3 more"
    assert missing == "missing is dropped"
    assert column_words(Domain("string", categories=categories[:SHOWN]))[1].count("more") == 0
    assert column_words(Domain("date", categories=(datetime.date(2026, 1, 31),)))[1] == "2026-01-31"


def test_columns_stand_under_each_other():
    schema = {
        "n": Domain("number", Fraction(1), 0, 5),
        "amount paid": Domain("number", Fraction(1, 2), 0, 4),
        "level": Domain("number", Fraction(1, 2**20), float=True),
    }
    assert columns_text(schema).splitlines() == [
        "n            integer  0 to 5",
        "amount paid  decimal  0 to 2",
        "level        float",
    ]
    assert columns_text({}) == ""

"""Text, tokens and trees: what cannot be read is refused, and nothing else is ever raised."""

from __future__ import annotations

import contextlib
import re
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sitr.errors import NotAllowed, SitrError
from sitr.query.sql import parsed
from sitr.query.sql.dialect import number, read
from tests.query.sql.clinic import DECLARED
from tests.query.sql.test_refusals import REFUSED
from tests.query.sql.test_statement import ANSWERS, PLANS

VOCABULARY = """\
SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET JOIN LEFT RIGHT ON USING WITH AS AND OR NOT IN BETWEEN IS
NULL CASE WHEN THEN ELSE END DISTINCT COUNT SUM AVG MIN MAX MEDIAN PERCENTILE_CONT VARIANCE CORR COALESCE ABS
EXTRACT DATE_TRUNC DATE TIMESTAMP year month OVER PARTITION UNION ALL EXISTS LATERAL UNNEST VALUES INTERVAL
CAST INSERT DELETE visits patients areas labs stays answers patient id region cost age day seen urgent drug
"Ward" ward free مدينة v p t n zone level stay stay_id score sex 1 2 0 0.5 1e400 1e-6 99999999999999999999
'north' '' '2026-01-01' 'month' TRUE FALSE * , . ( ) = <> < <= > >= + - / % || => ; ? :p @v $1 [ ] { } -- /*
*/ /*+ ` " ' \\ :: -> FILTER WITHIN DESC NULLS FIRST contribution_bounds_per_group contribution_bounds_per_row
DIFFERENTIAL_PRIVACY OPTIONS epsilon delta ROLLUP RECURSIVE max_groups_contributed privacy_unit_column FETCH
ROWS ONLY TABLESAMPLE PIVOT QUALIFY WINDOW IF IIF COUNTIF
"""
WORDS = VOCABULARY.split()
STATEMENTS = [*PLANS, *ANSWERS, *REFUSED]
TOKENS = re.compile(r"\w+|'[^']*'|\"[^\"]*\"|=>|[^\w\s]")


def read_or_refused(text: str) -> None:
    with contextlib.suppress(SitrError):
        parsed(text, DECLARED)


@given(st.lists(st.sampled_from(WORDS), max_size=30))
@settings(max_examples=300)
def test_random_tokens_are_read_or_refused(words: list[str]) -> None:
    read_or_refused(" ".join(words))
    read_or_refused(f"SELECT {' '.join(words)} FROM visits")
    read_or_refused(f"SELECT COUNT(*) FROM visits WHERE {' '.join(words)}")


@given(st.data())
@settings(max_examples=600)
def test_statements_with_changed_tokens_are_read_or_refused(data: st.DataObject) -> None:
    words = TOKENS.findall(data.draw(st.sampled_from(STATEMENTS)))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(words)))
        kept = data.draw(st.integers(0, 1))
        words = [*words[:place], data.draw(st.sampled_from(WORDS)), *words[place + kept :]]
    read_or_refused(" ".join(words))


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    read_or_refused(text)
    read_or_refused(f"SELECT COUNT(*) AS n FROM visits WHERE drug = '{text}'")
    read_or_refused(f'SELECT COUNT(*) AS "{text}" FROM visits')


@pytest.mark.parametrize("count", [9, 38, 5000])
@pytest.mark.parametrize(
    ("begin", "middle", "end"),
    [
        ("SELECT COUNT(*) FROM visits WHERE ", "NOT ", "urgent"),
        ("SELECT COUNT(*) FROM visits WHERE ", "(", "urgent"),
        ("SELECT COUNT(*) FROM visits WHERE age = ", "- ", "1"),
        ("SELECT COUNT(*) FROM visits WHERE age = 1", " + 1", ""),
        ("SELECT COUNT(*) FROM visits WHERE urgent", " OR urgent", ""),
        ("SELECT SUM(", "ABS(", "age"),
        ("SELECT SUM(", "CASE WHEN urgent THEN 1 ELSE ", "0"),
        ("SELECT COUNT(*) ", "FROM (SELECT * ", "FROM visits"),
        ("SELECT COUNT(*) FROM visits JOIN ", "visits JOIN ", "visits"),
        ("SELECT ", "COUNT(*), ", "1"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS", "(", ""),
        ("", "WITH a AS (", ""),
    ],
)
def test_long_and_deep_texts_end_soon(begin: str, middle: str, end: str, count: int) -> None:
    read_or_refused(begin + middle * count + end)


@pytest.mark.parametrize("text", ["12", "0", "0.1", "1e3", "1E-6", "123.456", "0.12345678901234567890123", "5."])
def test_numbers_are_what_was_written(text: str) -> None:
    found = number(text)
    assert Fraction(repr(found) if isinstance(found, float) else found) == Fraction(Decimal(text))


@pytest.mark.parametrize("text", ["1e999999999", "1e-999999999", "9" * 5000, "nan", "inf", "0x10", "1_0_", ""])
def test_numbers_that_no_column_holds_are_refused(text: str) -> None:
    with pytest.raises(NotAllowed):
        number(text)


@pytest.mark.parametrize(
    ("text", "place"),
    [("SELECT COUNT(*) FROM\nvisits WHERE )", "line 2"), ("SELECT COUNT(* FROM visits", "line 1")],
)
def test_a_fault_has_a_place(text: str, place: str) -> None:
    with pytest.raises(NotAllowed, match=place):
        read(text)


def test_options_are_cut_out_of_tokens() -> None:
    found = read("SELECT /* OPTIONS( */ WITH differential_privacy\nOptions(EPSILON=0.5) COUNT(*) FROM t").options
    assert (found.epsilon, found.delta, found.max_groups, found.unit) == (0.5, None, None, None)
    assert read("SELECT 'WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1)' FROM t").options.epsilon is None
    assert (
        read('SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(privacy_unit_column = t."x y") 1 FROM t').options.unit
        is not None
    )

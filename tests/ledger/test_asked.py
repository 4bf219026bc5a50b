"""The question in the book: whatever it is can be kept, and whatever is kept can be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import PureDP
from sitr.ledger import Budget
from sitr.ledger.asked import LONGEST_QUESTION, MOST_TABLES, Asked

EVENT = PureDP(epsilon=0.25)
json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@pytest.mark.parametrize(
    "text", ["x" * 10**6, "1" * 10**5, "\x00 \ud800 \u202e", "é\U0001f600" * 5000, "a\n\tb", "", "9" * 249, "'" * 300]
)
def test_whatever_is_asked_can_be_kept(ledger, text):
    ledger.create_budget("clinic", Budget(epsilon=1.0))
    asked = Asked(text, tuple(f"t{number}" for number in range(1000)), rho=0.125, delta=1e-9)
    ledger.reserve("clinic", EVENT, analyst="amina", operation="q", asked=asked)
    (line,) = ledger.releases()
    assert len(line.question) < LONGEST_QUESTION + 50
    assert line.price == "ρ = 0.125 at δ = 1e-09"
    if len(text) > LONGEST_QUESTION:
        for told in (line.question, line.short):
            assert f"({len(text):,} characters in all)" in told
            assert told.count("characters in all") == 1
    assert len(line.short) < 200
    assert ledger.verify()


def test_a_question_of_many_lines_is_kept_in_lines_wherever_it_was_written():
    assert Asked("SELECT 1\r\n\tFROM t").record()["text"] == "SELECT 1\n\tFROM t"


@given(json)
def test_what_was_written_by_hand_is_read_as_far_as_it_can_be(record):
    found = Asked.of(record)
    assert found is None or isinstance(found.price, str)
    if found is not None:
        assert Asked.of(found.record()).epsilon == found.epsilon


amounts = st.none() | st.floats(1e-9, 1e9)


@given(st.text(max_size=50), st.lists(st.text(min_size=1, max_size=5), max_size=MOST_TABLES), amounts, amounts)
def test_what_is_kept_is_read_again(text, tables, epsilon, delta):
    asked = Asked(text, tuple(tables), epsilon=epsilon, delta=delta or 0.0, declaration="clinic, version 1")
    again = Asked.of(asked.record())
    assert (again.tables, again.epsilon, again.delta, again.price) == (asked.tables, epsilon, asked.delta, asked.price)
    assert again.record() == asked.record()


@pytest.mark.parametrize(
    ("asked", "price"),
    [
        (Asked(""), ""),
        (Asked("", delta=1e-9), ""),
        (Asked("", epsilon=0.5), "ε = 0.5"),
        (Asked("", epsilon=0.5, delta=1e-9), "ε = 0.5 at δ = 1e-09"),
        (Asked("", rho=0.02), "ρ = 0.02"),
    ],
)
def test_a_price_is_told_in_the_measure_that_was_asked_for(asked, price):
    assert asked.price == price

"""Numbers as people read them never flatter: spent goes up, what is left goes down."""

import math
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sitr.display import percent, reckoned, rounded_down, rounded_up, scientific, shortened
from tests.accounting.helpers import law, logs

positive = logs(1e-300, 1e300)


@law(300)
@given(positive, st.integers(1, 8))
def test_spent_is_never_shown_as_less(value, digits):
    assert float(rounded_up(value, digits)) >= value


@law(300)
@given(positive, st.integers(1, 8))
def test_what_is_left_is_never_shown_as_more(value, digits):
    assert float(rounded_down(value, digits)) <= value


@law(300)
@given(positive, st.integers(2, 8))
def test_what_is_shown_is_near_the_value(value, digits):
    for shown in (rounded_up(value, digits), rounded_down(value, digits)):
        assert abs(Decimal(shown) / Decimal(value) - 1) <= Decimal(10) ** (1 - digits)


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        (2.38111, "2.39", "2.38"),
        (0.31999, "0.320", "0.319"),
        (9.999, "10.0", "9.99"),
        (2.0, "2.00", "2.00"),
        (0.1, "0.100", "0.100"),
        (1.2345e30, "1.24e+30", "1.23e+30"),
        (9.999e25, "1.00e+26", "9.99e+25"),
        (9_999_999.0, "1.00e+7", "9990000"),
        (0, "0", "0"),
        (math.inf, "∞", "∞"),
    ],
)
def test_these_numbers_read_as(value, up, down):
    assert (rounded_up(value), rounded_down(value)) == (up, down)


@pytest.mark.parametrize(
    ("value", "shown"), [(1e-6, "1e-06"), (2.5e-13, "2.5e-13"), (0.0, "0"), (0.25, "0.25"), (1e-300, "1e-300")]
)
def test_a_delta_is_scientific(value, shown):
    assert float(scientific(value)) == float(shown)
    assert scientific(value) == shown


@law(300)
@given(logs(1e-300, 1))
def test_a_small_delta_is_never_shown_as_zero(value):
    assert float(scientific(value)) == pytest.approx(value, rel=6e-3)


def test_a_hair_that_a_promise_allows_is_not_shown():
    assert percent(1 - 2.0**-40, spent=False) == "100 %"
    assert percent(0.3 + 1e-16, spent=True) == "30.0 %"
    assert percent(1.0 + 1e-12, spent=True) == "100 %"
    assert rounded_up(reckoned(0.5 * (1 + 2.0**-39), spent=True)) == "0.500"
    assert rounded_down(reckoned(0.3 - 2.0**-50, spent=False)) == "0.300"


@law(300)
@example("x" * 300, 1, 25)
@given(st.text(max_size=300), st.integers(1, 100), st.integers(1, 100))
def test_a_text_that_is_cut_twice_says_how_long_it_was_at_first(text, first, second):
    cut = shortened(shortened(text, first), second)
    assert cut.startswith(text[: min(first, second)])
    assert cut == text or cut.count("characters in all") == 1
    assert cut == text or cut.endswith(f"… ({len(text):,} characters in all)")

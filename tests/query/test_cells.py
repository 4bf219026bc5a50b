"""Cells: no more digits than noise leaves a meaning, and an interval that is shown holds what it held."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import PureDP
from sitr.query.answer import Additive, Answer
from sitr.query.cells import cells, decimals, interval_text, key_text, number_text
from tests.accounting.helpers import law


@pytest.mark.parametrize(
    ("errors", "digits"), [([174.0], 0), ([12.0], 0), ([9.9], 1), ([0.5, 30.0], 2), ([0.0], None), ([math.inf], None)]
)
def test_digits_go_by_the_noise(errors, digits):
    assert decimals(errors) == digits


@law(300)
@given(st.floats(-1e300, 1e300), st.floats(0, 1e300), st.integers(0, 9))
def test_an_interval_is_rounded_outwards(low, width, digits):
    shown = interval_text(low, low + width, digits).replace(",", "").split(" to ")
    assert float(shown[0]) <= low
    assert float(shown[1]) >= low + width


def test_what_is_no_number():
    assert key_text(None) == "(missing)"
    assert number_text(None, 2) == "-"
    assert number_text(True, 2) == "True"
    assert number_text(np.int64(12345), 2) == "12,345"
    assert number_text(-0.001, 1) == "0.0"
    assert interval_text(-math.inf, math.inf, 1) == "-inf to inf"


def test_a_count_has_no_half_rows_in_its_interval():
    answer = Answer(
        value={"n": [10, 3], "m": [1.5, 2.5]},
        error95={"n": [5.3, 5.3], "m": [0.5, 0.5]},
        event=PureDP(1.0),
        raw={"n": [10.2, 2.7], "m": [1.5, 2.5]},
        low={"n": [4.9, 0.0], "m": [1.0, 2.0]},
        high={"n": [15.5, 8.0], "m": [2.0, 3.0]},
        additive={"n": Additive((1.0,), 2.0, "laplace")},
    )
    _, rows = cells(answer, 5)
    assert rows[0] == ("10", "4 to 16", "1.50", "1.00 to 2.00")
    assert str(answer.total("n")).startswith("13 (from ")
    assert "." not in str(answer.total("n"))

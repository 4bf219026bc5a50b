"""A bracket reads as its safe side, and is compared as a whole."""

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import Bracket, Gaussian


def test_an_epsilon_reads_as_its_upper_end():
    assert float(Bracket(1.0, 2.0, "x")) == 2.0


def test_a_type_two_error_reads_as_its_lower_end():
    assert float(Bracket(0.1, 0.2, "x", safe="lower")) == 0.1
    assert Gaussian(1.0).tradeoff(0.3).safe == "lower"


def test_arrays_give_a_bracket_of_arrays():
    bracket = Gaussian(1.0).epsilon([[1e-3, 1e-6]])
    assert bracket.lower.shape == bracket.upper.shape == np.asarray(bracket).shape == (1, 2)
    assert bracket.value[0, 1] == float(Gaussian(1.0).epsilon(1e-6))


def test_an_array_bracket_is_no_single_number():
    with pytest.raises(TypeError):
        float(Gaussian(1.0).epsilon([1e-3, 1e-6]))


def test_an_empty_array_gives_an_empty_bracket():
    assert Gaussian(1.0).epsilon([]).upper.shape == (0,)


def test_the_width_is_the_distance_of_the_ends():
    assert Bracket(1.0, 2.5, "x").width == 1.5
    assert Bracket(np.inf, np.inf, "x").width == 0
    assert Bracket(np.array([1.0, np.inf]), np.array([2.0, np.inf]), "x").width.tolist() == [1.0, 0.0]


def test_brackets_are_equal_when_their_ends_and_their_side_are():
    assert Bracket(1.0, 2.0, "x") == Bracket(1.0, 2.0, "y")
    assert Bracket(1.0, 2.0, "x") != Bracket(1.0, 2.0, "x", safe="lower")
    assert Bracket(1.0, 2.0, "x") != 2.0


def test_a_bracket_is_frozen():
    with pytest.raises(AttributeError):
        Bracket(1.0, 2.0, "x").lower = 0.0


# --- a comparison holds of the whole bracket --------------------------------------------------------------------------

ORDERS = [operator.lt, operator.le, operator.gt, operator.ge]
MIRRORED = dict(zip(ORDERS, [operator.gt, operator.ge, operator.lt, operator.le], strict=True))
NUMBERS = st.integers(0, 4).map(float)  # few, so that ends are met


@pytest.mark.parametrize("relation", ORDERS)
@given(ends=st.tuples(NUMBERS, NUMBERS).map(sorted), x=NUMBERS, safe=st.sampled_from(["upper", "lower"]))
def test_a_comparison_holds_if_it_does_at_both_ends(relation, ends, x, safe):
    bracket = Bracket(*ends, "x", safe=safe)
    whole = all(relation(end, x) for end in ends)
    assert relation(bracket, x) == relation(bracket, int(x)) == relation(bracket, np.float64(x)) == whole
    assert MIRRORED[relation](x, bracket) == MIRRORED[relation](np.float64(x), bracket) == whole
    assert relation(bracket, np.array([x, x])).tolist() == [whole, whole]
    assert MIRRORED[relation](np.array([x, x]), bracket).tolist() == [whole, whole]


def test_inside_a_bracket_nothing_is_decided():
    bracket = Bracket(1.0, 2.0, "x")
    assert not any(relation(bracket, 1.5) for relation in ORDERS)
    assert not any(relation(bracket, np.nan) for relation in ORDERS)


def test_an_array_bracket_is_compared_place_by_place():
    bracket = Bracket(np.array([1.0, 3.0]), np.array([2.0, 4.0]), "x")
    assert (bracket <= 2.0).tolist() == [True, False]
    assert (bracket > np.array([1.5, 2.5])).tolist() == [False, True]


@pytest.mark.parametrize("other", [Bracket(3.0, 4.0, "x"), "3", None, 3j])
def test_nothing_but_a_number_has_a_place_in_the_order(other):
    for relation in ORDERS:
        with pytest.raises(TypeError):
            relation(Bracket(1.0, 2.0, "x"), other)

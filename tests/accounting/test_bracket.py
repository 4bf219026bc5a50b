"""A bracket reads as its safe side."""

import numpy as np
import pytest

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

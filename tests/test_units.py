"""Adjacency: `None` joins with anything, two different ones with each other never."""

import pytest

from sitr.errors import IncompatibleAdjacency
from sitr.units import ADJACENCIES, join


def test_there_are_two_adjacencies():
    assert ADJACENCIES == ("add_remove", "replace_one")


@pytest.mark.parametrize("known", [None, *ADJACENCIES])
def test_none_joins_with_anything(known):
    assert join(known, None) == join(None, known) == known


@pytest.mark.parametrize("known", ADJACENCIES)
def test_an_adjacency_joins_with_itself(known):
    assert join(known, known) == known


@pytest.mark.parametrize(("first", "second"), [ADJACENCIES, ADJACENCIES[::-1]])
def test_different_adjacencies_are_refused(first, second):
    with pytest.raises(IncompatibleAdjacency, match=f"{first}.*{second}"):
        join(first, second)

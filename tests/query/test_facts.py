"""Facts: which part of the rows a bound keeps, and which bound is best."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.query.facts import Facts, chosen_bound

sizes = st.lists(st.tuples(st.integers(1, 50), st.integers(1, 100)), min_size=1, max_size=6)


@given(sizes, st.integers(1, 60))
def test_what_is_kept_of_known_sizes(parts, most):
    units = sum(number for _, number in parts)
    facts = Facts(units, 1.0, tuple((size, number / units) for size, number in parts))
    rows = sum(size * number for size, number in parts)
    assert facts.kept(most) == pytest.approx(sum(min(size, most) * number for size, number in parts) / rows)


@given(st.floats(1, 1e6), st.floats(1, 100), st.integers(1, 100))
def test_more_is_kept_by_a_larger_bound(units, mean, most):
    facts = Facts(units, units * mean)
    assert 0 < facts.kept(most) <= facts.kept(most + 1) <= 1


def test_where_nothing_is_known_nothing_is_said():
    assert Facts().kept(3) is None
    assert Facts(units=5).mean is None
    assert Facts(units=10, rows=5).mean == 1.0
    assert Facts(units=10, rows=10).kept(1) == 1.0
    assert chosen_bound(Facts(), 7, noise=1.0, groups=1).rows == 7


@given(st.floats(10, 1e6), st.floats(1, 20), st.integers(1, 60), st.floats(0.1, 100), st.integers(1, 1000))
def test_the_chosen_bound_has_the_least_error(units, mean, most, noise, groups):
    facts = Facts(units, units * mean)
    found = chosen_bound(facts, most, noise, groups).rows

    def error(rows):
        return facts.rows / groups * (1 - facts.kept(rows)) + 3 * rows * noise

    assert 1 <= found <= most
    assert error(found) <= min(error(rows) for rows in range(1, most + 1)) + 1e-9

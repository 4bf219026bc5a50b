"""Finite laws: masses, lattices, both orders, and the hull of several guarantees."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting.losses.atoms import Atoms, hull, pair_of, two_point
from tests.accounting.helpers import brute_delta, law, logs, obeys_the_rules_of_a_law, transform_matches


def whole(loss, epsilon):
    return loss.infinite_mass + (1 - loss.infinite_mass) * float(loss.profile(np.float64(epsilon)))


outcomes = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=6)


@law(60)
@given(outcomes, st.floats(0, 3))
def test_both_orders_of_a_table_are_those_of_its_outcomes(rows, epsilon):
    rows = [(p, q) for p, q in rows if (p == 0 or p > 1e-3) and (q == 0 or q > 1e-3)] + [(0.3, 0.6)]
    p, q = np.array(rows).T / np.array(rows).sum(axis=0)[:, None]
    both = (p > 0) & (q > 0)
    pair = pair_of(np.log(p[both] / q[both]), p[both], float(np.sum(p[q == 0])))
    found = max(whole(pair.forward, epsilon), whole(pair.backward, epsilon))
    assert found == pytest.approx(brute_delta(p, q, epsilon), rel=1e-9, abs=1e-13)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 3.0, 40.0])
def test_a_black_box_obeys_the_rules(epsilon):
    loss = two_point(epsilon, 0.01).forward
    assert loss.infinite_mass == 0.01
    obeys_the_rules_of_a_law(loss)
    transform_matches(loss, 1.3, 0.2)


def test_empty_atoms_are_dropped_and_the_rest_is_sorted():
    atoms = Atoms.of(np.array([1.0, 5.0, -1.0]), np.array([0.6, 0.0, 0.2]), 0.2)
    assert atoms.losses.tolist() == [-1.0, 1.0]
    assert np.exp(atoms.logs) == pytest.approx([0.25, 0.75])
    assert (atoms.largest, atoms.smallest, atoms.top_mass) == (1.0, -1.0, pytest.approx(0.75))


def test_losses_on_a_lattice_are_found():
    atoms = Atoms.of(np.array([-0.3, 0.1, 0.5, 0.9]), np.full(4, 0.25))
    lattice = atoms.lattice(0.0)
    assert lattice.spacing == pytest.approx(0.4)
    assert lattice.places.tolist() == [0, 1, 2, 3]
    assert lattice.weights.sum() == pytest.approx(1)
    assert lattice.rounding < 1e-13


def test_losses_on_no_lattice_are_said_to_be_on_none():
    assert Atoms.of(np.array([-1.0, 0.0, math.sqrt(2)]), np.full(3, 1 / 3)).lattice(0.0) is None


@law(40)
@given(st.lists(st.tuples(logs(1e-3, 5), logs(1e-9, 0.5)), min_size=1, max_size=5), st.floats(0, 6))
def test_the_hull_meets_every_guarantee_and_is_its_own_other_order(points, epsilon):
    pair = hull(points)
    assert pair.is_symmetric
    for e, d in points:
        assert whole(pair.forward, e) <= d * (1 + 1e-9) + 1e-15
    dual = -math.expm1(epsilon) + math.exp(epsilon) * whole(pair.forward, -epsilon)
    assert whole(pair.forward, epsilon) == pytest.approx(dual, rel=1e-9, abs=1e-12 * math.exp(epsilon))


@law(30)
@given(logs(1e-3, 5), logs(1e-9, 0.5), st.floats(-6, 6))
def test_the_hull_of_one_point_is_the_black_box(e, d, epsilon):
    ours, theirs = hull([(e, d)]).forward, two_point(e, d).forward
    assert whole(ours, epsilon) == pytest.approx(whole(theirs, epsilon), rel=1e-9, abs=1e-12)


@law(30)
@given(st.lists(st.tuples(logs(1e-3, 5), logs(1e-9, 0.5)), min_size=2, max_size=5), st.floats(0, 6))
def test_more_guarantees_never_cost_more(points, epsilon):
    assert whole(hull(points).forward, epsilon) <= whole(hull(points[:-1]).forward, epsilon) * (1 + 1e-9) + 1e-15


@law(30)
@given(outcomes, logs(1e-12, 1e-4))
def test_a_moment_near_order_one_keeps_the_digits_of_the_mean(rows, x):
    """K(x) is x times the mean and little more, whether or not Q has outcomes of its own."""
    masses = np.array([mass + 0.01 for mass, _ in rows])
    loss = Atoms.of(np.array([0.1 + value for _, value in rows]), masses / masses.sum(), 0.0, uneven=True)
    assert float(loss.log_mgf(np.float64(x))) / x == pytest.approx(loss.mean(), rel=2 * x + 1e-12)


@pytest.mark.parametrize("p", [1e-3, 1e-7, 1e-12])
@pytest.mark.parametrize("x", [1e-7, 0.5, 7.0])
def test_a_rare_large_loss_keeps_the_digits_of_its_moment(p, x):
    """P and Q differ by a few parts in 10^12 only, where P is ten times as likely: no moment is lost to rounding."""
    rare, other = math.log(10.0), math.log1p(-0.9 * p / (1 - p / 10))
    law = Atoms.of(np.array([other, rare]), np.array([1 - p, p]))
    with mpmath.workdps(60):
        q, big = mpmath.mpf(p), mpmath.mpf(10)
        low = (1 - q) / (1 - q / big)
        truth = mpmath.log(q * big**x + (1 - q) * low**x)
        mean = q * mpmath.log(big) + (1 - q) * mpmath.log(low)
    assert float(law.log_mgf(np.float64(x))) == pytest.approx(float(truth), rel=1e-9, abs=0)
    assert law.mean() == pytest.approx(float(mean), rel=1e-9, abs=0)

"""Claims of black boxes: what they accept and refuse, and that tables stay stamped."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import (
    ApproximateDP,
    Concentrated,
    Gaussian,
    Guarantees,
    LossDistribution,
    PoissonSampled,
    PrivacyProfile,
    PureDP,
    Renyi,
    ZeroConcentrated,
)
from sitr.errors import InvalidArgument
from tests.accounting.events.parameters import INF, bad_parameters, is_refused

GAUSSIAN = Gaussian(1.0)
# Every parameter: its name, how to pass it, and what else is outside its range.
PARAMETERS = [
    ("epsilon", PureDP, [10001, INF]),
    ("epsilon", lambda v: ApproximateDP(v, 1e-6), [10001, INF]),
    ("delta", lambda v: ApproximateDP(1.0, v), [1, 1.5, INF]),
    ("epsilon", lambda v: Guarantees([(v, 1e-6)]), [601, INF]),
    ("delta", lambda v: Guarantees([(1.0, v)]), [1.5, INF]),
    ("epsilon", lambda v: PrivacyProfile([(0.5, 0.1), (v, 1e-6)]), [601, INF]),
    ("delta", lambda v: PrivacyProfile([(0.5, 0.1), (1.0, v)]), [1.5, INF]),
    ("mu", lambda v: Concentrated(v, 1.0), [1.1e30, INF]),
    ("tau", lambda v: Concentrated(1.0, v), [1.1e15, INF]),
    ("rho", ZeroConcentrated, [1.1e30, INF]),
    ("xi", lambda v: ZeroConcentrated(1.0, v), [1.1e30, INF]),
    ("delta", lambda v: ZeroConcentrated(1.0, 0.0, v), [1, 1.5, INF]),
    ("alpha", lambda v: Renyi([(v, 0.1)]), [0, 0.99]),
    ("epsilon", lambda v: Renyi([(2, v)]), [1.1e15, INF]),
    ("delta", lambda v: Renyi([(2, 0.1)], delta=v), [1, 1.5, INF]),
    ("losses", lambda v: LossDistribution([v], [1.0]), [-601, 601, INF]),
    ("probabilities", lambda v: LossDistribution([0.0], [v]), [1.5, INF]),
    ("infinite_mass", lambda v: LossDistribution([0.0], [1.0], v), [1, 1.5, INF]),
]


@pytest.mark.parametrize(("name", "make", "value"), list(bad_parameters(PARAMETERS)))
def test_a_bad_parameter_is_refused_by_name_and_range(name, make, value):
    assert is_refused(name, make, value)


TABLES = {
    "no guarantees": lambda: Guarantees([]),
    "guarantees None": lambda: Guarantees(None),
    "guarantees 5": lambda: Guarantees(5),
    "guarantees flat": lambda: Guarantees([1.0, 1e-6]),
    "guarantees text": lambda: Guarantees("ab"),
    "guarantees short row": lambda: Guarantees([(1.0,)]),
    "guarantees long row": lambda: Guarantees([(1.0, 1e-6, 0)]),
    "no profile": lambda: PrivacyProfile(()),
    "no orders": lambda: Renyi(points=[]),
    "orders None": lambda: Renyi(points=None),
    "orders and formula": lambda: Renyi(points=[(2, 0.1)], formula=GAUSSIAN),
    "formula no event": lambda: Renyi(formula=3),
    "no losses": lambda: LossDistribution([], []),
    "losses None": lambda: LossDistribution(None, None),
    "losses 5": lambda: LossDistribution(5, 5),
    "one probability too many": lambda: LossDistribution([0.0], [0.5, 0.5]),
    "probabilities sum to less": lambda: LossDistribution([0.0], [0.5]),
    "probabilities sum to more": lambda: LossDistribution([0.0, 0.1], [0.6, 0.6]),
    "Q sums to more than one": lambda: LossDistribution([-1.0], [1.0]),
    "Q overflows": lambda: LossDistribution([-600.0], [1.0]),
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES.keys())
def test_a_bad_table_is_refused(make):
    with pytest.raises(InvalidArgument):
        make()


CLAIMED = [PrivacyProfile([(1.0, 1e-6)]), LossDistribution([0.0], [1.0])]


@pytest.mark.parametrize("event", CLAIMED, ids=repr)
def test_tables_are_stamped_claimed_wherever_they_go(event):
    assert event.claimed
    assert (event + GAUSSIAN).claimed
    assert PoissonSampled(event, 0.1).claimed
    assert Renyi(formula=event).claimed
    assert not Guarantees([(1.0, 1e-6)]).claimed
    assert not (GAUSSIAN + PureDP(1.0)).claimed


def test_rdp_at_infinity_alone_is_pure():
    claim, pure = Renyi(points=[(math.inf, 1.0), (math.inf, 1.5)]), PureDP(epsilon=1.0)
    assert claim.pure() == 1.0
    assert (claim * 30).epsilon(1e-6) == (pure * 30).epsilon(1e-6)


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(1e-9, 0.5)), min_size=1, max_size=4), st.randoms())
def test_the_order_in_which_guarantees_are_claimed_does_not_matter(claimed, random):
    """Each of them holds, so does what all of them imply together."""
    shuffled = random.sample(claimed, len(claimed))
    for epsilon, delta in claimed:
        assert Guarantees(claimed).delta(epsilon).upper <= delta + 1e-14
    assert Guarantees(shuffled).delta(1.0).upper == pytest.approx(Guarantees(claimed).delta(1.0).upper, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (1.0, 0.0), (1.0, 1e-6), (3.0, 0.25)])
def test_an_approximate_claim_is_the_point_that_it_names(epsilon, delta):
    claim = ApproximateDP(epsilon, delta)
    assert (claim.at_epsilon, claim.at_delta) == (epsilon, delta)
    assert claim.delta(epsilon).upper == pytest.approx(delta, rel=1e-12)
    if delta:
        assert claim.epsilon(delta).upper == pytest.approx(epsilon, rel=1e-12)
        assert claim.infinite_mass == delta

"""Hypothesis strategies for events of every type, for laws that hold of all of them."""

import math

from hypothesis import strategies as st

from sitr.accounting import (
    ApproximateDP,
    Composed,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Exponential,
    Gaussian,
    Guarantees,
    Laplace,
    LossDistribution,
    PoissonSampled,
    PrivacyProfile,
    PureDP,
    RandomizedResponse,
    Renyi,
    SampledWithoutReplacement,
    ShuffledEpochs,
    ShuffledReports,
    ZeroConcentrated,
)


def reals(low: float, high: float, **limits: bool) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_nan=False, **limits)


NOISE = reals(1e-4, 1e12)
EPSILON = reals(0, 1e4)
DELTA = reals(0, 1, exclude_max=True)
TABLE = st.lists(st.tuples(reals(0, 600), reals(0, 1)), min_size=1, max_size=4)
ORDERS = st.lists(st.tuples(reals(1, 1e300) | st.just(math.inf), reals(0, 1e15)), min_size=1, max_size=4)


@st.composite
def loss_distributions(draw: st.DrawFn, adjacency: str | None) -> Event:
    """Randomized response with an infinite loss: probabilities that sum to one on both sides."""
    loss, mass = draw(reals(0.01, 20)), draw(st.sampled_from([0.0, 0.25, 0.5]))
    low, high = (1 - mass) / (1 + math.exp(loss)), (1 - mass) / (1 + math.exp(-loss))
    return LossDistribution([-loss, loss], [low, high], mass, adjacency=adjacency)


def plain_events(adjacency: str | None) -> st.SearchStrategy[Event]:
    """One event that holds no other, under the given adjacency."""
    scale = st.tuples(reals(1e-2, 1e6), st.integers(1, 100))
    own = {"adjacency": st.just(adjacency)}
    return st.one_of(
        st.builds(Gaussian, NOISE, **own),
        st.builds(Laplace, NOISE, **own),
        scale.map(lambda s: DiscreteGaussian(*s, adjacency=adjacency)),
        scale.map(lambda s: DiscreteLaplace(*s, adjacency=adjacency)),
        st.builds(RandomizedResponse, reals(0, 1, exclude_min=True, exclude_max=True), st.integers(2, 10**9), **own),
        st.builds(Exponential, reals(1e-9, 1e4), **own),
        st.builds(PureDP, EPSILON, **own),
        st.builds(ApproximateDP, EPSILON, DELTA, **own),
        st.builds(Guarantees, TABLE, **own),
        st.builds(Concentrated, reals(0, 1e30), reals(0, 1e15), **own),
        st.builds(ZeroConcentrated, reals(0, 1e30), reals(0, 1e30), DELTA, **own),
        st.builds(Renyi, ORDERS, delta=DELTA, **own),
        st.builds(PrivacyProfile, TABLE, **own),
        loss_distributions(adjacency),
    )


def _holding(inner: st.SearchStrategy[Event]) -> st.SearchStrategy[Event]:
    counted = st.lists(st.tuples(inner, st.integers(1, 30)), min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(PoissonSampled, inner, reals(1e-15, 1)),
        st.builds(Renyi, formula=inner, delta=DELTA),
        st.builds(Composed, counted, adjacency=st.none() | st.just("add_remove")),
    )


@st.composite
def batches(draw: st.DrawFn, inner: st.SearchStrategy[Event]) -> Event:
    """A batch of an event that names no other number of people."""
    event, sizes = draw(inner), sorted(draw(st.tuples(st.integers(1, 10**15), st.integers(1, 10**15))))
    return SampledWithoutReplacement(event, *sizes[::-1])


def reports(adjacency: str | None) -> st.SearchStrategy[Event]:
    """Shuffled reports that are pure."""
    own = {"adjacency": st.just(adjacency)}
    local = st.one_of(
        st.builds(PureDP, EPSILON, **own),
        st.builds(Laplace, NOISE, **own),
        st.builds(RandomizedResponse, reals(0, 1, exclude_min=True, exclude_max=True), st.integers(2, 10**9), **own),
    )
    return st.builds(ShuffledReports, local, st.integers(1, 10**9))


def _crowding(inner: st.SearchStrategy[Event]) -> st.SearchStrategy[Event]:
    counted = st.lists(st.tuples(inner, st.integers(1, 30)), min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(ShuffledEpochs, inner, st.integers(1, 10**9)),
        st.builds(Renyi, formula=inner, delta=DELTA),
        st.builds(Composed, counted, adjacency=st.none() | st.just("replace_one")),
    )


def any_event() -> st.SearchStrategy[Event]:
    """An event of any type, nested a few levels deep, under one adjacency."""
    under = st.recursive(plain_events("add_remove") | plain_events(None), _holding, max_leaves=4)
    plain = plain_events("replace_one") | plain_events(None)
    crowds = plain_events("replace_one") | reports("replace_one") | reports(None) | batches(plain)
    return under | st.recursive(crowds, _crowding, max_leaves=4)

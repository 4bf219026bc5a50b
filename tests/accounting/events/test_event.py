"""Events: what they accept, what they refuse and how they say so, and that every accepted one answers."""

import math
import pickle

import numpy as np
import pytest

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
    compose,
)
from sitr.errors import IncompatibleAdjacency, InvalidArgument, NoSuchGuarantee
from tests.accounting.events.parameters import bad_parameters, is_refused

INF = math.inf
GAUSSIAN = Gaussian(1.0)

# Every parameter: its name, how to pass it, and what else is outside its range.
PARAMETERS = [
    ("count", lambda v: GAUSSIAN * v, [0, 1.0, 1.5, INF, 10**9 + 1]),
    ("count", lambda v: v * Laplace(2.0), [0, 1.0, 1.5, INF, 10**9 + 1]),
    ("count", lambda v: Composed(((GAUSSIAN, v),)), [0, 1.0, 1.5, INF, 10**9 + 1]),
]


@pytest.mark.parametrize(("name", "make", "value"), list(bad_parameters(PARAMETERS)))
def test_a_bad_parameter_is_refused_by_name_and_range(name, make, value):
    assert is_refused(name, make, value)


TABLES = {
    "composed nothing": lambda: Composed(()),
    "composed None": lambda: Composed(None),
    "composed 5": lambda: Composed(5),
    "composed events without counts": lambda: Composed((GAUSSIAN, GAUSSIAN)),
    "composed numbers": lambda: Composed(((1, 2),)),
    "compose nothing": lambda: compose(),
    "compose numbers": lambda: compose(1),
    "compose a list of nothing": lambda: compose([]),
    "compose a list of numbers": lambda: compose([1, 2]),
    "compose text": lambda: compose("ab"),
    "compose an event and a list": lambda: compose(GAUSSIAN, [GAUSSIAN]),
    "compose an event and None": lambda: compose(GAUSSIAN, None),
    "count too large in all": lambda: (GAUSSIAN * 10**9) * 2,
    "bad adjacency": lambda: Gaussian(1.0, adjacency="both"),
    "adjacency list": lambda: Gaussian(1.0, adjacency=[]),
    "adjacency number": lambda: PureDP(1.0, adjacency=1),
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES.keys())
def test_a_bad_table_is_refused(make):
    with pytest.raises(InvalidArgument):
        make()


def test_adding_what_is_no_event_is_a_type_error():
    with pytest.raises(TypeError):
        GAUSSIAN + 1


# Every accepted parameter answers: the ends of the ranges and a little beyond what is usual.
EXTREMES = [
    Gaussian(1e-4),
    Gaussian(1e12) * 10**9,
    Laplace(1e-4),
    Laplace(1e12) * 10**6,
    DiscreteGaussian(0.01),
    DiscreteGaussian(1e12, 10**15),
    DiscreteLaplace(1e-4),
    DiscreteLaplace(1e12, 10**15),
    RandomizedResponse(1e-300),
    RandomizedResponse(0.9, k=10**9),
    RandomizedResponse(0.5 + 1e-16),
    Exponential(1e-9),
    Exponential(1e4),
    PureDP(0) * 10**6,
    PureDP(1e4),
    ApproximateDP(0, 0),
    ApproximateDP(0, 1 - 1e-16),
    ApproximateDP(1e4, 1e-300),
    Guarantees([(0, 1)]),
    Guarantees([(600, 1e-300), (1e-9, 1e-3)]),
    PrivacyProfile([(600, 0.0)]),
    Concentrated(1e30, 1e15),
    Concentrated(0, 1.0),
    ZeroConcentrated(0),
    ZeroConcentrated(1e30, 1e30, 1e-300),
    Renyi([(1, 0.0), (INF, 0.0)]),
    Renyi([(2, 1e15)]),
    LossDistribution([600.0], [1.0]),
    LossDistribution([0.0], [0.0], 1 - 1e-13),
    PoissonSampled(Gaussian(1e-4), 1e-15),
    PoissonSampled(Gaussian(1e12), 0.5) * 10**6,
    PoissonSampled(PureDP(1e4), 1 - 1e-16),
    PoissonSampled(ZeroConcentrated(0), 0.1),
    Gaussian(1e-4) + Gaussian(1e12) + Laplace(1e12) + PureDP(1e-9),
    SampledWithoutReplacement(Gaussian(1e-4), 10**15, 1),
    SampledWithoutReplacement(Gaussian(1e12), 3, 2) * 10**6,
    SampledWithoutReplacement(PureDP(1e4), 10**15, 10**15 - 1),
    SampledWithoutReplacement(Guarantees([(0, 1)]), 2, 1),
    SampledWithoutReplacement(ZeroConcentrated(0) * 10**9, 10, 1),
    SampledWithoutReplacement(LossDistribution([0.0], [0.0], 1 - 1e-13), 10, 1),
    ShuffledEpochs(Gaussian(1e12) * 10**9, 10**9) * 10**9,
    ShuffledEpochs(PureDP(1e4) * 10**9, 10**9),
    ShuffledReports(PureDP(1e-9), 10**9),
    ShuffledReports(PureDP(50), 10**9),
    ShuffledReports(PureDP(1e4), 10**9),
    ShuffledReports(RandomizedResponse(1e-300), 2),
    ShuffledReports(RandomizedResponse(0.9, k=10**9), 10**9),
    ShuffledReports(RandomizedResponse(0.5 + 1e-8), 10**6),
]
QUESTIONS = {
    "epsilon": lambda e: e.epsilon([1 - 1e-9, 1e-6, 1e-30]),
    "epsilon at 0": lambda e: e.epsilon(0),
    "delta": lambda e: e.delta([0.0, 1.0, 800.0, 1e15]),
    "rdp": lambda e: e.rdp([1, 1 + 1e-12, 2, 1e6, INF], delta_part=True),
    "zcdp": lambda e: e.zcdp(delta_part=True).rho,
    "gdp": lambda e: e.gdp(delta_part=True),
    "tradeoff": lambda e: e.tradeoff([0.0, 1e-9, 0.3, 1.0]),
    "group of 2": lambda e: e.group(2).epsilon(1e-6),
}


def is_an_answer(found):
    """Not NaN, not negative, the right way round."""
    ends = [np.asarray(end) for end in ((found.lower, found.upper) if hasattr(found, "lower") else (found, found))]
    return bool(np.all(ends[0] >= 0) and np.all(ends[0] <= ends[1]))


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS.keys())
@pytest.mark.parametrize("event", EXTREMES, ids=lambda event: repr(event)[:80])
def test_every_accepted_event_answers_or_says_why_not(event, question):
    try:
        found = question(event)
    except NoSuchGuarantee as error:
        assert error.why  # noqa: PT017
    else:
        assert is_an_answer(found)


# Adjacency.


def test_composing_joins_the_adjacencies():
    assert (Gaussian(1.0) + Laplace(1.0, adjacency="replace_one")).adjacency == "replace_one"
    assert (Gaussian(1.0) + Laplace(1.0)).adjacency is None
    assert (Gaussian(1.0, adjacency="add_remove") * 3).adjacency == "add_remove"
    assert Renyi(formula=Gaussian(1.0, adjacency="replace_one")).adjacency == "replace_one"


MIXED = {
    "sum": lambda: Gaussian(1.0, adjacency="add_remove") + Gaussian(1.0, adjacency="replace_one"),
    "sampled sum": lambda: PoissonSampled(Gaussian(1.0), 0.1) + Laplace(1.0, adjacency="replace_one"),
    "sampling": lambda: PoissonSampled(Gaussian(1.0, adjacency="replace_one"), 0.1),
    "sampled under replace_one": lambda: PoissonSampled(Gaussian(1.0), 0.1, adjacency="replace_one"),
    "nested": lambda: PoissonSampled(Gaussian(1.0) + Laplace(1.0, adjacency="replace_one"), 0.1),
    "formula": lambda: Renyi(formula=PoissonSampled(Gaussian(1.0), 0.1), adjacency="replace_one"),
    "compose": lambda: compose(
        Gaussian(1.0), Gaussian(1.0, adjacency="replace_one"), PoissonSampled(Laplace(1.0), 0.1)
    ),
    "composed": lambda: Composed(((PoissonSampled(Gaussian(1.0), 0.1), 2),), adjacency="replace_one"),
}


@pytest.mark.parametrize("make", MIXED.values(), ids=MIXED.keys())
def test_different_adjacencies_are_refused(make):
    with pytest.raises(IncompatibleAdjacency):
        make()


# Descriptions.


def test_equal_events_are_equal_and_hash_alike():
    assert Gaussian(2) == Gaussian(2.0)
    assert len({Gaussian(2), Gaussian(2.0), Laplace(2), Gaussian(2, adjacency="add_remove")}) == 3


def test_events_are_frozen():
    with pytest.raises(AttributeError):
        GAUSSIAN.noise_multiplier = 2.0


def test_composition_counts_equal_events_together():
    event = Gaussian(1.0) + Laplace(2.0) * 3 + Gaussian(1.0) * 2
    assert event.events == ((Gaussian(1.0), 3), (Laplace(2.0), 3))
    assert event == compose(Gaussian(1.0), Gaussian(1.0), Gaussian(1.0), *[Laplace(2.0)] * 3)


def test_a_list_composes_by_name_and_by_sum():
    several = [Gaussian(1.0), Laplace(2.0) * 3, Gaussian(1.0) * 2]
    composed = Gaussian(1.0) * 3 + Laplace(2.0) * 3
    assert sum(several) == compose(several) == compose(iter(several)) == composed
    assert sum(several[:1]) is several[0]


@pytest.mark.parametrize("other", [1, 0.0, False, None, "0"])
def test_nothing_but_the_start_of_a_sum_is_added(other):
    for add in (lambda: GAUSSIAN + other, lambda: other + GAUSSIAN):
        with pytest.raises(TypeError):
            add()


def test_one_time_is_the_event_itself():
    assert GAUSSIAN * 1 is GAUSSIAN
    assert compose(GAUSSIAN) is compose([GAUSSIAN]) is GAUSSIAN


def test_counts_multiply():
    assert ((GAUSSIAN * 3) * 4).events == ((GAUSSIAN, 12),)
    assert 3 * GAUSSIAN == GAUSSIAN * 3 == GAUSSIAN * np.int64(3)


@pytest.mark.parametrize(
    ("event", "shown"),
    [
        (Gaussian(2), "Gaussian(noise_multiplier=2.0)"),
        (PureDP(0.5, adjacency="replace_one"), "PureDP(epsilon=0.5, adjacency='replace_one')"),
        (RandomizedResponse(0.75), "RandomizedResponse(p=0.75)"),
        (ApproximateDP(1, 1e-6) * 3, "ApproximateDP(epsilon=1.0, delta=1e-06) * 3"),
        (Laplace(2) + Gaussian(3) * 2, "Laplace(noise_multiplier=2.0) + Gaussian(noise_multiplier=3.0) * 2"),
    ],
)
def test_an_event_shows_how_to_make_it(event, shown):
    assert repr(event) == shown


@pytest.mark.parametrize("event", EXTREMES, ids=lambda event: repr(event)[:80])
def test_what_an_event_shows_makes_it_again(event):
    assert eval(repr(event), {**globals(), "inf": INF}) == event


def test_the_parent_describes_nothing():
    with pytest.raises(InvalidArgument, match="describes nothing"):
        Event()


def test_an_event_that_has_answered_survives_a_pickle():
    event = PoissonSampled(Gaussian(1.0), 0.01) * 10 + Renyi(points=[(2, 0.1), (8, 0.5)], adjacency="add_remove")
    before = event.epsilon(1e-5)
    again = pickle.loads(pickle.dumps(event))
    assert again == event
    assert again.epsilon(1e-5) == before


def test_so_many_releases_that_their_costs_are_no_numbers_are_refused():
    def nested(wrap, event):
        for _ in range(4):
            event = wrap(event) * 10**9
        return event

    for wrap in (lambda event: PoissonSampled(event, 0.5), lambda event: ShuffledEpochs(event, 10**9)):
        with pytest.raises(InvalidArgument, match=r"more than 1e\+30 releases in all"):
            nested(wrap, PureDP(1.0))
    most = PoissonSampled(PoissonSampled(Laplace(2.0) * 10**9, 0.5) * 10**9, 0.5) * 10**9
    assert most.pure() > 1e26
    assert most == type(most).from_json(most.to_json())


def test_samples_of_samples_are_asked_once_at_each_level():
    """Each level asked the one below twice: twenty of them took minutes."""
    event = PureDP(0.5)
    for _ in range(20):
        event = PoissonSampled(event * 2 + PureDP(0.1), 0.3)
    assert 0 < event.rdp(2.0) < 1
    assert event.delta(1.0).upper < 1

"""Mechanisms as events: what they accept and refuse, and that noise is told as what it is relative to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import (
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    PoissonSampled,
    RandomizedResponse,
)
from sitr.errors import InvalidArgument
from tests.accounting.events.parameters import INF, bad_parameters, is_refused

GAUSSIAN = Gaussian(1.0)
# Every parameter: its name, how to pass it, and what else is outside its range.
PARAMETERS = [
    ("noise_multiplier", Gaussian, [0, 9.9e-5, 1.1e12, INF]),
    ("noise_multiplier", Laplace, [0, 9.9e-5, 1.1e12, INF]),
    ("scale", DiscreteGaussian, [0, 9.9e-3, 1.1e12, INF]),
    ("scale", DiscreteLaplace, [0, 9.9e-5, 1.1e12, INF]),
    ("sensitivity", lambda v: DiscreteGaussian(1.0, v), [0, 1.0, 1.5, INF, 10**16]),
    ("sensitivity", lambda v: DiscreteLaplace(1.0, v), [0, 1.0, 1.5, INF, 10**16]),
    ("p", RandomizedResponse, [0, 1, 0.0, 1.0, 1.5, INF]),
    ("k", lambda v: RandomizedResponse(0.5, v), [0, 1, 2.0, 2.5, INF, 10**9 + 1]),
    ("epsilon", Exponential, [0, 1e-10, 10001, INF]),
    ("sampling_prob", lambda v: PoissonSampled(GAUSSIAN, v), [0, 9e-16, 1.5, INF]),
]


@pytest.mark.parametrize(("name", "make", "value"), list(bad_parameters(PARAMETERS)))
def test_a_bad_parameter_is_refused_by_name_and_range(name, make, value):
    assert is_refused(name, make, value)


TABLES = {
    "sampled number": lambda: PoissonSampled(3, 0.1),
    "sampled None": lambda: PoissonSampled(None, 0.1),
    "noise too little in all": lambda: DiscreteGaussian(1.0, 20_000),
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES.keys())
def test_a_bad_table_is_refused(make):
    with pytest.raises(InvalidArgument):
        make()


def test_poisson_sampling_fixes_add_remove():
    assert PoissonSampled(Gaussian(1.0), 0.1).adjacency == "add_remove"
    assert (PoissonSampled(Gaussian(1.0), 0.1) * 10 + Laplace(1.0)).adjacency == "add_remove"


def test_a_wrong_argument_is_shown_shortly():
    with pytest.raises(InvalidArgument) as caught:
        PoissonSampled(list(range(10**5)), 0.1)
    assert len(str(caught.value)) < 200


@given(st.floats(0.5, 50.0), st.floats(1.0, 3.0), st.floats(0.01, 2.0))
def test_more_noise_costs_no_more(noise, factor, epsilon):
    for kind in (Gaussian, Laplace, DiscreteGaussian, DiscreteLaplace):
        less, more = kind(noise), kind(noise * factor)
        assert more.delta(epsilon).lower <= less.delta(epsilon).upper


def test_every_row_in_the_sample_is_no_sample():
    assert PoissonSampled(GAUSSIAN, 1.0).epsilon(1e-6) == Gaussian(1.0, adjacency="add_remove").epsilon(1e-6)
    assert PoissonSampled(GAUSSIAN, 1.0).adjacency == "add_remove"


@pytest.mark.parametrize("sensitivity", [1, 3, 10])
def test_discrete_noise_is_close_to_that_of_the_same_multiple(sensitivity):
    """Of integers as of real numbers, where the noise is many integers wide."""
    scale = 1000.0 * sensitivity
    for discrete, continuous in ((DiscreteGaussian, Gaussian), (DiscreteLaplace, Laplace)):
        found, near = discrete(scale, sensitivity).rdp(8), continuous(1000.0).rdp(8)
        assert found == pytest.approx(near, rel=1e-3)

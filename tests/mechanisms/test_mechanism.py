"""What all mechanisms are: checked, then drawn, then stamped; what touched their noise is said."""

import math

import numpy as np
import pytest

from sitr import mechanisms
from sitr.accounting import PureDP
from sitr.errors import InvalidArgument
from sitr.mechanisms import Mechanism, gaussian, laplace
from sitr.release import NOT_PRIVATE

RELEASES = {
    "laplace": (lambda: laplace(epsilon=1.0, sensitivity=1.0), 3.7),
    "laplace integers": (lambda: laplace(epsilon=1.0, sensitivity=1, integers=True), 3),
    "gaussian": (lambda: gaussian(rho=0.1, sensitivity=1.0, length=2), [1.0, 2.0]),
    "randomized response": (lambda: mechanisms.randomized_response(epsilon=1.0), 1),
    "exponential": (lambda: mechanisms.exponential_mechanism(epsilon=1.0, sensitivity=1, candidates=[1, 2]), [1, 2]),
    "permute and flip": (lambda: mechanisms.permute_and_flip(epsilon=1.0, sensitivity=1, candidates=[1, 2]), [1, 2]),
    "quantile": (lambda: mechanisms.quantile(q=0.5, epsilon=1.0, bounds=(0.0, 1.0)), [0.1, 0.4]),
}


@pytest.mark.parametrize("name", RELEASES)
def test_what_a_seed_or_no_noise_has_touched_is_stamped(name):
    make, value = RELEASES[name]
    mechanism = make()
    assert mechanism.release(value).private
    assert NOT_PRIVATE not in str(mechanism.release(value))
    for unsafe in ({"unsafe_seed": 7}, {"unsafe_without_noise": True}):
        first, second = (mechanism.release(value, **unsafe) for _ in range(2))
        assert np.array_equal(first.value, second.value)
        assert not first.private
        assert NOT_PRIVATE in str(first)


@pytest.mark.parametrize("seed", [True, 1.0, "1", -1, 2**63, math.nan])
def test_a_bad_seed_is_refused(seed):
    with pytest.raises(ValueError, match="unsafe_seed"):
        laplace(epsilon=1.0, sensitivity=1.0).release(1.0, unsafe_seed=seed)


class Doubled(Mechanism):
    """Doubles a number and adds no noise; writes down what was done to it."""

    event, error95 = PureDP(epsilon=1.0), 2.0

    def __init__(self):
        self.done = []

    def _checked(self, value):
        self.done.append("checked")
        if value < 0:
            raise InvalidArgument("the value is under 0.")
        return value

    def _drawn(self, value, source):
        self.done.append("drawn" if source else "no noise")
        return 2 * value


def test_a_value_is_checked_before_anything_is_drawn():
    doubled = Doubled()
    release = doubled.release(3)
    assert (release.value, release.error95, release.event, release.entry) == (6, 2.0, PureDP(epsilon=1.0), None)
    with pytest.raises(InvalidArgument):
        doubled.release(-1)
    doubled.release(3, unsafe_without_noise=True)
    assert doubled.done == ["checked", "drawn", "checked", "checked", "no noise"]


@pytest.mark.parametrize("name", RELEASES)
def test_what_a_release_costs_is_known_before_and_whatever_the_value_is(name):
    make, value = RELEASES[name]
    mechanism = make()
    before = mechanism.event
    assert mechanism.release(value).event == before == make().event

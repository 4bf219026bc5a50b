"""From a proposal to a bracket: bad proposals cost width, never truth."""

import math

import pytest

from sitr.accounting.engines.certify import certify


class Exact:
    """δ(ε) = e^{-ε}, known to a relative error."""

    def __init__(self, error):
        self.error = error

    def upper(self, epsilon):
        return math.exp(-epsilon) * (1 + self.error)

    def lower(self, epsilon):
        return math.exp(-epsilon) * (1 - self.error)


@pytest.mark.parametrize("error", [0.0, 1e-12, 1e-3, 0.5])
@pytest.mark.parametrize("off", [0.0, 1e-9, -1e-9, 0.3, -0.3, 5.0, -5.0, -1e9])
def test_whatever_is_proposed_the_truth_is_held(off, error):
    truth = math.log(1e6)
    low, high = certify(Exact(error), 1e-6, truth + off, 1.0)
    assert 0 <= low <= truth * (1 + 1e-15)
    assert high >= truth * (1 - 1e-15)


def test_a_good_proposal_gives_a_narrow_bracket():
    low, high = certify(Exact(1e-12), 1e-6, math.log(1e6), 1.0)
    assert high - low < 1e-10


def test_where_no_epsilon_is_certified_the_bracket_is_everything():
    class Nothing:
        def upper(self, epsilon):
            return 1.0

        def lower(self, epsilon):
            return -1.0

    assert certify(Nothing(), 1e-6, 3.0, 1.0) == (0.0, math.inf)

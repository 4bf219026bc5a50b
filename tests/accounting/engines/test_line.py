"""One vertical line against closed forms and enumeration."""

import math

import pytest

from sitr.accounting.engines.lattice import AtomSum, enumerated
from sitr.accounting.engines.line import Line, choose_grid
from sitr.accounting.engines.mix import Mix, saddle_tilt
from sitr.accounting.losses import pairs
from tests.accounting.helpers import gaussian_delta, laplace_delta


def line_at(mix, epsilon, delta):
    return Line(mix, choose_grid(mix, saddle_tilt(mix, epsilon), epsilon, math.log(delta)))


@pytest.mark.parametrize("m", [0.05, 1.0, 6.0])
@pytest.mark.parametrize("deviations", [0.5, 3.0, 8.0, 11.0])
def test_a_line_holds_the_gaussian(m, deviations):
    epsilon = m * deviations + m**2 / 2
    truth = gaussian_delta(m, epsilon)
    line = line_at(Mix.of([(pairs.gaussian_pair(m).forward, 1)]), epsilon, float(truth))
    assert line.lower(epsilon) <= truth <= line.upper(epsilon)
    assert line.upper(epsilon) <= truth * (1 + 1e-6)


@pytest.mark.parametrize("share", [0.1, 0.6, 0.95])
def test_a_line_holds_one_laplace(share):
    truth = float(laplace_delta(0.7, 0.7 * share))
    line = line_at(Mix.of([(pairs.laplace_pair(0.7).forward, 1)]), 0.7 * share, truth)
    assert line.lower(0.7 * share) <= truth <= line.upper(0.7 * share)


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 6.0])
def test_a_line_holds_what_is_enumerated(epsilon):
    mix = Mix.of([(pairs.k_ary_pair(0.6, 2).forward, 30), (pairs.k_ary_pair(0.7, 4).forward, 3)])
    atoms, error = enumerated(mix)
    sums = AtomSum(atoms, error)
    line = line_at(mix, epsilon, sums.upper(epsilon))
    assert line.lower(epsilon) <= sums.upper(epsilon)
    assert line.upper(epsilon) >= sums.lower(epsilon)
    assert line.upper(epsilon) <= sums.upper(epsilon) * (1 + 1e-3)


def test_a_line_holds_at_every_epsilon_wherever_it_was_tuned():
    line = line_at(Mix.of([(pairs.gaussian_pair(1.0).forward, 1)]), 3.0, 1e-3)
    for epsilon in (0.0, 1.0, 3.0, 5.0, 9.0):
        assert line.lower(epsilon) <= gaussian_delta(1, epsilon) <= line.upper(epsilon)

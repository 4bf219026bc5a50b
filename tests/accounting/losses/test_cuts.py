"""What passes a gate and what is stopped make up the whole, on the real line and on the moved one."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from sitr.accounting.losses.cuts import Gate
from sitr.accounting.losses.sampled import SampledGaussianLoss

LAWS = [SampledGaussianLoss.pair(sigma, q).forward for sigma, q in ((0.6, 1e-3), (1.0, 1e-5), (2.5, 1e-4))]


@pytest.mark.parametrize("loss", LAWS, ids=str)
@pytest.mark.parametrize("level", [1e-4, 0.05, 1.0])
def test_both_sides_of_a_gate_add_up_to_the_moment(loss, level):
    gate = Gate.soft(loss, level)
    for c in (0.0, 0.7, 4.0):
        whole = float(loss.log_mgf(np.float64(c)))
        parts = np.logaddexp(gate.log_passed(c), gate.log_stopped(c))
        assert parts == pytest.approx(whole, abs=1e-14)


@pytest.mark.parametrize("loss", LAWS, ids=str)
def test_the_moved_line_sums_to_the_real_one(loss):
    gate = Gate.soft(loss, 0.01)
    for c in (0.0, 2.0):
        _, passed = gate.passed(c)
        _, stopped, _ = gate.stopped(c)
        assert np.sum(np.exp(passed - gate.log_passed(c))) == pytest.approx(1.0, abs=1e-13)
        assert np.sum(np.exp(stopped - gate.log_stopped(c))) == pytest.approx(1.0, abs=1e-12)


def test_what_is_stopped_equals_a_quadrature():
    loss = LAWS[1]
    gate = Gate.sharp(loss, 1e-4, 20.0)

    def stopped(x):
        return math.exp(-x * x / 2) / math.sqrt(2 * math.pi) * -math.expm1(-math.exp((x - gate.edge) / gate.width))

    truth, _ = quad(stopped, gate.edge - 2, gate.edge + 8, points=[gate.edge], epsrel=1e-12, limit=400)
    assert math.exp(gate.log_stopped(-1.0)) == pytest.approx(truth, rel=1e-9)


def test_a_gate_keeps_steep_tilts_light():
    loss = LAWS[1]
    gate = Gate.sharp(loss, 1e-3, 20.0)
    assert math.isfinite(gate.log_passed(1e5))
    assert float(gate.log_decay(1e3, np.array([1e9]))[0]) < 0

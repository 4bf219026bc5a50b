"""The Poisson-sampled Gaussian against integrals at 40 digits."""

import math

import mpmath
import numpy as np
import pytest

from sitr.accounting.losses.sampled import FEW_NODES, MOMENT, SampledGaussianLoss

CASES = [(1.1, 256 / 60000, 1), (0.5, 0.3, 1), (5.0, 1e-3, 1), (1.0, 0.1, 3)]


def moment(sigma, q, group, power):
    """E r(x)^power, x normal, by mpmath."""
    with mpmath.workdps(30):
        s, rate = mpmath.mpf(sigma), mpmath.mpf(q)
        weights = [mpmath.binomial(group, j) * rate**j * (1 - rate) ** (group - j) for j in range(group + 1)]

        def integrand(x):
            r = mpmath.fsum(w * mpmath.exp((2 * j * x - j * j) / (2 * s**2)) for j, w in enumerate(weights))
            return mpmath.exp(-(x**2) / (2 * s**2)) * r**power

        top = group * max(float(mpmath.re(power)), 0)
        edges = [-14 * sigma, -4 * sigma, 0, group / 2, top / 2 + 1, top + 4 * sigma + 1, top + 14 * sigma + 2]
        return mpmath.quad(integrand, sorted(set(edges))) / (s * mpmath.sqrt(2 * mpmath.pi))


@pytest.mark.parametrize(("sigma", "q", "group"), CASES)
@pytest.mark.parametrize("c", [0.3, 2.0, 9.0])
def test_moments_of_both_orders_are_integrals(sigma, q, group, c):
    pair = SampledGaussianLoss.pair(sigma, q, group)
    for loss, power in ((pair.forward, 1 + mpmath.mpf(c)), (pair.backward, -mpmath.mpf(c))):
        truth = float(mpmath.log(moment(sigma, q, group, power)))
        assert float(loss.log_mgf(np.float64(c))) == pytest.approx(truth, rel=1e-10, abs=1e-15)


@pytest.mark.parametrize(("sigma", "q", "group"), CASES)
def test_the_transform_of_both_orders_is_an_integral(sigma, q, group):
    pair, c, step = SampledGaussianLoss.pair(sigma, q, group), 1.5, 0.9
    for loss, sign in ((pair.forward, 1), (pair.backward, -1)):
        values, error = loss.ratios(c, step, 6)
        base = 1 + c if sign > 0 else -c
        unit = moment(sigma, q, group, mpmath.mpf(base))
        for k in (1, 6):
            truth = complex(moment(sigma, q, group, mpmath.mpc(base, sign * k * step)) / unit)
            assert abs(values[k] - truth) <= error + 1e-14


@pytest.mark.parametrize(("sigma", "q", "group"), CASES)
def test_the_decay_bounds_the_transform(sigma, q, group):
    for loss in (SampledGaussianLoss.pair(sigma, q, group).forward, SampledGaussianLoss.pair(sigma, q, group).backward):
        values, error = loss.ratios(1.5, 2.0, 100)
        bounds = np.exp(loss.log_decay(1.5, 2.0 * np.arange(1, 101)))
        assert np.all(np.abs(values[1:]) <= bounds * (1 + 1e-9) + error)
        assert np.all(np.diff(bounds) <= 1e-12)


@pytest.mark.parametrize(("sigma", "q", "group"), CASES)
def test_the_mean_is_the_limit_of_the_moments(sigma, q, group):
    for loss in (SampledGaussianLoss.pair(sigma, q, group).forward, SampledGaussianLoss.pair(sigma, q, group).backward):
        assert float(loss.log_mgf(np.float64(1e-7))) / 1e-7 == pytest.approx(loss.mean(), rel=1e-5)


def test_tiny_rates_keep_their_digits():
    loss = SampledGaussianLoss.pair(1.0, 1e-9).forward
    assert loss.mean() == pytest.approx(1e-18 * np.expm1(1.0) / 2, rel=1e-6)
    assert float(loss.log_mgf(np.float64(1.0))) == pytest.approx(1e-18 * np.expm1(1.0), rel=1e-6)


@pytest.mark.parametrize(("sigma", "q", "group"), [(0.05, 0.2, 3), (1.0, 0.03, 20)])
def test_the_humps_of_a_group_are_the_maxima_of_the_integrand(sigma, q, group):
    pair = SampledGaussianLoss.pair(sigma, q, group)
    for loss in (pair.forward, pair.backward):
        for c in (0.5, 3.0, 900.0):
            low, high = loss.ends(c)
            x = np.linspace(low, high, 400_001)
            height = -(x**2) / (2 * loss.sigma**2) + loss.power(c) * loss.log_ratio(x)
            kept = x[height > height.max() - 40]
            spans = loss._humps(c)
            assert all(any(a <= at <= b for a, b in spans) for at in kept)


def test_a_moment_with_too_many_nodes_is_bounded_by_its_normals_unmixed():
    """A mean of powers is over the power of a mean: the bound stands where the sum would be long, in both orders."""
    for sigma, q, group in CASES:
        for loss in (SampledGaussianLoss(sigma, q, removes, group) for removes in (True, False)):
            for c in (0.1, 1.0, 6.0):
                assert loss._unmixed_moment(c) >= float(loss.log_mgf(np.float64(c)))
            assert loss._unmixed_moment(-0.5) == np.inf
    long = SampledGaussianLoss(0.02, 1e-3, True, 150)
    assert long._grid(1.0, long.widest_step(1.0), long._most_nodes) is None
    assert 0 < float(long.log_mgf(np.float64(1.0))) < np.inf


def test_no_humps_are_looked_for_where_one_would_have_too_many_nodes(monkeypatch):
    loss = SampledGaussianLoss(1.0, 0.01, True, 200)
    monkeypatch.setattr(SampledGaussianLoss, "_humps", lambda *_: pytest.fail("looked for humps"))
    assert loss._grid(1.0, loss.widest_step(1.0), loss._most_nodes) is None
    assert loss.tuning == 0


@pytest.mark.parametrize("removes", [True, False])
def test_the_ratios_of_a_group_are_computed_once_for_tilts_that_share_their_nodes(monkeypatch, removes):
    loss = SampledGaussianLoss(1.25, 0.02, removes, 7)
    first = float(loss.log_mgf(np.float64(1.0)))
    asked = []
    monkeypatch.setattr(SampledGaussianLoss, "log_ratio", lambda self, x: asked.append(x))
    assert float(loss.log_mgf(np.float64(0.999))) < first
    assert not asked


@pytest.mark.parametrize(("sigma", "q", "group"), [(0.41, 9e-4, 2), (0.8, 8e-3, 2), (1.1, 4e-3, 1), (4.0, 0.2, 7)])
@pytest.mark.parametrize("c", [3.0, 70.0, 5e4])
def test_a_steep_moment_has_no_more_nodes_than_it_needs(monkeypatch, sigma, q, group, c):
    """A step of a quarter changes nothing; a tilt of 5e4 took 40 to 120 thousand nodes."""
    pair = SampledGaussianLoss.pair(sigma, q, group)
    orders, add = (pair.forward, pair.backward), pair.backward
    found = [float(loss.log_mgf(np.float64(c))) for loss in orders]
    assert add._grid(c, add.widest_step(c), add._most_nodes).size < 300 + 100 * group * math.sqrt(c) / sigma
    widest = SampledGaussianLoss.widest_step
    monkeypatch.setattr(SampledGaussianLoss, "widest_step", lambda loss, c: widest(loss, c) / 4)
    for kept in (SampledGaussianLoss._log_moment, SampledGaussianLoss._moment_grid):
        kept.cache_clear()
    again = [float(loss.log_mgf(np.float64(c))) for loss in orders]
    for kept in (SampledGaussianLoss._log_moment, SampledGaussianLoss._moment_grid):
        kept.cache_clear()
    assert again == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize(("sigma", "q", "group"), [(0.41, 9e-4, 2), (1.1, 4e-3, 1), (0.05, 1e-4, 3), (4.0, 0.2, 40)])
@pytest.mark.parametrize("removes", [True, False])
def test_the_price_of_a_moment_is_that_of_its_nodes(sigma, q, group, removes):
    loss = SampledGaussianLoss(sigma, q, removes, group)
    for c in (0.1, 1.0, 30.0, 1e3, 1e5):
        places = (
            None if c > loss.steepest or loss.separated(c) else loss._grid(c, loss.widest_step(c), loss._most_nodes)
        )
        nodes = 0 if places is None else places.size
        assert nodes - FEW_NODES - 2 <= loss.moment_work(c) / MOMENT <= 1.1 * nodes


def test_what_a_tilt_costs_grows_with_the_group():
    """One person costs nothing to speak of; a group, a price for each term of its sums."""
    costs = [SampledGaussianLoss(1.0, 0.01, True, size).tuning for size in (1, 2, 20, 40)]
    assert costs[0] == 0 < costs[1] < costs[2] < costs[3]


@pytest.mark.parametrize(("sigma", "q", "group"), [*CASES, (0.02, 0.3, 2), (3.0, 0.9, 40)])
def test_the_place_of_a_loss_has_that_loss(sigma, q, group):
    loss = SampledGaussianLoss(sigma, q, True, group)
    for level in (0.7 * loss.smallest, 1e-6, 0.3, 5.0, 800.0):
        x = loss.where(level)
        assert float(loss.log_ratio(np.float64(x))) == pytest.approx(level, rel=1e-9, abs=1e-12)
        moved = np.logaddexp.reduce(loss.log_weights[1:] + loss._losses_at(loss._first_loss(level)))
        assert np.logaddexp(loss.log_weights[0], moved) == pytest.approx(level, rel=1e-13, abs=1e-15 + loss.blur(level))


@pytest.mark.parametrize("sigma", [0.3, 1.0, 5.0, 100.0])
@pytest.mark.parametrize("q", [1e-14, 1e-9, 1e-7, 1e-4, 1e-2])
def test_tiny_moments_keep_their_digits(sigma, q):
    """At whole orders the moment is a binomial sum: E r² and E r³."""
    loss = SampledGaussianLoss.pair(sigma, q).forward
    second, third = (math.expm1(x / sigma**2) for x in (1, 3))
    for c, excess in ((1.0, q**2 * second), (2.0, 3 * q**2 * (1 - q) * second + q**3 * third)):
        assert float(loss.log_mgf(np.float64(c))) == pytest.approx(math.log1p(excess), rel=1e-9, abs=0)


@pytest.mark.parametrize(("sigma", "q", "group"), [(1.0, 0.03, 40), (0.3, 1e-6, 7), (2.0, 0.9, 12)])
def test_the_ratio_of_a_group_is_its_sum_wherever_it_is_computed(sigma, q, group):
    """Near 1 by its excess, far above and under it by its largest term: each node by what suits it."""
    loss = SampledGaussianLoss.pair(sigma, q, group).forward
    x = np.concatenate([np.linspace(-9 * sigma, group + 9 * sigma, 41), [1e3, 1e4]])
    found = loss.log_ratio(x)
    with mpmath.workdps(40):
        rate, s2 = mpmath.mpf(q), 2 * mpmath.mpf(sigma) ** 2
        weights = [mpmath.binomial(group, j) * rate**j * (1 - rate) ** (group - j) for j in range(group + 1)]
        truths = [
            mpmath.log(
                mpmath.fsum(w * mpmath.exp((2 * j * mpmath.mpf(at) - j * j) / s2) for j, w in enumerate(weights))
            )
            for at in x
        ]
    assert found == pytest.approx([float(truth) for truth in truths], rel=1e-11, abs=1e-14)

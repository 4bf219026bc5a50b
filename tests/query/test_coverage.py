"""Stated intervals hold the bounded answer: 2,000 releases of exact statistics, drawn by the mechanisms themselves."""

import numpy as np
import pytest

import sitr
from sitr.query.estimates import additive, of_sums
from sitr.query.execution import Execution
from sitr.query.facts import Facts
from sitr.query.measurements import Bins, Sums
from sitr.query.planner import Target, plan
from sitr.query.query import Limits, Query
from sitr.tables.relations import Scan
from tests.query.releases import least
from tests.tables import clinic

RELEASES = 2000
PURE, CONCENTRATED = Target(1.0, 0.0), Target(None, 1e-6, 0.05)
AGGREGATES = {
    "count": sitr.count(),
    "count of a column": sitr.count("cost"),
    "count_units": sitr.count_units(),
    "count_distinct": sitr.count_distinct("ward"),
    "sum": sitr.sum("cost"),
    "sum of both signs": sitr.sum("change"),
    "mean": sitr.mean("cost"),
    "variance": sitr.variance("cost"),
    "stddev": sitr.stddev("age"),
    "covariance": sitr.covariance("age", "cost"),
    "correlation": sitr.correlation("cost", "paid"),
    "histogram": sitr.histogram("age", [0, 18, 65, 120]),
    "median": sitr.median("cost"),
    "quantile": sitr.quantile("age", 0.9),
}
LEAST = 1837  # of 2,000: fewer happen once in 10^9, as `least(RELEASES, 1)` computes


class Recorded(Execution):
    """An execution that keeps the exact numbers before noise."""

    def _noisy(self, noise, exact):
        self.exact = exact
        return super()._noisy(noise, exact)

    def _quantiles(self, measured, histograms):
        self.histograms = histograms
        return super()._quantiles(measured, histograms)


def released(patients, rows, aggregates, target):
    source = clinic.source(visits=clinic.visits(patients, rows))
    made = plan(Query(Scan("visits"), (), aggregates, Limits()), source.declared, target, Facts())
    run = Recorded(made, source, unsafe_without_noise=True, unsafe_key=3)
    truth = run.answer()
    source.close()
    return made, run, truth


def covered(low, high, truth):
    slack = 1e-9 * max(abs(truth), 1.0)
    return int(np.sum((low <= truth + slack) & (truth - slack <= high)))


@pytest.mark.statistical
@pytest.mark.parametrize("target", [PURE, CONCENTRATED], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("patients", [25, 2500])
@pytest.mark.parametrize("name", [name for name in AGGREGATES if name not in ("median", "quantile")])
def test_intervals_hold_the_bounded_answer(name, patients, target):
    """Raw values against the truth. The threshold is `LEAST`."""
    aggregate = AGGREGATES[name]
    made, run, truth = released(patients, 3, {"x": aggregate}, target)
    measured, noise = made.measurements[0], made.measurements[0].noise
    exact = np.tile(run.exact, (RELEASES, 1))
    noisy = noise.mechanism(exact.size).release(exact.ravel()).value
    rows = np.asarray(noisy, dtype=float).reshape(exact.shape) / noise.unit
    if isinstance(measured, Sums):
        found = of_sums(aggregate, measured, rows)
        assert covered(found.low, found.high, truth.raw["x"][0]) >= LEAST
        return
    bins = rows.shape[1] if isinstance(measured, Bins) else 1
    for place in range(bins):
        found = additive(rows[:, [place]], np.ones(1), noise.scale, noise.kind, integers=True)
        assert covered(found.low, found.high, truth.raw["x"][place]) >= LEAST


@pytest.mark.statistical
@pytest.mark.parametrize("patients", [25, 2500])
@pytest.mark.parametrize("name", ["median", "quantile"])
def test_intervals_of_quantiles_hold_the_bounded_answer(name, patients):
    """The quantile of the kept rows on their grid. The threshold is `LEAST`."""
    made, run, truth = released(patients, 3, {"x": AGGREGATES[name]}, PURE)
    measured = made.measurements[0]
    found = measured.mechanism.release(run.histograms * RELEASES).value
    low, step = measured.measure.grid.span[0], float(measured.measure.grid.step)
    ends = [(low + column[:, 0]) * step for column in (found.low, found.high)]
    assert covered(*ends, truth.raw["x"][0]) >= LEAST


@pytest.mark.parametrize("target", [PURE, CONCENTRATED], ids=["laplace", "gaussian"])
def test_intervals_of_sums_are_the_shortest_symmetric_ones(target):
    """Against the exact law of the noise on whole numbers: a step less would hold the truth too rarely."""
    made, _, _ = released(25, 3, {"x": sitr.count()}, target)
    noise = made.measurements[0].noise
    scale, places = noise.scale, np.arange(-4000, 4001)
    weights = np.exp(-np.abs(places) / scale) if noise.kind == "laplace" else np.exp(-(places**2) / (2 * scale**2))
    weights /= weights.sum()
    width = additive(np.zeros((1, 1)), np.ones(1), scale, noise.kind, integers=True).high[0]
    assert weights[np.abs(places) <= width].sum() >= 0.95
    assert weights[np.abs(places) <= width - 1].sum() < 0.95
    for aggregate in (sitr.sum("cost"), sitr.sum("change")):
        made, _, _ = released(25, 3, {"x": aggregate}, target)
        one = made.measurements[0]
        found = of_sums(aggregate, one, np.zeros((1, 1)))
        factor = float(one.noise.unit * next(iter(one.measures.values())).grid.step)
        quantile = 1.959964 if one.noise.kind == "gaussian" else -np.log(0.05)
        assert found.high[0] == pytest.approx(factor * one.noise.scale * quantile, rel=1e-3)
        assert found.low[0] == -found.high[0]


def test_the_threshold_is_that_of_the_binomial_law():
    assert least(RELEASES, 1) == LEAST

"""Estimates: exact statistics give the exact aggregate, inside its interval, in the units of the values."""

from fractions import Fraction

import numpy as np
import pytest

import sitr
from sitr.query.designs import Design
from sitr.query.estimates import additive, of_sums
from sitr.query.measurements import Sums
from sitr.query.noise import Noise, Reach
from sitr.tables.domains import Domain
from sitr.tables.expressions import Column
from sitr.tables.tally import Measure


def measured(*degrees, missing=False):
    """Columns x from -10 to 30 and y from 5 to 6, in steps of a tenth."""
    grids = [Domain("number", Fraction(1, 10), -100, 300), Domain("number", Fraction(1, 10), 50, 60)][: len(degrees)]
    design = Design(("x", "y")[: len(degrees)], degrees, missing)
    measures = {name: Measure(Column(name), grid) for name, grid in zip(design.measures, grids, strict=True)}
    made = Sums(design, measures, Noise("laplace", 1.0, Reach(1, 1.0), 1, "add_remove"))
    return Sums(design, measures, Noise("laplace", 1.0, Reach(1, 1.0), design.unit(made.widths), "add_remove"))


def exact(sums, x, y=None):
    def basis(values, degree):
        t = (np.array(values) - min_of[len(bases)]) / width_of[len(bases)]
        return [[np.ones_like(t)], [1 - t, t], [(1 - t) ** 2, 2 * t * (1 - t), t**2]][degree]

    min_of, width_of, bases = (-10, 5), (40, 1), []
    for values, degree in zip((x, y), sums.design.degrees, strict=False):
        bases.append(basis(values, degree))
    columns = bases[0] if len(bases) == 1 else [one * other for one in bases[0] for other in bases[1]]
    return np.array([[column.sum() for column in columns]])


X, Y = np.linspace(-10, 30, 500), 5 + np.linspace(0, 1, 500) ** 2


@pytest.mark.parametrize(
    ("aggregate", "degrees", "truth"),
    [
        (sitr.count("x"), (1,), 500), (sitr.sum("x"), (1,), X.sum()), (sitr.sum("x"), (2,), X.sum()),
        (sitr.mean("x"), (1,), X.mean()), (sitr.variance("x"), (2,), X.var()), (sitr.stddev("x"), (2,), X.std()),
        (sitr.covariance("x", "y"), (1, 1), np.cov(X, Y, ddof=0)[0, 1]),
        (sitr.correlation("x", "y"), (2, 2), np.corrcoef(X, Y)[0, 1]),
    ],
)  # fmt: skip
def test_exact_statistics_give_the_aggregate(aggregate, degrees, truth):
    sums = measured(*degrees)
    found = of_sums(aggregate, sums, exact(sums, X, Y))
    assert found.raw[0] == pytest.approx(truth, rel=1e-9)
    assert found.low[0] <= truth <= found.high[0]
    assert (found.additive is not None) == (aggregate.kind in ("count", "sum"))


def test_rows_that_lack_a_value_are_counted_only_where_all_are():
    sums = measured(1, missing=True)
    noisy = np.append(exact(sums, X), [[7.0]], axis=1)
    assert of_sums(sitr.count(), sums, noisy).raw[0] == pytest.approx(507)
    assert of_sums(sitr.count("x"), sums, noisy).raw[0] == pytest.approx(500)
    assert of_sums(sitr.mean("x"), sums, noisy).raw[0] == pytest.approx(X.mean())


def test_a_sum_of_whole_noises_has_whole_ends():
    found = additive(np.array([[4.0], [9.0]]), np.ones(1), 2.0, "laplace", integers=True)
    assert (found.low % 1).tolist() == [0, 0]
    assert found.additive.weights == (1.0,)


def test_noise_that_contradicts_every_mean_leaves_all_of_them():
    """Many rows at the upper end, and far fewer than none at the lower one: a point there would look certain."""
    found = of_sums(sitr.mean("x"), measured(1), np.array([[-90.0, 200.0], [50.0, 50.0]]))
    assert (found.low[0], found.high[0]) == (-10.0, 30.0)
    assert found.low[1] > -10
    assert found.high[1] < 30

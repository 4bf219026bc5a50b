"""Measurements: what they are called, and that each has the price of its noise."""

import sitr
from sitr.query.facts import Facts
from sitr.query.planner import Target, plan
from sitr.query.query import Query
from sitr.tables.relations import Scan
from tests.tables import clinic

LABELS = {
    "rows": sitr.count(), "rows with cost": sitr.count("cost"), "rows and sum of cost": sitr.mean("cost"),
    "sum of cost": sitr.sum("cost"), "rows, sum and squares of cost": sitr.variance("cost"),
    "rows and sum of age and cost": sitr.covariance("age", "cost"), "units": sitr.count_units(),
    "different ward": sitr.count_distinct("ward"), "quantiles of cost": sitr.median("cost"),
    "rows in 2 bins of x": sitr.histogram("age", [0, 18, 120]),
}  # fmt: skip


def test_labels_and_prices():
    for label, aggregate in LABELS.items():
        query = Query(Scan("visits"), (), {"x": aggregate})
        (one,) = plan(query, clinic.declared(), Target(1.0, 0.0), Facts()).measurements
        assert one.label == label
        assert one.event.epsilon(delta=0.0).upper <= 1 + 1e-9

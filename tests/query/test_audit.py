"""The auditor, pointed at whole queries: neighbouring databases differ in a person, with one row or many.

Every sample is a whole release, with a ledger in memory. `benchmarks/` runs all pairs with more samples.
"""

import pytest

from sitr.tables.emitter import UNIT, Emitter
from tests.query.audited import DELTA, EPSILON, audited

SAMPLES = 400  # for each of two databases: 4,800 in all
CONFIDENCE = 1 - 1e-9  # an honest claim is accused so rarely
PAIRS = [
    ("count by group", "rows in every group"),
    ("named groups", "rows in every group"),
    ("sum", "many rows"),
    ("mean", "one row"),
    ("private keys", "groups of their own"),
    ("count distinct", "rows in every group"),
]


@pytest.fixture(params=["duckdb"])
def engine(request):
    return request.param


@pytest.mark.statistical
@pytest.mark.parametrize(("question", "neighbour"), PAIRS)
def test_no_violation_is_found(engine, question, neighbour):
    """Of an honest claim a violation is certified with probability 1e-9 at most; both orders of the pair are tried."""
    report = audited(engine, question, neighbour, SAMPLES, confidence=CONFIDENCE)
    assert not report.violated, str(report)
    assert report.claimed.epsilon(delta=DELTA).upper <= EPSILON * (1 + 1e-9)


@pytest.mark.statistical
def test_bounding_after_grouping_is_certified_as_a_violation(engine, monkeypatch):
    """The planted bug: rows are bounded for each person and group, and charged as if for each person.

    The person has 2 rows in each of 20 groups, where 2 in all are paid for. The sum of all counts moves by 40, and its
    noise deviates by less than 13: half way between, it errs with a probability under 0.07. A claim of ε = 1 is broken
    by an event that errs with less than 1/(1 + e) = 0.27; that more than 0.25 of 500 certifying samples err has, also
    at 0.12 for a score that was learned badly, a probability under 1e-9.
    """
    original = Emitter._first

    def first(self, table, by, most, row_id="row_id"):
        by = [UNIT, *(name for name in table.columns if name.startswith("key"))] if by == [UNIT] else by
        return original(self, table, by, most, row_id)

    audited(engine, "sum", "one row", 100)  # so that the engine has passed: its own test would catch the bug
    monkeypatch.setattr(Emitter, "_first", first)
    report = audited(engine, "count by group", "rows in every group", 1000)
    assert report.violated, str(report)
    assert report.epsilon_lower > EPSILON

"""The law of the house on random plans; and planted bugs, each of which has to be found among the first hundred."""

import pytest
from ibis.expr import operations as ops

from sitr.tables import emitter, grid
from sitr.tables.emitter import UNIT, Emitter
from tests.attack.law import campaign
from tests.attack.shrinking import told
from tests.tables import engines

SEED = 20_006
PLANTED = (
    20_005  # from here on units have far more rows than are kept: what is planted is found soon, and the test is quick
)
FOUND_BY = ("moves", "nobody")  # the laws that a planted bug breaks; the others are about failures


def lawful(engine, plans, **settings):
    if reason := engines.missing(engine):
        pytest.skip(reason)
    report = campaign(SEED, plans, engine, **settings)
    assert report.plans == plans
    assert not report.failures, "\n".join(told(one) for one in report.failures[:3])
    return report


def test_no_plan_moves_farther_than_its_reach_in_duckdb():
    report = lawful("duckdb", 50)
    assert report.moved > 12  # else nothing is tested,
    assert report.full > 5  # and a bound that is one too wide would not be seen
    assert report.by_sql > 5
    assert report.numbered > 30


def test_no_plan_moves_farther_than_its_reach_in_postgresql():
    assert lawful("postgresql", 15, questions=15).moved > 3


@pytest.mark.xdist_group("spark")
def test_no_plan_moves_farther_than_its_reach_in_spark():
    assert lawful("spark", 3, reader="parquet").vectors > 2


@pytest.mark.parametrize("reader", ["csv", "parquet"])
def test_no_plan_reads_a_file_in_the_place_of_another(reader):
    assert lawful("duckdb", 6, reader=reader, questions=2).exchanged >= 12


# Planted bugs


def bounded_after_grouping(monkeypatch):
    """Rows are bounded for each unit and group, and charged as if for each unit."""
    original = Emitter._first

    def first(self, table, by, most, row_id="row_id"):
        by = [UNIT, *(name for name in table.columns if name.startswith("key"))] if by == [UNIT] else by
        return original(self, table, by, most, row_id)

    monkeypatch.setattr(Emitter, "_first", first)


def lost_where(monkeypatch):
    """A condition of the question does not reach the engine."""
    original = Emitter.rows

    def rows(self, relation):
        return original(self, relation.source if isinstance(relation, emitter.Filter) else relation)

    monkeypatch.setattr(Emitter, "rows", rows)


def one_row_too_many(monkeypatch):
    """`place <= n`, where places are counted from 0."""
    original = Emitter._first

    def first(self, table, by, most, row_id="row_id"):
        return original(self, table, by, most + 1, row_id)

    monkeypatch.setattr(Emitter, "_first", first)


def rows_of_nobody(monkeypatch):
    """Rows without a unit are read: they are one more unit."""
    original = Emitter._scan

    def scan(self, table):
        source = self.table

        def filled(declared):
            found = source(declared)
            if declared is not table or not isinstance(table.unit, str):
                return found
            kind = found[table.unit].type()
            some = next(one for test, one in emitter.NOTHINGS.items() if getattr(kind, f"is_{test}")())
            return found.mutate(**{table.unit: found[table.unit].fill_null(some)})

        return original(emitter.replace(self, table=filled), table)

    monkeypatch.setattr(Emitter, "_scan", scan)


def values_not_clipped(monkeypatch):
    """Values beyond their bounds are added up as they are."""
    monkeypatch.setattr(grid, "clipped", lambda value, low, high: value)


def joined_rows_not_bounded(monkeypatch):
    """What a public table multiplied is not bounded again."""
    original = Emitter._first

    def first(self, table, by, most, row_id="row_id"):
        joins = table.op().find(ops.JoinChain)
        return table if joins else original(self, table, by, most, row_id)

    monkeypatch.setattr(Emitter, "_first", first)


TWINS = [
    bounded_after_grouping,
    lost_where,
    one_row_too_many,
    rows_of_nobody,
    values_not_clipped,
    joined_rows_not_bounded,
]


@pytest.fixture(scope="module")
def tested():
    """The engine has passed its own tests, which would find some of these bugs before we do."""
    campaign(PLANTED, 1, reader="frames")


@pytest.mark.parametrize("plant", TWINS, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found_in_the_first_hundred_plans(plant, tested, monkeypatch):
    plant(monkeypatch)
    report = campaign(
        PLANTED, 100, reader="frames", questions=10, on=lambda report: not report.first.keys() & set(FOUND_BY)
    )
    assert report.first.keys() & set(FOUND_BY), f"{plant.__doc__} was not found in {report.plans} plans"


@pytest.mark.parametrize(
    ("reader", "place"), [("csv", "files.Held.check"), ("parquet", "source.Source._check_sources")]
)
def test_files_that_are_exchanged_unnoticed_are_found(reader, place, tested, monkeypatch):
    monkeypatch.setattr(f"sitr.tables.{place}", lambda self, read: None)
    assert "exchanged" in campaign(PLANTED, 2, reader=reader, questions=2).first

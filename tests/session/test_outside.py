"""What leaves a database outside every promise: noted before a row is read, never charged, and stamped."""

import pyarrow
import pytest

from sitr.errors import DeclarationChanged, InvalidArgument
from sitr.ledger import Ledger
from sitr.session.database import Database
from sitr.tables.source import Source
from tests.synthesis.visits import DECLARED, visits
from tests.tables import engines

ROWS = 400
PEOPLE = {
    "privacy": {"adjacency": "replace_one"},
    "budgets": {"test": {"epsilon": 1.0}},
    "tables": {
        "people": {
            "unit": "row",
            "columns": {
                "region": {"type": "string", "categories": ["north", "south", "west"], "nulls": "drop"},
                "age": {"type": "integer", "bounds": [0, 99], "nulls": "drop"},
            },
        }
    },
}
ASKED = {"rows": ROWS, "alpha": 1.0, "reason": "a study of the method"}


def people():
    ages = [30] * (ROWS - 1) + [77]
    return pyarrow.table({"region": ["north"] * 200 + ["south"] * 200, "age": ages})


@pytest.fixture
def database():
    with engines.asked("duckdb", {"people": people()}, PEOPLE) as opened:
        yield opened


def test_it_is_noted_and_stamped_and_charges_nothing(database):
    before = database.ledger.spent("test").value
    found = database.table("people").random_dp_histogram("region", **ASKED, unsafe_random_dp=True)
    assert "NOT PRIVATE" in str(found)
    assert not found.private
    assert sum(found.value.counts.values()) == ROWS
    assert set(found.value.counts) <= {("north",), ("south",)}  # nothing is added to the cell that is empty
    statement = database.ledger.statement("test")
    (noted,) = statement.outside
    assert noted.what == "a histogram of region of people"
    assert noted.notion == found.notion
    assert noted.reason == "a study of the method"
    assert database.ledger.spent("test").value == before
    assert "OUTSIDE" in str(statement)


def test_gamma_is_of_the_declared_cells(database):
    found = database.table("people").random_dp_histogram("region", "age", **ASKED, unsafe_random_dp=True)
    assert found.cells == 300
    assert found.gamma == pytest.approx(2 * 300 / ROWS * (1 - 1 / ROWS) ** (ROWS - 1))


@pytest.mark.parametrize("said", [False, 1, "yes", None])
def test_nobody_gets_it_without_saying_so(database, said, monkeypatch):
    monkeypatch.setattr(Source, "guarded", lambda *_: pytest.fail("something was read"))
    with pytest.raises(InvalidArgument, match="not differential privacy"):
        database.table("people").random_dp_histogram("region", **ASKED, unsafe_random_dp=said)
    assert not database.ledger.statement("test").outside


def test_it_is_noted_before_a_row_is_read(database, monkeypatch):
    monkeypatch.setattr(Source, "count", lambda *_, **__: pytest.fail("rows were read"))

    def refused(*_, **__):
        raise PermissionError

    monkeypatch.setattr(Ledger, "note_outside", refused)
    with pytest.raises(PermissionError):
        database.table("people").random_dp_histogram("region", **ASKED, unsafe_random_dp=True)


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ((), {}, "names none"),
        (("region", "region"), {}, "twice"),
        (("town",), {}, "town"),
        (("region",), {"rows": 0}, "rows"),
        (("region",), {"rows": ROWS + 1}, "not of the declared number"),
    ],
)
def test_what_cannot_be_counted_is_refused(database, columns, options, said):
    with pytest.raises(InvalidArgument, match=said):
        database.table("people").random_dp_histogram(*columns, **(ASKED | options), unsafe_random_dp=True)


def test_units_with_several_rows_are_refused():
    with (
        engines.asked("duckdb", {"visits": visits()}, DECLARED) as opened,
        pytest.raises(InvalidArgument, match="independently"),
    ):
        opened.table("visits").random_dp_histogram("region", **ASKED, unsafe_random_dp=True)


def test_more_cells_than_can_be_counted_are_refused_before_it_is_noted():
    many = {name: {"type": "integer", "bounds": [0, 9999]} for name in ("a", "b", "c")}
    content = PEOPLE | {"tables": {"people": {"unit": "row", "columns": many}}}
    rows = pyarrow.table({name: [1, 2, 3] for name in many})
    with engines.asked("duckdb", {"people": rows}, content) as opened:
        with pytest.raises(InvalidArgument, match="cells is too large"):
            opened.table("people").random_dp_histogram(
                *many, rows=3, alpha=1.0, reason="a test", unsafe_random_dp=True, cells=10_000
            )
        assert not opened.ledger.statement("test").outside


def test_nothing_is_read_or_noted_under_a_promise_that_was_changed_since(database, monkeypatch):
    def changed(self):
        raise DeclarationChanged("the promise was changed.")

    monkeypatch.setattr(Database, "hold_to_terms", changed)
    monkeypatch.setattr(Source, "count", lambda *_, **__: pytest.fail("rows were read"))
    with pytest.raises(DeclarationChanged):
        database.table("people").random_dp_histogram("region", **ASKED, unsafe_random_dp=True)
    assert not database.ledger.statement("test").outside

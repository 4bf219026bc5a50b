"""One person's values are planted in every column, and looked for in all that leaves: text, errors, logs, the book."""

import contextlib
import json
import logging
import threading
import traceback
import warnings
from datetime import date, datetime

import pandas
import pyarrow
import pytest

import sitr
from sitr.errors import Cancelled, SitrError
from sitr.ledger import Budget, Ledger
from sitr.query.execution import Execution
from sitr.session.database import open as open_database
from tests.query.databases import asked, column, declared, plan_of
from tests.tables.conftest import PARAMS

TEXT, WHOLE, REAL = "Zq7-marker", 918273645, 1234.567891
DAY, MOMENT = date(1987, 6, 5), datetime(1987, 6, 5, 4, 3, 2)
MARKS = [TEXT, str(WHOLE), f"{WHOLE:,}", "1234.5678", "1,234.56", str(DAY), "1987, 6, 5", "04:03:02", "June 5"]
COMMON = 60  # people without marks

COLUMNS = {
    "person": column("string"),
    "id": column("integer"),
    "text": column("string"),
    "whole": column("integer"),
    "real": column("float", bounds=[0, 10]),
    "exact": column("decimal(12, 2)"),
    "day": column("date", bounds=[date(1980, 1, 1), date(2020, 1, 1)]),
    "moment": column("timestamp"),
    "flag": column("boolean"),
    "group": column("string", categories=["a", "b"]),
}


def frame():
    """Sixty people alike, and one who holds every mark, in more rows than are kept of anyone."""
    from decimal import Decimal

    usual = ["usual", 1, 1.0, Decimal("1.00"), date(2000, 1, 1), datetime(2000, 1, 1), True, "a"]
    marked = [TEXT, WHOLE, REAL, Decimal("1234.57"), DAY, MOMENT, False, TEXT]
    rows = [[f"p{number}", number, *usual] for number in range(COMMON)]
    rows += [[TEXT, WHOLE + number, *marked] for number in range(5)]
    kinds = {"exact": pyarrow.decimal128(12, 2), "moment": pyarrow.timestamp("us"), "day": pyarrow.date32()}
    cells = dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))
    return pyarrow.table({name: pyarrow.array(values, kinds.get(name)) for name, values in cells.items()})


CONTENT = {
    "privacy": {"delta": 1e-9},
    "tables": {"visits": {"unit": "person", "row_id": "id", "max_rows_per_unit": 2, "columns": COLUMNS}},
}


def questions(table):
    """All that can be asked of the planted columns."""
    day, moment = table["day"], table["moment"]
    each = table.per_unit(n=sitr.sum("real", bounds=(0, 20)))
    return {
        "count": table.aggregate(n=sitr.count(), u=sitr.count_units()),
        "groups": table.group_by("group").aggregate(n=sitr.count(), m=sitr.mean("real")),
        "keys": table.group_by("text").aggregate(n=sitr.count(), u=sitr.count_units()),
        "more keys": table.group_by("whole", "flag").aggregate(n=sitr.count()),
        "days": table.group_by("day").aggregate(n=sitr.count()),
        "moments": table.group_by("moment", hour=moment.truncate("hour")).aggregate(n=sitr.count()),
        "years": table.group_by(year=day.part("year"), values={"year": [1987, 2000]}).aggregate(n=sitr.count()),
        "sums": table.aggregate(
            s=sitr.sum("real"), w=sitr.sum("whole", bounds=(0, 9)), e=sitr.sum("exact", bounds=(0, 9))
        ),
        "spread": table.aggregate(v=sitr.variance("real"), r=sitr.correlation("real", table["real"] * 2)),
        "distinct": table.aggregate(d=sitr.count_distinct("text"), o=sitr.count_distinct("whole")),
        "bins": table.aggregate(h=sitr.histogram("day", [date(1980, 1, 1), date(2000, 1, 1), date(2020, 1, 1)])),
        "each": each.aggregate(s=sitr.sum("n")),
        "joined": table.join(each).aggregate(n=sitr.count()),
        "filtered": table.filter(table["real"] > 5).aggregate(n=sitr.count()),
    }


def assert_clean(text, where):
    found = [mark for mark in MARKS if mark in text]
    assert not found, f"{where}: {found}"


def told(error):
    """All that an error says, and its causes, with the variables of every frame but the test's own."""
    seen = []
    while error is not None:
        inner = error.__traceback__.tb_next if error.__traceback__ else None
        seen += traceback.TracebackException(type(error), error, inner, capture_locals=True).format()
        seen.append(repr(error) + str(getattr(error, "__notes__", "")))
        error = error.__cause__ or error.__context__
    return "".join(seen)


@pytest.fixture(params=PARAMS)
def table(request):
    return asked(request.param, {"visits": frame()}, CONTENT).table("visits")


@pytest.fixture
def everything(capfd):
    """What is logged by anyone at any level, warned of, or printed, until the end of the test: looked through then."""
    records = []

    class Keep(logging.Handler):
        def emit(self, record):
            records.append(self.format(record))

    keep, root = Keep(level=logging.DEBUG), logging.getLogger()
    before = {
        name: logger.level for name, logger in logging.root.manager.loggerDict.items() if hasattr(logger, "level")
    }
    level = root.level
    root.addHandler(keep)
    root.setLevel(logging.DEBUG)
    for name in before:
        logging.getLogger(name).setLevel(logging.DEBUG)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        yield records
    root.removeHandler(keep)
    root.setLevel(level)
    for name, old in before.items():
        logging.getLogger(name).setLevel(old)
    printed = capfd.readouterr()
    for where, text in (
        ("log", "\n".join(records)),
        ("warning", "\n".join(str(one.message) for one in warned)),
        ("output", printed.out + printed.err),
    ):
        assert_clean(text, where)


def test_a_mark_is_seen_where_it_is(table):
    """The search finds what it looks for: in the exact answer of the one group that the person is in alone."""
    with pytest.raises(AssertionError, match="marker"):
        assert_clean(str(frame().to_pylist()), "rows")
    plan = plan_of(questions(table)["keys"])
    with pytest.raises(AssertionError, match="marker"):
        assert_clean(str(table.database.source.run(plan.tally).to_pylist()), "tally")


def test_nothing_that_is_asked_shows_a_mark(table, everything):
    """Questions, plans, explanations with their SQL, and answers in every form."""
    assert_clean(f"{table!r} {table.database!r} {table.database.source!r} {table['text']!r}", "table")
    for name, question in questions(table).items():
        explained = question.explain(epsilon=5.0)
        assert_clean(f"{explained} {explained!r} {explained.queries} {question!r} {vars(question)}", name)
        answer = question.release(epsilon=5.0)
        shown = [str(answer), repr(answer), answer._repr_html_(), answer.to_csv(), str(answer.to_dict())]
        shown += [str(answer.to_pandas()), str(answer.to_arrow()), json.dumps(answer.to_dict())]
        assert_clean("\n".join(shown), name)
        if name == "keys":
            assert answer.value["text"] == ["usual"]  # of sixty people: published by selection


def test_the_book_holds_no_mark(tmp_path, everything):
    """Entries, requests and answers, as they are read and as they lie on the disk."""
    with Ledger.open(f"sqlite:///{tmp_path}/book.db", create=True) as book:
        book.create_budget("test", Budget(epsilon=1000.0, delta=1e-3))
        database = open_database(declared(CONTENT), analyst="amina", ledger=book, frames={"visits": frame()})
        asked_for = questions(database.table("visits"))
        for name in ("count", "groups", "keys", "sums", "bins"):
            asked_for[name].release(epsilon=5.0, operation=name)
            assert_clean(json.dumps(book.answer(name, analyst="amina").value), name)
        failing = asked_for["distinct"]
        database.source.fetch = _raising(database.source)
        with contextlib.suppress(SitrError):
            failing.release(epsilon=5.0, operation="failed")
        for entry in book.entries():
            assert_clean(f"{entry!r} {entry.to_dict()}", "entry")
        assert_clean(str(book.statement("test")), "statement")
    for path in tmp_path.rglob("*"):
        if path.is_file():
            assert_clean(path.read_bytes().decode("utf-8", "replace"), path.name)


def _raising(source):
    original = type(source).fetch

    def fetch(statement):
        if "LIMIT 0" in statement.text:
            return original(source, statement)
        rows = original(source, statement)
        raise ValueError(f"Conversion Error: could not convert {TEXT!r} of {rows} to INT64")

    return fetch


def test_no_error_tells_a_mark(table, everything):
    """Every kind of query that fails: refused, too dear, failed in the engine, in our own code, or stopped."""
    missing = table.database
    refused = [
        lambda: table["nothing"],
        lambda: table.filter(table["text"] > "a").aggregate(n=sitr.count()),
        lambda: table.filter(table["text"] == 5).aggregate(n=sitr.count()),
        lambda: table.aggregate(s=sitr.sum("text")).release(epsilon=1.0),
        lambda: table.aggregate(s=sitr.sum("whole")).release(epsilon=1.0),
        lambda: table.group_by("real").aggregate(n=sitr.count()),
        lambda: table.group_by("text").aggregate(n=sitr.count()).release(epsilon=1.0, delta=0.0),
        lambda: table.join("nowhere", "text"),
        lambda: missing.table("nowhere"),
        lambda: table.aggregate(n=sitr.count()).release(epsilon=9999.0, delta=0.4),
        lambda: table.aggregate(n=sitr.count()).release(epsilon=-1.0),
    ]
    for refuse in refused:
        with pytest.raises(SitrError) as raised:
            refuse()
        assert_clean(told(raised.value), str(raised.value))


def _stopped_at_the_end(source, monkeypatch):
    original, wait = type(source).fetch, threading.Event.wait
    there, pressed = threading.Event(), threading.Event()

    def fetch(statement):
        rows = original(source, statement)
        if "LIMIT 0" not in statement.text:
            there.set()
            assert pressed.wait(60)
        return rows

    def interrupted(event, timeout=None):
        if threading.current_thread() is threading.main_thread() and there.is_set() and not pressed.is_set():
            pressed.set()
            raise KeyboardInterrupt
        return wait(event, timeout)

    monkeypatch.setattr(source, "fetch", fetch)
    monkeypatch.setattr(threading.Event, "wait", interrupted)


@pytest.mark.parametrize("stage", ["engine", "answer", "noise", "stopped"])
def test_no_failure_after_rows_were_read_tells_a_mark(table, everything, monkeypatch, stage):
    source = table.database.source
    if stage == "engine":
        source.fetch = _raising(source)
    if stage == "answer":
        monkeypatch.setattr(Execution, "_chosen", lambda self: (str(self._tables) + TEXT).missing)
    if stage == "noise":

        def stop(self, noise, exact):
            raise KeyboardInterrupt(f"{exact} {TEXT}")

        monkeypatch.setattr(Execution, "_noisy", stop)
    if stage == "stopped":  # as the engine ends: the rows are there, and Ctrl-C is pressed
        _stopped_at_the_end(source, monkeypatch)
    question = table.group_by("text").aggregate(n=sitr.count())
    with pytest.raises(SitrError) as raised:
        question.release(epsilon=5.0)
    error = raised.value
    assert isinstance(error, Cancelled) == (stage in ("noise", "stopped"))
    assert (error.__cause__, error.__context__) == (None, None)
    assert_clean(told(error), stage)
    assert table.database.ledger.spent("test").value > 0


def test_no_refusal_to_open_tells_a_mark(tmp_path, everything):
    """A column of another type, a frame of mixed types, a file that is none, and a text file without a header."""
    wrong = json.loads(json.dumps(CONTENT, default=str)) | {"privacy": {}}
    wrong["tables"]["visits"]["columns"] = {"person": column("string"), "id": column("integer"), "text": column("date")}
    mixed = pandas.DataFrame({"person": ["p", 5, TEXT], "id": [1, "x", WHOLE], "text": [TEXT, 2.5, DAY]}, dtype=object)
    with pytest.raises(SitrError) as raised:
        open_database(declared(wrong), analyst="amina", ledger="memory://", frames={"visits": frame()})
    assert_clean(f"{raised.value} {raised.value.__cause__} {raised.value.__context__}", "type")
    with pytest.raises(SitrError) as raised:
        open_database(declared(wrong), analyst="amina", ledger="memory://", frames={"visits": mixed})
    assert_clean(f"{raised.value} {raised.value.__cause__} {raised.value.__context__}", "frame")
    for name in ("visits.csv", "visits.parquet"):
        (tmp_path / name).write_text(f"{TEXT},{WHOLE},{DAY}\np,1,2000-01-01\n")
        wrong["tables"]["visits"]["source"] = name
        with pytest.raises(SitrError) as raised:
            open_database(declared(wrong, tmp_path), analyst="amina", ledger="memory://")
        assert_clean(told(raised.value), name)


def test_a_condition_on_a_mark_costs_as_much_as_any(table):
    """What an analyst writes is theirs; whether the data hold it changes neither plan nor price."""
    plans = []
    for text in (TEXT, "nobody"):
        question = table.filter(table["text"] == text).aggregate(n=sitr.count())
        explained = question.explain(epsilon=1.0)
        plans.append((str(explained), [query.replace(text, "?") for query in explained.queries]))
    assert plans[0] == plans[1]

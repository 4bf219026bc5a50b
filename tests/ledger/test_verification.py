"""Tampering: whatever is changed is found, by the chain, by the rules, or, where neither can, by an anchor."""

from dataclasses import replace
from fractions import Fraction

import pytest
from sqlalchemy import text

from sitr.accounting import Gaussian, PureDP
from sitr.accounting.filters import WHOLE
from sitr.errors import LedgerDamaged, NotPermitted
from sitr.ledger import Budget, Ledger, schema, verification
from sitr.ledger.anchor import write_mark
from sitr.ledger.entry import Entry, Head, entry_hash
from sitr.ledger.totals import less
from tests.ledger.tampering import found, nothing, retotal, rewritten, tamper, with_body

TABLES = ("entry", "budget", "block", "answer", "book")


def test_answers_that_are_changed_or_taken_out_or_put_in(url):
    tamper(url, ("UPDATE answer SET content = :new WHERE operation = 'q0'", {"new": b"another"}))
    assert "is not what was committed" in found(url).problem
    with Ledger.open(url) as ledger, pytest.raises(LedgerDamaged, match="was changed"):
        ledger.answer("q0", analyst="amina")
    tamper(url, "DELETE FROM answer WHERE operation = 'q0'")
    assert "the answer to operation 'q0' is gone" in found(url).problem
    tamper(url, "DELETE FROM answer WHERE operation = 'q1'")
    assert "the answer to operation 'q0' is gone" in found(url).problem
    put = "INSERT INTO answer (operation, media, content) VALUES ('reserved', 'text/plain', :new)"
    tamper(url, (put, {"new": b"x"}))
    assert not found(url)


def test_a_tail_that_is_cut_off_is_told_by_its_totals(url):
    tamper(url, "DELETE FROM entry WHERE seq > 12", "DELETE FROM answer WHERE operation = 'q2'")
    assert "running total" in found(url).problem


def test_a_tail_that_is_cut_off_with_totals_made_to_fit_is_told_by_the_anchor_alone(url, tmp_path):
    with Ledger.open(url) as ledger:
        entries = list(ledger.entries())
    last = [entry for entry in entries if entry.kind == "reserve"][-1]
    tamper(url, f"DELETE FROM entry WHERE seq >= {last.seq}")
    for name, due in last.record["budgets"].items():
        retotal(url, schema.budget, "whole", lambda used, due=due: less(used, due["units"]), name=name)
    told = found(url)
    assert told.valid
    assert "not anchored" in told.anchored
    told = found(url, anchor=tmp_path / "anchor")
    assert not told
    assert "its end was lost" in told.problem
    with pytest.raises(LedgerDamaged, match="is behind its anchor"):
        Ledger.open(url, anchor=tmp_path / "anchor")


def test_a_history_that_is_chained_anew_is_told_by_the_anchor(url, tmp_path):
    rewritten(url, lambda entries: [replace(entry, at="2020" + entry.at[4:]) for entry in entries])
    assert found(url).valid
    assert "is not what the anchor says it was" in found(url, anchor=tmp_path / "anchor").problem


def charged_less(entries):
    """The first reservation pays one unit, and says so everywhere."""
    for entry in entries:
        if entry.operation == "q0" and entry.kind == "reserve":
            due = {name: {**paid, "units": [1, 0]} for name, paid in entry.record["budgets"].items()}
            entry = with_body(entry, budgets=due)
        yield entry


def change_of(kind, operation, **changes):
    return lambda entries: [
        with_body(entry, **changes) if (entry.kind, entry.operation) == (kind, operation) else entry
        for entry in entries
    ]


def due(cost, version):
    return {name: {"units": [cost, 0], "version": version} for name in ("clinic", "clinic/analyst/amina")}


RULES = {
    "a charge that is too small": (charged_less, "less than its event costs"),
    "a charge below nothing": (
        change_of(
            "reserve",
            "q0",
            budgets=due(-5, 1),
        ),
        "less than nothing",
    ),
    "a budget that is left out": (
        change_of("reserve", "q0", budgets={"clinic": {"units": [2**56, 0], "version": 1}}),
        "does not charge all the budgets",
    ),
    "an event that a pure budget does not take": (
        change_of("reserve", "q0", event=Gaussian(noise_multiplier=3).to_dict()),
        "breaks the rules",
    ),
    "an event that cannot be read": (change_of("reserve", "q0", event={"type": "Nothing"}), "breaks the rules"),
    "a charge of another version": (
        change_of(
            "reserve",
            "q0",
            budgets=due(2**57, 2),
        ),
        "another version",
    ),
    "another holder": (change_of("commit", "q0", holder="someone"), "another holder"),
    "a start that is taken out": (
        lambda entries: [e for e in entries if (e.kind, e.operation) != ("start", "q0")],
        "was not started",
    ),
    "a reservation that is taken out": (
        lambda entries: [e for e in entries if (e.kind, e.operation) != ("reserve", "q0")],
        "was not reserved",
    ),
    "a kind that nobody knows": (
        lambda entries: [replace(e, kind="gift") if e.kind == "start" else e for e in entries],
        "nothing is known of the kind",
    ),
    "a refund of what was started": (
        lambda entries: [*entries, Entry(0, entries[-1].at, "refund", "started", "amina", '{"reason":"x"}', "")],
        "was not reserved",
    ),
    "a body that is no object": (
        lambda entries: [replace(e, body="[]") if e.kind == "start" else e for e in entries],
        "cannot be read",
    ),
    "a second opening": (
        lambda entries: [*entries, Entry(0, entries[-1].at, "open", None, None, "{}", "")],
        "a book is opened once",
    ),
}


@pytest.mark.parametrize("what", RULES)
def test_a_book_that_is_chained_anew_has_to_keep_the_rules(url, what):
    change, problem = RULES[what]
    rewritten(url, change)
    told = found(url)
    assert not told
    assert problem in told.problem
    assert told.bad_entry is not None


def test_more_than_the_budget_is_told(url):
    def many(entries):
        yield from entries
        first = next(entry for entry in entries if entry.kind == "reserve" and not entry.record["blocks"])
        for number in range(20):
            yield replace(first, operation=f"more {number}")

    rewritten(url, many)
    assert "takes more than the budget" in found(url).problem


def test_who_only_writes_cannot_change_what_is_there(url):
    with Ledger.open(url) as ledger:
        for statement in ("UPDATE {} SET operation = 'x'", "DELETE FROM {}"):
            for table in ("entry", "answer"):
                name = f"sitr.{table}" if "postgresql" in url else table
                with pytest.raises(NotPermitted, match="only added to"), ledger.store.transaction() as connection:
                    connection.execute(text(statement.format(name)))
        assert ledger.verify().valid


def test_progress_is_told(url, monkeypatch):
    with Ledger.open(url) as ledger:
        seen = []
        monkeypatch.setattr(verification, "TOLD_EVERY", 4)
        assert ledger.verify(progress=seen.append).valid
        assert seen == list(range(4, ledger.head.seq + 1, 4))
        assert len(seen) > 1


def test_one_fault_hides_no_other(url):
    """A rule, the totals, an answer too many and one too few: each is told, the first of them first."""
    with Ledger.open(url) as ledger:
        last = ledger.head.seq
    put = "INSERT INTO answer (operation, media, content) VALUES ('reserved', 'text/plain', :new)"
    rewritten(url, lambda entries: [*entries[:-1], replace(entries[-1], kind="open", operation=None, analyst=None)])
    retotal(url, schema.budget, "whole", nothing)
    tamper(url, "DELETE FROM answer WHERE operation = 'q1'", (put, {"new": b"x"}))
    told = found(url)
    assert (told.valid, told.bad_entry) == (False, last)
    assert told.problem == f"entry {last} breaks the rules: a book is opened once"
    assert [one.split("'")[0] for one in told.others] == [
        "the running total of the budget ",
        "there is an answer to operation ",
        "the answer to operation ",
    ]
    assert str(told).splitlines()[0] == f"NOT VALID: {told.problem}"


def test_an_anchor_vouches_up_to_its_last_mark_and_only_for_a_book_that_holds(url, tmp_path):
    with Ledger.open(url, anchor=tmp_path / "anchor") as ledger:
        ledger.reserve("clinic", PureDP(epsilon=1), analyst="amina")
        told = ledger.verify(anchor=tmp_path / "anchor")
        assert told.anchored.startswith(f"anchored up to entry {ledger.head.seq}, on 20")
        last = ledger.head.seq
    retotal(url, schema.budget, "whole", nothing)
    assert found(url, anchor=tmp_path / "anchor").anchored.startswith(f"the anchor reaches to entry {last}, on 20")
    write_mark(tmp_path / "anchor", "z", Head(1, ""))  # of another ledger, which comes after this one by name
    assert found(url, anchor=tmp_path / "anchor").anchored.startswith(f"the anchor reaches to entry {last}, on 20")


def test_no_less_is_told_than_was_spent():
    """A float does not hold most shares of a limit."""
    with Ledger.open("memory://") as ledger:
        ledger.create_budget("clinic", Budget(epsilon=7))
        for epsilon in (3, 1e-10, 1e-9, 3e-12, 1):
            ledger.reserve("clinic", PureDP(epsilon), analyst="amina")
            (total,) = ledger.store.all_totals()
            spent = Fraction(total.used[0], WHOLE)
            assert spent <= Fraction(ledger.verify().spent["clinic"][0]) <= spent * (1 + Fraction(1, 2**50))


def test_of_very_many_faults_and_remarks_a_hundred_are_told():
    with Ledger.open("memory://") as ledger, ledger.store.transaction() as connection:
        rows, previous = [], connection.exec_driver_sql("SELECT hash FROM entry").scalar()
        for seq in range(2, 1102):
            at = f"2020-01-01T00:00:00.{2000 - seq:06}+00:00"
            entry = Entry(seq, at, "open", None, None, "{}", "")
            previous = entry_hash(ledger.id, previous, entry)
            rows.append(replace(entry, hash=previous))
        for row in rows:
            connection.execute(
                text("INSERT INTO entry VALUES (:seq, :at, :kind, :operation, :analyst, :body, :hash)"), vars(row)
            )
    told = ledger.verify()
    assert told.bad_entry == 2
    assert (len(told.others), len(told.remarks)) == (100, 100)
    assert told.others[0].startswith("entry 3 breaks the rules")


def test_what_was_spent_is_worked_out_again_as_a_share_that_rounds_up(url):
    told = found(url)
    assert told.spent == {"clinic": (5 / 16, 0.0), "clinic/analyst/amina": (5 / 8, 0.0)}
    assert str(told).splitlines()[0] == f"valid: {told.head.seq} entries, head {told.head}"

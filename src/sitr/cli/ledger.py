"""`sitr ledger`: what the book says, whether it is whole, and how it is written down elsewhere."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..display import percent
from ..errors import SitrError
from .book import (
    EXISTING_FILE,
    Named,
    anchor_option,
    book_argument,
    book_options,
    head_record,
    ledger_option,
    open_book,
)
from .output import as_json, print_json, print_rows, print_table, write_new

if TYPE_CHECKING:
    from ..ledger import Entry, Ledger, Verification
    from ..ledger.backup import Copy
    from ..ledger.journal import Line

RELEASE = (
    "seq", "at", "analyst", "purpose", "question", "tables", "datasets", "epsilon", "rho", "delta", "left", "state",
    "declaration", "operation",
)  # fmt: skip
COLUMNS = ("ledger", "seq", "at", "kind", "operation", "analyst", "body", "hash")
FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # what makes a spreadsheet run a cell instead of showing it
LONGEST = 120  # characters of an entry in a table; all of it is in an export
PROVES = (
    "an anchor proves what the book held up to its last line, as long as the two are in different hands; "
    "an owner who can write both can forge both"
)


@click.group(short_help="Read the book of releases, check it and copy it.")
def ledger() -> None:
    """Read a ledger, check that it is whole, and record its latest hash in a separate file.

    A ledger is the book in which every release is charged before a row is read.
    """


@ledger.command()
@click.option("--last", type=click.IntRange(0), default=20, show_default=True, help="How many to show, from the end.")
@click.option("--entries", "raw", is_flag=True, help="Show the entries of the book, in place of a line per release.")
@book_argument
@book_options
def show(last: int, raw: bool, which: Named, anchor: Path | None, as_json: bool) -> None:
    """Say which book this is, where it ends, and what was asked last.

    There is a line for each release: when, who, what for, the question, its price, and what was left after it. What
    left outside the promise is among them. An analyst of a book in PostgreSQL sees her own.
    """
    with open_book(which, anchor) as book:
        head = book.head
        about = {"ledger": book.id, "place": book.store.place, "entries": head.seq, "head": head_record(head)}
        entries = _entries(book, head.seq, after=max(head.seq - last, 0)) if raw else []
        lines = [] if raw else book.releases()
    lines = lines[max(len(lines) - last, 0) :]
    if as_json:
        told = (
            {"last": [entry.to_dict() for entry in entries]} if raw else {"releases": [one.to_dict() for one in lines]}
        )
        print_json(about | told)
        return
    print_rows([("ledger", book.id), ("place", book.store.place), ("entries", str(head.seq)), ("head", str(head))])
    if raw:
        rows = [_line(entry) for entry in entries]
        said = [[line[-1]] if line[-1] else [] for line in rows]
        print_table(("", "when", "kind", "operation", "analyst", "says"), rows, whole="when", below=said)
    else:
        _print_releases(lines)


@ledger.command(short_help="Check the whole book; name the first bad entry.")
@book_argument
@ledger_option
@click.option(
    "--anchor",
    type=EXISTING_FILE,
    help="The file that `sitr ledger anchor` wrote: what it knows has to be in the book.",
)
@as_json
def verify(which: Named, anchor: Path | None, as_json: bool) -> None:
    """Read the whole book again, work out what was spent, and name the first entry that does not hold.

    The exit code is 1 if anything does not hold. Without an anchor nothing can show that the end was not cut off.
    """
    anchor = anchor or which.anchor
    with open_book(which, hold=False) as book:  # also one that is behind its anchor, to say where they part
        found = _verified(book, anchor)
    if as_json:
        print_json(_verification_record(found))
    else:
        print_rows(_verification_rows(found, anchored=anchor is not None))
    if not found.valid:
        raise click.exceptions.Exit(1)


@ledger.command(short_help="Write out every entry, or a line per release.")
@click.option(
    "--format", "form", type=click.Choice(("json", "csv")), default="json", show_default=True, help="Of the export."
)
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="A new file; nothing is overwritten.")
@click.option("--releases", is_flag=True, help="Write a line per release, in place of every entry.")
@book_argument
@book_options
def export(form: str, output: Path | None, releases: bool, which: Named, anchor: Path | None, as_json: bool) -> None:
    """Write all entries out, as one JSON document or as CSV; or a line per release: who asked what, at which price.

    Cells of the CSV that a spreadsheet would run as a formula begin with an apostrophe.
    """
    if as_json and form == "csv" and output is None:
        raise click.UsageError("CSV and JSON cannot both go to standard output: name a file with --output.")
    with open_book(which, anchor) as book:
        head = book.head
        about = {"ledger": book.id, "head": head_record(head)}
        entries = [] if releases else _entries(book, head.seq)
        lines = book.releases() if releases else []
    if releases:
        text = _csv_of_releases(book.id, lines) if form == "csv" else _json(about, "releases", lines)
    else:
        text = _csv(book.id, entries) if form == "csv" else _json(about, "entries", entries)
    if output is None:
        click.echo(text, nl=False)
        return
    write_new(output, text)
    if as_json:
        counted = {"releases": len(lines)} if releases else {"entries": len(entries)}
        print_json({**about, "file": str(output), **counted})
    else:
        click.echo(output)


@ledger.command(short_help="Write the end of the book down in a file elsewhere.")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@ledger_option
@as_json
def anchor(file: Path, which: Named, as_json: bool) -> None:
    """Write the end of the book down in FILE, which belongs elsewhere: on another disk, in other hands.

    The book is held to what FILE knows already, and a line is added. An anchor proves history up to its last line; an
    owner who can write both can forge both.
    """
    with open_book(which, hold=False) as book:
        head = book.write_anchor(file)
    if as_json:
        print_json({"ledger": book.id, "head": head_record(head), "file": str(file)})
    else:
        print_rows([("ledger", book.id), ("head", str(head)), ("anchor", str(file)), ("note", PROVES)])


@ledger.command(short_help="Copy the book, and verify the copy.")
@click.argument("destination", type=click.Path(dir_okay=False, path_type=Path))
@book_options
def backup(destination: Path, which: Named, anchor: Path | None, as_json: bool) -> None:
    """Copy the book to DESTINATION, a new file, with its large answers beside it, and verify the copy.

    Others may go on to use the book. One in PostgreSQL is copied by pg_dump.
    """
    from ..ledger.backup import back_up

    with open_book(which, anchor) as book:
        copy = back_up(book, destination)
    _tell_copy("copy", copy, as_json)


@ledger.command(short_help="Put a copy back where there is no book.")
@click.argument("copy", type=EXISTING_FILE)
@ledger_option
@anchor_option
@as_json
def restore(copy: Path, which: Named, anchor: Path | None, as_json: bool) -> None:
    """Put COPY back where there is no book, verified, and held to the anchor if there is one.

    Nothing is overwritten. A copy that is older than the anchor is refused: what was charged after it was made would be
    forgotten.
    """
    from ..ledger import backup

    held = anchor or which.anchor
    made = backup.restore(copy, which.url, expect=which.expect, anchor=held, answers=which.answers)
    _tell_copy("book", made, as_json)
    if held is None:
        click.echo("No anchor was given: nothing shows whether this copy is the newest.", err=True)


def _tell_copy(what: str, copy: Copy, as_json: bool) -> None:
    about = {what: copy.place, "ledger": copy.ledger, "head": head_record(copy.head), "answers": copy.answers}
    if as_json:
        print_json(about)
    else:
        rows = [(what, copy.place), ("ledger", copy.ledger), ("head", f"{copy.head}, verified")]
        print_rows([*rows, ("answers", str(copy.answers)), ("note", copy.warning)])


@ledger.command(short_help="Give back what was charged and never started.")
@click.argument("operation")
@click.option("--reason", required=True, help="Why; it stays in the book.")
@book_options
def refund(operation: str, reason: str, which: Named, anchor: Path | None, as_json: bool) -> None:
    """Give back what OPERATION was charged, if it never started; it never runs under its id.

    Nothing is refunded by itself: an operation that was started may have run, and its answer may have been seen.
    """
    with open_book(which, anchor) as book:
        book.refund(operation, reason=reason)
        head = book.head
    if as_json:
        print_json({"operation": operation, "reason": reason, "ledger": book.id, "head": head_record(head)})
    else:
        print_rows([("refunded", operation), ("reason", reason), ("head", f"{head} of ledger {book.id}")])


@ledger.command(short_help="Write down what left outside a promise.")
@click.argument("dataset")
@click.argument("what")
@click.option("--notion", required=True, help="What holds of it in place of the promise, in a line.")
@click.option("--reason", required=True, help="Why it was made; it stays in the book.")
@click.option("--analyst", help="Who made it.")
@book_options
def note(
    dataset: str,
    what: str,
    notion: str,
    reason: str,
    analyst: str | None,
    which: Named,
    anchor: Path | None,
    as_json: bool,
) -> None:
    """Write down WHAT left of DATASET that its promise does not cover, such as a histogram under random DP.

    Nothing is charged, as no budget could pay for it. Every statement and list shows it from then on, as outside the
    promise.
    """
    with open_book(which, anchor) as book:
        book.note_outside(dataset, what, notion=notion, reason=reason, analyst=analyst)
        head = book.head
    if as_json:
        print_json({"dataset": dataset, "outside": what, "ledger": book.id, "head": head_record(head)})
    else:
        print_rows([("outside", f"{dataset}: {what}"), ("head", f"{head} of ledger {book.id}")])


@ledger.command(short_help="Let a role of PostgreSQL ask under its own name.")
@click.argument("role")
@ledger_option
@as_json
def allow(role: str, which: Named, as_json: bool) -> None:
    """Let ROLE of PostgreSQL ask under its own name, and do nothing else.

    It may execute the functions of the protocol, and holds no right on any table. SQLite cannot tell one user from
    another.
    """
    with open_book(which, hold=False) as book:
        book.allow(role)
    if as_json:
        print_json({"allowed": role, "ledger": book.id})
    else:
        print_rows([("allowed", role), ("ledger", book.id)])


def _entries(book: Ledger, until: int, after: int = 0) -> list[Entry]:
    """The entries up to a head that was read before: others may write meanwhile."""
    return list(itertools.takewhile(lambda entry: entry.seq <= until, book.entries(after)))


def _print_releases(lines: list[Line]) -> None:
    """A line per release; where nobody said what for, that column leaves its room to others.

    What several budgets have left stands under its release, a line for each, where there is no room for it beside.
    """
    columns = {
        "when": [line.at[:16] for line in lines],
        "who": [line.analyst for line in lines],
        "what for": [line.purpose for line in lines],
        "question": [line.short for line in lines],
        "price": [line.price for line in lines],
        "left": [line.room for line in lines],
    }
    if lines and not any(columns["what for"]):
        del columns["what for"]
    rows = list(zip(*columns.values(), strict=True))
    left = [[f"left of {name}: {room}" for name, room in line.left.items()] for line in lines]
    several = any(len(line.left) > 1 for line in lines)
    print_table(tuple(columns), rows, whole="when", cut="question", below=left if several else None)


def _line(entry: Entry) -> tuple[str, ...]:
    return str(entry.seq), entry.at[:16], entry.kind, entry.operation or "", entry.analyst or "", _words(entry)


def _words(entry: Entry) -> str:
    """What an entry says, in a line; a book that was tampered with is still shown."""
    try:
        words = WORDS[entry.kind](entry.record)
    except (SitrError, KeyError, TypeError, AttributeError):
        return "cannot be read: sitr ledger verify"
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 3]}..."


def _budget_words(record: dict[str, Any]) -> str:
    from ..ledger.keeper import Keeper

    promise = Keeper.from_json(record["definition"]).budget
    reason = f"; {record['reason']}" if "reason" in record else ""
    return f"{record['name']}: {promise}{reason}"


def _terms_words(record: dict[str, Any]) -> str:
    said = [*([record["reason"]] if "reason" in record else []), *record["changes"]]
    by = f"{record['name']}, by {record['declaration']} version {record['version']}"
    return f"{by}: {'; '.join(said)}" if said else by


def _migrate_words(record: dict[str, Any]) -> str:
    joined = f"; a filter on pure ε joins those of {', '.join(record['joined'])}" if "joined" in record else ""
    return f"from form {record['from']} to {record['to']}{joined}"


def _charge_words(record: dict[str, Any]) -> str:
    from ..accounting import Event
    from ..accounting.notation import event_text

    return f"{', '.join(record['budgets'])}: {event_text(Event.from_dict(record['event']))}"


WORDS: dict[str, Callable[[dict[str, Any]], str]] = {
    "open": lambda record: f"by sitr {record['sitr']}",
    "migrate": _migrate_words,
    "budget": _budget_words,
    "raise": _budget_words,
    "replace": _budget_words,
    "declare": _terms_words,
    "reserve": _charge_words,
    "start": lambda record: "",
    "commit": lambda record: f"{record['bytes']} bytes of {record['media']}",
    "refund": lambda record: str(record["reason"]),
    "outside": lambda record: f"{record['name']}: {record['what']} ({record['notion']}; {record['reason']})",
}


def _verified(book: Ledger, anchor: Path | None) -> Verification:
    """Verify with a progress bar on standard error if that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("entries", total=book.head.seq)
        return book.verify(anchor=anchor, progress=lambda seq: bar.update(task, completed=seq))


def _verification_record(found: Verification) -> dict[str, Any]:
    spent = {name: {"share": cost, "delta_share": delta} for name, (cost, delta) in found.spent.items()}
    about = dataclasses.asdict(found) | {"head": head_record(found.head), "spent": spent}
    return about | {"remarks": list(found.remarks), "others": list(found.others)}


def _verification_rows(found: Verification, anchored: bool) -> list[tuple[str, str]]:
    rows = [("verdict", f"valid: {found.head.seq} entries" if found.valid else f"NOT VALID: {found.problem}")]
    rows += [("bad entry", str(found.bad_entry))] if found.bad_entry is not None else []
    rows += [("also", other) for other in found.others]
    rows += [("ledger", found.ledger), ("head", str(found.head)), ("anchor", found.anchored)]
    rows += [("note", PROVES)] if anchored else []
    so_far = "" if found.valid else ", by the entries that hold"
    for name, (cost, delta) in found.spent.items():
        parts = f"; δ part: {percent(delta, spent=True)}" if delta else ""
        first = f"{'ε part: ' if delta else ''}{percent(cost, spent=True)}"
        rows.append(("spent", f"{name}: {first} of the budget{parts}{so_far}"))
    return rows + [("remark", remark) for remark in found.remarks]


def _json(about: dict[str, Any], what: str, records: Sequence[Entry | Line]) -> str:
    document = {**about, what: [record.to_dict() for record in records]}
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _csv(ledger: str, entries: list[Entry]) -> str:
    lines = io.StringIO(newline="")
    writer = csv.writer(lines)
    writer.writerow(COLUMNS)
    for entry in entries:
        cells = [ledger, *(getattr(entry, column) for column in COLUMNS[1:])]
        writer.writerow([_harmless("" if cell is None else str(cell)) for cell in cells])
    return lines.getvalue()


def _csv_of_releases(ledger: str, releases: list[Line]) -> str:
    lines = io.StringIO(newline="")
    writer = csv.writer(lines)
    writer.writerow(("ledger", *RELEASE))
    for line in releases:
        record = line.to_dict() | {"left": line.room}
        cells = [ledger, *(_cell(record[name]) for name in RELEASE)]
        writer.writerow([_harmless(cell) for cell in cells])
    return lines.getvalue()


def _cell(value: Any) -> str:
    return "" if value is None else ", ".join(value) if isinstance(value, list) else str(value)


def _harmless(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULAS) else cell

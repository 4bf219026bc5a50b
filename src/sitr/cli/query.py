"""`sitr query`: a question in SQL, its bill, and the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from ..display import counted, reckoned, rounded_down, scientific
from ..errors import BudgetExceeded, LedgerError, NotPermitted, UnknownName
from .declared import asked, asking_options, declaration_argument, open_declared, sql_options, sql_text
from .output import as_json, cost_text, on_terminal, print_json, print_table
from .words import in_options, speaking_options

if TYPE_CHECKING:
    from ..ledger import Standing
    from ..query.answer import Answer
    from ..query.explanation import Explanation
    from ..session.database import Database
    from ..session.question import Question

SHOWN = 200  # rows in a terminal; a file has all


@click.command(short_help="Ask a question in SQL: see the bill, then pay it.")
@declaration_argument
@sql_options
@asking_options
@click.option("--operation", help="An id: asked again under it, the same answer comes again for nothing.")
@click.option("--purpose", help="What for; a budget for that purpose is charged as well.")
@click.option("--yes", is_flag=True, help="Spend without being asked; needed where there is no terminal.")
@click.option("--csv", "csv", type=click.Path(dir_okay=False), help="Write the table to this new file; - prints it.")
@as_json
@speaking_options()
def query(
    declaration: Path,
    sql: str | None,
    file: Path | None,
    epsilon: float | None,
    delta: float | None,
    rho: float | None,
    analyst: str | None,
    anchor: Path | None,
    operation: str | None,
    purpose: str | None,
    yes: bool,
    csv: str | None,
    as_json: bool,
    **bounds: int | None,
) -> None:
    """Ask SQL, and pay for it: the bill is shown, and nothing is spent before you say so.

    SQL is a question such as "SELECT region, COUNT(*) AS n FROM visits GROUP BY region", or - for standard input.
    """
    from ..query.remarks import unshared

    if csv == "-" and as_json:
        raise click.UsageError("CSV and JSON cannot both go to standard output: name a file with --csv.")
    if not yes and not on_terminal():
        raise click.UsageError("There is no terminal to confirm on: add --yes to spend without being asked.")
    text = sql_text(sql, file)
    price: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rho": rho}
    with open_declared(declaration, analyst, anchor) as database:
        question = asked(database, text, bounds)
        for remark in unshared(question.query, database.declared, purpose):
            click.echo(remark, err=True)
        bill = None if _answered(database, operation) else question.explain(**price)
        if bill is not None and not yes:
            _confirm(question, bill, price, purpose)
        with _file(csv) as write, _progress() as progress:
            answer = question.release(**price, operation=operation, purpose=purpose, progress=progress)
            write(answer)
        standings = _standings(question, purpose)
    answer = replace(answer, notes=tuple(map(in_options, answer.notes)))
    _tell(answer, bill, standings, csv, as_json)


def _answered(database: Database, operation: str | None) -> bool:
    """Whether the ledger has the answer: it costs nothing, or is another request, which is refused."""
    if operation is None:
        return False
    try:
        database.ledger.answer(operation, analyst=database.analyst)
    except (UnknownName, NotPermitted):
        return False
    return True


def _confirm(question: Question, bill: Explanation, price: dict[str, Any], purpose: str | None) -> None:
    """Show the bill, and ask."""
    from ..query.explanation import NO_FIT

    click.echo(f"{replace(bill, notes=tuple(map(in_options, bill.notes)))}\n", err=True)
    forecast = question.forecast(purpose=purpose)
    for name, (left, after) in forecast.remaining(bill.plan.event).items():
        if after == NO_FIT:
            raise BudgetExceeded(
                f"budget {name!r}: {_price(bill)} does not fit into what is left, {left}.",
                why="a promise is kept by stopping before it would break. Nothing was spent.",
                do=forecast.advice(bill.target),
            )
    before = question.asked_before(**price, purpose=purpose)
    if before is not None:
        click.echo(f"The same was answered before: --operation {before} returns that answer for nothing.", err=True)
    left = "; ".join(_left(name, room) for name, room in forecast.rooms.items())
    if not click.confirm(f"Spend {_price(bill)}? {left} left", err=True):
        click.echo("Nothing was spent.", err=True)
        raise click.exceptions.Exit(1)


def _price(bill: Explanation) -> str:
    if bill.target.epsilon is None:
        return f"ρ = {bill.target.rho:g}"
    return f"ε = {bill.target.epsilon:g}{f' at δ = {scientific(bill.target.delta)}' if bill.plan.spends_delta else ''}"


def _left(name: str, room: Standing) -> str:
    from ..ledger.left import shares_text

    left = room.remaining
    plain = left.measure in ("epsilon", "rho") and left.delta_share is None
    amount = rounded_down(reckoned(left.value, spent=False)) if plain else shares_text(left, spent=False)
    return f"{amount} of {room.budget.promise} ({name})"


def _standings(question: Question, purpose: str | None) -> dict[str, Standing]:
    """How each budget stands; what was paid for is told even if the ledger does not say."""
    try:
        return question.forecast(purpose=purpose).rooms
    except LedgerError:
        return {}


@contextmanager
def _file(csv: str | None) -> Iterator[Callable[[Answer], None]]:
    """A new file, made before anything is spent; it is removed again where no answer comes."""
    from ..ledger.disk import owner_only

    if csv is None or csv == "-":
        yield lambda answer: None
        return
    path = Path(csv)
    try:
        file = open(path, "x", encoding="utf-8", newline="", opener=owner_only)  # noqa: SIM115  # closed below
    except FileExistsError:
        raise click.ClickException(f"{path} is there already; nothing was overwritten, and nothing spent.") from None
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}. Nothing was spent.") from None
    try:
        with file:
            yield lambda answer: _write(file, answer)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _write(file: IO[str], answer: Answer) -> None:
    try:
        file.write(answer.to_csv())
        file.flush()
    except OSError as error:
        raise click.ClickException(
            f"cannot write {file.name}: {error.strerror}. The ledger has the answer: "
            f"ask again for nothing, with --operation {answer.operation}."
        ) from None


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """The stage and the seconds, on standard error if that is a terminal; nothing about the data."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("planning", total=None)
        yield lambda stage: bar.update(task, description=stage)


def _tell(
    answer: Answer, bill: Explanation | None, standings: dict[str, Standing], csv: str | None, as_json: bool
) -> None:
    from ..ledger.left import shares_text
    from ..query.cells import cells

    if as_json:
        left = {name: _left_record(room) for name, room in standings.items()}
        print_json(_record(answer) | _spent(answer, bill) | {"remaining": left} | ({"file": csv} if csv else {}))
        return
    if csv == "-":
        click.echo(answer.to_csv(), nl=False)
    elif csv is not None:
        click.echo(csv)
    else:
        head, rows = cells(answer, SHOWN)
        print_table(head, rows, numbers=len(head) - len(answer.keys))
        if len(answer) > SHOWN:
            more = counted(len(answer) - SHOWN, "more row")
            click.echo(f"… {more}: ask again under this operation with --csv.", err=True)
    for note in answer.notes:
        click.echo(note, err=True)
    said = [f"It cost {cost_text(bill)}"] if bill is not None and not answer.kept else []
    now = [
        f"{shares_text(room.remaining, spent=False)} of the budget {name} is left" for name, room in standings.items()
    ]
    said += answer.left or now
    click.echo("; ".join([*said, answer.charged, f"operation {answer.operation}"]), err=True)


def _left_record(room: Standing) -> dict[str, float | None]:
    return {"share": room.remaining.share, "delta_share": room.remaining.delta_share}


def _spent(answer: Answer, bill: Explanation | None) -> dict[str, Any]:
    """What this release cost; a kept answer costs nothing."""
    if answer.kept:
        return {"epsilon": 0.0, "delta": 0.0, "rho": 0.0}
    if bill is None:
        return {"epsilon": None, "delta": None, "rho": None}
    target = bill.target
    return {"epsilon": target.epsilon, "delta": bill.plan.delta_of(target), "rho": target.rho}


def _record(answer: Answer) -> dict[str, Any]:
    return {
        "columns": {name: [_plain(cell) for cell in cells] for name, cells in answer.columns.items()},
        "keys": list(answer.keys),
        "raw": {name: list(cells) for name, cells in answer.raw.items()},
        "event": answer.event.to_dict(),
        "notes": list(answer.notes),
        "entry": answer.entry,
        "operation": answer.operation,
        "kept": answer.kept,
        "time": answer.time.isoformat(),
        "version": answer.version,
    }


def _plain(cell: Any) -> Any:
    return cell if cell is None or isinstance(cell, (bool, int, float, str)) else str(cell)

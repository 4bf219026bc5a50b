"""`sitr query`: a question in SQL, its bill, and the answer."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from ..display import counted, scientific
from ..errors import AccuracyWarning, InvalidArgument
from .declared import asked, asking_options, declaration_argument, open_declared, sql_options, sql_text
from .explain import check_one_price, parsed_error
from .output import as_json, cost_text, print_json, print_table
from .payment import check_terminal, confirm, is_answered, new_file, paying_options, progress_bar, standings, writing
from .words import in_options, speaking_options

if TYPE_CHECKING:
    from ..ledger import Standing
    from ..query.answer import Answer
    from ..query.explanation import Explanation
    from ..session.question import Question

SHOWN = 200  # rows in a terminal; a file has all


@click.command(short_help="Ask a question in SQL: see the bill, then pay it.")
@declaration_argument
@sql_options
@asking_options
@paying_options
@click.option("--anyway", is_flag=True, help="Spend even if the answer is known beforehand to be useless.")
@click.option("--error", help="Spend what this error takes: 500, or 5% of the declared size, for counts.")
@click.option(
    "--picture", type=click.Path(dir_okay=False, path_type=Path), help="Draw it into this new .svg or .png file."
)
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
    anyway: bool,
    error: str | None,
    picture: Path | None,
    csv: str | None,
    as_json: bool,
    **bounds: int | None,
) -> None:
    """Ask SQL, and pay for it: the bill is shown, and nothing is spent before you say so.

    SQL is a question such as "SELECT region, COUNT(*) AS n FROM visits GROUP BY region", or - for standard input.
    """
    from ..query.remarks import unshared
    from ..session.prices import Prices

    if csv == "-" and as_json:
        raise click.UsageError("CSV and JSON cannot both go to standard output: name a file with --csv.")
    check_one_price(epsilon, rho, error)
    check_terminal(yes)
    if picture is not None:
        _check_picture(picture)
    text = sql_text(sql, file)
    price: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "rho": rho, **parsed_error(error)}
    with open_declared(declaration, analyst, anchor) as database:
        question = asked(database, text, bounds)
        for remark in unshared(question.query, database.declared, purpose):
            click.echo(remark, err=True)
        bill = None if is_answered(database, operation) else question.explain(**price)
        if isinstance(bill, Prices):
            raise click.UsageError(f"Say how much to spend: --epsilon, --rho or --error.\n\n{in_options(str(bill))}")
        if bill is not None and not yes:
            _confirm(question, bill, price, purpose)
        with _picture(picture) as draw:
            with _file(csv) as write, progress_bar() as progress, warnings.catch_warnings():
                warnings.simplefilter("ignore", AccuracyWarning)  # it is among the notes of the answer
                answer = question.release(
                    **price, operation=operation, purpose=purpose, progress=progress, anyway=anyway
                )
                write(answer)
            draw(answer)  # the table stays in its file, whatever becomes of the picture
        rooms = standings(question, purpose)
    answer = replace(answer, notes=tuple(map(in_options, answer.notes)))
    _tell(answer, bill, rooms, csv, as_json, picture)


def _confirm(question: Question, bill: Explanation, price: dict[str, Any], purpose: str | None) -> None:
    """Show the bill, and ask."""
    click.echo(f"{replace(bill, notes=tuple(map(in_options, bill.notes)))}\n", err=True)
    target = {"epsilon": bill.target.epsilon, "delta": price["delta"], "rho": bill.target.rho}
    before = question.asked_before(**target, purpose=purpose)
    confirm(question, bill.plan.event, bill.target, _price(bill), purpose, before)


def _price(bill: Explanation) -> str:
    if bill.target.epsilon is None:
        return f"ρ = {bill.target.rho:g}"
    return f"ε = {bill.target.epsilon:g}{f' at δ = {scientific(bill.target.delta)}' if bill.plan.spends_delta else ''}"


@contextmanager
def _file(csv: str | None) -> Iterator[Callable[[Answer], None]]:
    """A new file for the answer, if one was named."""
    if csv is None or csv == "-":
        yield lambda answer: None
        return
    with new_file(csv) as file:
        yield lambda answer: _write(file, answer)


def _write(file: IO[str], answer: Answer) -> None:
    with writing(file, answer.operation):
        file.write(answer.to_csv())


def _check_picture(path: Path) -> None:
    """Refuse what cannot be drawn, before anything is spent."""
    from ..pictures import format_of, require_matplotlib

    format_of(path)
    require_matplotlib()


@contextmanager
def _picture(path: Path | None) -> Iterator[Callable[[Answer], None]]:
    """A new file for the picture, if one was named."""
    if path is None:
        yield lambda answer: None
        return
    with new_file(path, "xb") as file:
        yield lambda answer: _draw(file, path, answer)


def _draw(file: IO[bytes], path: Path, answer: Answer) -> None:
    """Draw what was paid for; if it cannot be drawn, that is said, and the answer is told all the same."""
    from ..pictures import format_of

    try:
        with writing(file, answer.operation):
            answer.plot().write(file, format_of(path))
    except click.ClickException:  # the file cannot be written
        raise
    except Exception as error:  # of matplotlib too, which has years to 9999 alone
        why = error.what if isinstance(error, InvalidArgument) else f"it cannot be drawn ({type(error).__name__})."
        click.echo(f"No picture was made: {why}", err=True)
        path.unlink(missing_ok=True)


def _tell(
    answer: Answer,
    bill: Explanation | None,
    rooms: dict[str, Standing],
    csv: str | None,
    as_json: bool,
    picture: Path | None,
) -> None:
    from ..ledger.left import shares_text
    from ..query.cells import cells

    drawn = {"picture": str(picture)} if picture is not None and picture.exists() else {}
    if as_json:
        left = {name: _left_record(room) for name, room in rooms.items()}
        print_json(
            _record(answer) | _spent(answer, bill) | {"remaining": left} | ({"file": csv} if csv else {}) | drawn
        )
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
    if drawn and csv != "-":
        click.echo(drawn["picture"])
    for note in answer.notes:
        click.echo(note, err=True)
    said = [f"It cost {cost_text(bill)}"] if bill is not None and not answer.kept else []
    now = [f"{shares_text(room.remaining, spent=False)} of the budget {name} is left" for name, room in rooms.items()]
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

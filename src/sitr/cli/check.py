"""`sitr check`: what of the rows does not fit the declaration, counted for the owner; NOT PRIVATE."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .book import anchor_option
from .declared import declaration_argument, opened_by_owner
from .output import as_json, print_json, print_table
from .payment import check_terminal, progress_bar

if TYPE_CHECKING:
    from ..session.misfits import Check

NOT_NOTED = "The ledger is not begun, so nothing is noted."


@click.command(short_help="Count what does not fit: NOT PRIVATE.")
@declaration_argument
@click.option("--yes", is_flag=True, help="Count without being asked; needed where there is no terminal.")
@click.option("--reason", help="Why; it stays in the book.")
@anchor_option
@as_json
def check(declaration: Path, yes: bool, reason: str | None, anchor: Path | None, as_json: bool) -> None:
    """Count, for the owner of the data, what of the rows does not fit DECLARATION. The counts are NOT PRIVATE.

    They are exact, and are for whoever may see the rows themselves: cells that do not parse, lines that are left out,
    values outside bounds and categories, units with too many rows, keys that lead nowhere. No value is shown. Once the
    book is begun, it notes each check as outside the promise.
    """
    from ..session.misfits import REASON, check

    check_terminal(yes, "count")
    with opened_by_owner(declaration, anchor) as (source, ledger):
        if not yes:
            _confirm(list(source.declared.tables), noted=ledger is not None)
        with progress_bar() as progress:
            by = getpass.getuser()
            found = check(source, ledger, analyst=by, reason=reason or REASON, progress=progress)
    if as_json:
        print_json(found.to_dict())
    else:
        _show(found)
    if found.noted:
        click.echo(f"Noted in the book, as outside the promise of {', '.join(found.noted)}.", err=True)
    elif ledger is None:
        click.echo(NOT_NOTED, err=True)


def _confirm(tables: list[str], *, noted: bool) -> None:
    """Ask before a row is read."""
    book = "The book notes it, as outside its promise." if noted else NOT_NOTED
    click.echo(
        f"Every row of {', '.join(tables)} is read and counted exactly. The counts are NOT PRIVATE. {book}", err=True
    )
    if not click.confirm("Count?", err=True):
        click.echo("Nothing was read.", err=True)
        raise click.exceptions.Exit(1)


def _show(found: Check) -> None:
    from ..session.misfits import COLUMNS, PROFILE, PUBLISHED, STAMP, column_rows, remarks

    click.echo(f"{STAMP}\n{PUBLISHED}")
    for one in found.tables:
        click.echo("\n" + "\n".join(remarks(one, found.unit)))
        print_table(("column", *COLUMNS), column_rows(one), numbers=len(COLUMNS))
    click.echo(PROFILE)

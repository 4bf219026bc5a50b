"""How commands name a ledger and a budget in it, and how they open it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .output import as_json

if TYPE_CHECKING:
    from ..ledger import Head, Ledger

Command = TypeVar("Command", bound=Callable[..., Any])

VARIABLE = "SITR_LEDGER"
EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def _address(context: click.Context, parameter: click.Parameter, value: str | None) -> str:
    """A path is a file of SQLite; what stands for no book at all is refused, unless a declaration names one."""
    if context.params.get("declaration") is not None:
        if context.get_parameter_source("url") == click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError("Name a declaration or a ledger: a declaration names its own.")
        return ""
    if not value:
        raise click.UsageError(
            f"Say which ledger: --ledger book.db, --ledger postgresql://user@host/database, or set {VARIABLE}."
        )
    if value.startswith("memory:"):
        raise click.UsageError("A ledger in memory is gone when the command ends: name a file, --ledger book.db.")
    return value if "://" in value else f"sqlite:///{value}"


def together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator, in their order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


ledger_option = click.option(
    "--ledger",
    "url",
    metavar="URL",
    envvar=VARIABLE,
    show_envvar=True,
    callback=_address,
    help="The book: a file such as book.db, or postgresql://user@host/database.",
)
anchor_option = click.option(
    "--anchor",
    type=EXISTING_FILE,
    help="Hold the book to this anchor first; what the command writes is added to it.",
)
book_options = together(ledger_option, anchor_option, as_json)
name_options = together(
    click.argument("name"),
    click.option("--analyst", help="The share of this analyst, within the budget of the dataset."),
    click.option("--purpose", help="The share of this purpose, within the budget of the dataset."),
)
limit_options = together(
    click.option("--epsilon", type=float, help="The limit on ε."),
    click.option("--delta", type=float, help="The limit on δ; without it a limit on ε is pure."),
    click.option("--rho", type=float, help="The limit on ρ of zero-concentrated privacy, in place of ε."),
)


def open_book(url: str, anchor: Path | None = None, *, create: bool = False) -> Ledger:
    """Open a ledger for a `with` block; a new one is begun only where that is asked for."""
    from ..ledger import Ledger

    return Ledger.open(url, create=create, anchor=anchor)


def named(name: str, analyst: str | None = None, purpose: str | None = None) -> tuple[str, dict[str, str | None]]:
    """Return the dataset of a budget and whose share it is; a share may also be named as lists print it.

    Example:
        >>> named("clinic/analyst/amina")
        ('clinic', {'analyst': 'amina', 'purpose': None})
    """
    from ..ledger.budget import key

    holders = {"analyst": analyst, "purpose": purpose}
    dataset, *share = name.split("/", 2)
    if len(share) == 2 and share[0] in holders and holders[share[0]] is None:
        name, holders[share[0]] = dataset, share[1]
    key(name, **holders)  # refuses what is no name, before anything is opened
    return name, holders


def head_record(head: Head) -> dict[str, Any]:
    """Return the end of a book as JSON holds it.

    Example:
        >>> from sitr.ledger import Head
        >>> head_record(Head(41, "9f"))
        {'seq': 41, 'hash': '9f'}
    """
    return {"seq": head.seq, "hash": head.hash}

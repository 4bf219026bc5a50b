"""How commands name a ledger and a budget in it, and how they open it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from ..errors import InvalidDeclaration
from .output import as_json

if TYPE_CHECKING:
    from ..ledger import Head, Ledger

Command = TypeVar("Command", bound=Callable[..., Any])

VARIABLE = "SITR_LEDGER"
BY_PLACE = "sitr.book"  # where a book that is named by its place in the command waits for the option
EXISTING_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class Named(NamedTuple):
    """A book, as a path, an address or a declaration names it.

    Attributes:
        url: Where it is.
        expect: The id that it must have, where a declaration says it.
        anchor: The declared anchor.
        answers: The folder of large answers, where a declaration says it.
        declared: Whether a declaration names it.
    """

    url: str
    expect: str | None = None
    anchor: Path | None = None
    answers: Path | None = None
    declared: bool = False


def named_book(name: str) -> Named:
    """Return the book that is meant by a declaration (.toml), a path or an address.

    Raises:
        InvalidDeclaration: The declaration names no book, or one that is not begun.

    Example:
        >>> named_book("book.db").url
        'sqlite:///book.db'
    """
    if "://" in name:
        return Named(name)
    if not name.lower().endswith(".toml"):
        return Named(f"sqlite:///{name}")
    return _declared(Path(name))


def _declared(path: Path) -> Named:
    from ..session.database import declared_anchor, declared_answers, ledger_url
    from ..tables.declaration import Declaration

    declared = Declaration.read(path)
    if declared.ledger is None:
        raise InvalidDeclaration(
            f"{path} is a declaration without a ledger.",
            why="a release is charged to it.",
            do=f'write a section [ledger] with a line url = "book.db" into it, and run: {begins(path)}.',
        )
    if declared.ledger_id is None:
        raise not_begun(path)
    about = (declared.ledger_id, declared_anchor(declared), declared_answers(declared))
    return Named(ledger_url(declared), *about, declared=True)


def not_begun(declaration: Path) -> InvalidDeclaration:
    """The refusal of a declaration whose book is not begun."""
    what, do = f"the ledger of {declaration} is not begun.", f"{begins(declaration)} makes it."
    return InvalidDeclaration(what, why="a release is charged to it.", do=do)


def begins(declaration: Path) -> str:
    """The command that begins the book of a declaration.

    Example:
        >>> begins(Path("clinic.toml"))
        'sitr budget begin clinic.toml'
    """
    return f"sitr budget begin {shlex.quote(str(declaration))}"


def _named(context: click.Context, parameter: click.Parameter, value: str | None) -> Named:
    """What stands for no book at all is refused; one that is named by its place in the command goes first."""
    placed = context.meta.pop(BY_PLACE, None)
    if placed is not None and context.get_parameter_source("which") == click.core.ParameterSource.COMMANDLINE:
        raise click.UsageError("Name the book once: by its place, or by --ledger.")
    value = placed or value
    if not value:
        raise click.UsageError(
            "Say which ledger: --ledger book.db, --ledger clinic.toml, --ledger postgresql://user@host/database, or "
            f"set {VARIABLE}."
        )
    if value.startswith("memory:"):
        raise click.UsageError("A ledger in memory is gone when the command ends: name a file, --ledger book.db.")
    return named_book(value)


def _placed(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    context.meta[BY_PLACE] = value


def _budget_name(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """A book, or a declaration, in the place of a budget is told how it is named."""
    if value.lower().endswith(".toml") or "://" in value or Path(value).is_file():
        raise click.UsageError(f"That is no budget. {_budgets_of(value)}Name the book by --ledger {value}.")
    return value


def together(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options as one decorator, in their order."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


ledger_option = click.option(
    "--ledger",
    "which",
    metavar="BOOK",
    envvar=VARIABLE,
    show_envvar=True,
    callback=_named,
    help="The book: a declaration such as clinic.toml, a file such as book.db, or postgresql://user@host/database.",
)
# For commands that take nothing else by place.
book_argument = click.argument(
    "placed", metavar="[BOOK]", required=False, is_eager=True, expose_value=False, callback=_placed
)
anchor_option = click.option(
    "--anchor",
    type=EXISTING_FILE,
    help="Hold the book to this anchor first; what the command writes is added to it.",
)
book_options = together(ledger_option, anchor_option, as_json)
name_options = together(
    click.argument("name", is_eager=True, callback=_budget_name),
    click.option("--analyst", help="The share of this analyst, within the budget of the dataset."),
    click.option("--purpose", help="The share of this purpose, within the budget of the dataset."),
)
limit_options = together(
    click.option("--epsilon", type=float, help="The limit on ε."),
    click.option("--delta", type=float, help="The limit on δ; without it ε is pure, and a share has its dataset's."),
    click.option("--rho", type=float, help="The limit on ρ of zero-concentrated privacy, in place of ε."),
)


def open_book(book: Named, anchor: Path | None = None, *, create: bool = False, hold: bool = True) -> Ledger:
    """Open a ledger for a `with` block.

    Args:
        book: Which one.
        anchor: What it is held to; the declared one unless told.
        create: Whether to begin a new one where there is none; that of a declaration is begun by its own command.
        hold: Whether it is held to an anchor at all.
    """
    from ..ledger import Ledger

    held = (anchor or book.anchor) if hold else None
    make = create and not book.declared
    return Ledger.open(book.url, create=make, expect=book.expect, anchor=held, answers=book.answers)


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


def _budgets_of(name: str) -> str:
    """Which budgets a declaration has, where it is one, for a message."""
    from ..tables.declaration import Declaration

    try:
        declared = ", ".join(Declaration.read(name).budgets)
    except InvalidDeclaration:
        return ""
    return f"Budgets of this declaration: {declared}. "


def head_record(head: Head) -> dict[str, Any]:
    """Return the end of a book as JSON holds it.

    Example:
        >>> from sitr.ledger import Head
        >>> head_record(Head(41, "9f"))
        {'seq': 41, 'hash': '9f'}
    """
    return {"seq": head.seq, "hash": head.hash}

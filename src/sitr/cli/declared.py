"""How commands name a declaration, a question in SQL and its price, and how they open what is declared."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..errors import InvalidDeclaration
from .book import anchor_option, begins, not_begun, together

if TYPE_CHECKING:
    from ..ledger import Ledger
    from ..session.database import Database
    from ..session.question import Question
    from ..tables.source import Source

NO_DECLARATIONS = (
    (0, b"SQLite format 3", "a file of SQLite, as books are"),
    (8, b"DUCK", "a DuckDB database"),
    (0, b"PAR1", "a Parquet file"),
)
LONGEST = 200_000  # characters of a question, as `query.sql` has it


class DeclarationFile(click.Path):
    """The file of a declaration; a book, or a database, that is named in its place is told by what it is."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Path:
        """Return its path."""
        from ..ledger.lookalikes import close_to

        path = Path(value)
        if not path.is_file():
            close = close_to(path)
            self.fail(f"File {str(value)!r} does not exist.{f' Did you mean {close}?' if close else ''}")
        check_is_declaration(path)
        return path


def check_is_declaration(path: Path) -> None:
    """Refuse a file that is plainly something else.

    Raises:
        InvalidDeclaration: It is a database.
    """
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError:  # whoever reads it says so
        return
    for place, sign, what in NO_DECLARATIONS:
        if head[place:].startswith(sign):
            raise InvalidDeclaration(
                f"{path} is {what}, not a declaration.",
                do="name the TOML file in which the owner says what may be asked; sitr init drafts one.",
            )


declaration_argument = click.argument("declaration", type=DeclarationFile())
sql_options = together(
    click.argument("sql", required=False),
    click.option("--file", type=click.Path(dir_okay=False, path_type=Path), help="Read the SQL from this file."),
)
asking_options = together(
    click.option("--epsilon", type=float, help="The ε of the release, in all."),
    click.option("--delta", type=float, help="With --epsilon: its δ; the declared one unless told."),
    click.option("--rho", type=float, help="The ρ of the release, in place of ε."),
    click.option("--analyst", help="Who asks; the user of the operating system unless told."),
    click.option("--max-rows-per-unit", type=click.IntRange(1), help="Keep so many rows of a unit at most."),
    click.option("--max-groups-per-unit", type=click.IntRange(1), help="Keep a unit in so many groups at most, with"),
    click.option("--max-rows-per-group", type=click.IntRange(1), help="so many of its rows in each of them."),
    anchor_option,
)


def sql_text(sql: str | None, file: Path | None) -> str:
    """Return the question, from the command line, a file, or standard input where that is said."""
    if (sql is None) == (file is None):
        raise click.UsageError('Ask one question: "SELECT ...", --file question.sql, or - for standard input.')
    if file is not None:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise click.UsageError(f"{file} cannot be read as text.") from None
    else:
        text = sys.stdin.read(LONGEST + 1) if sql == "-" else str(sql)
    if not text.strip() or len(text) > LONGEST:
        raise click.UsageError(f"A question has 1 to {LONGEST} characters.")
    return text


def open_declared(
    declaration: Path, analyst: str | None, anchor: Path | None = None, *, explaining: bool = False
) -> Database:
    """Open a database for a `with` block; to explain, a book that is not begun yet may be stood in for."""
    from ..session.database import open
    from ..tables.declaration import Declaration

    declared = Declaration.read(declaration)
    if declared.ledger_id is not None:
        return open(declared, analyst=analyst, anchor=anchor)
    if not explaining:
        raise not_begun(declaration)
    click.echo(f"The ledger is not begun: budgets are shown as declared. {begins(declaration)} makes it.", err=True)
    return open(declared, analyst=analyst, ledger="memory://")


@contextmanager
def opened_by_owner(declaration: Path, anchor: Path | None = None) -> Iterator[tuple[Source, Ledger | None]]:
    """Open the declared tables, and their book if it is begun, for their owner, who need not be one who may ask."""
    from ..session.database import connect, declared_book
    from ..session.terms import found_tables, hold_to_terms
    from ..tables.declaration import Declaration

    declared = Declaration.read(declaration)
    with ExitStack() as stack:
        begun = declared.ledger_id is not None
        ledger = stack.enter_context(declared_book(declared, anchor)) if begun else None
        source = connect(declared)
        stack.callback(source.close)
        source.check()
        if ledger is not None:
            for remark in hold_to_terms(declared, ledger, found_tables(source)):
                click.echo(remark, err=True)
        yield source, ledger


def asked(database: Database, text: str, bounds: Mapping[str, int | None]) -> Question:
    """Return the question, with the bounds that were asked for."""
    question = database.sql(text)
    return question if set(bounds.values()) == {None} else question.bounded(**bounds)

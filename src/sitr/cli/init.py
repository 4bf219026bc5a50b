"""`sitr init`: the draft of a declaration, from a schema; no value is read."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..display import counted
from .output import as_json, on_terminal, print_json, print_rows, write_new

if TYPE_CHECKING:
    from ..tables.draft import Draft


@click.command(short_help="Draft a declaration from a database or a file.")
@click.argument("declaration", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--from", "source", help="A file of DuckDB, a Parquet or CSV file, or postgresql://user@host/database.")
@click.option("--types", help="Of the columns of a CSV file: patient=integer,cost=float,region=string.")
@click.option("--name", help="Of the database; that of the file unless told.")
@click.option("--force", is_flag=True, help="Overwrite DECLARATION if it is there.")
@as_json
def init(
    declaration: Path, source: str | None, types: str | None, name: str | None, force: bool, as_json: bool
) -> None:
    """Draft DECLARATION, a TOML file in which an owner says what may be asked of a database.

    Tables, columns and types come from the schema; not one value is read. What only the owner knows is marked in the
    draft, and it cannot be opened before that is filled in.
    """
    if declaration.exists() and not force:
        raise click.UsageError(f"{declaration} is there already; --force overwrites it.")
    if _names_a_book(declaration):
        raise click.UsageError(
            f"{declaration} has the id of a ledger: to overwrite it would forget what was spent. Move it away yourself."
        )
    drafted = _drafted(declaration, source, types, name)
    if declaration.exists():
        _overwrite(declaration, drafted.text)
    else:
        write_new(declaration, drafted.text)
    if as_json:
        tables = {table.name: dict(table.columns) for table in drafted.tables}
        about = {"to_fill_in": list(drafted.places), "left_out": dict(drafted.refused)}
        print_json({"declaration": str(declaration), "tables": tables, **about})
        return
    print_rows(
        [
            ("draft", str(declaration)),
            *(("table", f"{table.name}: {counted(len(table.columns), 'column')}") for table in drafted.tables),
            *(("left out", f"{name}: the draft says why") for name in drafted.refused),
            *(("to fill in", _unless(place)) for place in drafted.places),
            ("then", f"sitr tables {declaration}, sitr check {declaration}, and sitr budget begin {declaration}"),
        ]
    )


def _unless(place: str) -> str:
    return f"{place}, unless each row is a unit" if place.endswith(".max_rows_per_unit") else place


def _names_a_book(declaration: Path) -> bool:
    """Whether the file is a declaration in use."""
    try:
        return bool(tomllib.loads(declaration.read_text(encoding="utf-8")).get("ledger", {}).get("id"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, AttributeError):
        return False


def _overwrite(declaration: Path, text: str) -> None:
    try:
        declaration.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"cannot write {declaration}: {error.strerror}.") from None


def _drafted(declaration: Path, source: str | None, types: str | None, name: str | None) -> Draft:
    from .. import _validate
    from ..tables.draft import TEXT_FILES, draft_of, example, header

    called = _validate.name("name", declaration.stem if name is None else name, without="/")
    if source is None:
        if types is not None:
            raise click.UsageError("--types are those of a CSV file: say which, --from visits.csv.")
        return example(called)
    given = None if types is None else parsed_types(types)
    path = Path(source)
    if given is None and source.lower().endswith(TEXT_FILES) and path.is_file() and on_terminal():
        given = {column: _asked(column) for column in header(path)}
    return draft_of(called, source, declaration.parent, given)


def _asked(column: str) -> str:
    from ..errors import InvalidArgument
    from ..tables.declaration import TYPES
    from ..tables.draft import checked_type

    def checked(text: str) -> str:
        try:
            return checked_type(column, text.strip())
        except InvalidArgument as error:
            raise click.UsageError(f"{error.what} {error.do}") from None

    click.echo(f"Types: {', '.join(TYPES)}.", err=True)
    return str(click.prompt(f"Type of {column}", value_proc=checked, err=True))


def parsed_types(text: str) -> dict[str, str]:
    """Return the type of each column; a comma inside parentheses parts nothing.

    Example:
        >>> parsed_types("cost=decimal(12, 2), region=string")
        {'cost': 'decimal(12, 2)', 'region': 'string'}
    """
    found: dict[str, str] = {}
    for part in re.split(r",(?![^(]*\))", text):
        name, equal, kind = part.rpartition("=")
        if not equal or not name.strip() or name.strip() in found:
            raise click.UsageError("--types are pairs, each column once: patient=integer,cost=float.")
        found[name.strip()] = kind.strip()
    return found

"""What commands print: JSON with exact values, and lines for people."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ..display import reckoned, rounded_down, rounded_up, scientific

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from ..accounting import Bracket
    from ..query.explanation import Explanation

HIGH_EPSILON = 5.0
BETWEEN = "   "  # what is between two columns of a table, and beside the first and the last
WIDE = 10**5  # characters of a line, where there is no terminal that would break it

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON with exact values.")


def print_json(record: dict[str, Any]) -> None:
    """Print a record; infinity is the string "inf", as in the records of events.

    Example:
        >>> print_json({"epsilon": float("inf")})
        {
          "epsilon": "inf"
        }
    """
    click.echo(json.dumps(_plain(record), indent=2, ensure_ascii=False, allow_nan=False))


def bracket_record(bracket: Bracket) -> dict[str, Any]:
    """Return a bracket as JSON holds it.

    Example:
        >>> from sitr.accounting import PureDP
        >>> bracket_record(PureDP(epsilon=0.5).epsilon(delta=0))
        {'lower': 0.5, 'upper': 0.5, 'method': 'largest loss'}
    """
    return {"lower": bracket.lower, "upper": bracket.upper, "method": bracket.method}


def print_rows(rows: list[tuple[str, str]]) -> None:
    """Print names and what is said of them, in two columns.

    Example:
        >>> print_rows([("count", "3"), ("rate", "0.1")])
        count  3
        rate   0.1
    """
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        click.echo(f"{name:<{width}}  {text}")


def print_table(
    columns: tuple[str, ...],
    rows: list[tuple[str, ...]],
    *,
    numbers: int = 0,
    whole: str | None = None,
    cut: str | None = None,
    below: Sequence[Sequence[str]] | None = None,
) -> None:
    """Print a table; what people wrote into it is printed as it is, and can do nothing to a terminal.

    On a narrow terminal cells are broken into lines. Where there is none, every row is one line.

    Args:
        columns: The head.
        rows: The cells.
        numbers: How many of the last columns stand on the right.
        whole: The column that is not broken, such as that of dates; unless it would take a third of the room.
        cut: The column that is cut where there is no room for it, in place of being broken.
        below: What stands under each row, in place of its last cell, where there is no room for all columns.

    Example:
        >>> print_table(("budget", "left"), [("clinic", "100 %")])
        <BLANKLINE>
          budget   left
         ────────────────
          clinic   100 %
        <BLANKLINE>
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDE
    rows = [tuple(map(_printable, row)) for row in rows]
    if below is not None and not _fits(columns, rows, console.width):
        _print_with_lines(console, columns[:-1], [row[:-1] for row in rows], whole, cut, below)
        return
    table = Table(box=box.SIMPLE_HEAD)
    for at, name in enumerate(columns):
        kept = name == whole and all(len(row[at]) <= console.width / 3 for row in rows)
        side: Literal["left", "right"] = "right" if at >= len(columns) - numbers else "left"
        table.add_column(name, overflow="fold", no_wrap=kept, justify=side)
    for row in rows:
        table.add_row(*_cells(columns, row, cut))
    console.print(table)


def _fits(columns: tuple[str, ...], rows: list[tuple[str, ...]], width: int) -> bool:
    return sum(_widths(columns, rows)) + len(BETWEEN) * len(columns) <= width


def _widths(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[int]:
    return [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]


def _cells(columns: tuple[str, ...], row: tuple[str, ...], cut: str | None) -> Iterator[Text | str]:
    from rich.text import Text

    # A column that wraps gives way to others: that its text is one line is said of the text, and not of the column.
    for name, cell in zip(columns, row, strict=True):
        yield Text(cell, no_wrap=True, overflow="ellipsis") if name == cut else cell


def _print_with_lines(
    console: Console,
    columns: tuple[str, ...],
    rows: list[tuple[str, ...]],
    whole: str | None,
    cut: str | None,
    below: Sequence[Sequence[str]],
) -> None:
    """Print a table with lines under each row; the column that is cut has the room that is left, a fifth at least."""
    from rich import box
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    widths = dict(zip(columns, _widths(columns, rows), strict=True))
    room = console.width - len(BETWEEN) * len(columns)
    room -= sum(widths[name] for name in columns if name == whole)
    others = sorted((name for name in columns if name not in (whole, cut)), key=lambda name: widths[name])
    kept = console.width // 5 if cut is not None else 0
    for at, name in enumerate(others):  # those that need little leave room to those that need more
        widths[name] = min(widths[name], max((room - kept) // (len(others) - at), 1))
        room -= widths[name]
    if cut is not None:
        widths[cut] = min(widths[cut], max(room, len(cut)), console.width // 2)
    console.print()
    for first, (row, lines) in enumerate(zip(rows, below, strict=True)):
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, show_header=not first)
        for name, wide in widths.items():
            table.add_column(name, overflow="fold", width=wide)
        table.add_row(*_cells(columns, row, cut))
        console.print(table)
        for line in lines:
            console.print(Padding(Text(_printable(line)), (0, 0, 0, 5)))
    console.print()


def on_terminal() -> bool:
    """Whether a person can be asked: both what is typed and what is said go through a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def write_new(path: Path, text: str) -> None:
    """Write a new file that only its owner may read, as the book itself."""
    from ..ledger.disk import owner_only

    try:
        with open(path, "x", encoding="utf-8", newline="", opener=owner_only) as f:
            f.write(text)
    except FileExistsError:
        raise click.ClickException(f"{path} is there already; nothing was overwritten.") from None
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}.") from None


def epsilon_text(bracket: Bracket, delta: float) -> str:
    """Say what ε is at a δ, rounded to the safe side.

    Example:
        >>> from sitr.accounting import Laplace
        >>> epsilon_text(Laplace(noise_multiplier=3).epsilon(delta=0), 0)
        'ε = 0.334 at δ = 0'
    """
    return f"ε = {rounded_up(reckoned(bracket.upper, spent=True))} at δ = {scientific(delta)}"


def cost_text(bill: Explanation) -> str:
    """Say what a release costs, rounded up; a δ only where it spends one."""
    target = bill.target
    if target.epsilon is None:
        return f"ρ = {rounded_up(target.rho or 0.0)}"
    return f"ε = {rounded_up(target.epsilon)}{f' at δ = {scientific(target.delta)}' if bill.plan.spends_delta else ''}"


def bracket_text(bracket: Bracket) -> str:
    """Say between which numbers the truth lies, and how they were found.

    Example:
        >>> from sitr.accounting import Gaussian
        >>> bracket_text(Gaussian(noise_multiplier=2).epsilon(delta=1e-6))
        'between 2.2540846 and 2.2540847, by closed form'
    """
    return f"between {rounded_down(bracket.lower, 8)} and {rounded_up(bracket.upper, 8)}, by {bracket.method}"


def warn_of_epsilon(bracket: Bracket, delta: float) -> None:
    """Say on standard error that an ε is true, but weaker than one may think."""
    if math.isinf(bracket.upper):
        _warn(f"no ε holds at δ = {scientific(delta)}: an infinite loss may be likelier than that.")
    elif bracket.upper > HIGH_EPSILON:
        _warn(f"{epsilon_text(bracket, delta)} is above {HIGH_EPSILON:g}: this guarantee holds, but it is weak.")


def _warn(text: str) -> None:
    click.echo(f"PrivacyWarning: {text}", err=True)


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in text)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(v) for name, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return "inf" if isinstance(value, float) and math.isinf(value) else value

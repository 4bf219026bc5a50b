"""What commands print: JSON with exact values, and lines for people."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ..display import reckoned, rounded_down, rounded_up, scientific

if TYPE_CHECKING:
    from ..accounting import Bracket
    from ..query.explanation import Explanation

HIGH_EPSILON = 5.0
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
) -> None:
    """Print a table; what people wrote into it is printed as it is, and can do nothing to a terminal.

    On a narrow terminal cells are broken into lines. Where there is none, every row is one line.

    Args:
        columns: The head.
        rows: The cells.
        numbers: How many of the last columns stand on the right.
        whole: The column that is not broken, such as that of dates; unless it would take a third of the room.
        cut: The column that is cut where there is no room for it, in place of being broken.

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
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDE
    table = Table(box=box.SIMPLE_HEAD)
    for at, name in enumerate(columns):
        kept = name == whole and all(len(row[at]) <= console.width / 3 for row in rows)
        side: Literal["left", "right"] = "right" if at >= len(columns) - numbers else "left"
        table.add_column(name, overflow="fold", no_wrap=kept, justify=side)
    for row in rows:
        cells = zip(columns, map(_printable, row), strict=True)
        # A column that wraps gives way to others: that its text is one line is said of the text, and not of the column.
        made = (Text(cell, no_wrap=True, overflow="ellipsis") if name == cut else cell for name, cell in cells)
        table.add_row(*made)
    console.print(table)


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
        _warn(f"{epsilon_text(bracket, delta)} is above {HIGH_EPSILON:g}: true, but weaker than you may think.")


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

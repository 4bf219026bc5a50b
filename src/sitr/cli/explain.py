"""`sitr explain`: what a question would cost and how wrong its answer would be; no private row is read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .declared import asked, asking_options, declaration_argument, open_declared, sql_options, sql_text
from .output import as_json, bracket_record, print_json
from .words import in_options, speaking_options

if TYPE_CHECKING:
    from ..query.explanation import Explanation


@click.command(short_help="Say what a question would cost; no private row is read.")
@declaration_argument
@sql_options
@asking_options
@click.option("--error", help="Find the ε for this error: 500, or 5% of the declared size, for counts.")
@click.option("--sql", "compiled", is_flag=True, help="Show what the engine would be asked.")
@as_json
@speaking_options()
def explain(
    declaration: Path,
    sql: str | None,
    file: Path | None,
    epsilon: float | None,
    delta: float | None,
    rho: float | None,
    analyst: str | None,
    anchor: Path | None,
    error: str | None,
    compiled: bool,
    as_json: bool,
    **bounds: int | None,
) -> None:
    """Say what SQL would cost, how wrong its answer would be, and what would be left; it reads no private row.

    SQL is a question such as "SELECT region, COUNT(*) AS n FROM visits GROUP BY region", or - for standard input.
    """
    from ..session.prices import Prices

    check_one_price(epsilon, rho, error)
    text, wrong = sql_text(sql, file), parsed_error(error)
    with open_declared(declaration, analyst, anchor, explaining=True) as database:
        question = asked(database, text, bounds)
        found = question.explain(epsilon=epsilon, delta=delta, rho=rho, **wrong)
    found = replace(found, notes=tuple(map(in_options, found.notes)))
    if as_json:
        print_json(found.to_dict() if isinstance(found, Prices) else explanation_record(found))
        return
    click.echo(in_options(str(found)) if isinstance(found, Prices) else found)
    if compiled and not isinstance(found, Prices):
        for one in found.queries:
            click.echo(f"\n{one};")


def check_one_price(*prices: float | str | None) -> None:
    """Refuse several of --epsilon, --rho and --error: each says how much is spent."""
    if sum(price is not None for price in prices) > 1:
        raise click.UsageError("Say one of --epsilon, --rho and --error.")


def parsed_error(text: str | None) -> dict[str, float]:
    """Return the error that is asked for, absolute or relative.

    Example:
        >>> parsed_error("500"), parsed_error("5%"), parsed_error(None)
        ({'error': 500.0}, {'relative_error': 0.05}, {})
    """
    if text is None:
        return {}
    number = text.strip().removesuffix("%")
    try:
        value = float(number)
    except ValueError:
        raise click.UsageError("--error is a number such as 500, or a part of the declared size such as 5%.") from None
    return {"relative_error": value / 100} if text.strip().endswith("%") else {"error": value}


def explanation_record(found: Explanation) -> dict[str, Any]:
    """Return an explanation as JSON holds it."""
    bound = found.plan.bound
    return {
        "epsilon": bracket_record(found.epsilon),
        "delta": found.target.delta,
        "target": vars(found.target),
        "event": found.plan.event.to_dict(),
        "measurements": [vars(line) for line in found.lines],
        "errors": dict(found.errors),
        "size": found.size,
        "bound": None if bound is None else {name: value for name, value in vars(bound).items() if value is not None},
        "kept": found.kept,
        "facts": found.facts.source,
        "remaining": {name: {"left": left, "after": after} for name, (left, after) in found.remaining.items()},
        "queries": list(found.queries),
        "notes": list(found.notes),
    }

"""`sitr synthesize`: a synthetic table of a private one, its bill, and a file of its rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..display import scientific
from .book import anchor_option
from .declared import declaration_argument, open_declared
from .output import as_json, bracket_record, print_json
from .payment import check_terminal, confirm, is_answered, new_file, paying_options, progress_bar, writing
from .words import in_options, speaking_options

if TYPE_CHECKING:
    from ..session.synthesis import Synthesis
    from ..synthesis.explanation import SynthesisExplanation
    from ..synthesis.table import SyntheticTable


@click.command(short_help="Make a synthetic table: see the bill, then pay it.")
@declaration_argument
@click.argument("table")
@click.option("--epsilon", type=float, required=True, help="The ε of the release, in all, together with")
@click.option("--delta", type=float, help="its δ; the declared one unless told.")
@click.option(
    "--rows", type=click.IntRange(0, 10**9), help="How many rows to draw; about as many as there are unless told."
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write the rows to this new Parquet file.")
@click.option("--model", type=click.Path(dir_okay=False, path_type=Path), help="Write the model to this new file.")
@click.option("--column", "columns", multiple=True, help="Take this column; again for more. All unless told.")
@click.option("--max-rows-per-unit", type=click.IntRange(1), help="Keep so many rows of a unit at most.")
@click.option(
    "--cells", type=click.IntRange(2), default=200, show_default=True, help="Cut bounds into so many at most."
)
@click.option("--seed", type=click.IntRange(0), help="Draw the same rows of the same model again.")
@click.option("--analyst", help="Who asks; the user of the operating system unless told.")
@anchor_option
@paying_options
@click.option("--explain", "only_bill", is_flag=True, help="Show the bill and stop: nothing is read or spent.")
@as_json
@speaking_options()
def synthesize(
    declaration: Path,
    table: str,
    epsilon: float,
    delta: float | None,
    rows: int | None,
    out: Path | None,
    model: Path | None,
    columns: tuple[str, ...],
    max_rows_per_unit: int | None,
    cells: int,
    seed: int | None,
    analyst: str | None,
    anchor: Path | None,
    operation: str | None,
    purpose: str | None,
    yes: bool,
    only_bill: bool,
    as_json: bool,
) -> None:
    """Make a synthetic TABLE: it is measured and charged once, and rows are drawn from what was learnt.

    The bill is shown, and nothing is spent before you say so. Texts whose values are not declared are found privately,
    which is part of the bill. Rows can be drawn again for nothing, from the --model
    file, or by the same command with --operation.
    """
    if not only_bill:
        if out is None and model is None:
            raise click.UsageError("Say where the rows go: --out rows.parquet; or the model: --model table.json.")
        check_terminal(yes)
    with open_declared(declaration, analyst, anchor, explaining=only_bill) as database:
        private = database.table(table)
        wanted = private.synthesize(columns or None, max_rows_per_unit=max_rows_per_unit, cells=cells)
        known = is_answered(database, operation)
        bill = None if known else wanted.explain(epsilon=epsilon, delta=delta)
        if only_bill:
            _show(bill or wanted.explain(epsilon=epsilon, delta=delta), as_json)
            return
        if bill is not None and not yes:
            _confirm(wanted, bill, epsilon, purpose)
        made = _written(wanted, out, model, rows, seed, epsilon, delta, operation, purpose)
    _tell(made, out, model, as_json)


def _show(bill: SynthesisExplanation, as_json: bool) -> None:
    if as_json:
        print_json(_bill_record(bill))
    else:
        click.echo(_in_options(bill))


def _in_options(bill: SynthesisExplanation) -> SynthesisExplanation:
    return replace(bill, notes=tuple(map(in_options, bill.notes)))


def _confirm(wanted: Synthesis, bill: SynthesisExplanation, epsilon: float, purpose: str | None) -> None:
    click.echo(f"{_in_options(bill)}\n", err=True)
    before = wanted.asked_before(epsilon=epsilon, delta=bill.delta, purpose=purpose)
    price = f"ε = {epsilon:g} at δ = {scientific(bill.delta)}"
    confirm(wanted, bill.plan.event, wanted.target(epsilon, bill.delta), price, purpose, before)


def _written(
    wanted: Synthesis,
    out: Path | None,
    model: Path | None,
    rows: int | None,
    seed: int | None,
    epsilon: float,
    delta: float | None,
    operation: str | None,
    purpose: str | None,
) -> SyntheticTable:
    """Make the files, then the table, and write it: a name that cannot be written costs nothing."""
    from contextlib import ExitStack

    with ExitStack() as opened:
        files = {path: opened.enter_context(new_file(path, "xb")) for path in (out, model) if path is not None}
        with progress_bar() as progress:
            made = wanted.release(epsilon=epsilon, delta=delta, operation=operation, purpose=purpose, progress=progress)
            progress("drawing rows")
            if out is not None:
                with writing(files[out], made.operation):
                    made.to_parquet(files[out], rows, seed=seed)
            if model is not None:
                with writing(files[model], made.operation):
                    made.save(files[model])
    return made


def _tell(made: SyntheticTable, out: Path | None, model: Path | None, as_json: bool) -> None:
    if as_json:
        files = {"out": str(out) if out else None, "model": str(model) if model else None}
        record = {"columns": list(made.columns), "rows": made.rows, "event": made.event.to_dict(), **files}
        print_json(record | {"entry": made.entry, "operation": made.operation, "kept": made.kept})
        return
    for path in (out, model):
        if path is not None:
            click.echo(path)
    for note in made.notes:
        click.echo(in_options(note), err=True)
    click.echo("; ".join([*made.left, made.charged, f"operation {made.operation}"]), err=True)


def _bill_record(bill: SynthesisExplanation) -> dict[str, Any]:
    return {
        "epsilon": bracket_record(bill.epsilon),
        "delta": bill.delta,
        "event": bill.plan.event.to_dict(),
        "columns": [line._asdict() for line in bill.lines],
        "pair_noise": bill.pair_noise,
        "max_rows_per_unit": bill.plan.rows_per_unit,
        "seconds": bill.seconds,
        "megabytes": bill.megabytes,
        "remaining": {name: {"left": left, "after": after} for name, (left, after) in bill.remaining.items()},
        "notes": list(bill.notes),
    }

"""`sitr synthesize`: a synthetic table of a private one, or two linked ones, the bill, and files of their rows."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click

from ..display import scientific
from ..errors import InvalidArgument
from .book import anchor_option
from .declared import declaration_argument, open_declared
from .output import as_json, bracket_record, print_json
from .payment import check_terminal, confirm, is_answered, new_file, paying_options, progress_bar, writing
from .words import in_options, speaking_options

if TYPE_CHECKING:
    from ..session.database import Database
    from ..session.synthesis import LinkedSynthesis, Synthesis
    from ..synthesis.explanation import LinkedExplanation, SynthesisExplanation
    from ..synthesis.linked import LinkedTables
    from ..synthesis.table import SyntheticTable

    Wanted = Synthesis | LinkedSynthesis
    Bill = SynthesisExplanation | LinkedExplanation
    Made = SyntheticTable | LinkedTables

FILE = click.Path(dir_okay=False, path_type=Path)


class Price(NamedTuple):
    """What a release may cost, and how it is asked for."""

    epsilon: float
    delta: float | None
    operation: str | None
    purpose: str | None


@dataclass(frozen=True)
class Files:
    """New files for what is drawn: rows, their children where there are some, and the model."""

    out: Path | None
    out_children: Path | None
    model: Path | None

    @property
    def paths(self) -> list[Path]:
        """Those that were asked for."""
        return [path for path in (self.out, self.out_children, self.model) if path is not None]

    def check(self, linked: bool) -> None:
        """Refuse what leaves no place for what is paid for."""
        if linked and (self.out is None) != (self.out_children is None):
            raise click.UsageError("Rows and their children go together: --out FILE --out-children FILE.")
        if self.out is None and self.model is None:
            raise click.UsageError("Say where the rows go: --out rows.parquet; or the model: --model table.json.")

    def write(self, made: Made, opened: dict[Path, IO[bytes]], rows: int | None, seed: int | None) -> None:
        """Draw rows, and write all that was asked for."""
        from ..synthesis.linked import LinkedTables

        if self.out is not None:
            with writing(opened[self.out], made.operation):
                if isinstance(made, LinkedTables):
                    assert self.out_children is not None
                    made.to_parquet(opened[self.out], opened[self.out_children], rows, seed=seed)
                else:
                    made.to_parquet(opened[self.out], rows, seed=seed)
        if self.model is not None:
            with writing(opened[self.model], made.operation):
                made.save(opened[self.model])

    def record(self) -> dict[str, str | None]:
        """Return their names."""
        return {name: None if path is None else str(path) for name, path in vars(self).items()}


@click.command(short_help="Make a synthetic table: see the bill, then pay it.")
@declaration_argument
@click.argument("table")
@click.option("--epsilon", type=float, required=True, help="The ε of the release, in all, together with")
@click.option("--delta", type=float, help="its δ; the declared one unless told.")
@click.option(
    "--rows", type=click.IntRange(0, 10**9), help="How many rows to draw; about as many as there are unless told."
)
@click.option("--out", type=FILE, help="Write the rows to this new Parquet file.")
@click.option("--model", type=FILE, help="Write the model to this new file.")
@click.option("--column", "columns", multiple=True, help="Take this column; again for more. All unless told.")
@click.option("--max-rows-per-unit", type=click.IntRange(1), help="Keep so many rows of a unit at most.")
@click.option(
    "--cells", type=click.IntRange(2), default=200, show_default=True, help="Cut bounds into so many at most."
)
@click.option(
    "--check", type=click.FloatRange(0, 0.5), help="Spend this part of ε and δ on measuring how near the rows are."
)
@click.option(
    "--impossible",
    multiple=True,
    metavar="CONDITIONS",
    help='No row has this, as everyone knows: "age < 16 AND married"; again for more.',
)
@click.option(
    "--determines",
    multiple=True,
    metavar="COLUMN:COLUMN",
    help="The first column determines the second, as everyone knows: town:country; again for more.",
)
@click.option("--with", "children", help="Make rows of this table too: of each row of TABLE, any number.")
@click.option("--max-children", type=click.IntRange(1), help="Keep so many of them at most; needed with --with.")
@click.option("--child-column", "child_columns", multiple=True, help="Take this column of theirs; again for more.")
@click.option("--out-children", type=FILE, help="Write them to this new Parquet file.")
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
    seed: int | None,
    analyst: str | None,
    anchor: Path | None,
    operation: str | None,
    purpose: str | None,
    yes: bool,
    only_bill: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Make a synthetic TABLE: it is measured and charged once, and rows are drawn from what was learnt.

    The bill is shown, and nothing is spent before you say so. Texts whose values are not declared are found privately,
    which is part of the bill. Rows can be drawn again for nothing, from the --model
    file, or by the same command with --operation.
    """
    files = Files(*(options.pop(name) for name in ("out", "out_children", "model")))
    if not only_bill:
        files.check(linked=options["children"] is not None)
        check_terminal(yes)
    price = Price(epsilon, delta, operation, purpose)
    with open_declared(declaration, analyst, anchor, explaining=only_bill) as database:
        wanted = _wanted(database, table, options)
        known = is_answered(database, operation)
        bill = wanted.explain(epsilon=epsilon, delta=delta) if only_bill or not known else None
        if only_bill:
            assert bill is not None
            _show(bill, as_json)
            return
        if bill is not None and not yes:
            _confirm(wanted, bill, price)
        made = _written(wanted, price, files, rows, seed)
    _tell(made, files, as_json)


def _wanted(database: Database, table: str, options: dict[str, Any]) -> Wanted:
    """What is to be made: options that mean nothing beside others are refused."""
    private, columns = database.table(table), options["columns"] or None
    if options["children"] is None:
        for name in ("max_children", "child_columns"):
            if options[name]:
                raise click.UsageError(f"--{name.replace('_', '-').removesuffix('s')} means nothing without --with.")
        chosen = {name: options[name] for name in ("max_rows_per_unit", "cells")}
        rules = {"impossible": options["impossible"], "determines": _determined(options["determines"])}
        return private.synthesize(columns, check=options["check"] or 0.0, **chosen, **rules)
    for name in ("max_rows_per_unit", "check", "impossible", "determines"):
        if options[name] not in (None, ()):
            raise click.UsageError(f"--{name.replace('_', '-')} cannot be told together with --with.")
    if options["max_children"] is None:
        raise click.UsageError("Say how many rows are kept of each: --max-children 20.")
    return private.synthesize_with(
        options["children"],
        max_children=options["max_children"],
        columns=columns,
        child_columns=options["child_columns"] or None,
        cells=options["cells"],
    )


def _determined(pairs: tuple[str, ...]) -> dict[str, str]:
    """Which column each one is determined by."""
    found: dict[str, str] = {}
    for pair in pairs:
        by, _, column = pair.partition(":")
        if not by or not column or ":" in column:
            raise click.UsageError(f"--determines {pair} is no pair of columns: --determines town:country.")
        if column in found:
            raise click.UsageError(f"--determines names {column} twice as determined: leave one of them out.")
        found[column] = by
    return found


def _show(bill: Bill, as_json: bool) -> None:
    if as_json:
        print_json(_bill_record(bill))
    else:
        click.echo(in_options(str(bill)))


def _confirm(wanted: Wanted, bill: Bill, price: Price) -> None:
    click.echo(f"{in_options(str(bill))}\n", err=True)
    before = wanted.asked_before(epsilon=price.epsilon, delta=bill.delta, purpose=price.purpose)
    words = f"ε = {price.epsilon:g} at δ = {scientific(bill.delta)}"
    confirm(wanted, bill.plan.event, wanted.target(price.epsilon, bill.delta), words, price.purpose, before)


def _written(wanted: Wanted, price: Price, files: Files, rows: int | None, seed: int | None) -> Made:
    """Make the files, then the table, and write it: a name that cannot be written costs nothing."""
    with ExitStack() as stack:
        opened = {path: stack.enter_context(new_file(path, "xb")) for path in files.paths}
        with progress_bar() as progress:
            made = wanted.release(**price._asdict(), progress=progress)
            progress("drawing rows")
            try:
                files.write(made, opened, rows, seed)
            except InvalidArgument as error:  # such as rules that hardly a row keeps
                kept = f"The ledger has the model, for nothing: --operation {made.operation} --model FILE."
                raise InvalidArgument(error.what, why=error.why, do=f"{kept} {error.do}") from None
    return made


def _tell(made: Made, files: Files, as_json: bool) -> None:
    from ..synthesis.table import SyntheticTable

    fit = made.value.learnt.fit if isinstance(made, SyntheticTable) else None
    if as_json:
        about: dict[str, Any] = {"event": made.event.to_dict(), **files.record()}
        if isinstance(made, SyntheticTable):
            about |= {"columns": list(made.columns), "rows": made.rows, "fit": fit and fit.to_dict()}
        print_json(about | {"entry": made.entry, "operation": made.operation, "kept": made.kept})
        return
    for path in files.paths:
        click.echo(path)
    if isinstance(made, SyntheticTable) and fit is not None:
        click.echo("\n".join(fit.lines(made.columns)), err=True)
    for note in made.notes:
        click.echo(in_options(note), err=True)
    click.echo("; ".join([*made.left, made.charged, f"operation {made.operation}"]), err=True)


def _bill_record(bill: Bill) -> dict[str, Any]:
    from ..synthesis.explanation import LinkedExplanation

    if isinstance(bill, LinkedExplanation):
        both = _bill_record(bill.children) | {"event": bill.plan.event.to_dict()}
        return {"parents": _bill_record(bill.parents), **both}
    return {
        "epsilon": bracket_record(bill.epsilon),
        "delta": bill.delta,
        "event": bill.plan.event.to_dict(),
        "columns": [line._asdict() for line in bill.lines],
        "rules": list(bill.plan.rules_in_words),
        "pair_noise": bill.pair_noise,
        "max_rows_per_unit": bill.plan.rows_per_unit,
        "seconds": bill.seconds,
        "megabytes": bill.megabytes,
        "remaining": {name: {"left": left, "after": after} for name, (left, after) in bill.remaining.items()},
        "notes": list(bill.notes),
    }

"""`sitr budget`: what an owner promises, what is left of it, and how a promise is changed."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..units import ADJACENCIES
from .book import Named, book_argument, book_options, head_record, limit_options, name_options, named, open_book
from .declared import declaration_argument
from .output import as_json, bracket_record, print_json, print_rows, print_table, warn_of_epsilon
from .words import speaking_options

if TYPE_CHECKING:
    from ..ledger import Budget, Ledger, Statement

HOW = ("raised", "replaced", "redeclared", "outside")  # a promise was changed, or something left without one
PICTURES = (".svg", ".png")


@click.group()
def budget() -> None:
    """Promise limits, and see what is left of them.

    A budget says how much may be learned about one person from everything that is ever released of a dataset.
    """


@budget.command(short_help="Promise a limit on a dataset, or on a share of it.")
@name_options
@limit_options
@click.option("--adjacency", type=click.Choice(ADJACENCIES), help="How neighbours differ; add_remove unless told.")
@click.option("--unit", help='Whom the promise protects, in a word; "person" unless told.')
@click.option("--disjoint-by", help="The name of blocks of which each unit is in exactly one, such as hospital.")
@click.option("--per", help="The name of blocks that are part of the unit itself, such as month: it promises less.")
@book_options
@speaking_options()
def create(
    name: str,
    analyst: str | None,
    purpose: str | None,
    epsilon: float | None,
    delta: float | None,
    rho: float | None,
    which: Named,
    anchor: Path | None,
    as_json: bool,
    **whom: str | None,
) -> None:
    """Promise a limit on what is released of the dataset NAME; a book is begun if there is none.

    With --analyst or --purpose it is a limit within that of the dataset, for the same people; without --delta it has
    the δ of the dataset, and --delta 0 makes it pure.
    """
    from ..ledger import Budget

    dataset, holder = named(name, analyst, purpose)
    about: dict[str, Any] = {field: value for field, value in whom.items() if value is not None}
    if any(holder.values()):
        with open_book(which, anchor) as book:
            promise = _share(book.budget(dataset), epsilon, delta, rho, **about)
            _promise(book, dataset, promise, holder, as_json)
        return
    promise = Budget(epsilon=epsilon, delta=delta, rho=rho, **about)  # before a book is begun for it
    with open_book(which, anchor, create=True) as book:
        _promise(book, dataset, promise, holder, as_json)


def _share(whole: Budget, epsilon: float | None, delta: float | None, rho: float | None, **whom: Any) -> Budget:
    """A share speaks of the same people as the whole, and has its δ unless told."""
    kept = whole.delta if delta is None else delta
    return dataclasses.replace(whole, epsilon=epsilon, delta=kept, rho=rho, **whom)


def _promise(book: Ledger, dataset: str, promise: Budget, holder: dict[str, str | None], as_json: bool) -> None:
    book.create_budget(dataset, promise, **holder)
    _tell(book.statement(dataset, **holder), as_json)
    _warn(promise)


@budget.command(short_help="Make the book of a declaration, and its budgets.")
@declaration_argument
@as_json
def begin(declaration: Path, as_json: bool) -> None:
    """Make the book that DECLARATION names, promise its budgets, and write the id of the book into the file.

    What is there already stays as it is. Where the declaration has the id of another book, or does not fit its tables,
    it refuses.
    """
    from ..session import beginning
    from ..tables.declaration import Declaration

    with beginning.begin(declaration, tell=lambda remark: click.echo(remark, err=True)) as book:
        records = _budget_records(book)
        about = {"ledger": book.id, "place": book.store.place, "declaration": str(declaration)}
        others = beginning.differences(Declaration.read(declaration), book)
    if as_json:
        print_json(about | {"budgets": records, "differences": others})
    else:
        print_rows([*about.items()])
        _print_budgets(records)
    for other in others:
        click.echo(other, err=True)


@budget.command()
@declaration_argument
@click.option("--reason", required=True, help="Why; every report shows it, with the date and what changed.")
@click.option("--instead-of", help="The name of another declaration of the book, such as its old one, which ends.")
@as_json
def redeclare(declaration: Path, reason: str, instead_of: str | None, as_json: bool) -> None:
    """Let the promises of a book hold for what DECLARATION says now.

    Which rows are one unit, where they are, and what is public is part of a promise. To change it is a dated change of
    promise, which every report shows from then on; until then nothing can be asked under the new words.
    """
    from ..session.beginning import redeclare as change

    book, changes = change(declaration, reason=reason, instead_of=instead_of)
    with book:
        about = {"ledger": book.id, "place": book.store.place, "declaration": str(declaration)}
        head = book.head
    if as_json:
        print_json(about | {"reason": reason, "changes": changes, "head": head_record(head)})
        return
    print_rows([*about.items(), *(("changed", change) for change in changes or ["nothing"])])


@budget.command()
@name_options
@click.option(
    "--picture", type=click.Path(dir_okay=False, path_type=Path), help="Draw how it burnt down: a .svg or .png file."
)
@book_options
def show(
    name: str,
    analyst: str | None,
    purpose: str | None,
    picture: Path | None,
    which: Named,
    anchor: Path | None,
    as_json: bool,
) -> None:
    """Say all there is to say of the budget of the dataset NAME.

    What was spent is rounded up, what is left down. The exact ε is a report, and never a limit.
    """
    dataset, holder = named(name, analyst, purpose)
    if picture is not None and picture.suffix not in PICTURES:
        raise click.UsageError("A picture is a file such as clinic.svg or clinic.png.")
    with open_book(which, anchor) as book:
        statement = book.statement(dataset, **holder)
        if picture is not None:
            _draw(picture, statement)
    _tell(statement, as_json, picture)


@budget.command("list")
@book_argument
@book_options
def list_budgets(which: Named, anchor: Path | None, as_json: bool) -> None:
    """List all budgets of a ledger.

    Each has its promise, the share that was spent, rounded up, and what is left, rounded down.
    """
    with open_book(which, anchor) as book:
        records = _budget_records(book)
        about = {"ledger": book.id, "head": head_record(book.head), "budgets": records}
        place = f"head {book.head} of ledger {book.id}"
    if as_json:
        print_json(about)
        return
    _print_budgets(records)
    click.echo(place)


@budget.command("raise", short_help="Raise a budget, which weakens the promise.")
@name_options
@limit_options
@click.option("--reason", required=True, help="Why; every report shows it, with the date.")
@book_options
@speaking_options()
def raise_budget(
    name: str,
    analyst: str | None,
    purpose: str | None,
    epsilon: float | None,
    delta: float | None,
    rho: float | None,
    reason: str,
    which: Named,
    anchor: Path | None,
    as_json: bool,
) -> None:
    """Raise the budget of the dataset NAME: this weakens the promise.

    It is a dated change of promise, which every report shows from then on. What is not said stays as it is.
    """
    limits = {"epsilon": epsilon, "delta": delta, "rho": rho}
    changed: dict[str, Any] = {field: limit for field, limit in limits.items() if limit is not None}
    if not changed:
        raise click.UsageError("Say the new limit: --epsilon 2.")
    if epsilon is not None or rho is not None:  # one takes the place of the other, which the book then refuses
        changed = {"epsilon": epsilon, "rho": rho} | changed
    dataset, holder = named(name, analyst, purpose)
    with open_book(which, anchor) as book:
        promise = dataclasses.replace(book.budget(dataset, **holder), **changed)
        book.raise_budget(dataset, promise, reason=reason, **holder)
        _tell(book.statement(dataset, **holder), as_json)
        _warn(promise)


@budget.command(short_help="Give an analyst's or a purpose's share other limits.")
@name_options
@limit_options
@click.option("--reason", required=True, help="Why; every report shows it, with the date.")
@book_options
@speaking_options()
def replace(
    name: str,
    analyst: str | None,
    purpose: str | None,
    epsilon: float | None,
    delta: float | None,
    rho: float | None,
    reason: str,
    which: Named,
    anchor: Path | None,
    as_json: bool,
) -> None:
    """Give the share of an analyst, or of a purpose, other limits; what was spent under it stays spent.

    A share is a limit within the promise of the dataset NAME, which stays as it is: so the new limits may be lower, or
    of another kind. Without --delta the share has the δ of the dataset.
    """
    dataset, holder = named(name, analyst, purpose)
    with open_book(which, anchor) as book:
        promise = _share(book.budget(dataset), epsilon, delta, rho)
        book.replace_share(dataset, promise, reason=reason, **holder)
        _tell(book.statement(dataset, **holder), as_json)
        _warn(promise)


def _draw(picture: Path, statement: Statement) -> None:
    from ..report import write_burn_down

    try:
        write_burn_down(picture, statement)
    except OSError as error:
        raise click.ClickException(f"cannot write {picture}: {error.strerror}.") from None


def _tell(statement: Statement, as_json: bool, picture: Path | None = None) -> None:
    drawn = {"picture": str(picture)} if picture else {}
    if as_json:
        print_json(_record(statement) | drawn)
    else:
        print_rows([*statement.rows(), *drawn.items()])


def _warn(promise: Budget) -> None:
    """Say that a promise is weaker than one may think, if it is."""
    from ..accounting import ApproximateDP, ZeroConcentrated
    from ..ledger.history import exact_of

    pure, concentrated = promise.epsilon, promise.rho or 0.0
    worst = ZeroConcentrated(concentrated) if pure is None else ApproximateDP(pure, promise.delta or 0.0)
    delta, epsilon = exact_of(promise, worst)
    warn_of_epsilon(epsilon, delta)


def _record(statement: Statement) -> dict[str, Any]:
    return {
        "name": statement.name,
        "budget": dataclasses.asdict(statement.budget),
        "promise": statement.promise,
        "units": statement.units,
        "before": list(statement.before),
        "promises": [{"at": at, "promise": promise, "reason": reason} for at, promise, reason in statement.promises],
        "changes": [change._asdict() for change in statement.changes],
        "declared": [{"declaration": name, "version": version, "at": at} for name, version, at in statement.declared],
        "theorem": statement.theorem,
        "spent": statement.spent._asdict(),
        "remaining": statement.remaining._asdict(),
        "fits": statement.fits,
        "more": statement.more,
        "no_groups": statement.no_groups,
        "unreadable": statement.unreadable,
        "operations": statement.operations,
        "event": statement.event.to_dict(),
        "exact": {"delta": statement.exact_delta, "epsilon": bracket_record(statement.exact)},
        "claimed": statement.claimed,
        "block": statement.block,
        "releases": [line.to_dict() for line in statement.releases],
        "outside": [one._asdict() for one in statement.outside],
        "ledger": statement.ledger,
        "head": head_record(statement.head),
    }


def _budget_records(book: Ledger) -> list[dict[str, Any]]:
    from ..ledger.change import WORDS, is_change
    from ..ledger.meaning import unit_words

    kinds = WORDS | {"outside": "outside"}
    changed: dict[str, dict[str, list[dict[str, str]]]] = {kind: defaultdict(list) for kind in kinds}
    for entry in book.entries():
        if is_change(entry) or entry.kind == "outside":
            about = {"at": entry.at, "reason": entry.record.get("reason", "")}
            changed[entry.kind][str(entry.record.get("name"))].append(about)
    records, budgets = [], book.budgets()
    units = unit_words(book.terms(None), budgets)
    for name, promise in budgets.items():
        dataset, holder = named(name)
        spent, left = book.spent(dataset, **holder), book.remaining(dataset, **holder)
        about = {"name": name, "budget": dataclasses.asdict(promise), "promise": promise.made_to(units[name])}
        of = {"raise": name, "replace": name, "declare": dataset, "outside": dataset}
        changes = {how: changed[kind][of[kind]] for kind, how in kinds.items()}
        records.append({**about, "spent": spent._asdict(), "remaining": left._asdict(), **changes})
    return records


def _print_budgets(records: list[dict[str, Any]]) -> None:
    print_table(("budget", "promise", "spent", "left", "changed"), list(map(_line, records)), whole="budget")


def _line(record: dict[str, Any]) -> tuple[str, ...]:
    from ..ledger import Amount
    from ..ledger.left import shares_text

    spent = shares_text(Amount(**record["spent"]), spent=True)
    left = shares_text(Amount(**record["remaining"]), spent=False)
    dates = [f"{how} {change['at'][:10]}" for how in HOW for change in record[how]]
    return record["name"], record["promise"], spent, left, ", ".join(dates)

"""How commands that spend show the bill, ask, and make the file that the answer goes into."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from ..display import reckoned, rounded_down
from ..errors import BudgetExceeded, LedgerError, NotPermitted, UnknownName
from .book import together
from .output import on_terminal

if TYPE_CHECKING:
    from ..accounting import Event
    from ..ledger import Standing
    from ..query.planner import Target
    from ..session.database import Database
    from ..session.priced import Priced

paying_options = together(
    click.option("--operation", help="An id: asked again under it, the same answer comes again for nothing."),
    click.option("--purpose", help="What for; a budget for that purpose is charged as well."),
    click.option("--yes", is_flag=True, help="Spend without being asked; needed where there is no terminal."),
)


def check_terminal(yes: bool, act: str = "spend") -> None:
    """Refuse where nobody could be asked."""
    if not yes and not on_terminal():
        raise click.UsageError(f"There is no terminal to confirm on: add --yes to {act} without being asked.")


def is_answered(database: Database, operation: str | None) -> bool:
    """Return whether the ledger has the answer: it costs nothing, or is another request, which is refused."""
    if operation is None:
        return False
    try:
        database.ledger.answer(operation, analyst=database.analyst)
    except (UnknownName, NotPermitted):
        return False
    return True


def confirm(
    question: Priced[Any, Any],
    event: Event,
    target: Target,
    price: str,
    purpose: str | None,
    before: str | None = None,
) -> None:
    """Ask whether to spend, once the bill was shown.

    Args:
        question: What is paid for.
        event: What it costs,
        target: at this price,
        price: in words.
        purpose: What for.
        before: The operation under which the same was answered before.

    Raises:
        BudgetExceeded: It does not fit.
    """
    from ..query.explanation import NO_FIT

    forecast = question.forecast(purpose=purpose)
    for name, (left, after) in forecast.remaining(event).items():
        if after == NO_FIT:
            raise BudgetExceeded(
                f"budget {name!r}: {price} does not fit into what is left, {left}.",
                why="a promise is kept by stopping before it would break. Nothing was spent.",
                do=forecast.advice(target),
            )
    if before is not None:
        click.echo(f"The same was answered before: --operation {before} returns that answer for nothing.", err=True)
    left = "; ".join(_left(name, room) for name, room in forecast.rooms.items())
    if not click.confirm(f"Spend {price}? {left} left", err=True):
        click.echo("Nothing was spent.", err=True)
        raise click.exceptions.Exit(1)


def _left(name: str, room: Standing) -> str:
    from ..ledger.left import shares_text

    left = room.remaining
    plain = left.measure in ("epsilon", "rho") and left.delta_share is None
    amount = rounded_down(reckoned(left.value, spent=False)) if plain else shares_text(left, spent=False)
    return f"{amount} of {room.budget.promise} ({name})"


def standings(question: Priced[Any, Any], purpose: str | None) -> dict[str, Standing]:
    """Return how each budget stands; what was paid for is told even if the ledger does not say."""
    try:
        return question.forecast(purpose=purpose).rooms
    except LedgerError:
        return {}


@contextmanager
def new_file(name: str | Path, mode: str = "x") -> Iterator[IO[Any]]:
    """Open a new file, made before anything is spent; it is removed again where no answer comes."""
    from ..ledger.disk import owner_only

    path = Path(name)
    words = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    try:
        file = open(path, mode, opener=owner_only, **words)  # type: ignore[call-overload]  # noqa: SIM115  # closed below
    except FileExistsError:
        raise click.ClickException(f"{path} is there already; nothing was overwritten, and nothing spent.") from None
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}. Nothing was spent.") from None
    try:
        yield file
        file.close()
    except BaseException:
        path.unlink(missing_ok=True)
        with suppress(OSError):  # on a full disk closing fails again, which would hide where the answer is
            file.close()
        raise


@contextmanager
def writing(file: IO[Any], operation: str | None) -> Iterator[None]:
    """Write what was paid for: where that fails, the ledger has it still."""
    try:
        yield
        file.flush()
    except OSError as error:
        raise click.ClickException(
            f"cannot write {file.name}: {error.strerror}. The ledger has the answer: "
            f"ask again for nothing, with --operation {operation}."
        ) from None


@contextmanager
def progress_bar() -> Iterator[Callable[[str], None]]:
    """The stage and the seconds, on standard error if that is a terminal; nothing about the data."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("planning", total=None)
        yield lambda stage: bar.update(task, description=stage)

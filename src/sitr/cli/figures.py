"""`sitr figures`: the classical comparisons, with the exact curve added."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from .output import as_json, print_json

FORMATS = ("svg", "png")

folder_option = click.option(
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help="The folder to write to; it is made if it is not there.",
)


@click.command()
@folder_option
@click.option(
    "--format",
    "formats",
    type=click.Choice(FORMATS),
    multiple=True,
    default=FORMATS,
    show_default=True,
    help="Of the pictures; may be repeated. The numbers are always written as CSV.",
)
@as_json
def figures(folder: Path, formats: tuple[str, ...], as_json: bool) -> None:
    """Write the figures, and the numbers behind them, to a folder.

    They redraw the classical tables and curves with the exact curve added, which no bound may cross.
    """
    written = draw(folder, formats)
    if as_json:
        print_json({"folder": str(folder), "files": [path.name for path in written]})
    else:
        for path in written:
            click.echo(path)


def draw(folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write all figures, with a progress bar on standard error if that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    from ..report import FIGURES, write_figures

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("figures", total=len(FIGURES))
        try:
            return write_figures(folder, formats, lambda name: bar.update(task, advance=1, description=name))
        except OSError as error:
            raise click.ClickException(f"cannot write to {folder}: {error.strerror}.") from None

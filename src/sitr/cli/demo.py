"""`sitr demo`: a clinic that is asked and refuses, a network that learns, the composition story and its figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..display import rounded_down, rounded_up
from . import clinic, digits
from .figures import draw, folder_option
from .output import as_json, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from ..accounting import Event
    from ..accounting.filters import Filter

FALSE_ALARMS = 0.05


@dataclass(frozen=True)
class Row:
    """One way to count, the number that it finds (None: the rule says nothing), how that is shown, and a remark."""

    rule: str
    number: float | None
    shown: str
    remark: str = ""


@dataclass(frozen=True)
class Scene:
    """A part of the story: a title, what is done, and what each rule says of it; the last row is the point."""

    title: str
    text: str
    event: Event
    question: str
    rows: tuple[Row, ...]


@click.command(short_help="Ask a made-up clinic, train a model, and draw how loss adds up.")
@folder_option
@click.option("--story", is_flag=True, help="Only how privacy loss adds up; no database is made.")
@as_json
def demo(folder: Path, story: bool, as_json: bool) -> None:
    """Ask a small clinic, train a model, tell how privacy loss adds up, and leave the files and figures behind."""
    told = None if story else _visited(folder)
    lesson = None if story else digits.learn()
    if told is not None and not as_json:
        clinic.tell(_console(), told)
        digits.tell(_console(), lesson)
    scenes = [_one_release(), _hundred_releases(), _training(), _several_guarantees(), _filter()]
    if not as_json:
        _tell(scenes)
    written = draw(folder)
    if as_json:
        about = {"scenes": [_record(scene) for scene in scenes], "figures": [str(path) for path in written]}
        print_json(about | ({} if told is None else {"clinic": clinic.record(told), "digits": digits.record(lesson)}))
        return
    click.echo(f"{len(written)} files are in {folder}: open an .svg, or read its numbers in the .csv beside it.")
    if told is not None:
        click.echo(f'The clinic is there too: sitr query {told.declaration} "{clinic.COUNTS}" --epsilon 0.1')


def _visited(folder: Path) -> clinic.Visit:
    try:
        return clinic.visit(folder)
    except OSError as error:
        raise click.ClickException(f"cannot write to {folder}: {error.strerror}.") from None


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False)


def _one_release() -> Scene:
    from ..accounting import Laplace

    event = Laplace(noise_multiplier=10)
    return Scene(
        "What a release costs",
        "A count is published with Laplace noise of scale 10: ε = 0.1. Someone wants to know from it whether you are "
        "in the data, and may accuse one innocent in twenty. How often are you overlooked? Smaller ε: more often.",
        event,
        "overlooked",
        (
            Row("without any data", 1 - FALSE_ALARMS, "95 %"),
            _overlooked("with one count", event, "at least, by the best test there is"),
            _overlooked("with a hundred", event * 100, "the losses add up"),
        ),
    )


def _overlooked(rule: str, event: Event, remark: str) -> Row:
    least = float(event.tradeoff(FALSE_ALARMS))
    return Row(rule, least, f"{rounded_down(100 * least)} %", remark)


def _cost(rule: str, epsilon: float, remark: str = "") -> Row:
    return Row(rule, epsilon, rounded_up(epsilon, 4), remark)


def _hundred_releases() -> Scene:
    from ..accounting import Laplace
    from ..accounting.theorems import advanced, advanced_halved, basic, kairouz_oh_viswanath

    event, delta = Laplace(noise_multiplier=10) * 100, 1e-6
    return Scene(
        "A hundred releases",
        "How do the costs add up? Each rule is a theorem, so each answer is true; the smallest is the most useful.",
        event,
        "ε at δ = 1e-6",
        (
            _cost("basic", basic(event).epsilon, "the ε add up"),
            _cost("advanced", advanced(event, delta).epsilon, "Dwork, Rothblum, Vadhan 2010"),
            _cost("advanced, halved", advanced_halved(event, delta).epsilon, "half the mean loss: concentrated DP"),
            _cost("optimal for ε = 0.1", kairouz_oh_viswanath(event, delta).epsilon, "Kairouz, Oh, Viswanath 2015"),
            _cost("exact", event.epsilon(delta).upper, "the loss of Laplace noise itself"),
        ),
    )


def _training() -> Scene:
    from ..accounting import Gaussian, PoissonSampled, Renyi
    from ..accounting.theorems import moments_accountant

    step, steps, delta = PoissonSampled(Gaussian(noise_multiplier=1.1), sampling_prob=256 / 60000), 14062, 1e-5
    exact = (step * steps).epsilon(delta)
    return Scene(
        "Training a model: DP-SGD on MNIST",
        "60 epochs in batches of about 256 out of 60,000 images, noise multiplier 1.1: 14,062 small releases.",
        step * steps,
        "ε at δ = 1e-5",
        (
            _cost("moments accountant", moments_accountant(step * steps, delta).epsilon, "whole moments up to 64"),
            _cost("Rényi, best order", (Renyi(formula=step) * steps).epsilon(delta).upper, "the best that RDP can say"),
            _cost("exact", exact.upper, f"and not less than {rounded_down(exact.lower, 7)}"),
        ),
    )


def _several_guarantees() -> Scene:
    from ..accounting import ApproximateDP, Guarantees

    first, second, delta = (0.5, 1e-3), (1.0, 1e-6), 1e-4
    together = Guarantees((first, second)) * 10
    return Scene(
        "Several guarantees at once",
        "A black box is (0.5, 1e-3)-DP and also (1, 1e-6)-DP. Used ten times, both facts count.",
        together,
        "ε at δ = 1e-4",
        (
            Row("(0.5, 1e-3) alone", None, "none", "ten times 1e-3 is above δ"),
            _cost("(1, 1e-6) alone", (ApproximateDP(*second) * 10).epsilon(delta).upper),
            _cost("both", together.epsilon(delta).upper, "the worst box that keeps both promises"),
        ),
    )


def _filter() -> Scene:
    from ..accounting import Laplace, calibration, filters

    event, epsilon, delta = Laplace(noise_multiplier=100), 1.0, 1e-6
    most = calibration.calibrate_count(event, epsilon=epsilon, delta=delta).value
    return Scene(
        "How many are allowed",
        "A promise of ε = 1 at δ = 1e-6, and counts with noise of scale 100. An analyst who looks at each answer "
        "before the next question needs a filter, which stops in time whatever is asked; a fixed plan may go further.",
        event,
        "counts",
        (
            _admitted("basic filter", filters.PureFilter(epsilon), event, "the ε add up"),
            _admitted("advanced filter", filters.AdvancedFilter(epsilon, slack=delta), event, "any adaptive analyst"),
            _admitted("Rényi filter", filters.choose_filter(epsilon, delta), event, "any adaptive analyst"),
            Row("fixed plan", most, str(most), "exact; the number is fixed in advance"),
        ),
    )


def _admitted(rule: str, keeper: Filter, event: Event, remark: str) -> Row:
    """How many times a filter admits an event."""
    count = 0
    while keeper.admits(event):
        keeper.charge(event)
        count += 1
    return Row(rule, count, str(count), remark)


def _tell(scenes: list[Scene]) -> None:
    from rich.text import Text

    console = _console()
    console.print(Text("How privacy loss adds up\n", style="bold underline"))
    for number, scene in enumerate(scenes, 1):
        _tell_scene(console, number, scene)


def _tell_scene(console: Console, number: int, scene: Scene) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from ..accounting.notation import event_text

    console.print(Text(f"{number}. {scene.title}", style="bold"))
    console.print(Text(scene.text))
    table = Table("", scene.question, "", box=box.SIMPLE_HEAD)
    table.columns[1].justify = "right"
    for row in scene.rows:
        table.add_row(row.rule, row.shown, row.remark, style="bold" if row is scene.rows[-1] else "")
    console.print(Text(f"  {event_text(scene.event)}", style="dim"))
    console.print(table)


def _record(scene: Scene) -> dict[str, Any]:
    rows = [{"rule": row.rule, "number": row.number, "remark": row.remark} for row in scene.rows]
    return {"title": scene.title, "event": scene.event.to_dict(), "question": scene.question, "rows": rows}

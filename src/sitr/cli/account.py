"""`sitr account`: what an event costs."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click

from ..display import rounded_down, rounded_up
from .output import as_json, bracket_record, bracket_text, epsilon_text, print_json, print_rows, warn_of_epsilon

if TYPE_CHECKING:
    from ..accounting import Bracket, Curve, Event

JSON_FILE = click.File("r", encoding="utf-8-sig", errors="replace")
FALSE_ALARMS = 0.05  # of the test in the line that says what it means
NEIGHBOURS = {
    None: "not stated: the relation in which sensitivity was measured",
    "add_remove": "add_remove: one person's data added or removed",
    "replace_one": "replace_one: one person's data replaced",
}


class Answer(NamedTuple):
    """One question and its bracket: `name` is what was found, `given` what it was found at."""

    name: str
    given: float
    bracket: Bracket


@click.command()
@click.argument("expression", required=False)
@click.option("--file", "source", type=JSON_FILE, help="Read the event from a JSON file; - is standard input.")
@click.option("--delta", "deltas", type=float, multiple=True, help="Find the least ε at this δ; may be repeated.")
@click.option("--epsilon", "epsilons", type=float, multiple=True, help="Find the least δ at this ε; may be repeated.")
@click.option(
    "--group",
    "size",
    type=click.IntRange(1, 10**6),
    default=1,
    show_default=True,
    help="Protect a group of so many people.",
)
@as_json
def account(
    expression: str | None,
    source: IO[str] | None,
    deltas: tuple[float, ...],
    epsilons: tuple[float, ...],
    size: int,
    as_json: bool,
) -> None:
    """Say what an event costs.

    The answer is a bracket that holds the true value. EXPRESSION is text such as "poisson_sampled(gaussian(1.1),
    256/60000) * 14062 + laplace(20) * 30"; it is parsed, never evaluated.
    """
    if not deltas and not epsilons:
        raise click.UsageError("Say at which δ or ε: --delta 1e-5, or --epsilon 1.")
    event = _event(expression, source)
    curve = event if size == 1 else event.group(size)
    answers = [Answer("epsilon", delta, curve.epsilon(delta)) for delta in deltas]
    answers += [Answer("delta", epsilon, curve.delta(epsilon)) for epsilon in epsilons]
    if as_json:
        print_json(_record(event, curve, size, answers))
    else:
        print_rows(_rows(event, curve, size, answers))
    for answer in answers:
        if answer.name == "epsilon":
            warn_of_epsilon(answer.bracket, answer.given)


def _event(expression: str | None, source: IO[str] | None) -> Event:
    from ..accounting import Event, parse_event

    if (expression is None) == (source is None):
        raise click.UsageError('Give one event, as text or as --file: sitr account "gaussian(2) * 10" --delta 1e-5.')
    if source is not None:
        return Event.from_json(source.read())
    return parse_event(str(expression))


def _record(event: Event, curve: Event | Curve, size: int, answers: list[Answer]) -> dict[str, Any]:
    other = {"epsilon": "delta", "delta": "epsilon"}
    return {
        "event": event.to_dict(),
        "adjacency": event.adjacency,
        "group": size,
        "claimed": event.claimed,
        "answers": [{other[a.name]: a.given, a.name: bracket_record(a.bracket)} for a in answers],
        "infinite_mass": curve.infinite_mass,
        "expected_loss": curve.expected_loss(),
        "tradeoff": {"false_alarms": FALSE_ALARMS, "misses": bracket_record(curve.tradeoff(FALSE_ALARMS))},
    }


def _rows(event: Event, curve: Event | Curve, size: int, answers: list[Answer]) -> list[tuple[str, str]]:
    from ..accounting.notation import event_text

    misses = rounded_down(100 * float(curve.tradeoff(FALSE_ALARMS)))
    rows = [("event", event_text(event))]
    rows += [("CLAIMED", "rests on the user's own numbers, which sitr cannot check")] if event.claimed else []
    rows += [(_headline(answer), bracket_text(answer.bracket)) for answer in answers]
    rows += [
        ("protects", f"a group of {size} people" if size > 1 else "one person"),
        ("adjacency", NEIGHBOURS[event.adjacency]),
    ]
    if curve.infinite_mass > 0:
        rows.append(
            ("infinite loss", f"with probability up to {rounded_up(curve.infinite_mass)}; no ε holds at a smaller δ")
        )
    rows.append(("expected loss", rounded_up(curve.expected_loss())))
    rows.append(("meaning", f"an attacker's best test at 5 % false alarms misses at least {misses} % of the time"))
    return rows


def _headline(answer: Answer) -> str:
    if answer.name == "epsilon":
        return epsilon_text(answer.bracket, answer.given)
    return f"δ = {rounded_up(answer.bracket.upper)} at ε = {answer.given:g}"

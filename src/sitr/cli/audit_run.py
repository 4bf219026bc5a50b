"""`sitr audit-run`: what the canaries of one training run certify."""

from __future__ import annotations

import zipfile
from typing import IO, TYPE_CHECKING, Any

import click

from ..display import rounded_down, rounded_up, scientific
from ..errors import InvalidArgument
from .account import JSON_FILE
from .output import as_json, print_json, print_rows

if TYPE_CHECKING:
    from ..accounting import Event
    from ..audit import OneRunReport


@click.command("audit-run", short_help="Audit one training run by its canaries.")
@click.argument("canaries", type=click.File("rb"))
@click.option("--plan", "planned", type=JSON_FILE, help="The run's plan, a file with plan.to_json(): the claim.")
@click.option("--event", "expression", metavar="TEXT", help="The claim as the text of an event, in place of --plan.")
@click.option("--delta", type=float, help="Certify ε at this δ; that of the plan unless told, or 0 without a claim.")
@click.option(
    "--guesses",
    type=click.IntRange(1),
    multiple=True,
    help="How many canaries to guess, half unless told; may be repeated, and the best of them counts.",
)
@click.option("--confidence", type=float, default=0.95, show_default=True, help="How often, at least, it is right.")
@as_json
def audit_run(
    canaries: IO[bytes],
    planned: IO[str] | None,
    expression: str | None,
    delta: float | None,
    guesses: tuple[int, ...],
    confidence: float,
    as_json: bool,
) -> None:
    """Say how much a training run gave away at least, from the scores of its canaries.

    CANARIES is a file of two arrays, written behind the loop by numpy.savez("canaries.npz", scores=run.scores,
    included=included); included says which canaries were in the data, each by a fair coin of its own.

    The exit code is 1 if the claim is certainly broken. Nothing is charged: canaries are nobody's data.
    """
    from ..audit import audit_one_run

    claimed, stated = _claim(planned, expression)
    scores, included = _arrays(canaries)
    report = audit_one_run(
        scores,
        included,
        claimed=claimed,
        delta=stated if delta is None else delta,
        guesses=list(guesses) or None,
        confidence=confidence,
    )
    if as_json:
        print_json(report.to_dict())
    else:
        print_rows(_rows(report))
    if report.violated:
        raise click.exceptions.Exit(1)


def _claim(planned: IO[str] | None, expression: str | None) -> tuple[Event | None, float | None]:
    """What the run states, and at which δ, if it says so."""
    from ..accounting import parse_event
    from ..learning import TrainingPlan

    if planned is not None and expression is not None:
        raise click.UsageError("Give the claim once: --plan, or --event.")
    if planned is not None:
        plan = TrainingPlan.from_json(planned.read())
        return plan.event, plan.delta
    return (None if expression is None else parse_event(expression)), None


def _arrays(canaries: IO[bytes]) -> tuple[Any, Any]:
    """The scores, and whether each canary was in."""
    import numpy as np

    try:
        with np.load(canaries, allow_pickle=False) as found:
            return found["scores"], found["included"]
    except (EOFError, KeyError, OSError, TypeError, ValueError, zipfile.BadZipFile):
        raise InvalidArgument(
            "the file does not hold the arrays scores and included.",
            do='write it by numpy.savez("canaries.npz", scores=run.scores, included=included).',
        ) from None


def _rows(report: OneRunReport) -> list[tuple[str, str]]:
    at = f"at δ = {scientific(report.delta)}, with confidence {100 * report.confidence:g} %"
    rows = [("certified", f"ε ≥ {rounded_down(report.epsilon_lower)} {at}")]
    if report.claimed_epsilon is not None:
        rows.append(("claimed", f"ε = {rounded_up(report.claimed_epsilon)}"))
    rows.append(("guesses", f"{report.correct:,} of {report.guesses:,} were right; {report.canaries:,} canaries"))
    return [*rows, ("verdict", report.verdict)]

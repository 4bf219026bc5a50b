"""`sitr calibrate`: solve one parameter of an event for a target."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict

import click

from ..display import rounded_down, rounded_up
from ..errors import InvalidArgument
from .output import as_json, bracket_record, bracket_text, epsilon_text, print_json, print_rows, warn_of_epsilon

if TYPE_CHECKING:
    from ..accounting import Event
    from ..accounting.calibration import Calibration

PROBES = (0.12345, 0.23456)  # values that every real parameter takes, and nobody writes
WHOLE_PROBES = (2, 3)
NOISE = {"noise_multiplier": 1e-4, "scale": 1e-2}  # and the least of each
MOST_NOISE = 1e12
WHOLE = ("count", "k", "sensitivity", "n", "batch", "epochs")
ROUNDED = {"noise_multiplier": rounded_up, "scale": rounded_up, "sampling_prob": rounded_down}


class Target(TypedDict):
    """What may be spent: ε at a δ, or ρ."""

    epsilon: float | None
    delta: float | None
    rho: float | None


@click.command()
@click.argument("template")
@click.option("--epsilon", type=float, help="The target ε, together with --delta.")
@click.option("--delta", type=float, help="The δ at which the target ε holds.")
@click.option("--rho", type=float, help="The target, instead of the two: ρ of zero-concentrated privacy.")
@click.option("--bounds", type=(float, float), metavar="LOW HIGH", help="Where to search.")
@as_json
def calibrate(
    template: str,
    epsilon: float | None,
    delta: float | None,
    rho: float | None,
    bounds: tuple[float, float] | None,
    as_json: bool,
) -> None:
    """Solve the one ? of an event for a target, on the safe side.

    TEMPLATE is the text of an event with a question mark in the place of a number: "gaussian(?) * 100" asks for the
    least noise, "poisson_sampled(gaussian(1.1), ?) * 1000" for the largest sampling rate, "laplace(20) * ?" for the
    largest count. Any other parameter needs --bounds.
    """
    make = _maker(template)
    name = _parameter(make)
    target = Target(epsilon=epsilon, delta=delta, rho=rho)
    found = _solve(make, name, target, bounds)
    if as_json:
        print_json(
            {
                "parameter": name,
                "value": found.value,
                "event": found.event.to_dict(),
                "target": {key: value for key, value in target.items() if value is not None},
                "achieved": bracket_record(found.achieved),
            }
        )
    else:
        print_rows(_rows(name, found, delta))
    if delta is not None:
        warn_of_epsilon(found.achieved, delta)


def _maker(template: str) -> Callable[[float], Event]:
    """From a value of the unknown to the event; the value takes the place of the question mark in the text."""
    from ..accounting import parse_event

    if template.count("?") != 1:
        raise click.UsageError('Write one ? in the place of the number to solve: sitr calibrate "gaussian(?) * 100".')
    with contextlib.suppress(InvalidArgument):  # 1 may be out of range; positions in other errors are those typed
        parse_event(template.replace("?", "1"))
    return lambda value: parse_event(template.replace("?", f"({value!r})"))


def _parameter(make: Callable[[float], Event]) -> str:
    """What the unknown stands for: the parameter in which two events differ."""
    try:
        first, second = (make(value) for value in PROBES)
    except InvalidArgument:
        first, second = (make(value) for value in WHOLE_PROBES)
    name = _difference(first.to_dict(), second.to_dict())
    if name is None:
        raise click.UsageError("The event does not depend on the ?.")
    return name


def _difference(first: Any, second: Any, name: str | None = None) -> str | None:
    """The name of the innermost entry in which two records differ."""
    if first == second:
        return None
    if isinstance(first, dict):
        return next(filter(None, (_difference(first[key], second[key], key) for key in first)))
    if isinstance(first, list):
        return next(filter(None, (_difference(a, b, name) for a, b in zip(first, second, strict=True))))
    return name


def _solve(
    make: Callable[[float], Event], name: str, target: Target, bounds: tuple[float, float] | None
) -> Calibration:
    from ..accounting import calibration

    if bounds is not None:
        whole = name in WHOLE
        low, high = (int(bound) if whole and bound.is_integer() else bound for bound in bounds)
        return calibration.calibrate(make, bounds=(low, high), whole=whole, **target)
    if name in NOISE:
        return calibration.calibrate_noise(make, bounds=(NOISE[name], MOST_NOISE), **target)
    if name == "sampling_prob":
        return calibration.calibrate_sampling_prob(make, **target)
    if name == "count":
        return _largest_count(make, target)
    raise click.UsageError(f"Say where to search for {name}: --bounds LOW HIGH.")


def _largest_count(make: Callable[[int], Event], target: Target) -> Calibration:
    """Walk up until the target is missed, so that no search has to account for counts far beyond it."""
    from ..accounting import calibration
    from ..accounting.events import MOST_COUNT

    low, high = 1, 4
    while high < MOST_COUNT:
        found = calibration.calibrate(make, bounds=(low, high), whole=True, **target)
        if found.value < high:
            return found
        low, high = high, min(16 * high, MOST_COUNT)
    return calibration.calibrate(make, bounds=(low, high), whole=True, **target)


def _rows(name: str, found: Calibration, delta: float | None) -> list[tuple[str, str]]:
    from ..accounting.notation import event_text

    value = ROUNDED[name](found.value, 6) if name in ROUNDED else f"{found.value:.12g}"
    cost = f"ρ = {rounded_up(found.achieved.upper)}" if delta is None else epsilon_text(found.achieved, delta)
    return [(name, value), ("event", event_text(found.event)), (cost, bracket_text(found.achieved))]

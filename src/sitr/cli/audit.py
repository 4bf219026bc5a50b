"""`sitr audit`: attack every mechanism that is shipped, and say what was certified."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..display import rounded_down, rounded_up, scientific
from .output import as_json, print_json

if TYPE_CHECKING:
    from ..audit import AuditReport
    from ..mechanisms import Mechanism

ERROR = 0.05  # of all audits together: the probability of accusing any mechanism wrongly
RISK = 0.01  # the δ of mechanisms that have one: often enough for an audit to see
OFTEN = 200  # the progress bar moves after so many releases


class Case(NamedTuple):
    """A mechanism and two inputs that are neighbours, as far apart as its sensitivity allows."""

    name: str
    mechanism: Mechanism
    first: Any
    second: Any


def catalogue() -> list[Case]:
    """Every mechanism that is shipped: one line each."""
    from .. import mechanisms as m

    some, ages = [0.25] * 8, [4, 5] * 6
    one: Any = {"epsilon": 1.0, "sensitivity": 1, "integers": True}
    pick, scores = {**one, "candidates": ["a", "b"]}, ([0, 1], [1, 0])
    ranks = m.histogram_quantiles(q=[0.5], cells=3, max_rows=1, epsilon=1.0)
    median = m.ptr_median(epsilon=1.0, delta=RISK, bounds=(0, 10), proposed_sensitivity=2, integers=True)
    return [
        Case("laplace, integers", m.laplace(**one), 0, 1),
        Case("laplace, floats", m.laplace(epsilon=1.0, sensitivity=1.0), 0.0, 1.0),
        Case("laplace, vectors", m.laplace(epsilon=1.0, sensitivity=1.0, length=3), [0.0] * 3, [0.0, 1.0, 0.0]),
        Case("gaussian, integers", m.gaussian(scale=2.0, sensitivity=2, integers=True), 0, 2),
        Case("gaussian, floats", m.gaussian(scale=1.0, sensitivity=1.0), 0.0, 1.0),
        Case("gaussian, vectors", m.gaussian(scale=1.0, sensitivity=1.0, length=4), [0.0] * 4, [0.5] * 4),
        Case("bounded_sum, integers", m.bounded_sum(epsilon=1.0, bounds=(0, 10), integers=True), [3], [3, 99]),
        Case("bounded_sum, floats", m.bounded_sum(rho=0.5, bounds=(-1.0, 0.5)), some, [*some, -1.0]),
        Case("bounded_mean", m.bounded_mean(rho=0.5, bounds=(0.0, 1.0)), some, [*some, 1.0]),
        Case("bounded_variance", m.bounded_variance(epsilon=1.0, bounds=(0.0, 1.0)), some, [*some, 1.0]),
        Case("exponential_mechanism", m.exponential_mechanism(**pick), *scores),
        Case("permute_and_flip", m.permute_and_flip(**pick), *scores),
        Case("above_threshold", m.above_threshold(threshold=2, **one), [0, 0, 0, 1], [1, 1, 1, 0]),
        Case("quantile", m.quantile(q=0.5, epsilon=1.0, bounds=(0, 10), integers=True), [5], [5, 0]),
        Case("histogram_quantiles", ranks, [([0, 2], [3, 3])], [([0, 2], [3, 4])]),
        Case("ptr_median", median, ages, [*ages, 9]),
        Case("ptr_mode", m.ptr_mode(epsilon=1.0, delta=RISK), {"a": 5}, {"a": 6}),
        Case("select_partitions", m.select_partitions(epsilon=1.0, delta=RISK), {"a": 5}, {"a": 6}),
        Case("randomized_response", m.randomized_response(epsilon=1.0), 0, 1),
    ]


@click.command(short_help="Attack every mechanism that sitr ships, and report.")
@click.option(
    "--samples",
    type=click.IntRange(100, 10**9),
    default=15_000,
    show_default=True,
    help="Releases of each mechanism for each of two inputs; more of them see smaller bugs.",
)
@as_json
def audit(samples: int, as_json: bool) -> None:
    """Attack every mechanism that sitr ships, and say what was certified.

    An audit never says that a mechanism is right: it certifies a violation, or says what may have escaped. The exit
    code is 1 if a violation is certified; if all mechanisms are right, that happens at most once in twenty runs.
    """
    found = _audited(catalogue(), samples)
    if as_json:
        print_json(_record(found, samples))
    else:
        _print(found, samples)
    if any(report.violated for _, report in found):
        raise click.exceptions.Exit(1)


def _audited(cases: list[Case], samples: int) -> list[tuple[str, AuditReport]]:
    """Audit all cases, with a progress bar on standard error if that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    from ..audit import audit

    console, confidence, found = Console(stderr=True), 1 - ERROR / len(cases), []
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("audit", total=2 * samples * len(cases))
        for case in cases:
            bar.update(task, description=case.name)
            release = _counted(case.mechanism.release, lambda: bar.advance(task, OFTEN))
            claimed = case.mechanism.event
            report = audit(release, case.first, case.second, claimed=claimed, samples=samples, confidence=confidence)
            found.append((case.name, report))
    return found


def _counted(release: Callable[[Any], Any], tick: Callable[[], None]) -> Callable[[Any], Any]:
    """The same function; every so often it ticks."""
    calls = 0

    def counted(value: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls % OFTEN == 0:
            tick()
        return release(value)

    return counted


def _record(found: list[tuple[str, AuditReport]], samples: int) -> dict[str, Any]:
    return {
        "samples": samples,
        "confidence": 1 - ERROR,
        "violations": sum(report.violated for _, report in found),
        "audits": [{"mechanism": name, **report.to_dict()} for name, report in found],
    }


def _print(found: list[tuple[str, AuditReport]], samples: int) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table("mechanism", "claimed", "certified", "event", "verdict", box=box.SIMPLE_HEAD)
    for name, report in found:
        claimed = f"ε = {rounded_up(report.claimed_epsilon)} at δ = {scientific(report.delta)}"
        certified = f"ε ≥ {rounded_down(report.epsilon_lower)}, {rounded_down(report.factor_lower)} × the claim"
        table.add_row(name, claimed, certified, report.witness.words, report.verdict)
    console = Console(highlight=False, markup=False)
    console.print(table)
    console.print(
        f"{samples} samples of each of two inputs; all bounds hold together with confidence {100 * (1 - ERROR):g} %. "
        "× the claim: how far apart the event sets the inputs, over what is allowed; above 1 is a violation."
    )

"""`sitr doctor`: versions, what was found, and a self-test of the accountant."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from .._version import __version__
from .output import as_json, bracket_record, print_json, print_rows

if TYPE_CHECKING:
    from ..accounting import Bracket

NEEDED = ("numpy", "scipy", "sqlalchemy", "click", "rich")
OPTIONAL = {
    "matplotlib": "for the figures: pip install 'sitr[plot]'",
    "psycopg": "for a ledger in PostgreSQL: pip install 'sitr[postgresql]'",
}
ENGINES = dict.fromkeys(("duckdb", "pyspark", "torch"), "nothing needs it yet")
WIDTH = 1e-6  # the widest bracket, relative to its value, that a self-test passes


class Case(NamedTuple):
    """An event whose ε is known another way; `truth` has all the digits it shows."""

    event: str
    delta: float
    truth: str
    source: str


CASES = (
    Case("gaussian(10) * 100", 1e-6, "4.88655411746", "closed form at 40 digits"),
    Case("gaussian(10) * 100", 1e-30, "11.7438830252", "closed form at 40 digits"),
    Case("randomized_response(0.52) * 500", 1e-6, "9.56937048994", "binomial sum at 40 digits"),
    Case("laplace(20) * 1000", 1e-6, "8.20444", "tilted Fourier transform"),
    Case("laplace(20) * 1000", 1e-12, "11.819534", "tilted Fourier transform"),
    Case("poisson_sampled(gaussian(1.1), 256/60000) * 14062", 1e-5, "2.381597", "tilted Fourier transform"),
    Case("poisson_sampled(gaussian(1.1), 256/60000) * 14062", 1e-12, "4.174469", "tilted Fourier transform"),
)


@click.command()
@as_json
def doctor(as_json: bool) -> None:
    """Say what is installed, and test the accountant."""
    versions: dict[str, str | None] = {name: _version(name) for name in NEEDED}
    versions = {"sitr": __version__, "python": platform.python_version(), "platform": platform.platform(), **versions}
    tests = [_tested(case) for case in CASES]
    healthy = all(test["passed"] for test in tests)
    found = {name: _version(name) for name in OPTIONAL | ENGINES}
    if as_json:
        print_json({"versions": versions, "optional": found, "self_test": tests, "healthy": healthy})
    else:
        _print(versions, found, tests, healthy)
    if not healthy:
        raise click.exceptions.Exit(1)


def _print(versions: dict[str, Any], found: dict[str, Any], tests: list[dict[str, Any]], healthy: bool) -> None:
    rows = [(name, version or "MISSING") for name, version in versions.items()]
    notes = OPTIONAL | ENGINES
    rows += [(name, version or f"absent ({notes[name]})") for name, version in found.items()]
    print_rows(rows)
    click.echo()
    for test in tests:
        mark = "ok   " if test["passed"] else "WRONG"
        click.echo(f"{mark} {test['event']}: ε = {test['truth']} at δ = {test['delta']:g}")
    click.echo()
    click.echo("The accountant is well." if healthy else "The accountant is NOT well: do not trust its numbers here.")


def _version(name: str) -> str | None:
    """The installed version, or None; nothing is imported."""
    if importlib.util.find_spec(name) is None:
        return None
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "unknown version"


def _tested(case: Case) -> dict[str, Any]:
    try:
        from ..accounting import parse_event

        bracket = parse_event(case.event).epsilon(case.delta)
    except Exception as error:  # whatever ails the installation, the doctor says so and goes on
        return {**case._asdict(), "epsilon": None, "error": type(error).__name__, "passed": False}
    return {**case._asdict(), "epsilon": bracket_record(bracket), "passed": _holds(bracket, case.truth)}


def _holds(bracket: Bracket, truth: str) -> bool:
    """Whether the bracket is narrow, and meets the interval of all numbers that round to `truth`."""
    half = 0.5 * 10.0 ** -len(truth.partition(".")[2])
    known = float(truth)
    return bool(bracket.lower <= known + half and known - half <= bracket.upper and bracket.width <= WIDTH * known)

"""`sitr doctor`: versions, what was found, and self-tests of the accountant and of the engines."""

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
    "psycopg": "for a ledger or tables in PostgreSQL: pip install 'sitr[postgresql]'",
    "duckdb": "for tables in files and frames: pip install duckdb",
    "pyspark": "for tables in Spark: pip install 'sitr[spark]'",
    "torch": "nothing needs it yet",
}
DRIVERS = {"duckdb": "duckdb", "postgresql": "psycopg", "spark": "pyspark"}
UNTRIED, FELL = "not tested", "does not run"
BAD = ("failed", FELL)
NOTES = {
    "duckdb": "",
    "postgresql": "sitr doctor --postgresql ADDRESS tests a server; opening one tests it too",
    "spark": "sitr doctor --engines starts and tests it; opening it tests it too",
}
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
@click.option("--engines", is_flag=True, help="Test Spark too, which is started for it: half a minute.")
@click.option("--postgresql", metavar="ADDRESS", help="Test the server at postgresql://user@host/database.")
@as_json
def doctor(engines: bool, postgresql: str | None, as_json: bool) -> None:
    """Say what is installed, and test the accountant and the engines."""
    versions: dict[str, str | None] = {name: _version(name) for name in NEEDED}
    versions = {"sitr": __version__, "python": platform.python_version(), "platform": platform.platform(), **versions}
    tests = [_tested(case) for case in CASES]
    found = {name: _version(name) for name in OPTIONAL}
    addresses = {"duckdb": "", "postgresql": postgresql, "spark": "local[2]" if engines else None}
    tried = {name: _tried(name, address) for name, address in addresses.items()}
    sound = all(test["passed"] for test in tests)
    healthy = sound and all(engine["status"] not in BAD for engine in tried.values())
    if as_json:
        record = {"versions": versions, "optional": found, "self_test": tests, "engines": tried, "healthy": healthy}
        print_json(record)
    else:
        _print(versions, found, tests, sound)
        _print_engines(tried)
    if not healthy:
        raise click.exceptions.Exit(1)


def _print(versions: dict[str, Any], found: dict[str, Any], tests: list[dict[str, Any]], healthy: bool) -> None:
    rows = [(name, version or "MISSING") for name, version in versions.items()]
    rows += [(name, version or f"absent ({OPTIONAL[name]})") for name, version in found.items()]
    print_rows(rows)
    click.echo()
    for test in tests:
        mark = "ok   " if test["passed"] else "WRONG"
        click.echo(f"{mark} {test['event']}: ε = {test['truth']} at δ = {test['delta']:g}")
    click.echo()
    failed = "Accountant self-test FAILED: do not trust its numbers here."
    click.echo("Accountant self-test passed." if healthy else failed)


def _print_engines(tried: dict[str, dict[str, Any]]) -> None:
    click.echo()
    for name, engine in tried.items():
        version = f" {engine['version']}" if engine["version"] else ""
        click.echo(f"{name}{version}: {engine['status']}{f' ({NOTES[name]})' if engine['status'] == UNTRIED else ''}")
        for check in engine["failed"]:
            click.echo(f"  WRONG {check}")


def _tried(name: str, address: str | None) -> dict[str, Any]:
    """What an engine's tests found; its declared tables are not touched, since there are none."""
    if _version(DRIVERS[name]) is None:
        return {"version": None, "status": "absent", "failed": []}
    if address is None:
        return {"version": None, "status": UNTRIED, "failed": []}
    try:
        from ..session.database import connect
        from ..tables.conformance import report
        from ..tables.declaration import Declaration

        nothing = {"none": {"public": True, "columns": {"none": {"type": "boolean"}}}}
        content = {"sitr": 1, "name": "none", "connection": {"engine": name, "address": address}, "tables": nothing}
        source = connect(Declaration.of(content))
        try:
            found = report(source)
        finally:
            source.close()
    except Exception as error:  # whatever ails the engine, the doctor says so and goes on
        return {"version": None, "status": FELL, "failed": [type(error).__name__]}
    return {"version": found.version, "status": "passed" if found.passed else "failed", "failed": list(found.failed)}


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

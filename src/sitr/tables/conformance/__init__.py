"""Whether an engine computes what we take it to compute: tiny tables of our own, and answers that are known.

Ibis writes queries down; it does not promise that engines mean the same by them. An engine that fails a check here is
not opened: a bound that does not hold, or a row that raises, would void the promise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...errors import EngineFailed
from ..source import Source
from .bounds import bounds_hold, chance_holds
from .conditions import conditions_hold
from .moments import moments_hold
from .numbers import numbers_hold
from .sums import sums_hold
from .texts import texts_hold
from .trial import Trial

_known: dict[tuple[str, ...], Report] = {}


@dataclass(frozen=True)
class Report:
    """What was found of an engine.

    Attributes:
        engine: Its name.
        version: As it says itself.
        checks: "passed", "wrong" or "did not run" for each check, by what it holds.
    """

    engine: str
    version: str
    checks: Mapping[str, str]

    @property
    def failed(self) -> tuple[str, ...]:
        """The checks that did not pass."""
        return tuple(name for name, found in self.checks.items() if found != "passed")

    @property
    def passed(self) -> bool:
        """Whether all did."""
        return not self.failed


def check(source: Source) -> Report:
    """Test an engine; the declared tables are not touched.

    Example:
        >>> from sitr.tables import Declaration
        >>> from sitr.tables.duckdb import DuckDB
        >>> nothing = {"type": "boolean"}
        >>> table = {"unit": "row", "columns": {"x": nothing}}
        >>> declared = Declaration.of({"sitr": 1, "name": "none", "tables": {"none": table}})
        >>> check(DuckDB(declared)).failed
        ()
    """
    trial = Trial(source)
    found: dict[str, str] = {}
    for group in CHECKS:
        try:
            found |= {name: "passed" if right else "wrong" for name, right in group.compare(trial).items()}
        except EngineFailed:
            found |= dict.fromkeys(group.names, "did not run")
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):  # an answer of another shape
            found |= dict.fromkeys(group.names, "wrong")
    return Report(source.engine, source.version, found)


def report(source: Source) -> Report:
    """Return what was found of an engine; it is tested once in a process, for each way it is set up."""
    key = source.tested_as
    if key not in _known:
        _known[key] = check(source)
    return _known[key]


def require(source: Source) -> None:
    """Refuse an engine that failed.

    Raises:
        EngineFailed: It does not compute what we take it to.
    """
    found = report(source)
    if not found.passed:
        raise EngineFailed(
            f"{source.engine} {source.version} is not to be trusted: {'; '.join(found.failed)}.",
            why="it was tested on tables of our own, and an answer was not the known one.",
            do="take another version of it; `sitr doctor` shows the checks that failed.",
        )


@dataclass(frozen=True)
class Checks:
    """Checks that are made together.

    Attributes:
        names: What each of them holds, in words.
        compare: Makes them, and says of each whether the answer was the known one.
    """

    names: tuple[str, ...]
    compare: Callable[[Trial], dict[str, bool]]


CHECKS = (
    Checks(
        (
            "NaN is missing",
            "floats are clipped and rounded exactly",
            "whole numbers reach from -2^63 to 2^64",
            "arithmetic is exact, and division by zero is missing",
            "decimals are exact",
            "logic has three values",
        ),
        numbers_hold,
    ),
    Checks(
        ("a condition inside another keeps its meaning", "rows are chosen and grouped by conditions"), conditions_hold
    ),
    Checks(
        (
            "dates and times count from 1970, before it too",
            "truncation, weeks too",
            "parts of dates and times",
            "time zones",
            "dates and times are compared",
        ),
        moments_hold,
    ),
    Checks(("text is equal only to itself", "text keeps groups apart, under any name"), texts_hold),
    Checks(("sums are exact beyond 64 bits",), sums_hold),
    Checks(
        (
            "a unit keeps its bound of rows, and the mix says which",
            "a unit keeps its bound of groups, a missing one too",
        ),
        bounds_hold,
    ),
    Checks(("a random column chooses rows",), chance_holds),
)

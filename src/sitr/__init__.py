"""sitr: publish what you learn from sensitive data without exposing anyone in it.

`sitr.open` opens a database by its declaration; `sitr.count()` and its like are what can be asked of it. The rooms
below (`sitr.accounting`, `sitr.mechanisms`, `sitr.ledger`, `sitr.audit`) are imported by name. Importing `sitr` loads
no engine.

Messages go to ``logging.getLogger("sitr")``, which is silent until the program that uses sitr asks for them.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from ._version import __version__

if TYPE_CHECKING:
    from .query.aggregates import (
        correlation,
        count,
        count_distinct,
        count_units,
        covariance,
        histogram,
        max,
        mean,
        median,
        min,
        quantile,
        stddev,
        sum,
        variance,
    )
    from .session.database import Database

__all__ = [
    "__version__",
    "correlation",
    "count",
    "count_distinct",
    "count_units",
    "covariance",
    "histogram",
    "max",
    "mean",
    "median",
    "min",
    "open",
    "quantile",
    "stddev",
    "sum",
    "variance",
]

logging.getLogger("sitr").addHandler(logging.NullHandler())


def open(declaration: Any, **options: Any) -> Database:
    """Open a database by its declaration: see `sitr.session.open`, whose arguments these are."""
    from .session.database import open as opened

    return opened(declaration, **options)


def __getattr__(name: str) -> Any:
    """An aggregate, when it is first used: the command line and the accountant do not wait for it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .query import aggregates

    return getattr(aggregates, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"Any", "TYPE_CHECKING", "annotations", "logging"})

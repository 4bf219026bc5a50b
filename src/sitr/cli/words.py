"""What the library says in Python's words, in those of the command line: arguments are options here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import CannotCalibrate, InvalidArgument, NotAllowed, NotPermitted, UselessQuestion

PHRASES = {
    "pass bounds=(lower, upper), or find them by profile(...)": (
        "or state them: AVG(x, contribution_bounds_per_row => (0, 100))"
    ),
    "pass epsilon, delta": "pass --epsilon 0.5 --delta 1e-6",
    "a budget has one limit: epsilon, epsilon and delta, or rho": "a budget has one limit: ε, ε and δ, or ρ",
    "Budget(epsilon=1)": "--epsilon 1, --epsilon 1 --delta 1e-6, or --rho 0.1",
    "column.isin([...])": "x IN ('a', 'b')",
    "explain()": "sitr explain",
    "pass anyway=True": "add --anyway",
    # Who may is not listed here: a name that is offered is soon borrowed.
    'sitr.open(..., analyst="NAME")': "--analyst NAME",
}
ARGUMENT = re.compile(r"\b(epsilon|delta|rho|error|operation|analyst|purpose|reason|impossible|determines)=")
BOUND = re.compile(r"\bmax_(rows|groups)_per_(unit|group)(=|\b)")


def in_options(text: str) -> str:
    """Return a message with options where it has arguments of Python.

    Example:
        >>> in_options("pass epsilon=0.5, or max_rows_per_unit.")
        'pass --epsilon 0.5, or --max-rows-per-unit.'
    """
    for python, here in PHRASES.items():
        text = text.replace(python, here)
    text = BOUND.sub(lambda found: f"--max-{found[1]}-per-{found[2]}{' ' if found[3] else ''}", text)
    return ARGUMENT.sub(r"--\1 ", text)


@contextmanager
def speaking_options() -> Iterator[None]:
    """Let what is refused inside be refused in the words of the command line."""
    try:
        yield
    except (InvalidArgument, NotAllowed, NotPermitted, CannotCalibrate, UselessQuestion) as error:
        raise type(error)(in_options(error.what), why=in_options(error.why), do=in_options(error.do)) from None

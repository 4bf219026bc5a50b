"""A reason: what owners say when they change what a book holds, for every report to show."""

from __future__ import annotations

from typing import Any

from ..errors import InvalidArgument

LONGEST_REASON = 500  # characters


def check_reason(text: Any) -> str:
    """Return a reason, if it is one.

    Raises:
        InvalidArgument: It is empty, longer than a line, or holds what cannot be printed.

    Example:
        >>> check_reason("second wave")
        'second wave'
    """
    return check_line("a reason", text)


def check_line(what: str, text: Any) -> str:
    """Return a line that every report can show.

    Args:
        what: What it is, for the error.
        text: The line.

    Raises:
        InvalidArgument: It is none.

    Example:
        >>> check_line("a notion", "random DP")
        'random DP'
    """
    if not isinstance(text, str) or not text.strip() or not text.isprintable() or len(text) > LONGEST_REASON:
        raise InvalidArgument(
            f"{what} is a line of up to {LONGEST_REASON} characters.", why="every report shows it.", do="Shorten it."
        )
    return text

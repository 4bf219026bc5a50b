"""How a budget burns down: what was left of it after every charge, with every raise marked and explained."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from ..display import rounded_down
from ..ledger.change import WORDS
from ..ledger.outside import STAMP
from ..pictures import BLUE, GREEN, ORANGE, VERMILION, date_axis, drawn, empty_figure, format_of, plain, say_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..ledger import Point, Statement

FEW = 60  # charges that are drawn as dots as well
LINE = 118  # characters of a line under the axes
ROOM = 0.04  # of the time shown, after the last charge: what is left now is seen as a step, too
DAY = 86400  # seconds
SHORTEST = 60 / DAY  # the least that the axis shows, where everything happened at once


def write_burn_down(path: str | Path, statement: Statement) -> None:
    """Draw what was left of a budget over time, as a share of the promise of the day.

    Args:
        path: A .svg or .png file; it is overwritten.
        statement: What `Ledger.statement` says of the budget.

    Raises:
        InvalidArgument: The file is of another kind.
        MissingExtra: matplotlib is not installed.
    """
    format_of(path)  # before anything is drawn
    drawn(lambda: draw_burn_down(statement)).save(path)


def draw_burn_down(statement: Statement) -> Figure:
    """Return the picture that `write_burn_down` writes."""
    points = statement.points
    under = _under(statement, points)
    figure, axes = empty_figure(plain(f"{statement.name}: {statement.promise}"), (10, 4.2 + 0.17 * len(under)))
    panel: Axes = axes[0, 0]
    times = _times(points)
    left = [100 * point.left for point in points]
    end = times[0] + max((times[-1] - times[0]) * (1 + ROOM), SHORTEST)
    panel.step([*times, end], [*left, left[-1]], where="post", color=BLUE, solid_joinstyle="miter")
    panel.fill_between([*times, end], [*left, left[-1]], step="post", color=BLUE, alpha=0.08, linewidth=0)
    if len(points) <= FEW:
        panel.plot(times, left, "o", color=BLUE, markersize=3.5)
    parts = [100 * point.delta_left for point in points if point.delta_left is not None]
    if len(parts) == len(points):  # what is kept for δ-parts is spent apart
        panel.step([*times, end], [*parts, parts[-1]], where="post", color=ORANGE, linestyle="--")
        _annotate(panel, end, parts[-1], "δ part: ", ORANGE, above=parts[-1] > left[-1])
    _mark_changes(panel, points, times)
    _mark_refunds(panel, points, times)
    apart = len(parts) == len(points)
    _annotate(panel, end, left[-1], "ε part: " if apart else "", BLUE, above=not apart or left[-1] >= parts[-1])
    panel.set(ylabel="budget left (% of the limit at the time)", xlim=(times[0], end), ylim=(0, 108))
    panel.set_yticks(range(0, 101, 20), [f"{share} %" for share in range(0, 101, 20)])
    say_below(panel, under)
    date_axis(panel)
    return figure


def _annotate(panel: Axes, end: float, left: float, what: str, color: str, *, above: bool) -> None:
    """Say at the end of a line what is left; two that end close to each other do not cover one another."""
    shift = (6, 0) if not what else (6, 6 if above else -6)
    text = f"{what}{rounded_down(left)} % left"
    panel.annotate(text, (end, left), shift, textcoords="offset points", va="center", color=color)


def _times(points: Sequence[Point]) -> list[float]:
    """When each happened, in days since 1970, as matplotlib counts them.

    A clock that was set back does not bend the line: the order of entries counts.
    """
    return list(accumulate((datetime.fromisoformat(point.at).timestamp() / DAY for point in points), max))


def _mark_changes(panel: Axes, points: Sequence[Point], times: Sequence[float]) -> None:
    changed = [time for point, time in zip(points, times, strict=True) if point.kind in WORDS]
    for number, time in enumerate(changed, 1):
        panel.axvline(time, color=VERMILION, linestyle="--", linewidth=1.2)
        circle = {"boxstyle": "circle,pad=0.25", "facecolor": "white", "edgecolor": VERMILION}
        panel.text(time, 104, str(number), color=VERMILION, fontsize=9, ha="center", va="center", bbox=circle)


def _mark_refunds(panel: Axes, points: Sequence[Point], times: Sequence[float]) -> None:
    refunds = [(time, 100 * point.left) for point, time in zip(points, times, strict=True) if point.kind == "refund"]
    if refunds:
        panel.plot(*zip(*refunds, strict=True), "^", color=GREEN, markersize=7)


def _under(statement: Statement, points: Sequence[Point]) -> list[str]:
    """What is said under the axes: every change by its number, with its date and reason, and the head of the book."""
    first = statement.promises[0]
    said = [f"promised on {first[0][:10]}: {first[1]}"] if statement.changes else []
    said += [f"before: {text}" for text in statement.before]
    said += [f"{number}  {change}" for number, change in enumerate(statement.changes, 1)]
    said += [f"{STAMP}: {one}" for one in statement.outside]
    said += ["▲  refunded, since it never started"] if any(point.kind == "refund" for point in points) else []
    said.append(f"dates in UTC; head {statement.head} of ledger {statement.ledger}")
    return [line for text in said for line in textwrap.wrap(text, LINE, subsequent_indent="    ")]

"""An answer as a picture: a bar for each row, or lines over time, with the interval of each number."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import _validate
from ..display import counted
from ..errors import InvalidArgument
from ..pictures import BLACK, BLUE, GREEN, GREY, ORANGE, SKY, VERMILION, date_axis, empty_figure, plain, say_below
from ..release import NOT_PRIVATE
from .cells import key_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .answer import Answer

COLOURS = (BLUE, ORANGE, GREEN, VERMILION, SKY, BLACK, GREY)  # of lines, of which there are no more
BARS = 40  # rows that are drawn as bars
PANELS = 4  # numbers that are drawn unless they are named
LONGEST = 30  # characters of a label
LINE = 105  # characters of a line under the axes
EMPTY = "(empty)"  # the label of a key that is an empty text
INTERVALS = "Thin lines are the 95 % intervals of the noise."
BANDS = "Shaded, or thin lines where there is one point: the 95 % intervals of the noise."

Floats = NDArray[np.float64]


def draw(answer: Answer, names: Sequence[Any] = ()) -> Figure:
    """Return the picture of some numbers of an answer, one below the other.

    Args:
        answer: What is drawn.
        names: Of the numbers; the first few by default.

    Raises:
        InvalidArgument: A name is none of a number, or there is nothing to draw.
    """
    chosen, over = _chosen(answer, names), _time_key(answer)
    under = [line for said in _said(answer, over) for line in textwrap.wrap(said, LINE)]
    each = 3.2 if over is not None else 0.9 + 0.27 * min(len(answer), BARS)
    stamp = "" if answer.private else f" ({NOT_PRIVATE})"
    title = f"{', '.join(chosen)}{' by ' if answer.keys else ''}{', '.join(answer.keys)}{stamp}"
    figure, axes = empty_figure(plain(title), (9, 0.8 + each * len(chosen) + 0.17 * len(under)), len(chosen))
    for panel, name in zip(axes[:, 0], chosen, strict=True):
        if over is None:
            _draw_bars(panel, answer, name)
        else:
            _draw_lines(panel, answer, name, over)
        if len(chosen) > 1:
            panel.set_title(name, loc="left", parse_math=False)
    say_below(axes[-1, 0], under)
    return figure


def _chosen(answer: Answer, names: Sequence[Any]) -> Sequence[str]:
    """The numbers that are drawn."""
    numbers = [name for name in answer.raw if all(_is_number(cell) for cell in answer.value[name])]
    for name in names:
        if name not in numbers:
            hint = _validate.meant(name, numbers) if isinstance(name, str) else ""
            what = f"{_validate.shown(name)} is not a number of this answer."
            raise InvalidArgument(what, do=f"{hint}Numbers: {', '.join(numbers) or 'none'}.")
    if not numbers or not len(answer):
        what = "there is no row to draw." if numbers else "there is no number to draw."
        raise InvalidArgument(what, do="look at the answer and its remarks: print(answer).")
    return names or numbers[:PANELS]


def _is_number(cell: Any) -> bool:
    return cell is None or (isinstance(cell, (int, float)) and not isinstance(cell, bool))


def _time_key(answer: Answer) -> str | None:
    """The first key that holds dates or times; None if there is none."""
    for name in answer.keys:
        known = [cell for cell in answer.value[name] if cell is not None]
        if known and all(isinstance(cell, date) for cell in known):
            return name
    return None


def _said(answer: Answer, over: str | None) -> list[str]:
    """What stands under the picture: what its lines are, what is left out, and the remarks of the answer."""
    said = [INTERVALS if over is None else BANDS]
    if over is None:
        said += [f"The first {BARS} of {counted(len(answer), 'row')} are drawn."] if len(answer) > BARS else []
    else:
        lines, missing = len(_series(answer, over)), sum(cell is None for cell in answer.value[over])
        said += [f"The first {len(COLOURS)} of {lines} lines are drawn."] if lines > len(COLOURS) else []
        said += [f"{counted(missing, 'row')} without {over} cannot be drawn."] if missing else []
    return [*said, *answer.notes]


def _series(answer: Answer, over: str) -> dict[tuple[Any, ...], list[int]]:
    """The rows of each line, in the order of time: a line for each choice of the other keys."""
    others = [answer.value[name] for name in answer.keys if name != over]
    series: dict[tuple[Any, ...], list[int]] = {}
    for row, time in enumerate(answer.value[over]):
        if time is not None:
            series.setdefault(tuple(cells[row] for cells in others), []).append(row)
    return {label: sorted(rows, key=lambda row: answer.value[over][row]) for label, rows in series.items()}


def _label(keys: Sequence[Any]) -> str:
    text = ", ".join(key_text(key) or EMPTY for key in keys)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _floats(cells: Sequence[Any], rows: Sequence[int]) -> Floats:
    """Some cells as numbers; what is missing is not a number, and is not drawn."""
    return np.array([np.nan if cells[row] is None else cells[row] for row in rows], dtype=np.float64)


def _draw_bars(panel: Axes, answer: Answer, name: str) -> None:
    """A bar for each of the first rows, from the top."""
    rows = range(len(answer))[:BARS]
    places = np.arange(len(rows))
    panel.barh(places, np.nan_to_num(_floats(answer.value[name], rows)), 0.7, color=BLUE, alpha=0.75)
    panel.hlines(*_intervals(answer, name, rows, places), color=BLACK, linewidth=1.2)
    panel.set_yticks(places, [_label([answer.value[key][row] for key in answer.keys]) for row in rows])
    for label in panel.get_yticklabels():
        label.set_parse_math(False)
    panel.set_ylim(len(rows) - 0.4, -0.6)
    panel.grid(visible=False, axis="y")


def _draw_lines(panel: Axes, answer: Answer, name: str, over: str) -> None:
    """A line over time for each choice of the other keys."""
    series = _series(answer, over)
    lines = []
    for colour, (keys, rows) in zip(COLOURS, series.items(), strict=False):
        times = np.array([answer.value[over][row] for row in rows], dtype="datetime64[us]")
        numbers = _floats(answer.value[name], rows)
        lines += panel.plot(times, numbers, "o-", color=colour, markersize=4, label=_label(keys))
        known, low, high = _intervals(answer, name, rows, times)
        if len(known) > 1:  # thin lines of several months would hide one another
            panel.fill_between(known, low, high, color=colour, alpha=0.15, linewidth=0)
        else:
            panel.vlines(known, low, high, color=colour, linewidth=1.2)
    date_axis(panel)
    bottom, top = panel.get_ylim()
    if 0 < bottom < top - bottom:  # zero is so near that a picture without it would exaggerate
        panel.set_ylim(bottom=0)
    if len(series) > 1:
        # Named one by one: matplotlib itself leaves out what begins with "_".
        labels = [str(line.get_label()) for line in lines]
        legend = panel.legend(lines, labels, loc="center left", bbox_to_anchor=(1.01, 0.5))
        for text in legend.get_texts():
            text.set_parse_math(False)


def _intervals(
    answer: Answer, name: str, rows: Sequence[int], places: NDArray[Any]
) -> tuple[NDArray[Any], Floats, Floats]:
    """The intervals that are known: where each is drawn, and from where to where."""
    low, high = (_floats(ends[name], rows) for ends in (answer.low, answer.high))
    known = np.isfinite(low) & np.isfinite(high)
    return places[known], low[known], high[known]

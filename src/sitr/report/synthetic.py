"""Pictures of the quality of a synthetic table: its columns, beside the real ones in a test, and a map of its pairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..pictures import BLUE, FORMATS, ORANGE, empty_figure
from ..release import NOT_PRIVATE
from .figures import write_pictures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..synthesis.quality import Marginal, Quality

ACROSS = 3  # panels in a row
BARS = 10  # values of a column that are drawn as bars; the rest is one
LONGEST = 16  # characters of a label,
NARROW = 8  # and of one of which several stand side by side
WRITTEN = 18  # columns of a map in which numbers are written
DARK = 0.6  # of the scale: over it, numbers are white


def write_quality(folder: str | Path, quality: Quality, formats: Iterable[str] = FORMATS) -> list[Path]:
    """Draw the columns of a synthetic table, and a map of the errors of its pairs, into a folder.

    Args:
        folder: Where to; it is made if it is not there.
        quality: What `SyntheticTable.quality` returns; what was compared with real rows is drawn beside them.
        formats: Of the pictures: "svg", "png", or both.

    Returns:
        The files, in the order they were written.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    pictures = {"marginals": lambda: draw_marginals(quality)}
    if len(quality.columns) > 1:
        pictures["pairs"] = lambda: draw_pairs(quality)
    return write_pictures(folder, pictures, formats)


def draw_marginals(quality: Quality) -> Figure:
    """Return the picture of the columns: the shares of their values, and in a test the real ones beside them."""
    down = math.ceil(len(quality.marginals) / ACROSS)
    title = "Columns of the synthetic table" + _stamp(quality)
    figure, axes = empty_figure(title, (11, 0.9 + 2.5 * down), down, ACROSS)
    for panel, one in zip(axes.flat, quality.marginals, strict=False):
        real = None if quality.comparison is None else quality.comparison.shares[one.name]
        (_draw_ordered if one.ordered else _draw_values)(panel, one, real)
        apart = "" if quality.comparison is None else f": distance {quality.comparison.singles[one.name]:.3f}"
        panel.set_title(f"{one.name}{apart}", loc="left", parse_math=False)
    for panel in axes.flat[len(quality.marginals) :]:
        panel.set_axis_off()
    if quality.comparison is not None:
        from matplotlib.patches import Patch

        handles = [Patch(color=BLUE, label="synthetic"), Patch(color=ORANGE, label="real")]
        figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


def draw_pairs(quality: Quality) -> Figure:
    """Return the map of pairs: true distances in a test, measured ones where the fit was checked, or expected errors.

    Pairs of which no table was measured have a frame where distances are drawn, and are left empty elsewhere.
    """
    what, errors = _drawn(quality)
    names, values = quality.columns, _matrix(quality.columns, errors)
    size = max(5.5, 2.6 + 0.52 * len(names))
    figure, axes = empty_figure(what + _stamp(quality), (size + 1.6, size), 1, 1)
    panel: Axes = axes[0, 0]
    top = max(float(np.nanmax(values)) if np.isfinite(values).any() else 0.0, 1e-3)
    image = panel.imshow(values, cmap="Blues", vmin=0, vmax=top)
    _write_numbers(panel, values, top)
    _mark_unmeasured(panel, quality, framed=quality.comparison is not None or quality.fit is not None)
    panel.set_xticks(range(len(names) - 1), [_short(name) for name in names[:-1]], rotation=45, ha="right")
    panel.set_yticks(range(len(names) - 1), [_short(name) for name in names[1:]])
    for label in (*panel.get_xticklabels(), *panel.get_yticklabels()):
        label.set_parse_math(False)
    panel.grid(visible=False)
    panel.spines[["left", "bottom"]].set_visible(False)
    panel.tick_params(length=0)
    bar = figure.colorbar(image, ax=panel, shrink=0.7, label="total variation, % of the rows")
    bar.ax.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.3g}")
    bar.outline.set_visible(False)
    return figure


def _drawn(quality: Quality) -> tuple[str, Mapping[Any, float]]:
    """What the map of pairs shows, in words and by pair."""
    if quality.comparison is not None:
        return "True distance of each pair of columns", quality.comparison.pairs
    if quality.fit is not None:
        return "Distance of each pair of columns, measured with noise", quality.pair_fit
    return "Expected error of each measured pair of columns", quality.pair_errors


def _matrix(names: Sequence[str], errors: Mapping[Any, float]) -> NDArray[np.float64]:
    """Of each column but the first, by those before it: what is drawn, or nothing."""
    values = np.full((len(names) - 1, len(names) - 1), np.nan)
    for one, other in errors:
        first, second = sorted((names.index(one), names.index(other)))
        values[second - 1, first] = errors[one, other]
    return values


def _write_numbers(panel: Axes, values: NDArray[np.float64], top: float) -> None:
    if len(values) >= WRITTEN:
        return
    for row, column in zip(*np.nonzero(np.isfinite(values)), strict=True):
        share = float(values[row, column])
        text = f"{100 * share:.1f}" if share < 0.0995 else f"{100 * share:.0f}"
        color = "white" if share > DARK * top else "#222222"
        panel.text(column, row, text, ha="center", va="center", fontsize=8, color=color)


def _mark_unmeasured(panel: Axes, quality: Quality, *, framed: bool) -> None:
    from matplotlib.patches import Rectangle

    names = quality.columns
    for pair in quality.unmeasured:
        first, second = sorted(names.index(name) for name in pair)
        if framed:
            frame = Rectangle((first - 0.44, second - 1.44), 0.88, 0.88, fill=False, edgecolor=ORANGE, linewidth=1.3)
            panel.add_patch(frame)
        else:
            panel.text(first, second - 1, "–", ha="center", va="center", color="#777777")
    if quality.unmeasured:
        sign = "framed" if framed else "–"
        said = f"{sign}: not measured, as they seemed nearly independent"
        panel.text(1, 1, said, transform=panel.transAxes, ha="right", va="top", fontsize=9, color="#444444")


def _draw_ordered(panel: Axes, one: Marginal, real: NDArray[np.float64] | None) -> None:
    """A line over the cells in order; what is missing is said in words."""
    known = len(one.labels) - (one.labels[-1] == "(missing)")
    edges = np.arange(known + 1) - 0.5
    panel.stairs(100 * one.shares[:known], edges, fill=True, color=BLUE, alpha=0.55)
    if real is not None:
        panel.stairs(100 * real[:known], edges, color=ORANGE, linewidth=1.4)
    wide = max(map(len, one.labels[:known])) > NARROW
    ticks = np.unique(np.linspace(0, known - 1, 2 if wide else 4).round().astype(int))
    panel.set_xticks(ticks, [_short(one.labels[tick]) for tick in ticks])
    if wide:  # dates and times: the two ends, inside the panel
        first, *_, last = panel.get_xticklabels()
        first.set_horizontalalignment("left")
        last.set_horizontalalignment("right")
    panel.set(xlim=(-0.5, known - 0.5), ylabel="% of the rows")
    top = max(float(shares[:known].max(initial=1e-6)) for shares in (one.shares, one.shares if real is None else real))
    panel.set_ylim(0, 100 * top * 1.2)  # room for words over it
    if known < len(one.labels):
        beside = "" if real is None else f" ({100 * real[-1]:.1f} % in truth)"
        said = f"missing: {100 * one.shares[-1]:.1f} %{beside}"
        panel.text(0.98, 0.96, said, transform=panel.transAxes, ha="right", va="top", fontsize=8, color="#444444")


def _draw_values(panel: Axes, one: Marginal, real: NDArray[np.float64] | None) -> None:
    """Bars of the most frequent values, from the top."""
    order = np.argsort(-one.shares, kind="stable")
    first, rest = order[:BARS], order[BARS:]
    labels = [_short(one.labels[place]) for place in first] + ([f"{len(rest)} others"] if rest.size else [])
    places = np.arange(len(labels))
    height = 0.8 if real is None else 0.4
    shift = 0.0 if real is None else height / 2
    panel.barh(places - shift, _gathered(one.shares, first, rest), height, color=BLUE)
    if real is not None:
        panel.barh(places + shift, _gathered(real, first, rest), height, color=ORANGE)
    panel.set_yticks(places, labels, fontsize=8)
    for label in panel.get_yticklabels():
        label.set_parse_math(False)
    panel.set(xlabel="% of the rows", ylim=(max(len(labels), 3) - 0.4, -0.6))
    panel.grid(visible=False, axis="y")


def _gathered(shares: NDArray[np.float64], first: Any, rest: Any) -> Sequence[float]:
    return [*(100 * shares[first]).tolist(), *([float(100 * shares[rest].sum())] if rest.size else [])]


def _short(label: str) -> str:
    return label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"


def _stamp(quality: Quality) -> str:
    return "" if quality.comparison is None else f" ({NOT_PRIVATE})"

"""A picture of a training run: what it had cost after each step, and how its loss went."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..display import scientific
from ..pictures import BLUE, FORMATS, ORANGE, empty_figure
from .figures import write_pictures

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..learning.explanation import Trace


def write_training(folder: str | Path, trace: Trace, formats: Iterable[str] = FORMATS) -> list[Path]:
    """Draw a training run into a folder.

    Args:
        folder: Where to; it is made if it is not there.
        trace: What `Run.trace` returns; losses that were not measured privately are marked NOT PRIVATE.
        formats: Of the pictures: "svg", "png", or both.

    Returns:
        The files, in the order they were written.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    return write_pictures(folder, {"training": lambda: draw_training(trace)}, formats)


def draw_training(trace: Trace) -> Figure:
    """Return the picture: ε over steps and, where losses are known, these below it."""
    down = 2 if trace.losses.size else 1
    figure, axes = empty_figure("A training run", (9, 0.9 + 3.1 * down), down, 1)
    cost = axes[0, 0]
    cost.plot(trace.steps, trace.epsilon, color=BLUE)
    cost.set(xlabel="steps", ylabel=f"ε at δ = {scientific(trace.delta)}")
    cost.set_ylim(bottom=0)
    if trace.losses.size:
        loss = axes[1, 0]
        loss.plot(np.arange(1, trace.losses.size + 1), trace.losses, color=ORANGE)
        loss.set(xlabel="steps", ylabel="mean loss")
        loss.set_title(trace.losses_label, loc="left")
    return figure

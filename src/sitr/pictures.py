"""The style that all pictures share, and how they are shown and saved: SVG and PNG, the same file every time.

Drawing needs matplotlib, the extra `plot`; it is imported only when something is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from . import _validate
from .errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("svg", "png")

# Okabe and Ito's colours, which people with any colour vision can tell apart.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, GREY = "#0072B2", "#D55E00", "#777777"
SAID = "#444444"  # of what is said beside a picture

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.7,
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "legend.handlelength": 2.8,
    "lines.linewidth": 1.9,
    "figure.titlesize": 13,
    "figure.titleweight": "bold",
    "figure.dpi": 160,
    "savefig.dpi": 160,
    "svg.hashsalt": "sitr",  # the same file every time
}
METADATA: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "png": {"Software": None}}


class Drawing:
    """A picture that notebooks show, and that is saved as SVG or PNG.

    Attributes:
        figure: That of matplotlib, for whoever wants to change something in it.
    """

    def __init__(self, figure: Figure) -> None:
        self.figure = figure

    def save(self, path: str | Path) -> None:
        """Write the picture to a .svg or .png file, which is overwritten.

        Raises:
            InvalidArgument: The file is of another kind.
        """
        form = format_of(path)
        with open(path, "wb") as file:
            self.write(file, form)

    def write(self, file: IO[bytes], form: str) -> None:
        """Write the picture to an open file, as "svg" or "png"."""
        from matplotlib import rc_context

        with rc_context(STYLE):
            self.figure.savefig(file, format=form, metadata=METADATA[form])

    def _repr_svg_(self) -> str:
        from io import BytesIO

        file = BytesIO()
        self.write(file, "svg")
        return file.getvalue().decode()


def drawn(draw: Callable[[], Figure]) -> Drawing:
    """Draw in the style that all pictures share.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    require_matplotlib()
    from matplotlib import rc_context

    with rc_context(STYLE):
        return Drawing(draw())


def format_of(path: str | Path) -> str:
    """Return of which format a picture is, by the end of its name.

    Example:
        >>> format_of("visits.svg")
        'svg'
        >>> format_of("visits.gif")
        Traceback (most recent call last):
        sitr.errors.InvalidArgument: InvalidArgument [SITR-A01]: format='gif' is not one of 'svg', 'png'.
    """
    return str(_validate.choice("format", Path(path).suffix.removeprefix("."), FORMATS))


def require_matplotlib() -> None:
    """Refuse to draw where matplotlib is not installed.

    Raises:
        MissingExtra: It is not.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtra(
            "pictures need matplotlib, which is not installed.",
            why="all else does without it, so it is an extra.",
            do="pip install 'sitr[plot]'",
        ) from None


def empty_figure(
    title: str, size: tuple[float, float], rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Figure, Any]:
    """An empty figure with a title and a grid of axes, always as an array."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    figure.suptitle(title, x=0.01, horizontalalignment="left")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def plain(text: str) -> str:
    r"""Return a title that is no mathematics: a name may hold dollars, which matplotlib would read so.

    Example:
        >>> print(plain("$clinic$"))
        \$clinic\$
    """
    return text.replace("$", r"\$")


def say_below(panel: Axes, lines: list[str]) -> None:
    """Write lines under the axes of a panel."""
    panel.set_xlabel("\n".join(lines), loc="left", labelpad=8, fontsize=9, color=SAID, parse_math=False)


def date_axis(panel: Axes) -> None:
    """Show dates on the x axis, in as few signs as can be."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=4, maxticks=9)  # type: ignore[no-untyped-call]
    panel.xaxis.set_major_locator(locator)
    panel.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]

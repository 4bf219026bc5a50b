"""Pictures of answers: every number and interval has its place, what is left out is said, and names do no harm."""

import sys
import xml.etree.ElementTree
from datetime import date

import numpy as np
import pytest
from matplotlib.colors import to_hex

from sitr.errors import InvalidArgument, MissingExtra
from sitr.pictures import drawn
from sitr.query.drawing import BANDS, BARS, COLOURS, INTERVALS, draw
from sitr.query.rows import CHOSEN
from tests.query.test_answer import made

MONTHS = [date(2025, month, 1) for month in range(1, 5)]


def counted(**keys):
    """An answer of counts 0, 10, 20, ... by keys."""
    size = len(next(iter(keys.values()), [0]))
    numbers = [10 * place for place in range(size)]
    return made(
        value={**keys, "n": numbers},
        error95={"n": [6.0] * size},
        keys=tuple(keys),
        raw={"n": [float(number) for number in numbers]},
        low={"n": [max(number - 6.0, 0.0) for number in numbers]},
        high={"n": [number + 6.0 for number in numbers]},
        notes=(),
    )


def labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def segments(panel):
    return [[tuple(end) for end in segment] for lines in panel.collections for segment in lines.get_segments()]


def test_a_bar_for_each_row_with_its_interval():
    figure = draw(counted(region=["north", "south", None]))
    (panel,) = figure.axes
    assert figure.get_suptitle() == "n by region"
    assert [bar.get_width() for bar in panel.patches] == [0, 10, 20]
    assert labels(panel.yaxis) == ["north", "south", "(missing)"]
    assert segments(panel) == [[(0, 0), (6, 0)], [(4, 1), (16, 1)], [(14, 2), (26, 2)]]
    assert panel.yaxis_inverted()  # the first row is the topmost
    assert panel.get_xlabel() == INTERVALS


def test_a_line_for_each_choice_of_the_other_keys_over_time():
    answer = counted(sex=["f", "m"] * 4, month=[month for month in reversed(MONTHS) for _ in range(2)])
    figure = draw(answer)
    (panel,) = figure.axes
    assert figure.get_suptitle() == "n by sex, month"
    assert [line.get_label() for line in panel.lines] == ["f", "m"]
    assert [to_hex(line.get_color(), keep_alpha=False).upper() for line in panel.lines] == list(COLOURS[:2])
    times = np.array(MONTHS, dtype="datetime64[D]")
    for line, numbers in zip(panel.lines, ([60, 40, 20, 0], [70, 50, 30, 10]), strict=True):
        assert (np.asarray(line.get_xdata(), dtype="datetime64[D]") == times).all()
        assert list(line.get_ydata()) == numbers
    bands = [{height for _, height in band.get_paths()[0].vertices.tolist()} for band in panel.collections]
    assert bands == [{66, 54, 46, 34, 26, 14, 6, 0}, {76, 64, 56, 44, 36, 24, 16, 4}]
    assert panel.get_xlabel() == BANDS
    assert panel.get_legend() is not None
    alone = draw(counted(month=MONTHS)).axes[0]
    assert alone.get_legend() is None
    assert len(alone.lines) == 1
    ((_, low), (_, high)) = segments(draw(counted(month=MONTHS[:1])).axes[0])[0]
    assert (low, high) == (0, 6)


def test_what_has_no_key_is_one_bar():
    (panel,) = draw(counted()).axes
    assert len(panel.patches) == 1


def test_several_numbers_stand_one_below_the_other():
    answer = made(
        value={"region": ["a", "b", "c"], "n": [1, 2, None], "rate": [0.5, None, 0.25], "day": MONTHS[:3]},
        raw={"n": [1.0, 2.0, None], "rate": [0.5, None, 0.25], "day": MONTHS[:3]},
        low={"n": [0.0, None, None], "rate": [None] * 3, "day": MONTHS[:3]},
        high={"n": [2.0, None, np.inf], "rate": [None] * 3, "day": MONTHS[:3]},
    )
    first, second = draw(answer).axes  # a date is no length
    assert (first.get_title(loc="left"), second.get_title(loc="left")) == ("n", "rate")
    assert segments(first) == [[(0, 0), (2, 0)]]
    assert segments(second) == []
    assert [bar.get_width() for bar in second.patches] == [0.5, 0, 0.25]
    assert "A remark." in second.get_xlabel()
    (only,) = draw(answer, ["rate"]).axes
    assert [bar.get_width() for bar in only.patches] == [0.5, 0, 0.25]


def test_what_is_left_out_is_said():
    many = draw(counted(region=[f"r{place}" for place in range(BARS + 5)])).axes[0]
    assert len(many.patches) == BARS
    assert f"The first {BARS} of {BARS + 5} rows are drawn." in many.get_xlabel()
    lines = draw(counted(region=[f"r{place}" for place in range(9)], month=[*MONTHS[:1] * 8, None])).axes[0]
    assert len(lines.lines) == len(COLOURS)
    assert f"The first {len(COLOURS)} of 8 lines are drawn." in lines.get_xlabel()
    assert "1 row without month cannot be drawn." in lines.get_xlabel()
    chosen = draw(counted(region=["a", "b", "c"]).order_by("n").head(1)).axes[0]
    assert CHOSEN in chosen.get_xlabel().replace("\n", " ")
    assert "NOT PRIVATE" in draw(made(private=False)).get_suptitle()


def test_every_line_has_a_name(tmp_path):
    """Matplotlib leaves names out of a legend that are empty, or begin with a low line."""
    names = ["", "_north", "_nolegend_", "south", None]
    answer = counted(region=names * 2, month=[*MONTHS[:1] * 5, *MONTHS[1:2] * 5])
    (panel,) = draw(answer).axes
    shown = [text.get_text() for text in panel.get_legend().get_texts()]
    assert shown == ["(empty)", "_north", "_nolegend_", "south", "(missing)"]
    colours = [to_hex(line.get_color()) for line in panel.get_legend().get_lines()]
    assert colours == [to_hex(line.get_color()) for line in panel.lines]
    answer.plot().save(tmp_path / "x.svg")
    assert "_nolegend_" in (tmp_path / "x.svg").read_text(encoding="utf-8")
    (hidden,) = draw(counted(region=["", "_"], month=MONTHS[:2])).axes
    assert len(hidden.get_legend().get_texts()) == 2
    assert labels(draw(counted(region=["", "b"])).axes[0].yaxis) == ["(empty)", "b"]


def test_lines_whose_names_begin_alike_are_apart():
    names = ["a" * 50 + end for end in "xy"]
    (panel,) = draw(counted(region=names * 2, month=[*MONTHS[:1] * 2, *MONTHS[1:2] * 2])).axes
    assert [len(line.get_xdata()) for line in panel.lines] == [2, 2]


@pytest.mark.parametrize(
    ("answer", "names", "said"),
    [
        (made(), ["region"], "'region' is not a number of this answer."),
        (made(), ["m"], "'m' is not a number of this answer."),
        (made(), [1], "1 is not a number of this answer."),
        (made().head(0), [], "there is no row to draw."),
        (made(raw={}), [], "there is no number to draw."),
    ],
)
def test_what_cannot_be_drawn_is_refused(answer, names, said):
    with pytest.raises(InvalidArgument) as refused:
        answer.plot(*names)
    assert refused.value.what == said
    assert refused.value.do


@pytest.mark.parametrize("name", ["$clinic$", "50 $", r"a\$b$", "عيادة", "<b>&"])
def test_names_are_only_names(name, tmp_path):
    answer = counted(**{name: [name, "b"], "month": MONTHS[:2]})
    for one in (answer, counted(**{name: [name, "b"]})):
        page = one.plot()._repr_svg_()
        assert xml.etree.ElementTree.fromstring(page).tag.endswith("svg")
        one.plot().save(tmp_path / "x.png")
        assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_the_same_file_every_time(tmp_path):
    for name in ("a", "b"):
        drawn(lambda: draw(counted(region=["a", "b"]))).save(tmp_path / f"{name}.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'sitr\[plot\]'"):
        made().plot()

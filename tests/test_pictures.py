"""What pictures share: kinds of files, titles that are no mathematics, and that matplotlib is an extra."""

import sys
import xml.etree.ElementTree

import pytest

from sitr.errors import InvalidArgument, MissingExtra
from sitr.pictures import Drawing, drawn, empty_figure, format_of, plain


def draw():
    figure, axes = empty_figure(plain("$a and $"), (4, 3), 2, 1)
    assert axes.shape == (2, 1)
    axes[0, 0].plot([1, 2], [3, 4])
    return figure


def test_a_drawing_is_shown_and_saved(tmp_path):
    drawing = drawn(draw)
    assert isinstance(drawing, Drawing)
    assert xml.etree.ElementTree.fromstring(drawing._repr_svg_()).tag.endswith("svg")
    for name in ("a.svg", "b.svg", "a.png", "b.png"):
        drawn(draw).save(tmp_path / name)
    for form in ("svg", "png"):
        assert (tmp_path / f"a.{form}").read_bytes() == (tmp_path / f"b.{form}").read_bytes()
    assert drawn(draw)._repr_svg_() == (tmp_path / "a.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["x.gif", "x", ".svg", "x.SVG"])
def test_another_kind_of_file(name, tmp_path):
    with pytest.raises(InvalidArgument, match="is not one of 'svg', 'png'"):
        format_of(name)
    with pytest.raises(InvalidArgument):
        drawn(draw).save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'sitr\[plot\]'"):
        drawn(draw)

"""Pictures of the quality of a synthetic table."""

import sys
import xml.etree.ElementTree
from dataclasses import replace

import numpy as np
import pytest

from sitr.errors import InvalidArgument, MissingExtra
from sitr.release import NOT_PRIVATE
from sitr.report import write_quality
from sitr.report.synthetic import BARS, draw_marginals, draw_pairs
from sitr.synthesis.answers import Count
from sitr.synthesis.comparison import Comparison, Correlations
from sitr.synthesis.quality import Marginal, Quality, Table

MARGINALS = (
    Marginal("$age$", (*map(str, range(30)), "(missing)"), True, np.full(31, 1 / 31)),
    Marginal("town", tuple(f"town {place} $x$" for place in range(14)), False, np.arange(14) / 91),
    Marginal("day", ("2020-01-01", "2020-01-02", "2020-01-03"), True, np.full(3, 1 / 3)),
    Marginal("smokes", ("False", "True"), False, np.array([0.3, 0.7])),
)
TABLES = (
    Table(("$age$", "town"), (10, 4), 20.0, 0.08),
    Table(("$age$", "town"), (30, 14), 20.0, 0.4),
    Table(("town", "smokes"), (14, 2), 20.0, 0.02),
)
UNMEASURED = (("$age$", "day"), ("$age$", "smokes"), ("town", "day"), ("day", "smokes"))
QUALITY = Quality(Count(100.0, 90.0, 110.0), (), TABLES, UNMEASURED, MARGINALS)
NAMES = QUALITY.columns
COMPARISON = Comparison(
    singles=dict.fromkeys(NAMES, 0.05),
    pairs={(one, other): 0.1 for place, one in enumerate(NAMES) for other in NAMES[place + 1 :]},
    triples={},
    shares={one.name: one.shares[::-1] for one in MARGINALS},
    correlations=Correlations((), np.empty((0, 0)), np.empty((0, 0))),
    training=None,
)
COMPARED = replace(QUALITY, comparison=COMPARISON)


def test_files(tmp_path):
    written = write_quality(tmp_path / "new", COMPARED)
    assert [path.name for path in written] == ["marginals.svg", "marginals.png", "pairs.svg", "pairs.png"]
    assert xml.etree.ElementTree.parse(written[0]).getroot().tag.endswith("svg")
    again = write_quality(tmp_path / "again", COMPARED)
    assert [path.read_bytes() for path in written] == [path.read_bytes() for path in again]


def test_what_is_compared_is_stamped_and_beside():
    figure = draw_marginals(COMPARED)
    assert NOT_PRIVATE in figure.get_suptitle()
    assert NOT_PRIVATE in draw_pairs(COMPARED).get_suptitle()
    towns = figure.axes[1]
    assert len(towns.patches) == 2 * (BARS + 1)
    assert "4 others" in [label.get_text() for label in towns.get_yticklabels()]
    assert NOT_PRIVATE not in draw_marginals(QUALITY).get_suptitle()
    assert len(draw_marginals(QUALITY).axes[1].patches) == BARS + 1


def test_the_map_has_the_finest_table_of_each_pair_and_marks_what_was_not_measured():
    panel = draw_pairs(QUALITY).axes[0]
    shown = np.ma.filled(panel.images[0].get_array(), np.nan)
    assert shown[0, 0] == 0.4
    assert shown[2, 1] == 0.02
    assert np.isfinite(shown).sum() == 2
    texts = [text.get_text() for text in panel.texts]
    assert texts.count("–") == len(UNMEASURED)
    assert {"40", "2.0"} <= set(texts)
    assert len(draw_pairs(COMPARED).axes[0].patches) == len(UNMEASURED)


def test_one_column_has_no_map(tmp_path):
    one = replace(QUALITY, marginals=MARGINALS[:1], tables=(), unmeasured=())
    assert [path.name for path in write_quality(tmp_path, one, ["svg"])] == ["marginals.svg"]


def test_nothing_measured_is_drawn(tmp_path):
    pairs = tuple((one, other) for place, one in enumerate(NAMES) for other in NAMES[place + 1 :])
    write_quality(tmp_path, replace(QUALITY, tables=(), unmeasured=pairs), ["png"])


def test_refusals(tmp_path, monkeypatch):
    with pytest.raises(InvalidArgument, match="formats='gif'"):
        write_quality(tmp_path, QUALITY, ["gif"])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra):
        write_quality(tmp_path, QUALITY)
    assert not list(tmp_path.iterdir())

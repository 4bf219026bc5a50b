"""The files of the figures: all written, the same every time, and no bound under the exact curve."""

import csv
import sys
import xml.etree.ElementTree
from functools import cache, partial

import numpy as np
import pytest

from sitr.errors import InvalidArgument, MissingExtra
from sitr.report import figures, numbers, write_figures
from sitr.report.figures import FIGURES

pytestmark = pytest.mark.xdist_group("figures")  # so that one process draws them

# The same figures from fewer numbers, made once.
SMALL = {
    numbers.rdp_table: {},
    numbers.rdp_curves: {"alphas": [1, 2, 10]},
    numbers.bad_outcomes: {"counts": [1, 10]},
    numbers.advanced_composition: {"counts": range(1, 11)},
    numbers.counting_queries: {"counts": [1, 100]},
    numbers.counting_noise_ratio: {"deltas": [1e-2, 1e-6]},
    numbers.query_allowances: {"counts": [1, 10]},
    numbers.loss_tails: {"losses": [0, 1, 4]},
    numbers.divergent_profiles: {"epsilons": [0, 0.5, 1]},
    numbers.divergent_means: {"epsilons": [0.1, 1, 5]},
    numbers.group_privacy: {"sizes": [1, 2, 3]},
    numbers.training_profile: {"deltas": [1e-2, 1e-5]},
    numbers.training_tradeoff: {"errors": [0, 0.01, 1]},
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        for name, picture in FIGURES.items():
            tables = {ending: cache(partial(make, **SMALL[make])) for ending, make in picture.tables.items()}
            patch.setitem(figures.FIGURES, name, picture._replace(tables=tables))
        seen = []
        folder = tmp_path_factory.mktemp("figures") / "made" / "on the way"
        paths = write_figures(folder, progress=seen.append)
        again = write_figures(tmp_path_factory.mktemp("again"))
    return folder, paths, seen, again


def test_writes_every_figure_in_every_form(written):
    folder, paths, seen, _ = written
    assert seen == list(FIGURES)
    assert sorted(paths) == sorted(folder.iterdir())
    for name, picture in FIGURES.items():
        assert {folder / f"{name}.svg", folder / f"{name}.png"} <= set(paths)
        assert {folder / f"{name}{ending}.csv" for ending in picture.tables} <= set(paths)
    assert folder / "table-2-mechanisms.md" in paths


def test_files_are_what_they_say(written):
    for path in written[1]:
        if path.suffix == ".svg":
            assert xml.etree.ElementTree.parse(path).getroot().tag.endswith("svg")
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG")
        if path.suffix == ".csv":
            rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
            assert len({len(row) for row in rows}) == 1


def test_same_files_every_time(written):
    for first, second in zip(written[1], written[3], strict=True):
        assert first.name == second.name
        assert first.read_bytes() == second.read_bytes(), first.name


def test_no_bound_of_figure_2_crosses_under_the_exact_curve(written):
    text = (written[0] / "figure-2-bad-outcomes.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(text.splitlines()))
    assert len(rows) == 2 * 3 * 2
    exact = np.array([float(row["exact_lower"]) for row in rows])
    for bound in ("naive", "advanced", "generic_rdp", "rdp", "exact_upper"):
        assert np.all(np.array([float(row[bound]) for row in rows]) >= exact * (1 - 1e-11)), bound


def test_formats_can_be_chosen(tmp_path, monkeypatch):
    monkeypatch.setattr(figures, "FIGURES", {"table-2-mechanisms": FIGURES["table-2-mechanisms"]})
    paths = write_figures(str(tmp_path), formats=["png"])
    assert sorted(path.suffix for path in paths) == [".csv", ".md", ".png"]


def test_bad_format(tmp_path):
    with pytest.raises(InvalidArgument, match="formats='jpeg' is not one of 'svg', 'png'"):
        write_figures(tmp_path, formats=["jpeg"])


def test_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'sitr\[plot\]'"):
        write_figures(tmp_path / "never")
    assert not (tmp_path / "never").exists()

"""The picture of a budget that burns down: what it draws, and that names and clocks cannot spoil it."""

import sys
import xml.etree.ElementTree
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from sitr.accounting import ApproximateDP, Laplace
from sitr.errors import InvalidArgument, MissingExtra
from sitr.ledger import Budget, Ledger, Point
from sitr.ledger.terms import Terms
from sitr.report import write_burn_down
from sitr.report.burn_down import DAY, FEW, SHORTEST, draw_burn_down


def asked(name="clinic", reason="second wave", operations=3):
    """A budget of which some was spent, some refunded, and which was raised."""
    ledger = Ledger.open("memory://")
    ledger.create_budget(name, Budget(epsilon=1.0))
    for number in range(operations):
        ledger.reserve(name, Laplace(noise_multiplier=100), analyst="amina", operation=f"q-{number}")
    ledger.refund("q-0", reason="never ran")
    ledger.raise_budget(name, Budget(epsilon=2.0), reason=reason)
    return ledger.statement(name)


def texts(figure):
    (panel,) = figure.axes
    title = figure.get_suptitle()
    return title, panel.get_xlabel(), [text.get_text() for text in panel.texts]


def days(at):
    return datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp() / DAY


def test_raises_are_marked_dated_and_explained():
    statement = asked()
    title, under, marks = texts(draw_burn_down(statement))
    assert title == "clinic: ε = 2 for one person added or removed"
    (first, _, _), (date, _, _) = statement.promises
    assert f"promised on {first[:10]}: ε = 1\n1  raised on {date[:10]} to ε = 2: second wave\n" in under
    assert "▲  refunded" in under
    assert f"head {statement.head} of ledger {statement.ledger}" in under
    assert marks == ["1", "99.0 % left"]


def test_what_is_left_is_drawn_as_steps_up_to_the_end_of_the_axis():
    statement = asked()
    (panel,) = draw_burn_down(statement).axes
    line = panel.lines[0]
    assert line.get_drawstyle() == "steps-post"
    assert list(line.get_ydata()[:-1]) == [100 * point.left for point in statement.points]
    assert line.get_xdata()[-1] == panel.get_xlim()[1] == pytest.approx(line.get_xdata()[0] + SHORTEST)


def test_a_clock_that_was_set_back_does_not_bend_the_line():
    dates = ("2026-01-05", "2026-03-01", "2026-02-01", "2026-04-01")
    points = [Point(seq, f"{date}T00:00:00+00:00", "reserve", 1 - seq / 10) for seq, date in enumerate(dates)]
    (panel,) = draw_burn_down(replace(asked(), points=tuple(points))).axes
    shown = list(panel.lines[0].get_xdata())
    assert shown[:4] == [days(date) for date in (dates[0], dates[1], dates[1], dates[3])]


def test_a_new_budget_and_a_long_life(tmp_path):
    ledger = Ledger.open("memory://")
    ledger.create_budget("clinic", Budget(epsilon=1.0))
    write_burn_down(tmp_path / "new.png", ledger.statement("clinic"))
    _, under, marks = texts(draw_burn_down(ledger.statement("clinic")))
    assert marks == ["100 % left"]
    assert under.startswith("dates in UTC; head 2:")
    (panel,) = draw_burn_down(asked(operations=FEW + 1)).axes
    assert not any(line.get_marker() == "o" for line in panel.lines)


@pytest.mark.parametrize("name", ["$clinic$", "50 $", r"a\$b$", "عيادة"])
def test_names_are_no_mathematics(tmp_path, name):
    write_burn_down(tmp_path / "x.svg", asked(name, reason=f"{name} and {'more ' * 20}$"))
    assert xml.etree.ElementTree.parse(tmp_path / "x.svg").getroot().tag.endswith("svg")


def test_same_file_every_time(tmp_path):
    statement = asked()
    for name in ("a.svg", "b.svg", "a.png", "b.png"):
        write_burn_down(str(tmp_path / name), statement)
    for form in ("svg", "png"):
        assert (tmp_path / f"a.{form}").read_bytes() == (tmp_path / f"b.{form}").read_bytes()


def test_another_format(tmp_path):
    with pytest.raises(InvalidArgument, match="format='gif' is not one of 'svg', 'png'"):
        write_burn_down(tmp_path / "x.gif", asked())


def test_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'sitr\[plot\]'"):
        write_burn_down(tmp_path / "x.svg", asked())
    assert list(tmp_path.iterdir()) == []


def test_a_promise_that_was_declared_anew_is_marked_like_a_raise():
    ledger = Ledger.open("memory://")
    ledger.create_budget("clinic", Budget(epsilon=1.0))
    ledger.declare(Terms("clinic", "clinic", 1, {"tables.visits.unit": "named by patient"}))
    ledger.raise_budget("clinic", Budget(epsilon=2.0), reason="second wave")
    ledger.declare(Terms("clinic", "clinic", 2, {"tables.visits.unit": "each row is one"}), reason="the board")
    statement = ledger.statement("clinic")
    _, under, marks = texts(draw_burn_down(statement))
    assert marks == ["1", "2", "100 % left"]
    assert "2  redeclared on " in under
    assert "(tables.visits.unit: each row is one, was named by patient): the board" in under.replace("\n    ", " ")


def test_what_is_kept_for_delta_has_a_line_of_its_own():
    ledger = Ledger.open("memory://")
    ledger.create_budget("clinic", Budget(epsilon=3.0, delta=1e-6))
    ledger.reserve("clinic", ApproximateDP(epsilon=0.01, delta=2.3e-7), analyst="amina")
    statement = ledger.statement("clinic")
    figure = draw_burn_down(statement)
    (panel,) = figure.axes
    drawn = [list(line.get_ydata()[:-1]) for line in panel.lines if line.get_drawstyle() == "steps-post"]
    assert drawn == [
        [100 * point.left for point in statement.points],
        [100 * one.delta_left for one in statement.points],
    ]
    assert drawn[0][-1] > 90 > 11 > drawn[1][-1]
    _, _, marks = texts(figure)
    assert sorted(mark.split(":")[0] for mark in marks) == ["δ part", "ε part"]
    assert panel.get_ylabel() == "budget left (% of the limit at the time)"


def test_what_left_outside_the_promise_is_said_under_the_axes():
    ledger = Ledger.open("memory://")
    ledger.create_budget("clinic", Budget(epsilon=1.0))
    ledger.note_outside("clinic", "a histogram", notion="random DP with α = 1, γ = 0.04", reason="a study")
    _, under, _ = texts(draw_burn_down(ledger.statement("clinic")))
    assert "OUTSIDE THE PROMISE: a histogram, noted on " in under
    assert "random DP with α = 1, γ = 0.04; a study" in under.replace("\n    ", " ")

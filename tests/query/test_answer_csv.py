"""`Answer.to_csv`: what a spreadsheet makes of it is what was released, and nothing runs."""

import csv
import io
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sitr.accounting import PureDP
from sitr.query.answer import Answer


def answer(cells, name="region", aggregate="n"):
    numbers = [-1.5] * len(cells)
    column = {aggregate: numbers}
    value = {name: cells, aggregate: numbers}
    return Answer(value, column, PureDP(epsilon=1.0), keys=(name,), raw=column, low=column, high=column)


def rows(made):
    return list(csv.reader(io.StringIO(made.to_csv(), newline="")))


FORMULAS = [
    "=1",
    "+1",
    "-1",
    "@A1",
    "  =1",
    "\t=1",
    "\r=1",
    "\n=1",
    "\u00a0=1",
    "\u200b=1",
    "\ufeff=1",
    "＝1",
    " ＠a",
    "\x00=1",
    "|x",
    " %x",
]


@pytest.mark.parametrize("cell", FORMULAS)
def test_no_text_begins_a_formula(cell):
    made = rows(answer([cell], name=f"{cell}k", aggregate=f"{cell}v"))
    assert made[0][0] == f"'{cell}k"
    assert made[0][1:] == [f"'{cell}v", f"'{cell}v_low", f"'{cell}v_high"]
    assert made[1] == [f"'{cell}", "-1.5", "-1.5", "-1.5"]  # numbers are numbers


@pytest.mark.parametrize("cell", ["north", "a=b", "Al-Khobar", "ستر", "it's", "", "a  -b", "٣"])
def test_other_texts_stay_as_they_are(cell):
    assert rows(answer([cell]))[1][0] == cell


@pytest.mark.parametrize("cell", ["a;=1", "a\t=1", "a\n=1", 'a",=1', "a|=1"])
def test_no_cell_is_two_in_another_country(cell):
    line = answer([cell]).to_csv().partition("\n")[2]
    assert line.startswith('"')
    assert rows(answer([cell]))[1][0] == cell


def test_what_is_no_text():
    made = rows(answer([None, True, 3, date(2026, 1, 31)]))
    assert [row[0] for row in made[1:]] == ["", "True", "3", "2026-01-31"]


@given(st.lists(st.text(), min_size=1), st.text(min_size=1))
def test_every_text_comes_back(cells, name):
    made = rows(answer(cells, name=name, aggregate=f"{name}_n"))
    assert len(made) == len(cells) + 1
    for cell, row in zip(cells, made[1:], strict=True):
        assert row[0] in (cell, f"'{cell}")

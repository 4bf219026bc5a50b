"""What is done with released numbers: rows stay whole, intervals hold, and missing is missing."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from typing import Any

import numpy as np
import pytest

from sitr.accounting import PureDP
from sitr.errors import NotAllowed
from sitr.query.answer import Additive, Answer
from sitr.query.half_widths import half_width
from sitr.query.rows import taken
from sitr.query.sql.postprocessing import Order, Output, Shape, evaluate, kind_of
from sitr.tables.expressions import Case, Coalesce, Column, Constant, Expression, Logic

NOISE = Additive((1.0,), 2.0, "laplace", True)
N, S, M, KEY = Column("n"), Column("s"), Column("m"), Column("key")


def answer() -> Answer:
    """Three groups: a count and a sum, whose noises add up, and a mean."""
    raw = {"n": [10.0, -2.0, 30.0], "s": [100.0, 200.0, 300.0], "m": [1.0, 2.0, 3.0]}
    width = NOISE.half_width()
    return Answer(
        value={"key": ["b", None, "a"], "n": [10, 0, 30], "s": raw["s"], "m": raw["m"]},
        error95={"n": [width] * 3, "s": [width] * 3, "m": [0.5] * 3},
        event=PureDP(1.0),
        keys=("key",),
        raw=raw,
        low={"n": [10 - width, 0.0, 30 - width], "s": [100 - width, 200 - width, 300 - width], "m": [0.5, 1.5, 2.5]},
        high={"n": [10 + width, width - 2, 30 + width], "s": [100 + width, 200 + width, 300 + width], "m": [2, 3, 4]},
        additive={"n": NOISE, "s": replace(NOISE, integers=False)},
    )


PLAIN = tuple(Output(name, Column(name)) for name in ("key", "n", "s", "m"))


def test_a_plain_shape_changes_nothing() -> None:
    before, after = answer(), Shape(PLAIN)(answer())
    assert (after.value, after.raw, after.low, after.high, after.additive) == (
        before.value,
        before.raw,
        before.low,
        before.high,
        before.additive,
    )
    assert after.notes == ()
    assert Shape(PLAIN).only_notes(("key",), ("n", "s", "m"))


def test_rows_move_with_all_their_numbers() -> None:
    found = Shape(PLAIN, order=(Order(N, descending=True),), limit=2)(answer())
    assert found.value == {"key": ["a", "b"], "n": [30, 10], "s": [300.0, 100.0], "m": [3.0, 1.0]}
    assert found.raw["m"] == [3.0, 1.0]
    assert (found.low["m"], found.high["m"], found.error95["m"]) == ([2.5, 0.5], [4, 2], [0.5, 0.5])
    assert found.total("n").value == 40.0
    assert len(found) == 2
    assert len(found.columns["n_low"]) == 2
    assert taken(answer(), []).value["n"] == []


@pytest.mark.parametrize(
    ("shape", "keys"),
    [
        (Shape(PLAIN, limit=2), ["b", None]),
        (Shape(PLAIN, offset=1), [None, "a"]),
        (Shape(PLAIN, limit=0), []),
        (Shape(PLAIN, limit=1, offset=1), [None]),
        (Shape(PLAIN, order=(Order(KEY),)), ["a", "b", None]),
        (Shape(PLAIN, order=(Order(KEY, descending=True),)), ["b", "a", None]),
        (Shape(PLAIN, order=(Order(KEY, nulls_first=True),)), [None, "a", "b"]),
        (Shape(PLAIN, order=(Order(M / (N - 10), descending=True), Order(KEY))), ["a", None, "b"]),
        (Shape(PLAIN, having=N >= 10), ["b", "a"]),
        (Shape(PLAIN, having=KEY == "a"), ["a"]),
        (Shape(PLAIN, having=~(KEY == "a")), ["b"]),
        (Shape(PLAIN, having=KEY.is_null() | (S > 250)), [None, "a"]),
        (Shape(PLAIN, having=M / N > 0), ["b", "a"]),
    ],
)
def test_having_order_limit(shape: Shape, keys: list[Any]) -> None:
    assert shape(answer()).value["key"] == keys


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (Shape(PLAIN, having=N > 5), True),
        (Shape(PLAIN, having=KEY == "a"), False),
        (Shape(PLAIN, order=(Order(N),)), False),
        (Shape(PLAIN, order=(Order(N),), limit=1), True),
        (Shape(PLAIN, order=(Order(KEY),), limit=1), False),
    ],
)
def test_a_choice_by_noise_is_said(shape: Shape, said: bool) -> None:
    assert any("chosen by their noisy values" in note for note in shape(answer()).notes) == said


def shaped(value: Expression) -> Answer:
    return Shape((Output("key", KEY), Output("x", value)))(answer())


def test_a_multiple_keeps_its_interval() -> None:
    found = shaped(Constant(5) - N * 2)
    assert found.value["x"] == [-15, 5, -55]
    assert found.raw["x"] == [-15.0, 9.0, -55.0]
    width = 2 * NOISE.half_width()
    assert found.low["x"][0] == pytest.approx(-15 - width)
    assert found.high["x"][0] == pytest.approx(-15 + width)
    assert found.error95["x"] == [width] * 3
    assert found.total("x").high - found.total("x").value == pytest.approx(2 * NOISE.half_width((1.0,) * 3))
    assert shaped(M / 4).high["x"] == [0.5, 0.75, 1.0]
    assert "x" not in shaped(M / 4).additive


def test_a_sum_of_columns_has_an_interval_that_holds_whatever_their_noises_share() -> None:
    found = shaped(N + 3 * S)
    width = half_width([1.0], 2.0, "laplace", 0.975, integers=True) + half_width([3.0], 2.0, "laplace", 0.975)
    assert found.raw["x"] == [310.0, 598.0, 930.0]
    assert found.error95["x"] == pytest.approx([width] * 3)
    assert "x" not in found.additive
    # The worst case for a sum is noise that is the same in both.
    draws = np.random.default_rng(1).laplace(scale=2.0, size=100_000)
    assert np.mean(np.abs(draws + 3 * draws) <= width) >= 0.95


@pytest.mark.parametrize("value", [S / N, N * S, N + M, Case(N > 5, N, S), abs(N), Constant(2) / S])
def test_no_interval_is_made_up(value: Expression) -> None:
    found = shaped(value)
    assert found.low["x"] == found.high["x"] == found.error95["x"] == [None] * 3
    assert "x" not in found.additive
    assert any("x: no interval" in note for note in found.notes)
    assert "not known" in str(found)
    assert found.to_csv()


def test_labels_are_keys() -> None:
    found = Shape((Output("size", Case(N > 5, Constant("big"), Constant("small"))), Output("one", Constant(1))))(
        answer()
    )
    assert found.keys == ("size", "one")
    assert found.value == {"size": ["big", "small", "big"], "one": [1, 1, 1]}


ROW = {
    "a": 3,
    "b": None,
    "d": date(2026, 5, 14),
    "t": datetime(2026, 5, 14, 13, 30),
    "s": "x",
    "y": True,
    "f": 2.5,
    "huge": 1e300,
}
A, B, D, T = Column("a"), Column("b"), Column("d"), Column("t")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (A + 1, 4),
        (A / 2, 1.5),
        (A / 0, None),
        (A / (A - 3), None),
        (A + B, None),
        (A * Column("f"), 7.5),
        (abs(A - 5), 2),
        (-A, -3),
        (Column("huge") * Column("huge"), None),
        (A == 3, True),
        (B == 3, None),
        ((B == 3) & (A == 4), False),
        ((B == 3) & (A == 3), None),
        ((B == 3) | (A == 3), True),
        (Logic("or", B == 3, A == 4), None),
        (~(B == 3), None),
        (A.isin([1, 3]), True),
        (B.isin([1]), None),
        (B.is_null(), True),
        (Coalesce(B, Coalesce(B, A)), 3),
        (Case(B == 3, Constant("yes"), Constant("no")), "no"),
        (date(2026, 5, 14) == D, True),
        (T > D, True),
        (D.part("quarter"), 2),
        (D.part("weekday"), 3),
        (T.part("hour"), 13),
        (B.part("year"), None),
        (D.truncate("week"), date(2026, 5, 11)),
        (D.truncate("quarter"), date(2026, 4, 1)),
        (D.truncate("day"), date(2026, 5, 14)),
        (T.truncate("hour"), datetime(2026, 5, 14, 13)),
        (T.truncate("year"), datetime(2026, 1, 1)),
        (B.truncate("year"), None),
        (Column("s") < A, None),
    ],
)
def test_expressions_over_a_row(value: Expression, expected: Any) -> None:
    assert evaluate(value, ROW) == expected


KINDS = {"a": "number", "b": "number", "d": "date", "t": "timestamp", "s": "string", "y": "boolean"}


@pytest.mark.parametrize(
    "value",
    [
        Column("s") < A,
        A + Column("s"),
        ~A,
        A & Column("y"),
        A.part("year"),
        D.truncate("hour"),
        A.isin(["x"]),
        Coalesce(A, Column("s")),
        Case(A, A, A),
        Case(A > 1, A, D),
        Constant("x") - A,
    ],
)
def test_kinds_do_not_mix(value: Expression) -> None:
    with pytest.raises(NotAllowed):
        kind_of(value, KINDS)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (A + 1, "number"),
        (T > D, "boolean"),
        (D.truncate("month"), "date"),
        (D.part("year"), "number"),
        (~(A > 1), "boolean"),
    ],
)
def test_kinds(value: Expression, kind: str) -> None:
    assert kind_of(value, KINDS) == kind

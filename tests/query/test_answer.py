"""Answers: kept and read again unchanged, added up with their intervals, and safe in a spreadsheet."""

import json
from datetime import date, datetime

import numpy as np
import pytest

from sitr.accounting import PureDP
from sitr.errors import InvalidArgument
from sitr.query.answer import Additive, Answer, Estimate
from sitr.query.half_widths import half_width
from sitr.query.rows import CHOSEN
from sitr.release import NOT_PRIVATE

COUNTS = Additive((1.0,), 2.0, "laplace", True)


def made(**changes):
    content = {
        "value": {"region": ["north", None, "=HYPERLINK(1)"], "n": [10, 0, 7], "m": [date(2024, 1, 2)] * 3},
        "error95": {"n": [6.0] * 3, "m": [3.0] * 3},
        "event": PureDP(epsilon=1.0),
        "entry": "book/3",
        "keys": ("region",),
        "raw": {"n": [10.0, -2.0, 7.0], "m": [date(2024, 1, 2)] * 3},
        "low": {"n": [4.0, 0.0, 1.0], "m": [date(2024, 1, 1)] * 3},
        "high": {"n": [16.0, 4.0, 13.0], "m": [date(2024, 1, 4)] * 3},
        "additive": {"n": COUNTS},
        "notes": ("A remark.",),
        "operation": "monday",
    }
    return Answer(**(content | changes))


def test_an_answer_is_read_again_as_it_was():
    first = made()
    again = Answer.from_dict(json.loads(json.dumps(first.to_dict())), "book/3", "monday")
    assert again == first
    assert again.time == first.time


@pytest.mark.parametrize("key", [True, 3, "a", None, date(2024, 2, 29), datetime(2024, 2, 29, 12, 30)])
def test_keys_of_every_kind_are_read_again(key):
    first = made(
        value={"region": [key], "n": [1]}, raw={"n": [1.0]}, low={"n": [0.0]}, high={"n": [2.0]}, error95={"n": [1.0]}
    )
    again = Answer.from_dict(json.loads(json.dumps(first.to_dict())), None, None)
    assert again.value["region"] == [key]
    assert type(again.value["region"][0]) is type(key)


def test_rows_are_added_up_with_their_interval():
    total = made().total("n")
    width = half_width([1.0] * 3, 2.0, "laplace", integers=True)
    assert total == Estimate(15.0, 15.0 - width, 15.0 + width)
    one = made().total("n", region="north")
    assert one == Estimate(10.0, 10.0 - COUNTS.half_width(), 10.0 + COUNTS.half_width())
    assert made().total("n", region=["north", None]).value == 8.0
    assert made().total("n", region=[]) == Estimate(0.0, 0.0, 0.0)


def test_what_is_not_in_an_answer_is_not_known_to_be_none():
    """A key that was not found may have people all the same, and 0 ± 0 would say that it has not."""
    for wanted in ("nort", ["north", "nort"]):
        with pytest.raises(InvalidArgument, match="no row for some of what is wanted"):
            made().total("n", region=wanted)
    with pytest.raises(InvalidArgument) as caught:
        made().total("n", region="nort")
    assert caught.value.do.startswith("Did you mean 'north'?")


def test_two_rows_are_compared_with_their_interval():
    found = made().difference("n", {"region": "north"}, {"region": None})
    width = half_width([1.0, 1.0], 2.0, "laplace", integers=True)
    assert found == Estimate(12.0, 12.0 - width, 12.0 + width)


def test_what_does_not_add_up_is_refused():
    for name, said in (("m", "'m' does not add up"), ("nobody", "no number 'nobody'")):
        with pytest.raises(InvalidArgument, match=said):
            made().total(name)
        with pytest.raises(InvalidArgument, match=said):
            made().difference(name, {"region": "north"}, {"region": None})
    for additive, said in (({"n": COUNTS}, "counts and sums do: here n."), ({}, "do: ask for these beside it.")):
        with pytest.raises(InvalidArgument) as refused:
            made(additive=additive).total("m")
        assert refused.value.do.endswith(said)
    with pytest.raises(InvalidArgument, match="is no key"):
        made().total("n", ward="a")
    with pytest.raises(InvalidArgument, match="of two rows; the first names 3 of this answer, the second 0") as refused:
        made().difference("n", {}, {"region": "east"})
    assert refused.value.do == "give each of the two a value for every key: region."
    with pytest.raises(InvalidArgument) as refused:
        made().difference("n", {"region": "nort"}, {"region": None})
    assert refused.value.do.startswith("Did you mean 'north'? ")


def test_a_formula_is_a_text_in_a_spreadsheet():
    for text in ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"):
        answer = made(value={"region": [text, "b", "c"], "n": [1, 2, 3], "m": [1, 2, 3]})
        assert f"'{text}" in answer.to_csv()
    lines = made().to_csv().splitlines()
    assert lines[0] == "region,n,n_low,n_high,m,m_low,m_high"
    assert lines[1].startswith("north,10,4.0,16.0,2024-01-02")
    assert lines[3].startswith("'=HYPERLINK(1),")


def test_the_form_that_people_write_a_difference_in_is_understood():
    """Where there is one key, its value names a row."""
    assert made().difference("n", "north", None) == made().difference("n", {"region": "north"}, {"region": None})
    with pytest.raises(InvalidArgument) as refused:
        made().difference("n", "nort", None)
    assert refused.value.do.startswith("Did you mean 'north'? ")
    with pytest.raises(InvalidArgument, match="is not the key of a row: there are 2 keys") as refused:
        made(keys=("region", "n")).difference("n", "north", None)
    assert refused.value.do == 'name them: {"region": ..., "n": ...}.'
    with pytest.raises(InvalidArgument, match="there are 0 keys") as refused:
        made(keys=()).difference("n", "north", None)
    assert refused.value.do == "answers without keys have one row."


@pytest.mark.parametrize("begin", [date(2024, 7, 1), datetime(2024, 7, 1)])
def test_keys_that_are_dates_are_named_by_texts(begin):
    months = [begin, begin.replace(month=8), None]
    answer = made(value={"month": months, "n": [10, 0, 7], "m": [1, 2, 3]}, keys=("month",))
    assert answer.difference("n", "2024-07-01", "2024-08-01") == answer.difference("n", *months[:2])
    assert answer.total("n", month=["2024-07-01", None]) == answer.total("n", month=[begin, None])
    with pytest.raises(InvalidArgument, match="no row for some of what is wanted"):
        answer.total("n", month="2024-09-01")
    with pytest.raises(InvalidArgument, match="no row for some of what is wanted"):
        answer.total("n", month="July")


def test_rows_are_ordered_and_cut_free_of_charge():
    by_key = made().order_by("region")
    assert by_key["region"] == ["=HYPERLINK(1)", "north", None]
    assert by_key.head(2)["n"] == [7, 10]
    assert by_key.head(2).notes == ("A remark.",)
    largest = made().order_by("n", descending=True)
    assert largest["n"] == [10, 7, 0]
    assert largest["n_low"] == [4.0, 1.0, 0.0]
    assert largest.notes == largest.head().notes == ("A remark.",)  # all rows are there: none was chosen
    assert largest.head(1)["region"] == ["north"]
    assert largest.head(2).head(1).notes == ("A remark.", CHOSEN)
    assert largest.order_by("region").head(1).notes == ("A remark.",)
    two = made(keys=("region", "m")).order_by("n")  # of one m there are several rows, which stay as they stood
    assert two.order_by("m").head(1).notes == ("A remark.", CHOSEN)
    assert two.order_by("m", "region").head(1).notes == ("A remark.",)
    assert len(made().head(0)) == 0
    assert made().order_by("m", "n")["n"] == [0, 7, 10]
    for wrong in (lambda: made().order_by(), lambda: made().order_by("regoin"), lambda: made().head(-1)):
        with pytest.raises(InvalidArgument):
            wrong()


def test_an_answer_is_read_by_names_and_by_rows():
    answer = made()
    assert answer["n"] == [10, 0, 7]
    assert "n_high" in answer
    assert "cost" not in answer
    rows = list(answer)
    assert rows[1]["region"] is None
    assert rows[1]["n_high"] == 4.0
    assert list(rows[0]) == list(answer.columns)
    assert [row["n"] for row in sorted(answer, key=lambda row: row["n"])] == [0, 7, 10]
    for wrong in ("regoin", 0, ["n"]):
        with pytest.raises(InvalidArgument, match="has no column") as refused:
            answer[wrong]
        assert "Columns: region, n, n_low" in refused.value.do


def test_a_csv_file_is_written(tmp_path):
    path = tmp_path / "answer.csv"
    path.write_text("what was there before")
    assert made().to_csv(path, index=False) is None
    assert path.read_bytes().decode() == made().to_csv()
    made().to_csv(str(path))
    with pytest.raises(InvalidArgument, match="no index"):
        made().to_csv(path, index=True)


def test_frames():
    columns = ["region", "n", "n_low", "n_high", "m", "m_low", "m_high"]
    assert list(made().to_pandas().columns) == columns
    assert [str(dtype) for dtype in made().to_pandas().dtypes[1:]] == [
        "Int64",
        "float64",
        "float64",
        *["datetime64[us]"] * 3,
    ]
    assert made().to_arrow().column_names == columns
    assert made().to_arrow().column("n").to_pylist() == [10, 0, 7]
    page = made(notes=("1 < 2",))._repr_html_()
    assert page.count("<tr") == 4
    assert "<p>1 &lt; 2</p>" in page
    assert "charged" in page
    assert NOT_PRIVATE in made(private=False)._repr_html_()


def test_a_kept_answer_says_that_it_cost_nothing():
    again = Answer.from_dict(made().to_dict(), "book/3", "monday")
    assert str(again).endswith("the kept answer of entry book/3: nothing was charged")
    assert str(made(entry=None)).endswith("\nnot charged")


def test_as_text():
    text = str(made())
    assert text.splitlines()[:3] == [
        "region          n  95 % interval           m             95 % interval",
        "north          10        4 to 16  2024-01-02  2024-01-01 to 2024-01-04",
        "(missing)       0         0 to 4  2024-01-02  2024-01-01 to 2024-01-04",
    ]
    assert text.endswith("A remark.\ncharged in entry book/3")
    assert "NOT PRIVATE" in str(made(private=False))
    many = made(
        value={"region": list(range(30)), "n": [1] * 30},
        raw={"n": np.ones(30).tolist()},
        low={"n": [0.0] * 30},
        high={"n": [2.0] * 30},
        error95={"n": [1.0] * 30},
    )
    assert "… 10 more rows" in many._repr_html_()
    assert "… 10 more rows" in str(many)
    assert len(many) == 30

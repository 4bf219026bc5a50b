"""Words of pandas: each says what to write instead, hides nothing that is there, and is no word to `hasattr`."""

import re
from dataclasses import fields

import pytest

import sitr
from sitr import habits
from sitr.errors import NoSuchWord, NotAllowed
from sitr.habits import Instead, told_instead
from sitr.query.answer import Answer
from sitr.session.question import Question
from sitr.session.table import Groups, PrivateTable
from sitr.tables.expressions import Expression

TOLD = [
    (PrivateTable, habits.TABLE),
    (Groups, habits.GROUPS),
    (Expression, habits.COLUMN),
    (Question, habits.QUESTION),
    (Answer, habits.ANSWER),
]
# Whose verb an advice begins with, where it does not say so.
VERBS = {"table": PrivateTable, "answer": Answer, "question": Question}


@pytest.mark.parametrize(("kind", "words"), TOLD, ids=lambda one: getattr(one, "__name__", ""))
def test_words_that_are_told_are_words_that_a_class_does_not_have(kind, words):
    assert all(isinstance(vars(kind)[word], Instead) for word in words)
    assert not [word for base in kind.__mro__[1:] for word in words if word in vars(base)]
    assert not words.keys() & set(dir(kind.__new__(kind)))


def test_no_field_of_an_expression_is_such_a_word():
    """A dataclass would take it for the default of that field."""
    kinds = Expression.__subclasses__()
    assert len(kinds) >= 11
    assert not habits.COLUMN.keys() & {field.name for kind in kinds for field in fields(kind)}


@pytest.mark.parametrize(
    ("kind", "advice"), sorted({(kind, advice) for kind, words in TOLD for advice in words.values()}, key=str)
)
def test_what_is_advised_exists(kind, advice):
    for place, verb in re.findall(r"\b(table|answer|question|sitr)\.(\w+)", advice):
        assert hasattr(sitr if place == "sitr" else VERBS[place], verb), advice
    first = re.match(r"(\w+)\(", advice)
    assert first is None or first[1] in ("print", "len") or hasattr(kind, first[1]), advice


def test_a_word_is_told_when_it_is_asked_for():
    @told_instead({"agg": "aggregate(n=sitr.count())"}, "a table", "there is one verb for it.")
    class Table:
        def aggregate(self):
            return 1

    table = Table()
    with pytest.raises(NoSuchWord) as told:
        table.agg()
    assert str(told.value).splitlines() == [
        "NoSuchWord [SITR-Q05]: a table has no .agg.",
        "Why: there is one verb for it.",
        "Do: aggregate(n=sitr.count()).",
    ]
    assert isinstance(told.value, (NotAllowed, AttributeError))
    assert not hasattr(table, "agg")
    assert getattr(table, "agg", None) is None
    assert "agg" not in dir(table)
    assert "aggregate" in dir(table)
    with pytest.raises(AttributeError, match="has no attribute 'add'"):
        _ = table.add


def test_a_class_is_not_robbed_of_a_word_that_it_has():
    with pytest.raises(AssertionError):

        @told_instead({"agg": ""}, "a table")
        class Table:
            agg = 1

"""Words that people bring from pandas, and what to write instead: `visits.groupby` says `group_by("region")`.

Only words that are listed here are answered so; any other unknown name is the usual AttributeError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from .errors import NoSuchWord

Kind = TypeVar("Kind", bound=type)

GROUPED = 'group_by("region").aggregate(n=sitr.count())'
COUNTED = "aggregate(n=sitr.count())"
AVERAGED = 'aggregate(cost=sitr.mean("cost"))'
DISTINCT = 'aggregate(reasons=sitr.count_distinct("reason"))'
BINNED = 'aggregate(n=sitr.histogram("age", [0, 18, 65, 120]))'
DRAWN = "draw what is released: answer.plot()"
RELEASED = "release it first: answer = question.release(epsilon=0.5)"


def _by_word(texts: Mapping[str, str]) -> dict[str, str]:
    """Return by each word what to write instead, from what to write by several words."""
    return {word: text for words, text in texts.items() for word in words.split()}


TABLE = _by_word(
    {
        "groupby value_counts pivot_table crosstab": f"table.{GROUPED}",
        "agg count size shape ndim": f"table.{COUNTED}",
        "sum mean std var min max median quantile corr cov": f"table.{AVERAGED}",
        "nunique unique": f"table.{DISTINCT}",
        "describe info dtypes": 'print(table) for what is declared, or table.profile("cost") for where its values lie',
        "head tail sample iterrows itertuples loc iloc values to_pandas to_csv to_numpy": (
            f"ask about its rows: table.{COUNTED}; or draw rows that are made up: table.synthesize()"
        ),
        "query": 'table.filter(table["age"] >= 18), or db.sql("SELECT COUNT(*) FROM visits WHERE age >= 18")',
        "where": 'table.filter(table["age"] >= 18)',
        "assign eval": 'table.derive(double=table["cost"] * 2)',
        "apply map pipe transform": 'table.derive(old=table["age"] >= 65), with operators and functions of columns',
        "merge": 'table.join("offices", on="region")',
        "rename": 'table.select("cost", home="region")',
        "drop": 'table.select("age", "cost"), with the columns to keep',
        "dropna": 'table.filter(~table["age"].is_null())',
        "isna isnull notna notnull": 'table["age"].is_null()',
        "fillna": 'table.derive(age=table["age"].fill_null(0))',
        "sort_values order_by nlargest nsmallest": 'sort what is released: answer.order_by("n")',
        "hist": f"table.{BINNED}",
        "plot boxplot": DRAWN,
    }
)
GROUPS = _by_word(
    {
        "agg apply count size ngroups describe head groups get_group filter transform": f"table.{GROUPED}",
        "sum mean std var min max median quantile": f'table.group_by("region").{AVERAGED}',
        "nunique": f'table.group_by("region").{DISTINCT}',
        "plot": DRAWN,
    }
)
COLUMN = _by_word(
    {
        "count size shape head tail tolist to_list to_numpy loc iloc": f"table.{COUNTED}",
        "sum mean std var min max median quantile corr cov": f"table.{AVERAGED}",
        "value_counts unique": f"table.{GROUPED}",
        "nunique": f"table.{DISTINCT}",
        "describe": 'table.profile("cost")',
        "hist": f"table.{BINNED}",
        "plot": DRAWN,
        "isna isnull": 'table["age"].is_null()',
        "notna notnull": '~table["age"].is_null()',
        "fillna": 'table["age"].fill_null(0)',
        "dropna": 'table.filter(~table["age"].is_null())',
        "mask": '(table["age"] >= 65).choose(1, 0)',
        "dt": 'table["day"].part("month"), or table["day"].truncate("month")',
        "astype": '(table["age"] >= 65).choose(1, 0) for a condition; other columns keep the type that is declared',
        "apply map str": 'table["region"].isin(["north", "south"]), and other operators and functions of columns',
        "clip": 'bounds: sitr.mean("cost", bounds=(0, 100))',
    }
)
QUESTION = _by_word({"to_pandas to_csv to_polars to_arrow head order_by sort_values plot value total": RELEASED})
ANSWER = _by_word(
    {
        "sort_values nlargest nsmallest": 'answer.order_by("n", descending=True)',
        "loc iloc tail groupby describe merge pivot pivot_table set_index iterrows itertuples": (
            "answer.to_pandas() is a frame that has it"
        ),
        "sum": 'answer.total("n")',
        "shape": "len(answer) and answer.columns",
    }
)


class Instead:
    """A word that an object does not have; who asks for it is told what to write.

    Args:
        what: What has no such word.
        word: The word.
        why: Why it has none.
        do: What to write.
    """

    def __init__(self, what: str, word: str, why: str, do: str) -> None:
        self.what, self.word, self.why, self.do = what, word, why, do

    def __get__(self, instance: object | None, owner: type | None = None) -> Any:
        if instance is None:
            return self
        raise NoSuchWord(f"{self.what} has no .{self.word}.", why=self.why, do=f"{self.do}.")


def told_instead(words: Mapping[str, str], what: str, why: str = "") -> Callable[[Kind], Kind]:
    """Return a decorator that lets a class say, of words that it does not have, what to write instead.

    To `hasattr` and to tab completion there is no such word.

    Args:
        words: The words, and what to write.
        what: What has none of them, as a message begins.
        why: Why.

    Example:
        >>> @told_instead({"agg": "aggregate(n=sitr.count())"}, "a table", "there is one verb for it.")
        ... class Table: ...
        >>> hasattr(Table(), "agg"), "agg" in dir(Table())
        (False, False)
        >>> Table().agg
        Traceback (most recent call last):
        sitr.errors.NoSuchWord: NoSuchWord [SITR-Q05]: a table has no .agg.
        Why: there is one verb for it.
        Do: aggregate(n=sitr.count()).
    """

    def decorated(kind: Kind) -> Kind:
        assert not words.keys() & vars(kind).keys()  # none of them is a word that it has
        for word, do in words.items():
            setattr(kind, word, Instead(what, word, why, do))

        def shown(self: object) -> list[str]:
            return [name for name in object.__dir__(self) if name not in words]

        kind.__dir__ = shown  # type: ignore[assignment, method-assign]
        return kind

    return decorated

"""Random declarations, and random changes of them: harmless ones, and those that make a promise another one."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from random import Random
from typing import Any

Content = dict[str, Any]  # of a declaration, as TOML reads it
Change = Callable[
    [Content, Random], str | None
]  # makes it, and returns a place that the book names, None where it cannot


def declaration(random: Random, url: str) -> Content:
    """A declaration of some tables: of units that a column names, that are found through another table, or of rows."""
    made: Content = {
        "sitr": 1,
        "name": "hospital",
        "version": 1,
        "privacy": {"unit": random.choice(["patient", "person"])},
        "ledger": {"url": url},
        "budgets": {"stays": {"epsilon": 10.0}, "lab": {"epsilon": 5.0}},
        "tables": {},
    }
    tables = made["tables"]
    tables["stays"] = table("stays", "stays", unit="pid")
    tables["bills"] = table("bills", "stays", unit={"through": "stays", "on": {"stay": "id"}})
    tables["tests"] = table("tests", "lab", **({"unit": "pid"} if random.random() < 0.5 else {"unit": "row"}))
    tables["codes"] = {"source": "codes.csv", "public": True, "key": ["id"], "columns": columns()}
    return made


def table(name: str, dataset: str, **about: Any) -> Content:
    limit = {} if about["unit"] == "row" else {"max_rows_per_unit": 3}
    return {"source": f"{name}.csv", "dataset": dataset, **about, **limit, "columns": columns()}


def columns() -> Content:
    integer = {"type": "integer"}
    wide = {
        "age": {"type": "integer", "bounds": [0, 120]},
        "region": {"type": "string", "categories": ["north", "south"]},
    }
    return {**{name: dict(integer) for name in ("pid", "id", "stay", "other")}, **wide}


# What makes a promise another one.


def _unit_word(made: Content, random: Random) -> str:
    made["privacy"]["unit"] = f"{made['privacy']['unit']}s"
    return "unit"


def _unit_column(made: Content, random: Random) -> str | None:
    name = _pick(made, random, lambda one: isinstance(one.get("unit"), str) and one["unit"] != "row")
    if name is not None:
        made["tables"][name]["unit"] = "other" if made["tables"][name]["unit"] == "pid" else "pid"
    return name and f"tables.{name}.unit"


def _unit_kind(made: Content, random: Random) -> str | None:
    name = _pick(made, random, lambda one: one.get("unit") in ("pid", "other"))
    if name is not None:
        column = made["tables"][name]["columns"][made["tables"][name]["unit"]]
        column["type"] = "string" if column["type"] == "integer" else "integer"
    return name and f"tables.{name}.unit"


def _rows(made: Content, random: Random) -> str | None:
    """A dataset of units becomes one of rows."""
    name = _pick(made, random, lambda one: one.get("unit", "row") != "row")
    if name is None:
        return None
    for one in made["tables"].values():
        if one.get("dataset") == made["tables"][name]["dataset"]:
            one["unit"] = "row"
            one.pop("max_rows_per_unit", None)
    return f"tables.{name}.unit"


def _key_path(made: Content, random: Random) -> str | None:
    name = _pick(made, random, lambda one: isinstance(one.get("unit"), dict))
    if name is not None:
        on = made["tables"][name]["unit"]["on"]
        on["stay"] = "stay" if on["stay"] == "id" else "id"
    return name and f"tables.{name}.unit"


def _public(made: Content, random: Random) -> str | None:
    name = _pick(made, random, lambda one: not one.get("public"))
    if name is None or _is_needed(made, name):
        return None
    for part in ("unit", "dataset", "max_rows_per_unit", "expected_units"):
        made["tables"][name].pop(part, None)
    made["tables"][name]["public"] = True
    return f"tables.{name}.unit"


def _key(made: Content, random: Random) -> str | None:
    name = _pick(made, random, lambda one: bool(one.get("public")))
    if name is not None:
        key = made["tables"][name].pop("key", None)
        made["tables"][name] |= random.choice([{"key": ["id", "stay"]}, {}]) if key == ["id"] else {"key": ["id"]}
    return name and f"tables.{name}.key"


def _source(made: Content, random: Random) -> str | None:
    name = _pick(made, random, lambda one: True)
    if name is not None:
        made["tables"][name]["source"] = f"{name}{random.randrange(10**6)}.csv"
    return name and f"tables.{name}.source"


def _payer(made: Content, random: Random) -> str | None:
    """A dataset is paid for by another budget, which may be new."""
    name = _pick(made, random, lambda one: not one.get("public"))
    if name is None:
        return None
    before, after = made["tables"][name]["dataset"], f"new{random.randrange(10**6)}"
    made["budgets"][after] = {"epsilon": 1.0}
    for one in made["tables"].values():
        if one.get("dataset") == before:
            one["dataset"] = after
    return f"tables.{name}.source"


def _added(made: Content, random: Random) -> str:
    name = f"more{random.randrange(10**6)}"
    made["tables"][name] = {"source": f"{name}.csv", "public": True, "columns": columns()}
    return f"tables.{name}.unit"


def _removed(made: Content, random: Random) -> str | None:
    name = _pick(made, random, lambda one: True)
    if name is None or _is_needed(made, name) or len(made["tables"]) < 3:
        return None
    del made["tables"][name]
    return f"tables.{name}.source"


def _renamed(made: Content, random: Random) -> str:
    made["name"] = f"hospital{random.randrange(10**6)}"
    return f"it is declared by '{made['name']}' as well"


# What may change with a version.


def _row_limit(made: Content, random: Random) -> str | None:
    name = _pick(made, random, lambda one: "max_rows_per_unit" in one)
    if name is not None:
        made["tables"][name]["max_rows_per_unit"] += 1
    return name


def _bounds(made: Content, random: Random) -> str | None:
    name = _pick(made, random, lambda one: True)
    if name is not None:
        made["tables"][name]["columns"]["age"]["bounds"] = [0, random.randrange(1, 200)]
    return name


def _categories(made: Content, random: Random) -> str | None:
    name = _pick(made, random, lambda one: True)
    if name is not None:
        listed = random.sample(["north", "south", "east", "west"], random.randrange(1, 5))
        made["tables"][name]["columns"]["region"]["categories"] = listed
    return name


def _sizes(made: Content, random: Random) -> str | None:
    name = _pick(made, random, lambda one: "max_rows_per_unit" in one)
    if name is not None:
        made["tables"][name] |= {"expected_units": random.randrange(1, 99), "expected_rows": random.randrange(100, 999)}
    return name


def _other_column(made: Content, random: Random) -> str | None:
    """One that names nobody."""
    name = _pick(made, random, lambda one: one.get("unit") == "row" or bool(one.get("public")))
    if name is not None:
        made["tables"][name]["columns"][f"c{random.randrange(10**6)}"] = {"type": random.choice(["float", "string"])}
    return name


def _of_a_release(made: Content, random: Random) -> str:
    made["privacy"]["delta"] = random.choice([1e-9, 1e-8, 0.0])
    return "delta"


def _version(made: Content, random: Random) -> str:
    made["version"] += 1
    return "version"


def _spelling(made: Content, random: Random) -> str | None:
    name = _pick(made, random, lambda one: not one["source"].startswith("."))
    if name is not None:
        made["tables"][name]["source"] = f"./folder/../{made['tables'][name]['source']}"
    return name


def _nothing(made: Content, random: Random) -> str:
    """The same, which is written down otherwise: comments, spaces, quotes, the order of keys."""
    return "nothing"


PROMISED: list[Change] = [
    _unit_word, _unit_column, _unit_kind, _rows, _key_path, _public, _key, _source, _payer, _added, _removed, _renamed,
]  # fmt: skip
HARMLESS: list[Change] = [
    _row_limit, _bounds, _categories, _sizes, _other_column, _of_a_release, _version, _spelling, _nothing,
]  # fmt: skip


def changed(made: Content, change: Change, random: Random) -> tuple[Content, str] | None:
    """Another declaration, and where it says something else; None where there is nothing to change in that way."""
    after = copy.deepcopy(made)
    place = change(after, random)
    return None if place is None else (after, place)


def written(made: Content, random: Random) -> str:
    """A declaration as somebody may write it down."""
    top = [
        f"{_key_text(name, random)} = {_value(value, random)}"
        for name, value in made.items()
        if not isinstance(value, dict)
    ]
    random.shuffle(top)
    parts = [(name, value) for name, value in made.items() if isinstance(value, dict)]
    sections = [
        (f"{name}.{one}", about) for name, part in parts for one, about in part.items() if isinstance(about, dict)
    ]
    sections += [(name, part) for name, part in parts if not any(isinstance(one, dict) for one in part.values())]
    random.shuffle(sections)
    lines = [*top]
    for name, about in sections:
        lines += [*random.choice([[], [""], ["# a remark"]]), f"[{name}]"]
        said = [
            f"{_key_text(key, random)}{random.choice([' = ', '=', '  =  '])}{_value(value, random)}"
            for key, value in about.items()
        ]
        lines += [line + random.choice(["", "", "  # as agreed"]) for line in random.sample(said, len(said))]
    return "\n".join(lines) + "\n"


def _key_text(name: str, random: Random) -> str:
    return random.choice([name, name, f'"{name}"'])


def _value(value: Any, random: Random) -> str:
    if isinstance(value, dict):
        said = [f"{name} = {_value(one, random)}" for name, one in value.items()]
        return f"{{ {', '.join(random.sample(said, len(said)))} }}"
    if isinstance(value, list):
        return f"[{random.choice([', ', ','])[:2].join(_value(one, random) for one in value)}]"
    return f"'{value}'" if isinstance(value, str) and random.random() < 0.3 else json.dumps(value)


def _pick(made: Content, random: Random, wanted: Callable[[Content], bool]) -> str | None:
    found = [name for name, one in made["tables"].items() if wanted(one)]
    return random.choice(found) if found else None


def _is_needed(made: Content, name: str) -> bool:
    """Whether units of another table are found through this one."""
    return any(isinstance(one.get("unit"), dict) and one["unit"]["through"] == name for one in made["tables"].values())

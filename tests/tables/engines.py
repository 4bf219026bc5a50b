"""A database on any of the engines, made of Arrow tables: what tests across engines begin with."""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg
import pyarrow
import pyarrow.parquet
import pytest
from psycopg import sql

from sitr.session.database import Database
from sitr.session.database import open as open_database
from sitr.tables.declaration import Declaration
from sitr.tables.postgresql import type_of
from tests.ledger import cluster

ENGINES = ("duckdb", "postgresql", "spark")
NO_JAVA = "Java is not installed: Spark is not tested"


def missing(engine: str) -> str | None:
    """Why an engine cannot be tested here."""
    if engine == "postgresql" and not cluster.installed():
        return cluster.MISSING
    return NO_JAVA if engine == "spark" and shutil.which("java") is None else None


def asked(
    engine: str, tables: Mapping[str, pyarrow.Table], declaration: Mapping[str, Any], analyst: str = "amina"
) -> Database:
    """Return an opened database, with a ledger in memory, whose declared tables hold these rows.

    Args:
        engine: "duckdb", "postgresql" or "spark".
        tables: The rows, by the name of the declared table.
        declaration: What a TOML file would hold, without `connection`, and without the `source` of a table; without
            `budgets`, each dataset has a large one.
        analyst: Who asks.
    """
    if reason := missing(engine):
        pytest.skip(reason)
    content = copy.deepcopy(dict(declaration))
    content.setdefault("sitr", 1)
    content.setdefault("name", "test")
    datasets = {one.get("dataset", content["name"]) for one in content["tables"].values() if not one.get("public")}
    content.setdefault("budgets", {name: {"epsilon": 1e4, "delta": 1e-3} for name in datasets})
    loaded = {"duckdb": _duckdb, "postgresql": _postgresql, "spark": _spark}[engine]
    folder, frames = loaded(tables, content)
    return open_database(Declaration.of(content, folder), analyst=analyst, ledger="memory://", frames=frames)


def _duckdb(tables: Mapping[str, pyarrow.Table], content: dict[str, Any]) -> tuple[Path, Any]:
    content["connection"] = {"engine": "duckdb"}
    return Path(), dict(tables)


def _postgresql(tables: Mapping[str, pyarrow.Table], content: dict[str, Any]) -> tuple[Path, Any]:
    url = cluster.shared().fresh_database()
    content["connection"] = {"engine": "postgresql", "address": url}
    with psycopg.connect(url, autocommit=True) as connection:
        for name, table in tables.items():
            load(connection, name, table)
    return Path(), None


def load(connection: psycopg.Connection[Any], name: str, table: pyarrow.Table) -> None:
    """Make a table of PostgreSQL with these rows."""
    columns = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(field.name), sql.SQL(type_of(field.type))) for field in table.schema
    )
    connection.execute(sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(name), columns))
    with connection.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(name))) as copied:
        for row in table.to_pylist():
            copied.write_row(tuple(row[column] for column in table.column_names))


def _spark(tables: Mapping[str, pyarrow.Table], content: dict[str, Any]) -> tuple[Path, Any]:
    folder = Path(tempfile.mkdtemp(prefix="sitr-spark-"))
    content["connection"] = {"engine": "spark", "address": "local[2]"}
    for name, table in tables.items():
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet", coerce_timestamps="us")
        content["tables"][name]["source"] = f"{name}.parquet"
    return folder, None

"""A world inside an engine: opened as users open it, and filled with the rows of one neighbour after the other."""

from __future__ import annotations

import copy
import math
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow.parquet
from psycopg import sql

from sitr.session.database import Database
from sitr.session.database import open as open_database
from sitr.tables.declaration import Declaration
from sitr.tables.postgresql import type_of
from tests.attack.worlds import Row, World, frame
from tests.ledger import cluster

Rows = dict[str, list[Row]]
Done = Callable[[], None]
# For tables of a few rows Spark takes longer to compile a query than to run it: most worlds are asked without that.
SPARK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


class House:
    """One world in one engine.

    Args:
        world: Which one.
        folder: Where files of it are written; a new one unless told.
    """

    def __init__(self, world: World, rows: Rows) -> None:
        self.world = world
        self.database = self.opened(rows)

    def declared(self, **settings: Any) -> Declaration:
        """The declaration, with where the rows are."""
        content = copy.deepcopy(self.world.content)
        content["connection"] = {"engine": self.world.engine, **settings}
        for name, table in content["tables"].items():
            if source := self.source_of(name):
                table["source"] = source
        return Declaration.of(content, self.folder())

    def source_of(self, name: str) -> str | None:
        """What the engine calls a table, where it is not its name."""
        return None

    def folder(self) -> Path:
        """Where files are."""
        return Path()

    def opened(self, rows: Rows) -> Database:
        """The database with some rows."""
        raise NotImplementedError

    def fill(self, rows: Rows, meanwhile: Done) -> None:
        """Put other rows behind the declared tables.

        Args:
            rows: Which.
            meanwhile: Is done once other files are in the place of those that are open; never where rows alone change.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Give everything back."""
        self.database.close()

    def _reopened(self) -> None:
        source = self.database.source
        source._tables.clear()
        for table in source.declared.tables.values():  # a view is named by its place among those that were opened
            source.table(table)


class Frames(House):
    """Tables of the process, in DuckDB."""

    def opened(self, rows: Rows) -> Database:
        made = open_database(self.declared(), analyst="amina", ledger="memory://", frames=self._frames(rows))
        _in_one_thread(made.source)
        return made

    def fill(self, rows: Rows, meanwhile: Done) -> None:
        self.database.source._frames = self._frames(rows)  # type: ignore[attr-defined]
        self._reopened()

    def _frames(self, rows: Rows) -> dict[str, Any]:
        return {name: frame(table, rows[name]) for name, table in self.world.tables.items()}


class Files(House):
    """Files that DuckDB or Spark reads; Parquet, or text. They are exchanged for others while they are open."""

    def __init__(self, world: World, rows: Rows) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="sitr-world-"))
        self._fillings = 0
        super().__init__(world, rows)

    def source_of(self, name: str) -> str:
        return f"{name}.{'csv' if self.world.reader == 'csv' else 'parquet'}"

    def folder(self) -> Path:
        return self._folder

    def opened(self, rows: Rows) -> Database:
        self._write(rows)
        made = open_database(self.declared(**self._address()), analyst="amina", ledger="memory://")
        if self.world.engine == "duckdb":
            _in_one_thread(made.source)
        else:
            for name, value in SPARK.items() if self.world.seed % 10 else ():
                made.source._session.conf.set(name, value)  # type: ignore[attr-defined]
        return made

    def _address(self) -> dict[str, str]:
        return {"address": "local[2]"} if self.world.engine == "spark" else {}

    def fill(self, rows: Rows, meanwhile: Done) -> None:
        self._write(rows)
        meanwhile()
        source = self.database.source
        source._held.close()
        source._seen.clear()
        if self.world.engine == "spark":  # a query names the views of the files that were opened
            source.close()
            source._queries.clear()
        elif self.world.reader == "csv":  # which is read from its first line on each time
            source._seen |= {name: source.seen(table) for name, table in source.declared.tables.items()}
            return
        self._reopened()

    def close(self) -> None:
        super().close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _write(self, rows: Rows) -> None:
        self._fillings += 1
        (self._folder / str(self._fillings)).mkdir()
        for name in self.world.tables:
            path, beside = (self._folder / part / self.source_of(name) for part in ("", str(self._fillings)))
            if self.world.seed % 3 == 0:  # a disk may give the number of the old file to the new one
                path.unlink(missing_ok=True)
                self._written(name, rows, path)
                continue
            self._written(name, rows, beside)
            if self.world.seed % 3 == 1:
                os.replace(beside, path)
            else:
                path.unlink(missing_ok=True)
                path.symlink_to(beside)

    def _written(self, name: str, rows: Rows, path: Path) -> None:
        table = self.world.tables[name]
        if self.world.reader == "csv":
            lines = [",".join(map(_quoted, table.names)).encode()]
            lines += [b",".join(_cell(cell) for cell in row) for row in rows[name]]
            path.write_bytes(b"\n".join(lines) + b"\n")
        else:
            made = frame(table, rows[name])
            pyarrow.parquet.write_table(made, path, coerce_timestamps="us", allow_truncated_timestamps=True)


class Kept(House):
    """A database file of DuckDB: one for each filling, as it is read only."""

    def __init__(self, world: World, rows: Rows) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="sitr-world-"))
        super().__init__(world, rows)

    def folder(self) -> Path:
        return self._folder

    def opened(self, rows: Rows) -> Database:
        self._write(rows)
        made = open_database(self.declared(address="world.duckdb"), analyst="amina", ledger="memory://")
        _in_one_thread(made.source)
        return made

    def fill(self, rows: Rows, meanwhile: Done) -> None:
        """Write the file anew and connect to it again; what was written of the queries names the same tables."""
        source: Any = self.database.source
        known = source._known
        source.disconnect()
        self._write(rows)
        source.renew()
        _in_one_thread(source)
        for texts in known:
            source.places(texts)

    def _write(self, rows: Rows) -> None:
        path = self._folder / "world.duckdb"
        path.unlink(missing_ok=True)
        with duckdb.connect(str(path)) as connection:
            for name, table in self.world.tables.items():
                connection.register("given", frame(table, rows[name]))
                connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM given')
                connection.unregister("given")

    def close(self) -> None:
        super().close()
        shutil.rmtree(self._folder, ignore_errors=True)


class Server(House):
    """Tables of a PostgreSQL server of our own."""

    def opened(self, rows: Rows) -> Database:
        self._url = cluster.shared().fresh_database()
        self._admin = psycopg.connect(self._url, autocommit=True)
        self._admin.execute("SET synchronous_commit = off")
        for name, table in self.world.tables.items():
            columns = sql.SQL(", ").join(
                sql.SQL("{} {}").format(sql.Identifier(one.name), sql.SQL(type_of(one.kind.arrow)))
                for one in table.columns
            )
            self._admin.execute(sql.SQL("CREATE UNLOGGED TABLE {} ({})").format(sql.Identifier(name), columns))
        self._load(rows)
        return open_database(self.declared(address=self._url), analyst="amina", ledger="memory://")

    def fill(self, rows: Rows, meanwhile: Done) -> None:
        self._load(rows)

    def _load(self, rows: Rows) -> None:
        for name, table in self.world.tables.items():
            self._admin.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(name)))
            text = sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(name))
            with self._admin.cursor().copy(text) as copied:
                for row in frame(table, rows[name]).to_pylist():
                    copied.write_row(tuple(row.values()))

    def close(self) -> None:
        super().close()
        self._admin.close()
        cluster.shared().drop(self._url)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _in_one_thread(source: Any) -> None:
    """DuckDB is quicker so with few rows."""
    source._connection.raw_sql("SET threads = 1")


def _cell(cell: Any) -> bytes:
    """A cell of a text file."""
    if cell is None:
        return b""
    if isinstance(cell, bytes):
        return b'"' + cell + b'"'
    if isinstance(cell, str):
        return _quoted(cell).encode()
    if isinstance(cell, bool):
        return str(cell).lower().encode()
    if isinstance(cell, float) and math.isnan(cell):
        return b"nan"
    return (cell.isoformat(sep=" ") if isinstance(cell, datetime) else str(cell)).encode()


def house(world: World, rows: Rows) -> House:
    """Return a world, opened with some rows."""
    kinds: dict[str, type[House]] = {"frames": Frames, "parquet": Files, "csv": Files, "file": Kept, "server": Server}
    return kinds[world.reader](world, rows)


def closed(one: House) -> None:
    """Close what may be broken already."""
    with suppress(Exception):
        one.close()

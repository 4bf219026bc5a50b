"""Spark: Parquet and CSV files, or tables of its catalog, on this machine or on a cluster."""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import os
import re
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

import ibis
import numpy as np
import pyarrow
from sqlglot import expressions

from ..errors import InvalidDeclaration, MissingExtra
from . import crosstab as counting
from .arrow import parquet_of
from .cells import values_of
from .codes import Coded
from .crosstab import Coder, Crosstab, Integers
from .declaration import Declaration, Table
from .dialect import WIDE, Value
from .files import FILES, head_of, is_file, is_parquet, written
from .lines import END, LONGEST_LINE, MARK, NO_TEXT, QUOTE, Lines, columns_of, separator_of
from .origins import Origin, Seen, cluster_of, origins_of_files, path_within, refused_view
from .source import Source, not_after_fork
from .statement import Statement
from .tally import Tally

DEFAULT = "local[2]"
DATABASE = "default"
DETAILS = "# Detailed Table Information"
KEPT_BY = ("parquet", "orc", "delta", "iceberg")  # kinds of tables of which no row fails to be read
# Of the session that is ours alone. A cast that fails is missing, as in the other engines, and raises for no row.
SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.filterPushdown": "false",  # by what a file says of its values, which is not believed (0015)
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.runSQLOnFiles": "false",  # parquet.`path` is no name of a table
    "spark.sql.variable.substitute": "false",  # what runs is the text that was checked
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
}
LINE = "mapreduce.input.linerecordreader.line.maxlength"
ATTEMPTS = "spark.stage.maxConsecutiveAttempts"
_numbers = itertools.count(1)
_starting = threading.Lock()
_connected_by: set[int] = set()  # the process that has, or had, a context


def _from_utc_timestamp(moment: Any, zone: str) -> Any:
    """A function of Spark's own: the time on the wall."""


def _try_validate_utf8(text: str) -> Any:
    """A function of Spark's own: a text, or nothing in the place of one that is no UTF-8."""


_valid = ibis.udf.scalar.builtin(_try_validate_utf8, name="try_validate_utf8", signature=(("string",), "string"))
_at_zone = ibis.udf.scalar.builtin(
    _from_utc_timestamp, name="from_utc_timestamp", signature=(("timestamp('UTC')", "string"), "timestamp")
)


class Spark(Source):
    """Tables in Spark: one context for the process, which is used if there is one, and a session of our own.

    Args:
        declared: The declaration; its `address` is a master: local[2] unless told, or spark://host:7077.

    Privacy: which rows of a unit are kept is decided by the number that a window gives each of them, so that no more
    than the bound are, whatever the random column holds. Were a stage run twice after a failure, and its two outcomes
    mixed, more of them could be: so a stage has one attempt, and the query fails when a machine does.
    """

    engine = "spark"
    sources = f"a file that ends in {', '.join(FILES)}, or a table of the catalogue: name, or database.name"

    def __init__(self, declared: Declaration) -> None:
        super().__init__(declared)
        self._session = _session(declared.address)
        self._connection = ibis.pyspark.connect(self._session)
        self._group = f"sitr-{next(_numbers)}"
        self._views: list[str] = []
        self._seed = 0

    @property
    def version(self) -> str:
        """Of Spark."""
        return str(self._session.version)

    def opened(self, table: Table) -> Value:
        """The files, or the table of the catalog."""
        if not is_file(table.source):
            return self._catalogued(table)
        if _is_far(table):
            frame, head = self._read(table.source, table.source), None
        else:
            path, files = self._path(table), self._files(table)
            frame = self._read(table.source, *map(_no_pattern, files))
            read = frame.inputFiles()
            # It leaves out names that begin with _ or a dot, and may look for the others on a file system of its own.
            if len(read) != len(files) or _origins(read) != origins_of_files(files):
                raise InvalidDeclaration(f"Spark does not read all files of {path.name}.", do="give them other names.")
            head = None if is_parquet(table.source) else Lines(path).head
        return self._view(frame) if is_parquet(table.source) else self._lines(frame, table, head)

    def lines(self, table: Table) -> Lines | None:
        """The file, unless it is Parquet, or elsewhere."""
        if not is_file(table.source) or is_parquet(table.source) or _is_far(table):
            return None
        return Lines(self._path(table))

    def cells(self, table: Table) -> Value | None:
        """Of a reading of its own, by which nothing else is asked."""
        lines = self.lines(table)
        if lines is None:
            return None
        text, head = self._read(table.source, *map(_no_pattern, self._files(table))), lines.head
        split = self._view(_split(text.where(text["value"] != head), separator_of(head), whole=True))
        return split.select(**columns_of(split["cells"], head, table, whole=True))

    def _path(self, table: Table) -> Path:
        return self.declared.folder.resolve() / table.source

    def _files(self, table: Table) -> list[str]:
        path = self._path(table)
        return list(parquet_of(path).files) if is_parquet(table.source) else [str(path)]

    def seen(self, table: Table) -> Seen:
        """The files, none of which may be written on, since Spark remembers how long they are; or the table."""
        if not is_file(table.source):
            return self._seen_in_catalogue(table)
        if _is_far(table):
            frame = self._read(table.source, table.source)
            origins = _origins(frame.inputFiles())
            return Seen((self._stored(frame), origins), origins)
        path, files = self._path(table), self._files(table)
        if not is_parquet(table.source):
            self._held.check(path)
        return Seen((head_of(path), written(files)), origins_of_files(files))

    def _seen_in_catalogue(self, table: Table) -> Seen:
        named, about = self._described(table)
        frame, place = self._refreshed(_quoted(named)), about["Location"]
        names = tuple(about[part].lower() for part in ("Catalog", "Database", "Table"))
        files = _origins([*frame.inputFiles(), place])  # the place may not be there yet
        return Seen((names, _leading_to(place), frame.schema), files | {("table", *names), ("place", place)})

    def _read(self, source: str, *paths: str) -> Any:
        if is_parquet(source):
            return self._session.read.parquet(*paths)
        # A longer line is left out anyway, and is not read whole before.
        return self._session.read.option(LINE, str(LONGEST_LINE + 2)).text(list(paths))

    def _stored(self, frame: Any) -> Any:
        """What changes whenever the files of a frame are written anew."""
        java, found = self._session._jvm, []
        for file in sorted(frame.inputFiles()):
            path = java.org.apache.hadoop.fs.Path(java.java.net.URI(file))
            status = path.getFileSystem(self._session._jsc.hadoopConfiguration()).getFileStatus(path)
            found.append((file, status.getLen(), status.getModificationTime()))
        return found, frame.schema

    def _catalogued(self, table: Table) -> Value:
        named, _ = self._described(table)
        catalog, database, name = named
        made = self._connection.table(name, database=(catalog, database))
        return _zoned(made, self._session.table(_quoted(named)).schema)

    def _described(self, table: Table) -> tuple[list[str], dict[str, str]]:
        """A table of the catalogue, by its full name: Spark would also look for files, and for views of the session."""
        parts = table.source.split(".")
        if len(parts) > 3 or not all(re.fullmatch(r"\w+", part) for part in parts):
            raise LookupError
        named = [self._session.catalog.currentCatalog(), DATABASE][: 3 - len(parts)] + parts
        about = _described(self._session.sql(f"DESCRIBE TABLE EXTENDED {_quoted(named)}").collect())
        if about.get("Type") == "VIEW":
            raise refused_view(parts[-1])
        if about.get("Provider", "").lower() not in KEPT_BY:
            raise InvalidDeclaration(
                f"{parts[-1]} is not kept as {', '.join(KEPT_BY)}.",
                why="of what is read as text, or from another server, one row may make a release fail.",
                do="copy it: CREATE TABLE ... USING parquet AS SELECT * FROM ...",
            )
        return named, about

    def _refreshed(self, name: str) -> Any:
        """A table as it is now: Spark remembers its files, and would miss one that was replaced."""
        self._session.catalog.refreshTable(name)
        return self._session.table(name)

    def found(self, table: Table) -> str | None:
        """The files, or the name of the table in the catalogue, and where it is kept unless that is on this machine."""
        if not is_file(table.source):
            names, place, _ = self._seen[table.name].itself
            return _found_in_catalogue(names, place)
        if _is_far(table):
            return table.source
        return path_within(self.declared.folder, os.path.realpath, table.source)

    def _lines(self, text: Any, table: Table, head: str | None) -> Value:
        """A text file by its lines: Spark's reader of CSV fails on a line of too many cells, and guesses at quotes."""
        first = None if head is not None else text.first()
        header = head if head is not None else "" if first is None else str(first[0])
        header = header.removeprefix(MARK)
        split = self._view(_split(text.where(text["value"] != header), separator_of(header)))
        texts = columns_of(split["cells"], header, table)
        if not texts:
            return split
        cells = self._named(self._session.sql(self.compiled(split.select(**texts))))
        values = cells.select(**values_of(cells, table, self, self.declared.time_zone))
        return self._named(self._session.sql(self.compiled(values)))  # so that queries do not repeat how it is read

    def _view(self, frame: Any) -> Value:
        return _zoned(self._named(frame), frame.schema)

    def _named(self, frame: Any, name: str = "") -> Value:
        name = name or f"sitr_{next(_numbers)}"
        frame.createOrReplaceTempView(name)
        self._views.append(name)
        return self._connection.table(name)

    def sample(self, name: str, frame: Any) -> Value:
        """In two partitions: a table of constants would be computed by the optimizer, and not as data are."""
        made = self._session.createDataFrame(_signed(frame))
        for field in frame.schema:
            if str(field.type).startswith("timestamp") and field.type.tz is None:
                made = made.withColumn(field.name, made[field.name].cast("timestamp_ntz"))
        return _zoned(self._named(made.repartition(2), name), made.schema)

    def local(self, moment: Value, zone: str) -> Value:
        """By Spark's time zones."""
        return moment if moment.type().timezone is None else _at_zone(moment, zone)

    def text(self, value: Value) -> Value:
        """As it is, or missing where it is no UTF-8: Spark reads whatever bytes a file holds."""
        return _valid(value)

    def total(self, number: Value) -> Value:
        """As decimals: Spark's sum of 64-bit numbers has 64 bits, and wraps or raises."""
        return number.cast(WIDE).sum().cast(WIDE)

    @property
    def compiler(self) -> Any:
        """For Spark's SQL."""
        return self._connection.compiler

    def fetch(self, statement: Statement) -> Any:
        """By Arrow; a time is the one on the wall, without a zone."""
        table = self._frame(statement).toArrow()
        fields = [
            pyarrow.field(field.name, pyarrow.timestamp("us")) if pyarrow.types.is_timestamp(field.type) else field
            for field in table.schema
        ]
        return table.cast(pyarrow.schema(fields))

    def reduce(self, statement: Statement, crosstab: Crosstab) -> list[Integers]:
        """Where the rows are: each part of them is counted by a process of Python's beside it, and counts are added."""
        return self._counted(self._frame(statement), crosstab)

    def rehearse(self, tally: Tally | Coded) -> None:
        """Also whether Python can count where the rows are: empty tables have no parts, and would not ask it."""
        super().rehearse(tally)
        if isinstance(tally, Coded):
            tried = Crosstab((Coder(None, None, np.arange(1)),), ((0,),))
            self.guarded(lambda: self._counted(self._session.range(1, numPartitions=1), tried))

    @staticmethod
    def _counted(frame: Any, crosstab: Crosstab) -> list[Integers]:
        from pyspark import cloudpickle

        def counted(batches: Iterator[Any]) -> Iterator[Any]:
            cells, rows = crosstab.sparse(batches)
            yield pyarrow.record_batch({"cell": cells, "rows": rows})

        # So that sitr need not be installed where the rows are: NumPy and Arrow are enough.
        cloudpickle.register_pickle_by_value(counting)  # type: ignore[no-untyped-call]
        found = frame.mapInArrow(counted, "cell bigint, rows bigint").groupBy("cell").sum("rows").toArrow()
        return crosstab.dense(*(column.to_numpy() for column in found.columns))

    def _frame(self, statement: Statement) -> Any:
        self._session.sparkContext.setJobGroup(self._group, "sitr", interruptOnCancel=True)
        return self._session.sql(statement.changed(self._seeded).text)

    def _seeded(self, tree: Any) -> None:
        """Give each random column of a query a seed: Spark's own comes from the clock."""
        for place, node in enumerate(list(tree.find_all(expressions.Rand))):
            digest = hashlib.sha256(f"{self._seed}/{place}".encode()).digest()
            node.set("this", expressions.Literal.number(int.from_bytes(digest[:8]) >> 1))

    def interrupt(self) -> None:
        """Cancel our jobs, and nobody else's."""
        self._session.sparkContext.cancelJobGroup(self._group)

    def reseed(self, seed: int) -> None:
        """For the random columns of the queries that follow."""
        self._seed = seed

    def renew(self) -> None:
        """Not at all: the context is the parent's."""
        raise not_after_fork("Spark")

    def disconnect(self) -> None:
        """Forget the tables; the context stays, since it may not be ours, and takes long to start."""
        for name in self._views:
            self._session.catalog.dropTempView(name)
        self._views.clear()


def _is_far(table: Table) -> bool:
    """Whether a source is of a file system that Spark alone reaches, by its own patterns."""
    return "://" in table.source


def _found_in_catalogue(names: tuple[str, ...], place: str) -> str:
    """The name of a table, and where its rows are: two clusters may call theirs alike, and be reached alike.

    Example:
        >>> _found_in_catalogue(("spark_catalog", "default", "visits"), "hdfs://data.example/visits")
        'spark_catalog.default.visits at hdfs://data.example/visits'
        >>> _found_in_catalogue(("spark_catalog", "default", "visits"), "/data/visits")
        'spark_catalog.default.visits'
    """
    kept = "" if os.path.isabs(place) else f" at {re.sub('//[^/@]*:[^/@]*@', '//', place)}"  # no user, no password
    return f"{'.'.join(names)}{kept}"


def _quoted(names: list[str]) -> str:
    """The full name of a table, for which Spark looks in the catalogue alone."""
    return ".".join(f"`{name}`" for name in names)


def _leading_to(place: str) -> str:
    """Where a table of the catalogue is kept, behind links of this machine; its folder may be written anew."""
    path = urlsplit(place)
    return os.path.realpath(url2pathname(path.path)) if path.scheme in ("", "file") else place


def _no_pattern(path: str) -> str:
    """A path in which Hadoop sees no pattern."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def _origins(files: list[str]) -> frozenset[Origin]:
    """Which files these are: those of this machine by their place on the disk."""
    parts = [urlsplit(file) for file in files]
    here = [url2pathname(part.path) for part in parts if part.scheme in ("", "file")]
    there = [("file", part.geturl()) for part in parts if part.scheme not in ("", "file")]
    return origins_of_files(path for path in here if Path(path).exists()) | frozenset(there)


def _described(rows: list[Any]) -> dict[str, str]:
    """What the catalogue says of a table, below its columns."""
    pairs = [(str(row[0]), str(row[1])) for row in rows]
    return dict(pairs[pairs.index((DETAILS, "")) :]) if (DETAILS, "") in pairs else {}


def _split(text: Any, separator: str, *, whole: bool = False) -> Any:
    """The cells of lines that can be records, as `lines` has them; a separator between quotes is an end of line."""
    from pyspark.sql import functions as of

    line = of.make_valid_utf8(text["value"])
    length = of.octet_length(line)
    quotes = length - of.octet_length(of.replace(line, of.lit(QUOTE), of.lit("")))

    def kept(piece: Any, place: Any) -> Any:
        return of.when(place % 2 == 1, of.translate(piece, separator, END)).otherwise(piece)

    quoted = of.array_join(of.transform(of.split(line, QUOTE), kept), QUOTE)
    cells = of.split(of.when(line.contains(QUOTE), quoted).otherwise(line), re.escape(separator))
    texts = of.transform(cells, lambda cell: of.when(cell.contains(NO_TEXT), "").otherwise(cell))
    cells = cells if whole else of.when(line.contains(NO_TEXT), texts).otherwise(cells)
    records = text.where((length > 0) & (length <= LONGEST_LINE) & (quotes % 2 == 0))
    # One row for each: Spark moves no condition or column past this, and would else split the line anew for each use.
    return records.select(of.explode(of.array(cells)).alias("cells"))


def _zoned(table: Value, schema: Any) -> Value:
    """A table whose moments have a time zone: Ibis does not tell Spark's two types of times apart.

    A text with a collation of its own is refused: two that differ could be equal, and one row would name the others.
    """
    if any("collate" in field.dataType.simpleString() for field in schema.fields):
        raise InvalidDeclaration(
            "a text of the table has a collation.", do="read it as a plain string: CAST(... AS STRING)."
        )
    moments = [field.name for field in schema.fields if field.dataType.typeName() == "timestamp"]
    return table.mutate(**{name: table[name].cast("timestamp('UTC')") for name in moments}) if moments else table


def _signed(frame: Any) -> Any:
    """A frame with numbers that Spark has: as it reads those without a sign from Parquet."""
    kinds = {"uint8": pyarrow.int16(), "uint16": pyarrow.int32(), "uint32": pyarrow.int64()}
    kinds["uint64"] = pyarrow.decimal128(20, 0)
    return frame.cast(pyarrow.schema([(field.name, kinds.get(str(field.type), field.type)) for field in frame.schema]))


def _session(address: str) -> Any:
    if importlib.util.find_spec("pyspark") is None:
        raise MissingExtra("tables in Spark need pyspark.", do="pip install 'sitr[spark]', and Java 17 or later.")
    from pyspark.sql import SparkSession

    if _connected_by and os.getpid() not in _connected_by:
        raise not_after_fork("Spark")
    with _starting:
        _connected_by.add(os.getpid())
        running = SparkSession.getActiveSession() or SparkSession._instantiatedSession
        if running is None or running._sc._jsc is None:
            running = _started(address or DEFAULT)
        _check_master(running, address)
        _check_attempts(running)
        running.sparkContext.setLogLevel("OFF")  # its log quotes values where a task fails
        session = running.newSession()
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    if str(session.sparkContext.master).startswith("local"):
        session.conf.set("spark.sql.shuffle.partitions", "4")
        if "PYSPARK_PYTHON" not in os.environ:  # the first python3 of the path may lack what this one has
            session.sparkContext.pythonExec = sys.executable
    return session


def _started(master: str) -> Any:
    """A context of our own; its log is off from the start, and Ctrl-C stays with us."""
    from pyspark.sql import SparkSession

    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        raise MissingExtra("Spark needs Java 17 or later.", do="install it, or set JAVA_HOME.")
    main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT) if main else None
    try:
        return (
            SparkSession.builder.master(master)
            .appName("sitr")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.log.level", "OFF")
            .config("spark.sql.session.timeZone", "UTC")
            .config(ATTEMPTS, "1")
            .getOrCreate()
        )
    except Exception:
        pass
    finally:
        if main:
            signal.signal(signal.SIGINT, handler)
    raise InvalidDeclaration(f"connection.address: Spark cannot be started at {master!r}.")


def _check_master(session: Any, address: str) -> None:
    """Refuse a context of another cluster than is declared: the book would name tables that were not read."""
    master = str(session.sparkContext.master)
    if address and cluster_of(master) != cluster_of(address):
        raise InvalidDeclaration(
            f"connection.address is {address}, and this process has a Spark that runs at {master}.",
            why="a table of that name may be another one there.",
            do="stop that one, or leave the address out to use what is running.",
        )


def _check_attempts(session: Any) -> None:
    context = session.sparkContext
    if str(context.master).startswith("local") or context.getConf().get(ATTEMPTS, "") == "1":
        return
    raise InvalidDeclaration(
        f"the running Spark was started without {ATTEMPTS}=1.",
        why="after the loss of a machine it would mix two random choices of a person's rows, and keep too many.",
        do="start it with that setting, or let sitr start it.",
    )

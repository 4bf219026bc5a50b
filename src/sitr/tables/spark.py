"""Spark: Parquet and CSV files, or tables of its catalog, on this machine or on a cluster."""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import os
import re
import shutil
import signal
import threading
from typing import Any

import ibis
import pyarrow
from sqlglot import expressions

from ..errors import InvalidDeclaration, MissingExtra
from .declaration import Declaration, Table
from .dialect import WIDE, Value
from .lines import END, LONGEST_LINE, QUOTE, columns_of, separator_of
from .source import Source, not_after_fork

DEFAULT = "local[2]"
FILES = (".parquet", ".csv", ".csv.gz", ".tsv")
# Of the session that is ours alone. A cast that fails is missing, as in the other engines, and raises for no row.
SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.parquet.inferTimestampNTZ.enabled": "true",
    "spark.sql.parquet.filterPushdown": "false",  # by what a file says of its values, which is not believed (0015)
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
}
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

    def __init__(self, declared: Declaration) -> None:
        super().__init__(declared)
        self._session = _session(declared.address or DEFAULT)
        self._connection = ibis.pyspark.connect(self._session)
        self._group = f"sitr-{next(_numbers)}"
        self._tables: dict[str, Value] = {}
        self._views: list[str] = []
        self._seed = 0

    @property
    def version(self) -> str:
        """Of Spark."""
        return str(self._session.version)

    def table(self, table: Table) -> Value:
        """The files, or the table of the catalog."""
        if table.name not in self._tables:
            self._tables[table.name] = self._opened(table)
        return self._tables[table.name]

    def _opened(self, table: Table) -> Value:
        source = table.source.lower()
        if not source.endswith(FILES):
            *database, name = table.source.split(".")
            found = self._connection.table(name, database=".".join(database) or None)
            return _zoned(found, self._session.table(table.source).schema)
        path = table.source if "://" in table.source else str(self.declared.folder.resolve() / table.source)
        if source.endswith(".parquet"):
            return self._view(self._session.read.parquet(path))
        return self._lines(self._session.read.text(path), table)

    def _lines(self, text: Any, table: Table) -> Value:
        """A text file by its lines: Spark's reader of CSV fails on a line of too many cells, and guesses at quotes."""
        first = text.first()  # the names of the columns; a line that repeats them is left out
        header = "" if first is None else str(first[0])
        split = self._view(_split(text.where(text["value"] != header), separator_of(header)))
        columns = columns_of(split["cells"], header, table)
        return split.select(**columns) if columns else split

    def _view(self, frame: Any) -> Value:
        name = f"sitr_{next(_numbers)}"
        frame.createOrReplaceTempView(name)
        self._views.append(name)
        return _zoned(self._connection.table(name), frame.schema)

    def sample(self, name: str, frame: Any) -> Value:
        """In two partitions: a table of constants would be computed by the optimizer, and not as data are."""
        made = self._session.createDataFrame(_signed(frame))
        for field in frame.schema:
            if str(field.type).startswith("timestamp") and field.type.tz is None:
                made = made.withColumn(field.name, made[field.name].cast("timestamp_ntz"))
        return self._view(made.repartition(2))

    def local(self, moment: Value, zone: str) -> Value:
        """By Spark's time zones."""
        return moment if moment.type().timezone is None else _at_zone(moment, zone)

    def text(self, value: Value) -> Value:
        """As it is, or missing where it is no UTF-8: Spark reads whatever bytes a file holds."""
        return _valid(value)

    def total(self, number: Value) -> Value:
        """As decimals: Spark's sum of 64-bit numbers has 64 bits, and wraps or raises."""
        return number.cast(WIDE).sum().cast(WIDE)

    def compiled(self, query: Value) -> str:
        """Spark's SQL."""
        return str(self._connection.compile(query, pretty=True))

    def fetch(self, query: Value) -> Any:
        """By Arrow; a time is the one on the wall, without a zone."""
        self._session.sparkContext.setJobGroup(self._group, "sitr", interruptOnCancel=True)
        table = self._session.sql(self._seeded(query)).toArrow()
        fields = [
            pyarrow.field(field.name, pyarrow.timestamp("us")) if pyarrow.types.is_timestamp(field.type) else field
            for field in table.schema
        ]
        return table.cast(pyarrow.schema(fields))

    def _seeded(self, query: Value) -> str:
        """The query, with a seed for each random column: Spark's own comes from the clock."""
        tree = self._connection.compiler.to_sqlglot(query)
        for place, node in enumerate(list(tree.find_all(expressions.Rand))):
            digest = hashlib.sha256(f"{self._seed}/{place}".encode()).digest()
            node.set("this", expressions.Literal.number(int.from_bytes(digest[:8]) >> 1))
        return str(tree.sql(dialect=self._connection.dialect))

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
        self._tables.clear()
        self._views.clear()


def _split(text: Any, separator: str) -> Any:
    """The cells of lines that can be records, as `lines` has them; a separator between quotes is an end of line."""
    from pyspark.sql import functions as of

    line = of.make_valid_utf8(text["value"])
    length = of.octet_length(line)
    quotes = length - of.octet_length(of.replace(line, of.lit(QUOTE), of.lit("")))

    def kept(piece: Any, place: Any) -> Any:
        return of.when(place % 2 == 1, of.translate(piece, separator, END)).otherwise(piece)

    quoted = of.array_join(of.transform(of.split(line, QUOTE), kept), QUOTE)
    cells = of.split(of.when(line.contains(QUOTE), quoted).otherwise(line), re.escape(separator))
    return text.where((length > 0) & (length <= LONGEST_LINE) & (quotes % 2 == 0)).select(cells.alias("cells"))


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


def _session(master: str) -> Any:
    if importlib.util.find_spec("pyspark") is None:
        raise MissingExtra("tables in Spark need pyspark.", do="pip install 'sitr[spark]', and Java 17 or later.")
    from pyspark.sql import SparkSession

    if _connected_by and os.getpid() not in _connected_by:
        raise not_after_fork("Spark")
    with _starting:
        _connected_by.add(os.getpid())
        running = SparkSession.getActiveSession() or SparkSession._instantiatedSession
        if running is None or running._sc._jsc is None:
            running = _started(master)
        _check_attempts(running)
        running.sparkContext.setLogLevel("OFF")  # its log quotes values where a task fails
        session = running.newSession()
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    if str(session.sparkContext.master).startswith("local"):
        session.conf.set("spark.sql.shuffle.partitions", "4")
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


def _check_attempts(session: Any) -> None:
    context = session.sparkContext
    if str(context.master).startswith("local") or context.getConf().get(ATTEMPTS, "") == "1":
        return
    raise InvalidDeclaration(
        f"the running Spark was started without {ATTEMPTS}=1.",
        why="after the loss of a machine it would mix two random choices of a person's rows, and keep too many.",
        do="start it with that setting, or let sitr start it.",
    )

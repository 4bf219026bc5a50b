"""A book in PostgreSQL, for teams: analysts execute functions and hold no right on any table (postgres.sql)."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, insert, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import NullPool

from .. import _validate
from ..errors import ConnectionLost, InvalidArgument, LedgerUnavailable, MissingExtra, NotPermitted, UnknownName
from . import schema
from .answer import LARGE, LARGEST, MEDIA
from .entry import DEEPEST_BODY, LONGEST_BODY, LONGEST_NUMBER, Entry, Head, entry_hash
from .schema import vector, whole_numbers
from .store import Identity, Kept, Stale, Store, Unfit, busy, damaged, not_permitted, older
from .totals import Charge, Exceeded, Total

SCHEMA = "sitr"
# Names are looked up in no schema that others may write to.
SETTINGS = "-c lock_timeout={wait} -c synchronous_commit=on -c search_path=pg_catalog,pg_temp"

# What analysts may execute.
FOR_ANALYSTS = (
    "reserve(text, text, text)",
    "start(text, text, text)",
    "commit(text, text, text, text, text, bytea, text)",
    "identity()",
    "totals(text[])",
    "operation(text)",
    "kept(text, text)",
    "declared(text, text[])",
    "has_terms()",
    "mine()",
)
RESERVE = "SELECT * FROM sitr.reserve(%(operation)s, %(analyst)s, %(body)s)"
START = "SELECT * FROM sitr.start(%(operation)s, %(analyst)s, %(body)s)"
COMMIT = "SELECT * FROM sitr.commit(%(operation)s, %(analyst)s, %(holder)s, %(body)s, %(media)s, %(content)s, %(path)s)"
APPEND = text("SELECT * FROM sitr.append_entry(:kind, :operation, :analyst, :body)")
# What a failed connection is told by, and what that means; the driver's own words may hold more than they should.
REASONS = {
    "database": "there is no such database, or this user may not connect to it",
    "password": "the password is wrong or missing",
    "authentication": "the server does not accept this user",
    "role": "there is no such user",
    "resolve": "there is no host of that name",
    "translate host": "there is no host of that name",
    "Connection refused": "nothing listens there",
    "No such file": "nothing listens there",
    "too many": "the server has too many connections",
    "starting up": "the server is starting",
    "shutting down": "the server is shutting down",
    "timeout": "the server did not answer in time",
}
ABSENT = ("3F000", "42P01", "42883")  # no such schema, table, function


class PostgreSQL(Store):
    """The schema `sitr` of a database.

    Args:
        url: "postgresql://user@host/database"; whoever makes the book owns it.
        wait: How many seconds to wait for another process.
    """

    separates = True
    begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

    def __init__(self, url: str, wait: float) -> None:
        if importlib.util.find_spec("psycopg") is None:
            raise MissingExtra("a ledger in PostgreSQL needs psycopg.", do="pip install 'sitr[postgresql]'.")
        try:
            address = make_url(url).set(drivername="postgresql+psycopg")
            if "@" in (address.host or ""):
                raise ValueError("a password with @ in it: %40 is its code")
        except (ArgumentError, ValueError):
            raise InvalidArgument(
                "the address of the ledger cannot be read.", do="postgresql://user@host/db."
            ) from None
        engine = create_engine(
            address,
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",  # a function is one transaction; an owner's begin and end by our own words
            connect_args={"options": SETTINGS.format(wait=max(round(wait * 1000), 1))},
        ).execution_options(schema_translate_map={None: SCHEMA})
        super().__init__(engine, shown_address(address), alone=False)
        self._id = ""
        self._own: Entry | None = None  # the last entry of this process

    def reserve(
        self, operation: str, analyst: str, body: str, charges: Sequence[Charge], names: Sequence[str]
    ) -> Entry:
        return self._step(RESERVE, self._own, operation=operation, analyst=analyst, body=body)

    def start(self, operation: str, analyst: str, body: str) -> Entry:
        return self._step(START, operation=operation, analyst=analyst, body=body)

    def commit(self, operation: str, analyst: str, holder: str, body: str, kept: Kept) -> Entry:
        return self._step(COMMIT, operation=operation, analyst=analyst, holder=holder, body=body, **kept._asdict())

    def identity(self) -> Identity | None:
        before = self._latest.seq
        try:
            ((id, version, *head),) = self._read("SELECT * FROM sitr.identity()")
        except UnknownName:
            return None
        if id is None:
            raise damaged(self.place, "it has no first entry")
        self._id = self._id or id
        self.saw(Head(*head), before)
        return Identity(id, version, Head(*head))

    def totals(self, names: Sequence[str]) -> list[Total]:
        rows = self._read("SELECT * FROM sitr.totals(%(names)s)", names=list(names))
        return [Total(name, version, body, whole_numbers(w), whole_numbers(p)) for name, version, body, w, p in rows]

    def operation(self, operation: str) -> list[Entry]:
        return [Entry(*row) for row in self._read("SELECT * FROM sitr.operation(%(asked)s)", asked=operation)]

    def kept(self, operation: str, analyst: str) -> Kept | None:
        asked = "SELECT media, content, path FROM sitr.kept(%(asked)s, %(analyst)s)"
        rows = self._read(asked, asked=operation, analyst=analyst)
        return Kept(*rows[0]) if rows else None

    def declared(self, declaration: str | None, datasets: Sequence[str]) -> list[Entry]:
        asked = "SELECT * FROM sitr.declared(%(declaration)s, %(datasets)s)"
        return [Entry(*row) for row in self._read(asked, declaration=declaration, datasets=list(datasets))]

    def has_terms(self) -> bool:
        ((found,),) = self._read("SELECT sitr.has_terms()")
        return bool(found)

    def mine(self) -> list[Entry]:
        return [Entry(*row) for row in self._read("SELECT * FROM sitr.mine()")]

    def make(self, id: str, body: str) -> None:
        with self.transaction(locked=False) as connection:
            connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('sitr.book'))"))
            if connection.dialect.has_table(connection, "book", SCHEMA):
                return  # another process was faster: its book is the book
            if connection.dialect.has_schema(connection, SCHEMA):
                raise NotPermitted(
                    f"the database at {self.place} has a schema {SCHEMA} that is no ledger.",
                    why="whoever made it could have put functions of their own there.",
                    do=f"drop it, if nobody needs it: DROP SCHEMA {SCHEMA} CASCADE.",
                )
            connection.execute(text(f"CREATE SCHEMA {SCHEMA}"))
            schema.metadata.create_all(connection)
            connection.execute(insert(schema.book), {"id": id, "schema_version": schema.SCHEMA_VERSION})
            self._install(connection)
            self._append(connection, "open", None, None, body)

    def allow(self, analyst: str) -> None:
        """Let a role execute the functions of the protocol, and nothing else."""
        if _validate.name("analyst", analyst).lower() == "public" or len(analyst.encode()) > 63:
            raise InvalidArgument(f"{_validate.shown(analyst)} is no role of PostgreSQL.", do="CREATE ROLE ... LOGIN.")
        with self.transaction() as connection:
            role = '"' + analyst.replace('"', '""') + '"'
            grants = [f"GRANT USAGE ON SCHEMA {SCHEMA} TO {role}"]
            grants += [f"GRANT EXECUTE ON FUNCTION {SCHEMA}.{function} TO {role}" for function in FOR_ANALYSTS]
            for grant in grants:  # by the driver: a name may have signs that SQLAlchemy reads as parameters
                connection.connection.driver_connection.execute(grant)  # type: ignore[union-attr]

    def copy_to(self, path: Path) -> None:
        """By `pg_dump`, which sees the book at one moment."""
        with open(path, "wb") as file:
            self._run("pg_dump", f"--schema={SCHEMA}", stdout=file)

    def restore_from(self, path: Path) -> None:
        """By `psql`, in one transaction."""
        self._run("psql", "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-f", str(path))

    def _run(self, program: str, *arguments: str, stdout: Any = subprocess.DEVNULL) -> None:
        """Run a program of PostgreSQL on the database of the book; a password is handed over unseen."""
        found = shutil.which(program)
        if found is None:
            raise MissingExtra(f"{program} is not installed.", do="install the programs of PostgreSQL's client.")
        password = self.engine.url.password
        environment = os.environ | ({"PGPASSWORD": str(password)} if password else {})
        command = [found, "--no-password", f"--dbname={self.place}", *arguments]
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE)
        if done.returncode:
            shown = " ".join([program, f"--dbname={self.place}", *arguments])
            raise LedgerUnavailable(
                f"{program} failed at {self.place}; nothing was changed.",
                why="it may be older than the server, or the roles of analysts may be missing there.",
                do=f"see what it says: {shown}",
            )

    def check_storage(self) -> None:
        """The server checks its own pages: pg_amcheck."""

    def _step(self, statement: str, own: Entry | None = None, **values: Any) -> Entry:
        """Make a step of the protocol; one after an entry of our own only in a book that still has that."""
        before = self._latest.seq
        entry = self._with_driver(lambda driver: Entry(*driver.execute(statement, values).fetchone()))
        if own is not None and not self._goes_on(own, entry):
            raise older(self.place)
        self.saw(entry.head, before + 1)
        self._own = entry
        return entry

    def _goes_on(self, own: Entry, entry: Entry) -> bool:
        """Whether an entry stands in a book that has an earlier one of our own; one that went on from a copy has not.

        An analyst reads no entries but her own. Where nobody else wrote in between, the hash tells by itself.
        """
        return entry.hash == entry_hash(self._id, own.hash, entry) or own in self.operation(str(own.operation))

    def _read(self, statement: str, **values: Any) -> list[Any]:
        try:
            return self._with_driver(lambda driver: driver.execute(statement, values).fetchall())
        except ConnectionLost:  # reading twice does no harm
            return self._with_driver(lambda driver: driver.execute(statement, values).fetchall())

    def _lock(self, connection: Connection) -> None:
        connection.execute(text("SELECT 1 FROM sitr.book FOR UPDATE"))

    def _install(self, connection: Connection) -> None:
        encoding = connection.execute(text("SELECT getdatabaseencoding()")).scalar_one()
        if encoding != "UTF8":
            raise InvalidArgument(
                f"the database at {self.place} is encoded in {encoding}, and a ledger is kept in UTF8.",
                do="createdb --encoding UTF8 --template template0.",
            )
        # Many statements at once go to the driver itself; they are part of the transaction.
        connection.connection.driver_connection.execute(functions())  # type: ignore[union-attr]

    def _append(
        self, connection: Connection, kind: str, operation: str | None, analyst: str | None, body: str
    ) -> Entry:
        values = {"kind": kind, "operation": operation, "analyst": analyst, "body": body}
        return Entry(**connection.execute(APPEND, values).one()._mapping)

    def _unreachable(self, error: BaseException) -> Exception:
        text = str(error)
        reason = next(
            (told for sign, told in REASONS.items() if sign in text), "the server gave no reason that is known"
        )
        return LedgerUnavailable(
            f"the ledger at {self.place} cannot be reached: {reason}.",
            do="look at the address: postgresql://user@host/database; a password belongs into ~/.pgpass.",
        )

    def _explained(self, error: BaseException) -> Exception:
        driver: Any = error
        state = getattr(driver, "sqlstate", None)
        if state == "SL001":
            return Exceeded(driver.diag.message_primary, vector(driver.diag.message_detail))
        if state == "SL002":
            return Stale()
        if state in ("SL003", "23505"):
            return Unfit()
        if state == "SL004":
            return NotPermitted(f"{driver.diag.message_primary}.", do="ask as yourself, or as an owner of the ledger.")
        if state == "SL005":
            return InvalidArgument(f"the ledger cannot take this: {driver.diag.message_primary}.")
        if state == "42501":
            return not_permitted(self.place)
        if state == "42704":
            return UnknownName("there is no such role in PostgreSQL.", do="CREATE ROLE ... LOGIN, as an administrator.")
        if state in ABSENT:
            return UnknownName(f"there is no ledger at {self.place}.", do="an owner makes it: sitr budget create.")
        if state in ("55P03", "40001", "40P01"):
            return busy(self.place)
        if state in ("XX001", "XX002"):
            return damaged(self.place, "PostgreSQL cannot read it")
        if state is None or state[:2] in ("08", "57"):
            return ConnectionLost(
                f"the connection to the ledger at {self.place} broke, or could not be made.",
                why="whether the last step was made is not known.",
                do="ask again with the same operation id: nothing is charged or run twice.",
            )
        return LedgerUnavailable(
            f"PostgreSQL refused at {self.place} (SQLSTATE {state}); nothing was granted.",
            do="look into the log of the server; then ask again with the same operation id.",
        )


def shown_address(address: URL) -> str:
    """Return all of an address but what is secret.

    Example:
        >>> shown_address(make_url("postgresql+psycopg://amina:secret@host:5433/books?sslmode=require&password=x"))
        'postgresql://amina@host:5433/books?sslmode=require'
    """
    secret = [name for name in address.query if "password" in name.lower()]
    plain = address._replace(drivername="postgresql", password=None)
    return plain.difference_update_query(secret).render_as_string(hide_password=True)


@cache
def functions() -> str:
    """Return the functions of postgres.sql, which hold what is called by hand to the limits of Python's side."""
    source = files(__package__).joinpath("postgres.sql").read_text(encoding="utf-8")
    media = ", ".join(f"'{one}'" for one in MEDIA)
    limits = {
        "large": LARGE,
        "largest": LARGEST,
        "body": LONGEST_BODY,
        "deepest": DEEPEST_BODY,
        "number": LONGEST_NUMBER,
    }
    granted = ", ".join(f"{SCHEMA}.{function}" for function in FOR_ANALYSTS)
    words = {**limits, "media": media, "unprintable": _unprintable(), "functions": granted}
    for name, value in words.items():
        source = source.replace(f"<<{name}>>", str(value))
    return source


def _unprintable() -> str:
    """The characters that names may not have (`_validate.name`), as ranges of a regular expression."""
    seen = groupby(range(1, 0x110000), key=lambda code: _validate.shows(chr(code)))
    runs = [list(codes) for shown, codes in seen if not shown]
    return "".join(f"\\U{codes[0]:08X}-\\U{codes[-1]:08X}" for codes in runs)

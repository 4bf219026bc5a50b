"""A database that people's rows are in: opened by its declaration, asked through its ledger."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .. import _validate, markup
from ..display import counted
from ..errors import InvalidArgument, InvalidDeclaration, NotPermitted
from ..ledger import Budget, Ledger
from ..query.facts import Facts
from ..query.planner import Plan, Target, plan
from ..query.query import Query
from ..tables.declaration import Declaration, Table
from ..tables.relations import Relation, Scan, one_row_per_unit, per_unit_within, private_tables, table_of
from ..tables.source import Source
from .description import about
from .misfits import REASON, Check, check
from .question import Question
from .table import PrivateTable
from .terms import found_tables, hold_to_terms

if TYPE_CHECKING:
    from ..query.sql import Parsed

SHOWN = 12  # tables in a line
KEPT = 8  # texts that were read, and plans that were made


class Database:
    """Tables, their engine and their ledger; made by `sitr.open`.

    Attributes:
        declared: What the owner declared.
        source: The engine.
        ledger: What every release is charged to.
        analyst: Who asks, as the ledger records it.
    """

    def __init__(self, declared: Declaration, source: Source, ledger: Ledger, analyst: str) -> None:
        self.declared, self.source, self.ledger, self.analyst = declared, source, ledger, analyst
        self._facts: dict[str, Facts] = {}
        self._texts: dict[str, Parsed] = {}
        # What was planned lately, by the query, which is held so that nothing else takes its identity.
        self._plans: dict[int, tuple[Query, Target, Facts, Plan]] = {}

    def __repr__(self) -> str:
        tables = f"tables={list(self.tables)}" if len(self.tables) <= SHOWN else counted(len(self.tables), "table")
        return f"Database({self.declared.name!r}, {tables}, analyst={self.analyst!r})"

    def _repr_html_(self) -> str:
        rows = [(name, about(table)) for name, table in self.declared.tables.items()]
        whose = f"on {self.declared.engine}, asked by {self.analyst}"
        return markup.page(markup.title(self.declared.name, whose), markup.table(("table", ""), rows))

    def __enter__(self) -> Database:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections to the engine and to the ledger back."""
        self.source.close()
        self.ledger.close()

    def hold_to_terms(self) -> tuple[str, ...]:
        """Refuse to go on where the book's promises were made, or changed, under another declaration; return remarks.

        Raises:
            DeclarationChanged: They were.
        """
        return hold_to_terms(self.declared, self.ledger, {} if self.ledger.in_memory else self._found)

    @cached_property
    def _found(self) -> dict[str, str]:
        """By the names under which rows were found at first: a table that leads elsewhere since is not rehearsed."""
        return found_tables(self.source)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the declared tables."""
        return tuple(self.declared.tables)

    def table(self, name: str) -> PrivateTable:
        """Return a declared table.

        Raises:
            NotAllowed: It is not declared.
        """
        table_of(self.declared, name)
        return PrivateTable(self, Scan(name))

    def sql(self, text: str) -> Question:
        """Return a question that is written in SQL; docs/sql.md lists what it may say.

        Args:
            text: One SELECT; no part of it reaches the engine as text. It may state ε and δ, in BigQuery's form.

        Raises:
            NotAllowed: It asks for what is not allowed; the message says what to write instead.
        """
        found = self._parsed(text)
        return Question(self, found.query, found.after, epsilon=found.epsilon, delta=found.delta, text=text)

    def check(self, *, unsafe_exact_counts: bool, reason: str = REASON) -> Check:
        """Count what of the rows does not fit the declaration, as `sitr check` does, once the book has noted it.

        Args:
            unsafe_exact_counts: Has to be True: the counts have no noise.
            reason: Why; it stays in the book.

        Raises:
            InvalidArgument: Nobody said that exact counts are wanted.

        Privacy: none. What is counted is stamped NOT PRIVATE, and is for whoever may see the rows themselves.
        """
        if unsafe_exact_counts is not True:
            raise InvalidArgument(
                "a check counts exactly, which is not differentially private.",
                why="a count without noise may be about one person.",
                do="pass unsafe_exact_counts=True, if you may see the rows themselves.",
            )
        self.hold_to_terms()
        return check(self.source, self.ledger, analyst=self.analyst, reason=reason)

    def _parsed(self, text: Any) -> Parsed:
        """What a text asks; one that was read lately is not read anew: it is often explained first, and then asked."""
        from ..query.sql import parsed

        found = self._texts.get(text) if isinstance(text, str) else None
        if found is None:
            found = parsed(text, self.declared)
            if len(self._texts) >= KEPT:
                self._texts.clear()
            self._texts[text] = found
        return found

    def planned(self, query: Query, target: Target, facts: Facts) -> Plan:
        """Return the plan of a query; what was explained is not planned, and not written for the engine, anew."""
        found = self._plans.get(id(query))  # once: another thread may ask the same at another price
        if found is None or found[1:3] != (target, facts):
            found = query, target, facts, plan(query, self.declared, target, facts)
            if len(self._plans) >= KEPT:
                self._plans.clear()
            self._plans[id(query)] = found
        return found[3]

    def facts(self, relation: Relation) -> Facts:
        """Return what is publicly known of how many units and rows a relation has, before filters."""
        tables = [table_of(self.declared, name) for name in private_tables(relation, self.declared)]
        many = [table for table in tables if table.max_rows_per_unit > 1 or table.unit is None]
        known = self._facts_of((many or tables)[0])  # a join with one row of each unit adds none
        if one_row_per_unit(relation):
            return Facts(known.units, known.units, source=known.source)
        if per_unit_within(relation) is not None or len(many) > 1:
            return Facts(known.units, source=known.source)
        return known

    def _facts_of(self, table: Table) -> Facts:
        rows = table.expected_rows if table.max_rows_per_unit > 1 else table.expected_rows or table.expected_units
        declared = Facts(table.expected_units, rows, source="by what is declared")
        known = self._facts.get(table.name, declared)
        if known.rows is not None and (declared.rows or 0) > known.rows:  # a profile does not see the heaviest units
            known = replace(known, rows=declared.rows)
        return known

    def learn(self, name: str, facts: Facts) -> None:
        """Take facts from an earlier release into account, for one table."""
        table_of(self.declared, name)
        self._facts[name] = facts


def open(
    declaration: str | Path | Declaration,
    *,
    analyst: str | None = None,
    ledger: Ledger | str | Path | None = None,
    anchor: str | Path | None = None,
    frames: Mapping[str, Any] | None = None,
    memory: str | None = None,
) -> Database:
    """Open a database by its declaration.

    Args:
        declaration: The owner's TOML file, or what was read from one.
        analyst: Who asks; the name of the operating system's user unless told. In one process it is a claim.
        ledger: Another ledger than the declared one: an open one, or "memory://" to try things out, which begins with
            the declared budgets and is gone with the process.
        anchor: The file in which the end of the book is written down elsewhere; the declared one unless told. A book
            that is older than it is refused, and every charge is added to it.
        frames: Tables of pandas, Polars or Arrow in place of declared sources, by name; DuckDB only.
        memory: The most that DuckDB may use, such as "1.5GB".

    Raises:
        InvalidDeclaration: The declaration is not consistent, or does not fit the database.
        DeclarationChanged: The book's promises were made under another declaration.
        NotPermitted: The analyst is not among those who may ask.
        WrongLedger: The book is not the one that the declaration names.
        LedgerDamaged: The book is behind its anchor: an older copy, or cut short.
    """
    declared = declaration if isinstance(declaration, Declaration) else Declaration.read(declaration)
    who = _validate.name("analyst", analyst if analyst is not None else getpass.getuser())
    if declared.analysts and who not in declared.analysts:
        raise NotPermitted(
            f"{who!r} may not ask.",
            why="the declaration lists who may.",
            do='say who asks: sitr.open(..., analyst="NAME"); the owner adds names to analysts = [].',
        )
    book = _book(declared, ledger, anchor)
    try:
        source = connect(declared, frames, memory)
        try:
            source.check()
            database = Database(declared, source, book, who)
            database.hold_to_terms()
        except BaseException:
            source.close()
            raise
    except BaseException:
        if book is not ledger:
            book.close()
        raise
    return database


def _book(declared: Declaration, ledger: Ledger | str | Path | None, anchor: str | Path | None) -> Ledger:
    if isinstance(ledger, Ledger):
        if anchor is not None:
            raise InvalidArgument(
                "anchor= with a ledger that is open already.", do="Ledger.open(..., anchor=...), or give its address."
            )
        return ledger
    if ledger is not None:
        book = Ledger.open(ledger, anchor=anchor)
        if book.in_memory:
            create_budgets(declared, book)
        return book
    if declared.ledger is None or declared.ledger_id is None:
        raise InvalidDeclaration(
            "the declaration names no ledger, or not its id.",
            why="without the id, a new book in its place would forget what was spent.",
            do="sitr budget begin DECLARATION makes the book and writes its id; ledger='memory://' needs none.",
        )
    return declared_book(declared, anchor)


def declared_book(declared: Declaration, anchor: str | Path | None = None) -> Ledger:
    """Open the declared ledger, held to an anchor: the declared one unless told."""
    anchor = declared_anchor(declared) if anchor is None else anchor
    url, answers = ledger_url(declared), declared_answers(declared)
    return Ledger.open(url, create=False, expect=declared.ledger_id, anchor=anchor, answers=answers)


def declared_answers(declared: Declaration) -> Path | None:
    """Return the folder of large answers: of a book on a server, beside the declaration; of a file, beside that.

    Without one, an answer too large for the book itself would be refused after it was charged.
    """
    on_server = str(declared.ledger).startswith("postgresql")
    return declared.folder / f"{declared.name}.answers" if on_server else None


def declared_anchor(declared: Declaration) -> Path | None:
    """Return the declared anchor; a path is taken from the folder of the declaration."""
    return None if declared.anchor is None else declared.folder / declared.anchor


def ledger_url(declared: Declaration) -> str:
    """Return where the declared ledger is; a path is taken from the folder of the declaration."""
    assert declared.ledger is not None
    if "://" in declared.ledger:
        return declared.ledger
    return f"sqlite:///{(declared.folder / declared.ledger).resolve()}"


def create_budgets(declared: Declaration, ledger: Ledger) -> None:
    """Promise the declared budgets, and the shares of analysts and purposes, that the book does not have yet."""
    known = ledger.budgets()
    for name, (dataset, holder, budget) in declared_budgets(declared).items():
        if name not in known:
            ledger.create_budget(dataset, budget, **holder)


def declared_budgets(declared: Declaration) -> dict[str, tuple[str, dict[str, str], Budget]]:
    """Return all declared budgets by name: of which dataset, whose share, and the promise; datasets before shares.

    A share that is declared without a δ has that of its dataset; `delta = 0` asks for a pure one.
    """
    found: dict[str, tuple[str, dict[str, str], Budget]] = {}
    for dataset, limits in declared.budgets.items():
        found[dataset] = (dataset, {}, _budget(declared, f"budgets.{dataset}", limits))
        whole = {"delta": limits["delta"]} if "delta" in limits else {}  # of a share too, unless it has its own
        for share, holder in (("analysts", "analyst"), ("purposes", "purpose")):
            for who, its in limits.get(share, {}).items():
                promise = _budget(declared, f"budgets.{dataset}.{share}.{who}", {**whole, **its})
                found[f"{dataset}/{holder}/{who}"] = (dataset, {holder: who}, promise)
    return found


def _budget(declared: Declaration, place: str, limits: Mapping[str, Any]) -> Budget:
    amounts = {name: limits[name] for name in ("epsilon", "delta", "rho") if name in limits}
    try:
        return Budget(**amounts, adjacency=declared.adjacency, unit=declared.unit)
    except InvalidArgument as error:
        such = "epsilon = 1.0; epsilon = 1.0 and delta = 1e-6; or rho = 0.1."
        raise InvalidDeclaration(f"{place}: {error.what}", why=error.why, do=such) from None


def connect(declared: Declaration, frames: Mapping[str, Any] | None = None, memory: str | None = None) -> Source:
    """Return a connection to the declared engine, which was not tested yet, nor held against the declaration."""
    if declared.engine == "duckdb":
        from ..tables.duckdb import DuckDB

        unknown = set(frames or {}) - set(declared.tables)
        if unknown:
            raise InvalidDeclaration(f"frames: {', '.join(sorted(map(repr, unknown)))} is not a declared table.")
        return DuckDB(declared, frames, memory=memory)
    if frames:
        raise InvalidDeclaration(f"frames are for DuckDB, and the declared engine is {declared.engine}.")
    if declared.engine == "spark":
        from ..tables.spark import Spark

        return Spark(declared)
    from ..tables.postgresql import PostgreSQL

    return PostgreSQL(declared)

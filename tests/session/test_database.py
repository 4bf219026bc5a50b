"""Databases: who may ask, which book pays, and what is refused before anything is opened."""

import gc
import re
import weakref

import pyarrow.parquet
import pytest

import sitr
import sitr.errors
from sitr.errors import InvalidArgument, InvalidDeclaration, LedgerDamaged, NotAllowed, NotPermitted
from sitr.ledger import Ledger
from sitr.query.facts import Facts
from sitr.session.beginning import begin
from sitr.session.database import KEPT, create_budgets, ledger_url
from sitr.session.database import open as opened
from sitr.tables.declaration import Declaration
from sitr.tables.emitter import Emitter
from sitr.tables.relations import Scan
from tests.ledger import cluster
from tests.tables import clinic


def test_only_listed_analysts_may_ask():
    declared = Declaration.of(clinic.CONTENT | {"analysts": ["amina"]})
    with pytest.raises(NotPermitted, match="'omar' may not ask"):
        opened(declared, ledger="memory://", analyst="omar", frames=clinic.frames())
    with opened(declared, ledger="memory://", analyst="amina", frames=clinic.frames()) as database:
        assert "amina" in repr(database)
    with pytest.raises(InvalidArgument):
        opened(declared, ledger="memory://", analyst="", frames=clinic.frames())


def test_a_book_in_memory_begins_with_the_declared_budgets():
    content = clinic.CONTENT | {
        "budgets": {"clinic": {"epsilon": 2.0, "delta": 1e-5, "analysts": {"amina": {"epsilon": 1.0, "delta": 1e-6}}}}
    }
    with clinic.database(content) as database:
        assert set(database.ledger.budgets()) == {"clinic", "clinic/analyst/amina"}
        create_budgets(database.declared, database.ledger)  # again: nothing is promised twice
        assert database.ledger.budget("clinic").epsilon == 2.0


def test_a_declared_book_has_to_be_there_and_be_the_one(tmp_path):
    with pytest.raises(InvalidDeclaration, match="names no ledger"):
        opened(clinic.declared(), analyst="amina", frames=clinic.frames())
    book = Ledger.open(f"sqlite:///{tmp_path / 'book'}")
    content = clinic.CONTENT | {"ledger": {"url": "book", "id": "another"}}
    declared = Declaration.of(content, tmp_path)
    assert ledger_url(declared) == f"sqlite:///{tmp_path / 'book'}"
    with pytest.raises(sitr.errors.SitrError):
        opened(declared, analyst="amina", frames=clinic.frames())
    book.close()


def test_frames_are_declared_tables():
    with pytest.raises(InvalidDeclaration, match="'vists' is not a declared table"):
        opened(clinic.declared(), ledger="memory://", analyst="a", frames={"vists": clinic.visits()})


def test_columns_are_held_against_the_engine():
    with pytest.raises(InvalidDeclaration, match=r"tables.visits.columns.cost: the table has no such column"):
        clinic.database(visits=clinic.visits().drop_columns(["cost"]))
    strange = clinic.visits().set_column(4, "cost", clinic.visits().column("ward"))
    with pytest.raises(InvalidDeclaration, match=r"tables.visits.columns.cost: declared as float") as caught:
        clinic.database(visits=strange)
    assert caught.value.do == 'declare type = "string".'


def test_facts_are_declared_until_they_are_learned():
    with clinic.database() as database:
        assert database.facts(Scan("visits")) == Facts(None, None, source="by what is declared")
        database.learn("visits", Facts(200, 600))
        assert database.facts(Scan("visits")).rows == 600
        with pytest.raises(NotAllowed):
            database.learn("nobody", Facts())


def test_what_is_left_before_and_after():
    with clinic.database() as database:
        question = database.table("visits").aggregate(n=sitr.count())
        event = question.explain(epsilon=1.0).plan.event
        (before, after) = question.forecast().remaining(event)["clinic"]
        assert before.startswith("ε part 100 %, δ part 100 % of ε = 1000 at δ = ")
        assert after.endswith("%")
        large = question.explain(epsilon=5000.0).plan.event
        assert question.forecast().remaining(large)["clinic"][1] == "does not fit"


def test_a_delta_that_is_spent_is_gone_from_what_is_left():
    """Keys that are found privately cost δ beside ε: what is left of each is told apart, and either may not fit."""
    with clinic.database(clinic.CONTENT | {"budgets": {"clinic": {"epsilon": 1000.0, "delta": 1e-4}}}) as database:
        question = database.table("visits").group_by("ward").aggregate(n=sitr.count())
        shares = []
        for delta in (1e-6, 2e-6):
            event = question.explain(epsilon=1.0, delta=delta).plan.event
            left = 0.25e-4  # of the filter that then has the most left: whole events
            _, after = question.forecast().remaining(event)["clinic"]
            first, second = (float(share) for share in re.findall(r"part ([0-9.]+) %", after))
            assert first > 99
            shares.append(second / 100)
            # Gaussian noise that finds groups takes of δ too, where whole events are counted.
            assert 1 - 2 * delta / left <= shares[-1] <= 1 - event.infinite_mass / left
        assert shares[1] < shares[0] < 0.999
        large = question.explain(epsilon=1.0, delta=1e-3).plan.event
        assert question.forecast().remaining(large)["clinic"][1] == "does not fit"


def test_a_table_that_is_not_declared():
    with clinic.database() as database, pytest.raises(NotAllowed, match="there is no table 'vists'"):
        database.table("vists")


# Books that do not last, and books that went back


def test_a_book_in_memory_says_that_nothing_lasts():
    with clinic.database() as database:
        question = database.table("visits").aggregate(n=sitr.count())
        assert "no charge outlives this process" in str(question.explain(epsilon=1))
        answer = question.release(epsilon=1, operation="q1")
        assert "charged in entry" in str(answer)
        assert "no charge outlives this process" in str(answer)
        assert "no charge outlives this process" in answer._repr_html_()
        assert "nothing was charged" in question.release(epsilon=1, operation="q1").charged


def _begun(tmp_path, anchor="", book="book.db"):
    pyarrow.parquet.write_table(clinic.visits(), tmp_path / "visits.parquet")
    (tmp_path / "clinic.toml").write_text(
        f'sitr = 1\nname = "clinic"\n[ledger]\nurl = "{book}"\n' + anchor + "[budgets.clinic]\nepsilon = 10.0\n"
        '[tables.visits]\nsource = "visits.parquet"\nunit = "row"\n[tables.visits.columns.urgent]\ntype = "boolean"\n'
    )
    begin(tmp_path / "clinic.toml").close()
    return tmp_path / "clinic.toml"


def _released(path, **options):
    with sitr.open(path, analyst="amina", **options) as database:
        answer = database.table("visits").aggregate(n=sitr.count()).release(epsilon=1)
        assert "in memory" not in str(answer)


@pytest.mark.parametrize("declared", [False, True])
def test_a_book_that_was_rolled_back_is_refused_by_its_anchor(tmp_path, declared):
    anchor = tmp_path / "elsewhere"
    path = _begun(tmp_path, f'anchor = "{anchor.name}"\n' if declared else "")
    options = {} if declared else {"anchor": anchor}
    if not declared:
        with Ledger.open(tmp_path / "book.db") as book:
            book.write_anchor(anchor)
    old = (tmp_path / "book.db").read_bytes()
    _released(path, **options)
    _released(path, **options)  # what it was charged is added to the anchor
    for extra in tmp_path.glob("book.db-*"):
        extra.unlink()
    (tmp_path / "book.db").write_bytes(old)
    with pytest.raises(LedgerDamaged, match="behind its anchor"):
        sitr.open(path, analyst="amina", **options)
    anchor.unlink()
    if declared:  # nor is it opened when the anchor is taken away
        with pytest.raises(LedgerDamaged, match="missing or empty"):
            sitr.open(path, analyst="amina")


def test_an_anchor_is_for_a_book_that_is_opened_here(tmp_path):
    with Ledger.open("memory://") as book, pytest.raises(InvalidArgument, match="open already"):
        opened(clinic.declared(), ledger=book, anchor=tmp_path / "anchor", frames=clinic.frames())


@pytest.mark.skipif(not cluster.installed(), reason=cluster.MISSING)
def test_a_large_answer_is_kept_beside_the_declaration_of_a_book_on_a_server(tmp_path):
    """It would be refused by the book itself, once it was charged."""
    path = _begun(tmp_path, book=cluster.shared().fresh_database())
    with sitr.open(path, analyst="amina") as database:
        visits = database.table("visits")
        groups = visits.derive(one=visits["urgent"].choose(1, 0)).group_by("one", values={"one": range(60_000)})
        question = groups.aggregate(n=sitr.count())
        answer = question.release(epsilon=1, operation="many")
        assert question.release(epsilon=1, operation="many").value == answer.value
    assert len(list((tmp_path / "clinic.answers").iterdir())) == 1


# What is kept of questions


TEXT = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"


def test_a_text_that_is_asked_again_is_not_planned_or_written_anew(monkeypatch):
    written, tally = [], Emitter.tally
    monkeypatch.setattr(Emitter, "tally", lambda emitter, asked: (written.append(asked), tally(emitter, asked))[1])
    with clinic.database() as database:
        first = database.sql(TEXT).explain(epsilon=1.0)
        again = database.sql(TEXT).explain(epsilon=1.0)
        assert again.plan is first.plan
        assert database.sql(TEXT).release(epsilon=1.0).event == first.plan.event
        assert len(written) == 1
        assert database.sql(TEXT).explain(epsilon=0.5).epsilon.upper <= 0.5 * (1 + 1e-9)
        assert database.sql(TEXT + " HAVING n > 5").explain(epsilon=1.0).plan is not first.plan


def test_what_was_learned_since_makes_another_plan():
    with clinic.database() as database:
        before = database.sql(TEXT).explain(epsilon=1.0).plan
        database.learn("visits", Facts(1000, 1000, ((1.0, 1.0),)))
        after = database.sql(TEXT).explain(epsilon=1.0).plan
        assert before.bound != after.bound


def test_few_questions_are_kept_and_what_is_no_text_is_refused():
    with clinic.database() as database:
        for number in range(3 * KEPT):
            database.sql(f"SELECT COUNT(*) AS n{number} FROM visits").explain(epsilon=1.0)
            assert len(database._texts) <= KEPT
            assert len(database._plans) <= KEPT
        for text in (None, 7, [TEXT], b"SELECT"):
            with pytest.raises(InvalidArgument):
                database.sql(text)


def test_a_database_that_nobody_holds_is_gone_with_its_frames():
    """At once: no question that is kept holds it."""
    database = clinic.database()
    database.sql(TEXT).explain(epsilon=1.0)
    database.close()
    gone = weakref.ref(database)
    gc.disable()
    try:
        del database
        assert gone() is None
    finally:
        gc.enable()

"""The law of terms: what is harmless opens, everything else is refused until it is redeclared, and told afterwards."""

from random import Random

import pytest

from sitr.errors import DeclarationChanged
from sitr.session import beginning
from sitr.session.beginning import begin, redeclare
from sitr.session.database import declared_book
from sitr.session.terms import hold_to_terms
from sitr.tables.declaration import Declaration
from tests.ledger import stores
from tests.session.mutations import HARMLESS, PROMISED, changed, declaration, written

BOOKS = {"sqlite": range(8), "postgresql": range(2)}
STEPS = 30


def held(path):
    """What `sitr.open` asks of the book, without an engine."""
    declared = Declaration.read(path)
    with declared_book(declared) as book:
        return hold_to_terms(declared, book, {})


def head_of(path):
    with declared_book(Declaration.read(path)) as book:
        return book.head


def told(path, place, reason):
    """Whether the book says what changed, and a statement says it too."""
    with declared_book(Declaration.read(path)) as book:
        found = [
            entry.record for entry in book.entries() if entry.kind == "declare" and entry.record.get("reason") == reason
        ]
        named = {record["name"] for record in found if any(place in change for change in record["changes"])}
        statements = [str(book.statement(name)) for name in named]
    assert statements, place
    assert all(f": {reason}" in statement for statement in statements), place


@pytest.mark.parametrize(("store", "seed"), [(store, seed) for store, seeds in BOOKS.items() for seed in seeds])
def test_harmless_changes_open_and_others_are_refused_until_they_are_redeclared(tmp_path, monkeypatch, store, seed):
    monkeypatch.setattr(beginning, "_looked_up", lambda declared, check=False: None)
    random, path, tried = Random(seed), tmp_path / "hospital.toml", set()
    made = declaration(random, "book.db" if store == "sqlite" else stores.fresh(store, tmp_path)())
    path.write_text(written(made, random), encoding="utf-8")
    with begin(path) as book:
        made["ledger"]["id"] = book.id
    for step in range(STEPS):
        change = random.choice(random.choice([HARMLESS, PROMISED]))
        found = changed(made, change, random)
        if found is None:
            continue
        named, (made, place), reason = made["name"], found, f"reason {step}"
        before = head_of(path)
        path.write_text(written(made, random), encoding="utf-8")
        tried.add(change)
        if change in HARMLESS:
            assert held(path) == ()
            begin(path).close()
            continue
        for use in (held, begin):
            with pytest.raises(DeclarationChanged):
                use(path)
        assert head_of(path) == before
        redeclare(path, reason=reason, instead_of=named if made["name"] != named else None)[0].close()
        assert held(path) == ()
        told(path, place, reason)
    assert len(tried) > 8
    with declared_book(Declaration.read(path)) as book:
        assert book.verify()
        reasons = [entry.record.get("reason") for entry in book.entries() if entry.kind == "declare"]
        assert None in reasons


@pytest.mark.parametrize("seed", range(3))
def test_neighbours_are_refused_even_where_they_are_redeclared(tmp_path, monkeypatch, seed):
    monkeypatch.setattr(beginning, "_looked_up", lambda declared, check=False: None)
    random, path = Random(seed), tmp_path / "hospital.toml"
    made = declaration(random, "book.db")
    path.write_text(written(made, random), encoding="utf-8")
    with begin(path) as book:
        made["ledger"]["id"] = book.id
    made["privacy"]["adjacency"] = "replace_one"
    path.write_text(written(made, random), encoding="utf-8")
    for use in (held, begin, lambda where: redeclare(where, reason="other neighbours")):
        with pytest.raises(DeclarationChanged, match="added or removed, and the declaration says replaced"):
            use(path)


def test_every_way_to_write_a_declaration_down_means_the_same(tmp_path):
    made = declaration(Random(0), "book.db")
    read = []
    for seed in range(20):
        (tmp_path / "d.toml").write_text(written(made, Random(seed)), encoding="utf-8")
        read.append(Declaration.read(tmp_path / "d.toml"))
    assert all(one == read[0] for one in read)
    assert len({str(one) for one in read}) > 1  # in another order

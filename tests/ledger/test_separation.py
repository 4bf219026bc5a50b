"""On PostgreSQL an analyst executes functions and holds no right on any table; tried with real roles."""

import itertools
import json

import psycopg
import pytest

from sitr.accounting import PureDP
from sitr.errors import AlreadyAnswered, BudgetExceeded, LedgerDamaged, NotPermitted, OperationTaken
from sitr.ledger import Budget, Ledger
from sitr.ledger.entry import sha256
from sitr.ledger.postgres import FOR_ANALYSTS
from sitr.ledger.schema import metadata
from sitr.ledger.terms import Terms
from tests.ledger import stores
from tests.ledger.cluster import database_of, shared

EVENT = PureDP(epsilon=0.25)
NUMBERS = itertools.count(1)
TABLES = [f"sitr.{table}" for table in metadata.tables]


class Team:
    """A book, its owner, and two analysts who may log in."""

    def __init__(self, url):
        self.owner = url
        self.amina, self.badr = (f"{name}{next(NUMBERS)}" for name in ("amina", "badr"))
        self.ledger = Ledger.open(url)
        self.ledger.create_budget("clinic", Budget(epsilon=1.0))
        for analyst in (self.amina, self.badr):
            self.sql(url, f"CREATE ROLE {analyst} LOGIN")
            self.ledger.allow(analyst)

    def url(self, role):
        return shared().url(database_of(self.owner), role)

    def open(self, role):
        return Ledger.open(self.url(role))

    def sql(self, url, statement, values=None):
        with psycopg.connect(url, autocommit=True) as connection:
            done = connection.execute(statement, values)
            return done.fetchall() if done.description else None

    def as_amina(self, statement, values=None):
        return self.sql(self.url(self.amina), statement, values)


@pytest.fixture
def team(tmp_path):
    return Team(stores.fresh("postgresql", tmp_path)())


def body(**charges):
    due = {name: {"version": 1, "units": [10, 0]} | charge for name, charge in charges.items()}
    about = {"datasets": ["clinic"], "blocks": [], "purpose": None, "event": EVENT.to_dict()}
    return json.dumps({**about, "nonce": "0f" * 16, "request": sha256(b"r"), "budgets": due})


def test_an_analyst_works_with_the_ledger_as_anyone_does(team):
    with team.open(team.amina) as ledger:
        with ledger.reserve("clinic", EVENT, analyst=team.amina, operation="q-1") as grant:
            grant.commit("noisy")
        assert ledger.remaining("clinic").value == 0.75
        assert ledger.answer("q-1", analyst=team.amina).value == "noisy"
        with pytest.raises(AlreadyAnswered):
            ledger.reserve("clinic", EVENT, analyst=team.amina, operation="q-1")
        with pytest.raises(BudgetExceeded, match=r"0\.750 left"):
            ledger.reserve("clinic", EVENT * 4, analyst=team.amina)
        assert ledger.head == team.ledger.head
        assert ledger.asked_before("clinic", EVENT, analyst=team.amina) is None  # entries are not open to an analyst
    assert team.ledger.verify()


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize(
    "statement", ["SELECT * FROM {}", "DELETE FROM {}", "TRUNCATE {}", "INSERT INTO {} DEFAULT VALUES", "DROP TABLE {}"]
)
def test_no_table_is_open_to_an_analyst(team, table, statement):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        team.as_amina(statement.format(table))


@pytest.mark.parametrize(
    "column", ["sitr.budget SET whole = '{0,0}'", "sitr.entry SET body = '{}'", "sitr.book SET id = 'x'"]
)
def test_nothing_is_changed_by_an_analyst(team, column):
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        team.as_amina(f"UPDATE {column}")


def test_only_the_functions_of_the_protocol_are_open_to_an_analyst(team):
    found = team.sql(
        team.owner,
        "SELECT p.oid::regprocedure::text FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace "
        "WHERE n.nspname = 'sitr' AND has_function_privilege(%s, p.oid, 'EXECUTE')",
        [team.amina],
    )
    spoken = {name.removeprefix("sitr.").replace(",", ", ") for (name,) in found}
    assert spoken == set(FOR_ANALYSTS)
    assert not team.as_amina("SELECT has_schema_privilege('sitr', 'CREATE')")[0][0]


def test_an_analyst_is_who_is_logged_in(team):
    with team.open(team.amina) as ledger, pytest.raises(NotPermitted, match="under the name of the login"):
        ledger.reserve("clinic", EVENT, analyst=team.badr)
    grant = team.ledger.reserve("clinic", EVENT, analyst=team.badr, operation="by a gateway")
    assert grant.analyst == team.badr  # an owner, such as a gateway, may act for others


def test_an_answer_is_for_who_asked(team):
    with team.open(team.badr) as ledger, ledger.reserve("clinic", EVENT, analyst=team.badr, operation="q-1") as grant:
        grant.commit("for badr")
    with team.open(team.amina) as ledger:
        for claimed in (team.amina, team.badr):
            with pytest.raises(NotPermitted):
                ledger.answer("q-1", analyst=claimed)
        with pytest.raises(OperationTaken):
            ledger.reserve("clinic", EVENT, analyst=team.amina, operation="q-1")
    assert team.as_amina("SELECT body FROM sitr.operation('q-1')") == [("{}",)] * 3
    assert team.as_amina("SELECT * FROM sitr.kept('q-1', %s)", [team.badr]) == []


def test_an_answer_stays_that_of_who_asked_whatever_else_an_analyst_asked(team):
    for name in (team.badr, team.amina):
        with team.open(name) as ledger, ledger.reserve("clinic", EVENT, analyst=name, operation=f"of {name}") as grant:
            grant.commit(f"for {name}")
    kept = "SELECT operation FROM sitr.kept(%s, %s)"
    assert team.as_amina(kept, [f"of {team.badr}", team.amina]) == []
    assert team.as_amina(kept, [f"of {team.amina}", team.amina]) == [(f"of {team.amina}",)]


def test_an_analyst_is_no_owner(team):
    team.ledger.reserve("clinic", EVENT, analyst=team.amina, operation="q-1")
    with team.open(team.amina) as ledger:
        for act in (
            lambda: ledger.create_budget("other", Budget(epsilon=9.0)),
            lambda: ledger.raise_budget("clinic", Budget(epsilon=9.0), reason="more"),
            lambda: ledger.refund("q-1", reason="mine"),
            lambda: ledger.allow(team.badr),
            lambda: ledger.verify(),
            lambda: list(ledger.entries()),
            lambda: ledger.statement("clinic"),
        ):
            with pytest.raises(NotPermitted):
                act()
    assert team.ledger.spent("clinic").value == 0.25


def test_a_role_that_was_not_allowed_is_refused(team):
    stranger = f"stranger{next(NUMBERS)}"
    team.sql(team.owner, f"CREATE ROLE {stranger} LOGIN")
    with pytest.raises(NotPermitted):
        team.open(stranger)


def test_nobody_leaves_out_a_share_of_their_own(team):
    share = f"clinic/analyst/{team.amina}"
    team.ledger.create_budget("clinic", Budget(epsilon=0.25), analyst=team.amina)
    call = "SELECT sitr.reserve('by hand', %s, %s)"
    for charges in ({"clinic": {}}, {share: {}}, {"clinic": {}, share: {}, "other": {}}, {}):
        with pytest.raises(psycopg.Error) as caught:
            team.as_amina(call, [team.amina, body(**charges)])
        assert caught.value.sqlstate == "SL002"
    team.as_amina(call, [team.amina, body(**{"clinic": {}, share: {}})])
    with team.open(team.amina) as ledger, pytest.raises(BudgetExceeded, match=share):
        ledger.reserve("clinic", EVENT * 2, analyst=team.amina)


@pytest.mark.parametrize(
    "charge",
    [
        {"units": [-1, 0]},
        {"units": [10, -1]},
        {"units": [0, 0]},
        {"units": [None, 0]},
        {"units": [1.5, 0]},
        {"units": [2**63, 0]},
        {"units": [2**61, 0]},
        {"units": [10**240, 0]},
        {"units": [10]},
        {"units": [10, 0, 0]},
        {"units": [[10, 0]]},
        {"units": []},
        {"units": "10"},
        {"units": None},
        {"cost": 10, "delta": 0, "units": 0},
        {"version": 2},
        {"version": "1"},
        {"version": 1.0},
        {"version": None},
    ],
)
def test_no_charge_by_hand_takes_less_than_nothing_or_too_much(team, charge):
    with pytest.raises(psycopg.Error):
        team.as_amina("SELECT sitr.reserve('by hand', %s, %s)", [team.amina, body(clinic=charge)])
    assert team.ledger.spent("clinic").value == 0


def test_verify_names_a_charge_by_hand_that_is_too_small(team):
    team.as_amina("SELECT sitr.reserve('by hand', %s, %s)", [team.amina, body(clinic={"units": [10, 0]})])
    found = team.ledger.verify()
    assert (found.valid, found.bad_entry) == (False, 3)
    assert "less than its event costs" in found.problem


def test_steps_by_hand_keep_their_order(team):
    start, commit = "SELECT sitr.start('q', %s, %s)", "SELECT sitr.commit('q', %s, 'h', %s, 'text/plain', 'x', NULL)"
    begun = json.dumps({"holder": sha256(b"h")})
    done = json.dumps({"holder": "h", "sha256": sha256(b"x"), "bytes": 1, "media": "text/plain"})
    for statement, said in ((start, begun), (commit, done)):
        with pytest.raises(psycopg.Error, match=r"not reserved|not started"):
            team.as_amina(statement, [team.amina, said])
    team.as_amina("SELECT sitr.reserve('q', %s, %s)", [team.amina, body(clinic={"units": [2**58, 0]})])
    with pytest.raises(psycopg.Error, match="under the name of the login"):
        team.as_amina(start, [team.badr, begun])
    for wrong in (done, json.dumps({"holder": "h"}), json.dumps({"holder": sha256(b"h"), "more": 1}), '{"holder": 1}'):
        with pytest.raises(psycopg.Error, match="no sha256"):
            team.as_amina(start, [team.amina, wrong])
    team.as_amina(start, [team.amina, begun])
    with pytest.raises(psycopg.Error, match="not started by this holder"):
        team.as_amina(commit.replace("'h'", "'other'"), [team.amina, done])
    with pytest.raises(psycopg.Error, match="not the one that its entry describes"):
        team.as_amina(commit, [team.amina, done.replace(sha256(b"x"), "0" * 64)])
    team.as_amina(commit, [team.amina, done])
    with pytest.raises(psycopg.Error):
        team.as_amina(commit, [team.amina, done])


@pytest.mark.parametrize("name", ["", "two\nlines", "x" * 201])
def test_names_by_hand_cannot_break_a_line_of_the_chain(team, name):
    with pytest.raises(psycopg.Error):
        team.as_amina("SELECT sitr.reserve(%s, %s, %s)", [name, team.amina, body(clinic={})])
    broken = body(clinic={}).replace("{", "{\n", 1)
    with pytest.raises(psycopg.Error):
        team.as_amina("SELECT sitr.reserve('q', %s, %s)", [team.amina, broken])


def test_a_session_cannot_make_charges_volatile(team):
    with psycopg.connect(team.url(team.amina)) as connection:
        connection.execute("SET synchronous_commit = off")
        connection.commit()
        connection.execute("SELECT sitr.reserve('q', %s, %s)", [team.amina, body(clinic={"units": [2**58, 0]})])
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
        connection.commit()
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("off",)  # of its own work it decides


def test_functions_look_into_no_schema_of_the_callers(team):
    """Objects of the same names in a schema that the caller puts first change nothing."""
    with psycopg.connect(team.url(team.amina), autocommit=True) as connection:
        connection.execute("CREATE FUNCTION pg_temp.sha256(bytea) RETURNS bytea LANGUAGE sql AS 'SELECT ''x''::bytea'")
        connection.execute("CREATE TEMPORARY TABLE budget (name text)")
        connection.execute("SET search_path = pg_temp, pg_catalog")
        connection.execute("SELECT sitr.reserve('q', %s, %s)", [team.amina, body(clinic={"units": [2**58, 0]})])
    assert team.ledger.verify()


def test_an_analyst_reads_no_declaration_but_those_that_are_named(team):
    team.ledger.declare(Terms("clinic", "study", 1, {"tables.visits.unit": "named by patient"}))
    asked = "SELECT kind FROM sitr.declared(%s, %s)"
    for named in (["study", []], ["another", ["clinic"]]):
        assert team.as_amina(asked, named) == [("declare",)]
    assert team.as_amina(asked, [None, []]) == []
    assert team.sql(team.owner, asked, [None, []]) == [("declare",)]


def test_an_officer_reads_and_changes_nothing(team):
    """As docs/ledger.md grants it."""
    officer = f"officer{next(NUMBERS)}"
    for statement in (
        f"CREATE ROLE {officer} LOGIN",
        f"GRANT USAGE ON SCHEMA sitr TO {officer}",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA sitr TO {officer}",
        f"GRANT EXECUTE ON FUNCTION sitr.identity() TO {officer}",
    ):
        team.sql(team.owner, statement)
    with team.open(officer) as ledger:
        assert ledger.verify()
        assert ledger.statement("clinic").spent.value == 0
        with pytest.raises(NotPermitted):
            ledger.reserve("clinic", EVENT, analyst=officer)
        with pytest.raises(NotPermitted):
            ledger.raise_budget("clinic", Budget(epsilon=2.0), reason="mine")


def test_a_dump_that_is_restored_is_held_to_the_anchor(team, tmp_path):
    anchor, dump = tmp_path / "anchor", tmp_path / "dump.sql"
    team.ledger.reserve("clinic", EVENT, analyst=team.amina, operation="before")
    dump.write_text(shared().dump(team.owner))
    team.ledger.reserve("clinic", EVENT, analyst=team.amina, operation="after")
    team.ledger.write_anchor(anchor)
    restored = shared().fresh_database()
    shared().restore(restored, dump.read_text())
    with Ledger.open(restored) as ledger:
        assert ledger.id == team.ledger.id
        assert ledger.spent("clinic").value == 0.25
        assert ledger.verify()
        assert "its end was lost" in ledger.verify(anchor=anchor).problem
    with pytest.raises(LedgerDamaged, match="behind its anchor"):
        Ledger.open(restored, anchor=anchor)

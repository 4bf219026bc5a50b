"""PostgreSQL: which tables of a server are read, and whether they still are those that were opened."""

import psycopg
import pytest

import sitr
from sitr.errors import InvalidDeclaration
from tests.ledger import cluster
from tests.tables.sources import ANOTHER_BUDGET, BUDGETS, NO_LONGER, database, refused, same

pytestmark = pytest.mark.usefixtures("conforming")


CLINIC = [
    "CREATE TABLE visits (who int, x int)",
    'CREATE TABLE "Visits" (who int, x int)',
    "CREATE SCHEMA s CREATE TABLE visits (who int, x int)",
    "CREATE VIEW picked AS SELECT x, who FROM visits",
    "CREATE VIEW s.again AS SELECT x, who AS who FROM public.picked",
    "CREATE VIEW swapped AS SELECT who AS x, x AS who FROM public.picked",
    "CREATE MATERIALIZED VIEW kept AS SELECT * FROM visits",
    "CREATE TABLE parted (who int, x int) PARTITION BY RANGE (x)",
    "CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (9) PARTITION BY RANGE (x)",
    "CREATE TABLE part_of_part PARTITION OF part FOR VALUES FROM (0) TO (5)",
    "CREATE TABLE other_part PARTITION OF parted FOR VALUES FROM (9) TO (20)",
    "CREATE TABLE heir () INHERITS (visits)",
    "CREATE VIEW computing AS SELECT who, 1 / x AS x FROM visits",
    "CREATE VIEW crossed AS SELECT v.who, v.x FROM visits AS v, visits AS w",
    "CREATE VIEW inner_one AS SELECT who, x FROM (SELECT who, x FROM visits) AS v",
    "CREATE VIEW settings AS SELECT * FROM pg_catalog.pg_class",
    "CREATE VIEW stats AS SELECT tablename, n_distinct FROM pg_catalog.pg_stats",
    "CREATE MATERIALIZED VIEW counted AS SELECT count(*)::int AS who, 1 AS x FROM visits",
    "CREATE FUNCTION reading() RETURNS TABLE (who int, x int) LANGUAGE sql AS 'SELECT * FROM visits'",
    "CREATE VIEW called AS SELECT * FROM reading()",
    "CREATE TABLE hiding (who int, x int)",
    "ALTER TABLE hiding ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY",
    "CREATE VIEW of_hiding AS SELECT who, x FROM hiding",
    "CREATE SEQUENCE numbers",
]


@pytest.fixture(scope="module")
def server():
    if not cluster.installed():
        pytest.skip(cluster.MISSING)
    url = cluster.shared().fresh_database()
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in CLINIC:
            connection.execute(statement)
    name = cluster.database_of(url)
    cluster.shared().sql("CREATE EXTENSION file_fdw; CREATE SERVER f FOREIGN DATA WRAPPER file_fdw", name)
    far = "CREATE FOREIGN TABLE {} SERVER f OPTIONS (filename '/dev/null')"
    cluster.shared().sql(far.format("far (who int, x int)"), name)
    cluster.shared().sql("CREATE TABLE mixed (who int, x int) PARTITION BY RANGE (x)", name)
    cluster.shared().sql(far.format("far_part PARTITION OF mixed FOR VALUES FROM (0) TO (9)"), name)
    cluster.shared().sql("GRANT SELECT ON far, mixed TO owner", name)
    return {"engine": "postgresql", "address": url}


def test_one_table_of_postgresql_has_one_name(tmp_path, server):
    others = ["public.visits", "picked", "s.again", "public.picked", "kept", "heir"]
    assert all(same(tmp_path, "visits", others, **server))
    assert same(tmp_path, "heir", ["visits", "picked", "kept", "parted"], **server) == [True, True, True, False]
    assert same(tmp_path, "parted", ["part", "part_of_part", "other_part", "visits"], **server) == [True] * 3 + [False]
    assert same(tmp_path, "part", ["part_of_part", "other_part"], **server) == [True, False]
    assert not any(same(tmp_path, "visits", ["Visits", "s.visits", "parted"], **server))
    for one, other in (("visits", "public.visits"), ("picked", "kept"), ("part_of_part", "parted")):
        assert refused(tmp_path, one, other, **server)
    database(tmp_path, "visits", "s.visits", second=ANOTHER_BUDGET, **server).close()


def test_what_is_no_table_of_postgresql_is_refused(tmp_path, server):
    for name, says in (
        ("computing", "computing is a view that computes something"),
        ("crossed", "crossed is a view that computes"),
        ("inner_one", "is a view that computes"),
        ("called", "is a view that computes"),
        ("swapped", "calls a column by another name"),
        ("counted", "is a view that computes"),
        ("far", "no table of this server"),
        ("mixed", "no table of this server"),
        ("numbers", "no table of this server"),
        ("hiding", "has row security"),
        ("of_hiding", "has row security"),
        ("pg_catalog.pg_class", "of the server itself"),
        ("settings", "of the server itself"),
        ("stats", "of the server itself"),
        ("pg_class", "cannot be opened"),
        ("nothing", "cannot be opened"),
        ("reading()", "cannot be opened"),
        ('"visits"', "cannot be opened"),
        ("VISITS", "cannot be opened"),
        ("postgres.public.visits", "cannot be opened"),
    ):
        with pytest.raises(InvalidDeclaration, match=f"tables.t0: .*{says}"):
            database(tmp_path, name, **server)


@pytest.fixture
def asked(tmp_path):
    """Tables and views of a server, how to change them, and whether a question is then refused before its charge."""
    if not cluster.installed():
        pytest.skip(cluster.MISSING)
    url = cluster.shared().fresh_database()
    with psycopg.connect(url, autocommit=True) as server:
        for statement in CLINIC[:4]:
            server.execute(statement)
        server.execute("CREATE TABLE other (who int, x int, y int)")
        server.execute("CREATE TABLE parted (who int, x int) PARTITION BY RANGE (x)")

        def changed(source, *statements, says=None, second=None, put_back=()):
            sources = [source, "other"] if second else [source]
            with database(tmp_path, *sources, second=second, engine="postgresql", address=url) as one:
                question = one.table("t0").aggregate(n=sitr.count())
                question.release(epsilon=0.1)
                for statement in statements:
                    server.execute(statement)
                spent = one.ledger.spent("d").value
                for _ in range(2 if says else 0):  # nor does it pass when it is asked again
                    with pytest.raises(InvalidDeclaration, match=says):
                        question.release(epsilon=0.1)
                assert one.ledger.spent("d").value == spent
                for statement in put_back:
                    server.execute(statement)
                if put_back or not says:
                    question.release(epsilon=0.1)

        yield changed
    cluster.shared().drop(url)


def test_a_view_that_is_made_anew_over_another_table_is_refused(asked):
    again = "CREATE OR REPLACE VIEW picked AS SELECT x, who FROM {}".format
    asked("picked", again("other"), says=NO_LONGER, put_back=[again("visits")])
    asked("picked", "CREATE OR REPLACE VIEW picked AS SELECT x + 1 AS x, who FROM visits", says=NO_LONGER)


def test_a_table_in_the_place_of_another_is_refused(asked):
    swapped = ["ALTER TABLE visits RENAME TO old", "ALTER TABLE other RENAME TO visits"]
    back = ["ALTER TABLE visits RENAME TO other", "ALTER TABLE old RENAME TO visits"]
    asked("visits", *swapped, says=NO_LONGER, put_back=back)
    hiding = [f"ALTER TABLE visits {word} ROW LEVEL SECURITY" for word in ("ENABLE", "FORCE")]
    asked("visits", *hiding, says=NO_LONGER, put_back=["ALTER TABLE visits DISABLE ROW LEVEL SECURITY"])
    asked("s.visits", "DROP TABLE s.visits", says=NO_LONGER)


def test_a_column_that_has_another_type_is_refused_and_a_new_one_is_not(asked):
    asked("visits", "ALTER TABLE visits ADD COLUMN more text", "INSERT INTO visits VALUES (1, 2, 'a')")
    asked("s.visits", "ALTER TABLE s.visits ALTER COLUMN x TYPE float8", says=NO_LONGER)


def test_a_partition_may_be_attached_unless_it_is_a_table_of_another_budget(asked):
    new = "CREATE TABLE part PARTITION OF parted FOR VALUES FROM (0) TO (9)"
    asked("parted", new, second=ANOTHER_BUDGET)
    attached = ["ALTER TABLE other DROP COLUMN y", "ALTER TABLE parted ATTACH PARTITION other DEFAULT"]
    asked(
        "parted", *attached, says=BUDGETS, second=ANOTHER_BUDGET, put_back=["ALTER TABLE parted DETACH PARTITION other"]
    )

"""What a server or a session has set otherwise changes nothing: functions, texts and constants mean what they say."""

import psycopg
import pyarrow
import pytest

import sitr
from sitr.session.database import open as opened
from sitr.tables.declaration import Declaration
from tests.ledger import cluster
from tests.tables import engines
from tests.tables.conftest import PARAMS
from tests.tables.exact import exact

COLUMNS = {"who": {"type": "string"}, "note": {"type": "string"}, "x": {"type": "integer", "bounds": [0, 10]}}
TABLE = {"unit": "who", "max_rows_per_unit": 1, "columns": COLUMNS}
ROWS = "INSERT INTO t SELECT 'one', 'Ω', 7 FROM generate_series(1, 50)"
QUOTED = "\\' OR TRUE) OR (''1''=''1"


def of_server(*statements):
    """Fifty rows of one unit, of whom one row is read; and a server that was set up in some way."""
    if not cluster.installed():
        pytest.skip(cluster.MISSING)
    url = cluster.shared().fresh_database()
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in ("CREATE TABLE t (who text, note text, x int)", ROWS, *statements):
            connection.execute(statement.format(database=cluster.database_of(url)))
    content = {
        "sitr": 1,
        "name": "d",
        "connection": {"engine": "postgresql", "address": url},
        "tables": {"t": TABLE},
        "budgets": {"d": {"epsilon": 100.0, "delta": 1e-3}},
    }
    return opened(Declaration.of(content), ledger="memory://", analyst="a")


def test_a_function_of_the_schema_public_is_no_function_of_the_engine():
    random = "SELECT pg_catalog.convert_to($1 || random()::text, $2::name)"
    with of_server(f"CREATE FUNCTION public.convert_to(text, text) RETURNS bytea LANGUAGE sql AS '{random}'") as one:
        assert exact(one.table("t").aggregate(x=sitr.sum("x"))) == [7.0]


SETTINGS = ["standard_conforming_strings = off", "client_encoding = 'LATIN1'", "search_path = public, pg_catalog"]


@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_a_database_are_not_those_of_a_question(setting):
    """After another database was found in order: what was found holds for no other one."""
    of_server().close()
    with of_server(f'ALTER DATABASE "{{database}}" SET {setting}') as one:
        table = one.table("t")
        assert exact(table.filter(table["note"] == QUOTED).aggregate(x=sitr.count())) == [0.0]
        assert exact(table.filter(table["note"] == "Ω").aggregate(x=sitr.count())) == [1.0]
        found = table.group_by("note").aggregate(n=sitr.count()).release(epsilon=50.0, delta=1e-4)
        assert found.value["note"] in ([], ["Ω"])


@pytest.mark.parametrize("engine", PARAMS)
@pytest.mark.parametrize("constant", ["${env:SITR_TESTED}", "${system:user.name}", "${spark.app.name}"])
def test_a_constant_that_looks_like_a_variable_is_a_text(engine, constant, monkeypatch):
    monkeypatch.setenv("SITR_TESTED", "plain")
    rows = pyarrow.table({"who": ["one", "two"], "note": [constant, "plain"], "x": [1, 2]})
    content = {"tables": {"t": TABLE}}
    with engines.asked(engine, {"t": rows}, content) as one:
        table = one.table("t")
        assert exact(table.filter(table["note"] == constant).aggregate(x=sitr.count())) == [1.0]

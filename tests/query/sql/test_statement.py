"""SQL beside the same questions in Python: equal plans; refusals; BigQuery's form; answers of DuckDB."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import pytest

import sitr
from sitr.errors import InvalidArgument, NotAllowed, SitrError
from sitr.query.query import Query
from sitr.query.sql import parsed
from sitr.query.sql.statement import BINS
from sitr.session.database import Database
from sitr.session.table import PrivateTable
from sitr.tables.expressions import Case, Coalesce, Constant
from tests.query.sql.clinic import DECLARED, count_within

Ask = Callable[[Database, PrivateTable], Any]
PLANS: dict[str, Ask] = {
    "SELECT COUNT(*) AS n FROM visits": lambda db, v: v.aggregate(n=sitr.count()),
    "select count(*) n from Visits;": lambda db, v: v.aggregate(n=sitr.count()),
    "(SELECT COUNT(*) AS n FROM visits)": lambda db, v: v.aggregate(n=sitr.count()),
    "SELECT COUNT(cost) AS n, COUNT(1) AS m FROM visits": lambda db, v: v.aggregate(
        n=sitr.count("cost"), m=sitr.count()
    ),
    "SELECT COUNT(DISTINCT patient) AS n FROM visits": lambda db, v: v.aggregate(n=sitr.count_units()),
    "SELECT COUNT(DISTINCT (drug)) AS n FROM visits": lambda db, v: v.aggregate(n=sitr.count_distinct("drug")),
    "SELECT region, SUM(cost) AS s, AVG(cost) AS a FROM visits GROUP BY region": lambda db, v: v.group_by(
        "region"
    ).aggregate(s=sitr.sum("cost"), a=sitr.mean("cost")),
    "SELECT region, COUNT(*) FROM visits GROUP BY 1": lambda db, v: v.group_by("region").aggregate(count=sitr.count()),
    "SELECT v.Region, AVG(v.cost) FROM visits AS v GROUP BY v.region": lambda db, v: v.group_by("region").aggregate(
        avg_cost=sitr.mean("cost")
    ),
    "SELECT VARIANCE(cost) a, VAR_POP(age) b, STDDEV(free, contribution_bounds_per_row => (0, 9)) c, "
    "STDDEV_POP(cost) d FROM visits": lambda db, v: v.aggregate(
        a=sitr.variance("cost"), b=sitr.variance("age"), c=sitr.stddev("free", bounds=(0, 9)), d=sitr.stddev("cost")
    ),
    "SELECT COVAR_POP(cost, age) AS c, CORR(age, cost) AS r FROM visits": lambda db, v: v.aggregate(
        c=sitr.covariance("cost", "age"), r=sitr.correlation("age", "cost")
    ),
    "SELECT MIN(cost) a, MAX(day) b, MEDIAN(age) c, PERCENTILE_CONT(cost, 0.9) d, QUANTILE(cost, 0.25) e, "
    "PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY age) f, PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY age DESC) g "
    "FROM visits": lambda db, v: v.aggregate(
        a=sitr.min("cost"),
        b=sitr.max("day"),
        c=sitr.median("age"),
        d=sitr.quantile("cost", 0.9),
        e=sitr.quantile("cost", 0.25),
        f=sitr.quantile("age", 0.75),
        g=sitr.quantile("age", 0.25),
    ),
    "SELECT PERCENTILE_CONT(free, 0.5, contribution_bounds_per_row => (-1, 100.5)) AS m FROM visits": lambda db, v: (
        v.aggregate(m=sitr.median("free", bounds=(-1, 100.5)))
    ),
    "SELECT SUM(cost * 2 - age / 3 + 0.5) AS s FROM visits": lambda db, v: v.aggregate(
        s=sitr.sum(v["cost"] * 2 - v["age"] / 3 + 0.5)
    ),
    "SELECT SUM(-cost) AS s, SUM(ABS(age - 40)) AS t FROM visits": lambda db, v: v.aggregate(
        s=sitr.sum(-v["cost"]), t=sitr.sum(abs(v["age"] - 40))
    ),
    "SELECT SUM(CASE WHEN cost > 100 THEN cost WHEN age < 18 THEN 1 ELSE 0 END) AS s FROM visits": lambda db, v: (
        v.aggregate(
            s=sitr.sum(Case(v["cost"] > 100, v["cost"], Case(v["age"] < 18, Constant(1), Constant(0)))),
        )
    ),
    "SELECT SUM(CASE region WHEN 'north' THEN 1 ELSE 0 END) AS s FROM visits": lambda db, v: v.aggregate(
        s=sitr.sum(Case(v["region"] == "north", Constant(1), Constant(0)))
    ),
    "SELECT SUM(IF(urgent, 1, 0)) AS s, COUNTIF(urgent) AS t, COUNT(*) FILTER (WHERE urgent) AS u FROM visits": (
        lambda db, v: v.aggregate(s=sitr.sum(Case(v["urgent"], Constant(1), Constant(0))))
    ),
    "SELECT SUM(cost) FILTER (WHERE urgent) AS s FROM visits": lambda db, v: v.aggregate(
        s=sitr.sum(Case(v["urgent"], v["cost"], Constant(0)))
    ),
    "SELECT AVG(COALESCE(cost, age, 0)) AS a, AVG(IFNULL(cost, 5)) AS b FROM visits": lambda db, v: v.aggregate(
        a=sitr.mean(Coalesce(v["cost"], Coalesce(v["age"], Constant(0)))), b=sitr.mean(v["cost"].fill_null(5))
    ),
    "SELECT COUNT(*) AS n FROM visits WHERE (age >= 18 AND region IN ('north', 'it''s')) "
    "OR NOT cost <> 5": lambda db, v: v.filter(
        ((v["age"] >= 18) & v["region"].isin(["north", "it's"])) | ~(v["cost"] != 5)
    ).aggregate(n=sitr.count()),
    "SELECT COUNT(*) AS n FROM visits WHERE age BETWEEN 18 AND 65 AND drug IS NOT NULL AND free IS NULL "
    "AND urgent = TRUE": (
        lambda db, v: (
            (
                v.filter(v["age"].between(18, 65) & ~v["drug"].is_null() & v["free"].is_null() & (v["urgent"] == True))  # noqa: E712
            ).aggregate(n=sitr.count())
        )
    ),
    "SELECT COUNT(*) AS n FROM visits WHERE day >= DATE '2026-02-01' AND day < '2026-03-01'": lambda db, v: v.filter(
        (v["day"] >= date(2026, 2, 1)) & (v["day"] < date(2026, 3, 1))
    ).aggregate(n=sitr.count()),
    "SELECT COUNT(*) AS n FROM visits WHERE seen >= TIMESTAMP '2026-02-01 10:00:00' AND day IN ('2026-03-01')": (
        lambda db, v: v.filter((v["seen"] >= datetime(2026, 2, 1, 10)) & v["day"].isin([date(2026, 3, 1)])).aggregate(
            n=sitr.count()
        )
    ),
    "SELECT COUNT(*) AS n FROM visits WHERE age > -5 AND cost > 1e2 AND cost < .5": lambda db, v: v.filter(
        (v["age"] > -5) & (v["cost"] > 100) & (v["cost"] < 0.5)
    ).aggregate(n=sitr.count()),
    "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) AS n FROM visits GROUP BY month": lambda db, v: v.group_by(
        month=v["day"].truncate("month")
    ).aggregate(n=sitr.count()),
    "SELECT DATE_TRUNC(day, MONTH) AS month, COUNT(*) AS n FROM visits GROUP BY DATE_TRUNC('month', day)": (
        lambda db, v: v.group_by(month=v["day"].truncate("month")).aggregate(n=sitr.count())
    ),
    "SELECT EXTRACT(year FROM day) AS y, MONTH(day) AS m, COUNT(*) AS n FROM visits GROUP BY 1, m": lambda db, v: (
        v.group_by(y=v["day"].part("year"), m=v["day"].part("month")).aggregate(n=sitr.count())
    ),
    'SELECT "مدينة", `Ward`, COUNT(*) AS "العدد" FROM visits GROUP BY مدينة, ward': lambda db, v: v.group_by(
        "مدينة", "Ward"
    ).aggregate(**{"العدد": sitr.count()}),
    # The same aggregate is measured once; one that stands in HAVING or ORDER BY only is measured too.
    "SELECT region, COUNT(*) AS n FROM visits GROUP BY region HAVING COUNT(*) > 5 ORDER BY COUNT(*)": lambda db, v: (
        v.group_by("region").aggregate(n=sitr.count())
    ),
    "SELECT region, COUNT(*) AS n FROM visits GROUP BY region HAVING AVG(cost) > 5 ORDER BY SUM(age)": lambda db, v: (
        v.group_by("region").aggregate(n=sitr.count(), avg_cost=sitr.mean("cost"), sum_age=sitr.sum("age"))
    ),
    "SELECT SUM(cost) / COUNT(*) AS r, 100 * COUNT(*) AS h FROM visits": lambda db, v: v.aggregate(
        sum_cost=sitr.sum("cost"), count=sitr.count()
    ),
    # Subqueries and WITH
    "WITH a AS (SELECT patient, cost FROM visits WHERE cost > 5), b AS (SELECT cost * 2 AS c FROM a) "
    "SELECT SUM(c) AS s FROM b WHERE c < 100": lambda db, v: (
        v.filter(v["cost"] > 5).derive(c=v["cost"] * 2).filter(sitr.sum("c").value < 100).aggregate(s=sitr.sum("c"))  # type: ignore[operator]
    ),
    "SELECT AVG(c) AS a FROM (SELECT *, age + 1 AS c FROM visits) AS t WHERE t.region = 'north'": lambda db, v: (
        v.derive(c=v["age"] + 1).filter(v["region"] == "north").aggregate(a=sitr.mean("c"))
    ),
    "WITH visits AS (SELECT * FROM visits WHERE age > 5) SELECT COUNT(*) AS n FROM visits": lambda db, v: v.filter(
        v["age"] > 5
    ).aggregate(n=sitr.count()),
    "SELECT AVG(total) AS a FROM (SELECT patient, SUM(cost) AS total FROM visits GROUP BY patient)": lambda db, v: (
        v.per_unit(total=sitr.sum("cost", bounds=(0, 5000))).aggregate(a=sitr.mean("total"))
    ),
    "SELECT region, SUM(total) AS s, COUNT(DISTINCT patient) AS n FROM (SELECT patient, region, SUM(cost, "
    "contribution_bounds_per_group => (0, 300)) AS total, COUNT(*) AS c, MAX(age) AS m FROM visits GROUP BY 1, 2) "
    "GROUP BY region": lambda db, v: (
        v.per_unit("region", total=sitr.sum("cost", bounds=(0, 300)), c=count_within(5), m=sitr.max("age"))
        .group_by("region")
        .aggregate(s=sitr.sum("total"), n=sitr.count_units())
    ),
    # Joins
    "SELECT zone, COUNT(*) AS n FROM visits JOIN areas USING (region) GROUP BY zone": lambda db, v: (
        v.join("areas", on="region").group_by("zone").aggregate(n=sitr.count())
    ),
    "SELECT zone, COUNT(*) AS n FROM areas AS a INNER JOIN visits AS v ON a.region = v.region GROUP BY zone": (
        lambda db, v: v.join("areas", on="region").group_by("zone").aggregate(n=sitr.count())
    ),
    "SELECT sex, COUNT(*) AS n FROM visits v JOIN (SELECT id, sex AS sex FROM patients) p ON p.id = v.patient "
    "GROUP BY sex": lambda db, v: (
        v.join(db.table("patients").select("id", "sex", p_region="region"), on={})
        .group_by("sex")
        .aggregate(n=sitr.count())
    ),
    "SELECT COUNT(*) AS n FROM labs JOIN stays ON labs.stay_id = stays.stay": lambda db, v: (
        db.table("labs").join("stays", on={"stay_id": "stay"}).aggregate(n=sitr.count())
    ),
    "SELECT COUNT(*) AS n FROM visits v LEFT JOIN areas a ON a.region = v.region WHERE a.zone IS NULL": lambda db, v: (
        v.join(
            db.table("areas").select("zone", a_region="region").select("a_region", "zone"),
            on={"region": "a_region"},
            keep=True,
        )
        .filter(v.join("areas", on="region")["zone"].is_null())
        .aggregate(n=sitr.count())
    ),
}


@pytest.mark.parametrize("text", PLANS)
def test_plans_are_those_of_python(db: Database, text: str) -> None:
    expected = PLANS[text](db, db.table("visits")).query.to_dict()
    if "LEFT JOIN" in text:  # one renaming here, two there
        expected["relation"]["source"]["right"] = {
            "is": "select",
            "source": {"is": "scan", "table": "areas"},
            "columns": [["a_region", "region"], ["zone", "zone"]],
        }
    if "FROM patients" in text:
        expected["relation"]["right"]["columns"] = [["id", "id"], ["sex", "sex"], ["p_region", "region"]]
    assert db.sql(text).query.to_dict() == expected


def test_the_bins_that_are_offered_are_read() -> None:
    bins = BINS.removeprefix("group by bins: ").rstrip(".").replace("x <", "cost <")
    parsed(f"SELECT {bins}, COUNT(*) FROM visits GROUP BY bin", DECLARED)


@pytest.mark.parametrize("text", [5, None, b"SELECT 1", ["SELECT 1"]])
def test_what_is_no_text_is_refused(text: Any) -> None:
    with pytest.raises(InvalidArgument):
        parsed(text, DECLARED)


EVIL = [
    "x'; DROP TABLE visits; --",
    "x' OR '1'='1",
    'x" OR 1=1 --',
    "x\\' OR 1=1 --",
    "/* */ '' ; SELECT * FROM visits",
    "$$; DELETE FROM visits; $$",
    "'); ATTACH 'evil.db'; --",
    "\u202e\u0000{{7*7}} {% raw %} {# x #}",
]


@pytest.mark.parametrize("evil", EVIL)
def test_a_text_stays_a_text(db: Database, evil: str) -> None:
    """In quotes, whatever it contains is one constant, and the engine finds it nowhere."""
    question = db.sql(f"SELECT COUNT(*) AS n FROM visits WHERE drug = '{evil.replace(chr(39), 2 * chr(39))}'")
    assert question.query.to_dict()["relation"]["condition"]["right"] == {"is": "Constant", "value": evil}
    if "\u0000" not in evil:  # which DuckDB does not take, in a rehearsal that is not charged
        assert question.release(epsilon=50.0).value["n"] == [0]


@pytest.mark.parametrize("evil", [one for one in EVIL if one.isprintable()])
def test_a_name_stays_a_name(db: Database, evil: str) -> None:
    """As an alias it names a column of the answer; as a column or a table there is none of that name."""
    quoted = '"' + evil.replace('"', '""') + '"'
    answer = db.sql(f"SELECT COUNT(*) AS {quoted} FROM visits").release(epsilon=50.0)
    assert answer.value == {evil: [799]}
    for text in (f"SELECT AVG({quoted}) FROM visits", f"SELECT COUNT(*) FROM {quoted}"):
        with pytest.raises(NotAllowed, match="there is no"):
            db.sql(text)


@pytest.mark.parametrize("evil", EVIL)
def test_without_quotes_it_is_refused(evil: str) -> None:
    with pytest.raises(SitrError):
        parsed(f"SELECT COUNT(*) FROM visits WHERE drug = {evil}", DECLARED)


@pytest.mark.parametrize("evil", EVIL)
def test_quotes_that_end_too_early_make_a_plan_of_the_same_table_or_none(evil: str) -> None:
    """Whoever pastes texts into SQL may get another condition, which anyone may ask; never another table or verb."""
    try:
        found = parsed(f"SELECT COUNT(*) FROM visits WHERE drug = 'a{evil}'", DECLARED).query
    except SitrError:
        return
    assert set(found.relation.tables()) == {"visits"}
    assert list(found.aggregates) == ["count"]


def test_comments_are_nothing(db: Database) -> None:
    text = "SELECT COUNT(*) -- '; DROP\n AS n /* FROM patients; */ FROM visits"
    assert db.sql(text).query.to_dict() == db.table("visits").aggregate(n=sitr.count()).query.to_dict()


# BigQuery's form


def test_options_are_the_target_and_the_limits(db: Database) -> None:
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 2, delta = 1e-7, max_groups_contributed = 2, "
        "privacy_unit_column = v.patient) region, COUNT(*, contribution_bounds_per_group => (0, 3)) AS n "
        "FROM visits AS v GROUP BY region"
    )
    found = parsed(text, DECLARED)
    same = db.table("visits").group_by("region").aggregate(n=sitr.count())
    same = same.bounded(max_groups_per_unit=2, max_rows_per_group=3)
    assert found.query.to_dict() == same.query.to_dict()
    assert (found.epsilon, found.delta) == (2.0, 1e-7)


def test_options_and_arguments_name_one_price(db: Database) -> None:
    question = db.sql("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 5, delta = 1e-9) COUNT(*) AS n FROM visits")
    assert question.explain().target.epsilon == 5.0
    assert question.explain(epsilon=5.0).target.delta == 1e-9
    for wrong in ({"epsilon": 1.0}, {"rho": 1.0}, {"delta": 1e-6}):
        with pytest.raises(InvalidArgument, match="but the query itself says"):
            question.release(**wrong)
    with pytest.raises(InvalidArgument):
        question.explain(error=1.0)
    assert question.bounded(max_rows_per_unit=1).explain().target.epsilon == 5.0


def test_options_may_be_absent_and_strings_do_not_confuse(db: Database) -> None:
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) AS n FROM visits WHERE drug = 'SELECT WITH DIFFERENTIAL_PRIVACY ('"
    )
    assert parsed(text, DECLARED).epsilon is None
    assert isinstance(db.sql(text).query, Query)
    assert parsed("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS() COUNT(*) FROM visits", DECLARED).epsilon is None


# Answers: 400 people; person p has 1 + p % 3 visits, of 100, 200 and 300; even ones in the north, odd in the south.

ANSWERS: dict[str, dict[str, list[Any]]] = {
    "SELECT COUNT(*) AS n FROM visits": {"n": [799]},
    "SELECT region, COUNT(*) AS n FROM visits GROUP BY region": {
        "region": ["north", "south", "east"],
        "n": [400, 399, 0],
    },
    "SELECT COUNT(*) AS n FROM visits WHERE cost > 150 AND day < '2026-03-01'": {"n": [266]},
    "SELECT COUNT(DISTINCT patient) AS n FROM visits WHERE cost >= 300": {"n": [133]},
    "SELECT COUNT(*) AS n FROM (SELECT patient, SUM(cost) AS t FROM visits GROUP BY patient HAVING SUM(cost) > 250)": {
        "n": [266]
    },
    "SELECT sex, COUNT(*) AS n FROM visits JOIN patients ON patient = id GROUP BY sex": {
        "sex": ["f", "m"],
        "n": [199, 600],
    },
    "SELECT COUNT(*) AS n FROM visits v LEFT JOIN areas a ON v.region = a.region WHERE a.region IS NULL": {"n": [399]},
    "SELECT zone, COUNT(*) AS n FROM visits v JOIN areas a ON v.region = a.region GROUP BY zone": {
        "zone": ["inner", "outer"],
        "n": [400, 0],
    },
    "SELECT drug, COUNT(*) AS n FROM visits GROUP BY drug ORDER BY n": {"drug": ["x", "y"], "n": [399, 400]},
    "SELECT MONTH(day) AS m, COUNT(*) AS n FROM visits GROUP BY m HAVING m <= 3 AND n < 300 ORDER BY m DESC": {
        "m": [3, 2],
        "n": [133, 266],
    },
    "SELECT COUNT(*) * 2 AS twice, COUNT(*) AS n FROM visits": {"twice": [1598], "n": [799]},
    "SELECT COUNT(*) AS n FROM labs l JOIN stays s ON l.stay_id = s.stay WHERE level > 3": {"n": [400]},
    "SELECT COUNT(*) AS n FROM visits a JOIN visits b ON a.patient = b.patient WHERE a.cost = 300 AND b.cost = 100": {
        "n": [133]
    },
    "SELECT COUNT(*) AS n FROM (SELECT age, age + 1 AS x, age - 1 AS y FROM (SELECT *, age * 2 AS z FROM visits)) "
    "WHERE x = y + 2 AND x = age + 1": {"n": [799]},
    "SELECT COUNT(*) AS n FROM (SELECT a, cost * 2 AS c FROM (SELECT age + 1 AS a, cost FROM visits)) WHERE a = 21": {
        "n": [16]
    },
}


@pytest.mark.parametrize("text", ANSWERS)
def test_answers_are_near_the_truth(db: Database, text: str) -> None:
    """At ε = 200 noise moves a count of rows with probability below 1e-16."""
    answer = db.sql(text).release(epsilon=200.0)
    assert answer.value == ANSWERS[text]


def test_sums_and_means(db: Database) -> None:
    text = "SELECT SUM(cost) AS s, AVG(cost) AS a, SUM(cost) / COUNT(*) AS r, COUNT(*) / 0 AS z FROM visits"
    answer = db.sql(text).release(epsilon=200.0)
    total = 400 * 100 + 266 * 200 + 133 * 300
    assert answer.value["s"][0] == pytest.approx(total, rel=1e-2)
    assert answer.value["a"][0] == pytest.approx(total / 799, rel=1e-2)
    assert answer.value["r"][0] == pytest.approx(total / 799, rel=1e-2)
    assert answer.value["z"] == [None]
    assert answer.low["r"] == [None]
    assert any("no interval" in note for note in answer.notes)


def test_the_ledger_keeps_what_was_measured(db: Database) -> None:
    """Before HAVING and LIMIT; the same operation gives the same rows, for nothing, and other rows of the same plan."""
    text = "SELECT region FROM visits GROUP BY region HAVING COUNT(*) > 300 ORDER BY COUNT(*) DESC LIMIT 1"
    first = db.sql(text).release(epsilon=200.0, operation="kept")
    assert first.value == {"region": ["north"]}
    kept = db.ledger.answer("kept", analyst="amina").value
    assert kept["keys"][0]["cells"] == ["north", "south", "east"]
    assert [one["name"] for one in kept["aggregates"]] == ["count"]
    again = db.sql(text).release(epsilon=200.0, operation="kept")
    assert (again.value, again.entry) == (first.value, first.entry)
    other = db.sql(text.replace("LIMIT 1", "LIMIT 2")).release(epsilon=200.0, operation="kept")
    assert other.value == {"region": ["north", "south"]}


def test_explain_reads_sql(db: Database) -> None:
    explained = db.sql("SELECT region, COUNT(*) AS n FROM visits GROUP BY region HAVING AVG(cost) > 5").explain(
        epsilon=1.0
    )
    assert set(explained.errors) == {"n", "avg_cost"}
    assert "This would cost" in str(explained)

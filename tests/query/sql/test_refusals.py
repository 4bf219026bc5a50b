"""Refusals: what is not on the list is refused, and each says what to write instead."""

from __future__ import annotations

import pytest
from sqlglot import exp

from sitr.errors import NotAllowed, SitrError
from sitr.query.sql import parsed
from sitr.query.sql.refusals import only, shown
from tests.query.sql.clinic import DECLARED

REFUSED = {
    "": "SELECT",
    "DROP TABLE visits": "SELECT",
    "INSERT INTO visits VALUES (1)": "SELECT",
    "UPDATE visits SET cost = 0": "SELECT",
    "EXPLAIN SELECT COUNT(*) FROM visits": "SELECT",
    "SELECT COUNT(*) FROM visits; SELECT COUNT(*) FROM patients": "one question",
    "SELECT * FROM visits": "COUNT(*)",
    "SELECT visits.* FROM visits": "COUNT(*)",
    "SELECT * FROM areas": "without sitr",
    "SELECT areas.* FROM areas": "without sitr",
    "SELECT cost FROM visits": "ask for AVG(cost).",  # it has fractions, so GROUP BY cost would be refused
    "SELECT cost, COUNT(*) FROM visits": "ask for AVG(cost).",
    "SELECT cost + COUNT(*) FROM visits GROUP BY region": "ask for AVG(cost).",
    "SELECT region, age, COUNT(*) FROM visits GROUP BY region": "GROUP BY age, or ask for AVG(age)",
    "SELECT region, drug, COUNT(*) FROM visits GROUP BY region": "GROUP BY drug, or ask for COUNT(DISTINCT drug)",
    "SELECT region, day, COUNT(*) FROM visits GROUP BY region": "GROUP BY day, or ask for MEDIAN(day)",
    "SELECT region, urgent, COUNT(*) FROM visits GROUP BY region": "GROUP BY urgent, or ask for COUNTIF(urgent)",
    "SELECT region, patient, COUNT(*) FROM visits GROUP BY region": "COUNT(DISTINCT patient).",
    "SELECT p, COUNT(*) FROM (SELECT patient AS p, SUM(cost) AS s FROM visits GROUP BY patient)": "COUNT(DISTINCT p).",
    "SELECT age / 10 AS d, COUNT(*) FROM visits GROUP BY d": "CASE WHEN",
    "SELECT cost, COUNT(*) FROM visits GROUP BY cost": "CASE WHEN",
    "SELECT region, COUNT(*) AS n FROM visits GROUP BY region ORDER BY cnt": "known here: region, n, patient",
    "SELECT region, COUNT(*) AS visit_count FROM visits GROUP BY region ORDER BY visit_cnt": "'visit_count'",
    "SELECT region FROM visits GROUP BY region": "COUNT(*)",
    "SELECT DISTINCT region, COUNT(*) FROM visits GROUP BY region": "GROUP BY",
    "SELECT COUNT(*)": "tables:",
    "SELECT COUNT(*) FROM visit": "'visits'",
    "SELECT COUNT(*) FROM main.visits": "declared",
    "SELECT COUNT(*) FROM read_csv('/etc/passwd')": "declared",
    "SELECT COUNT(*) FROM '/etc/passwd'": "",
    "SELECT COUNT(*) FROM areas": "without sitr",
    "SELECT AVG(kost) FROM visits": "'cost'",
    'SELECT AVG("Cost") FROM visits': "cost",
    "SELECT COUNT(*) FROM visits GROUP BY patient": "subquery",
    "SELECT AVG(cost) OVER (PARTITION BY region) FROM visits": "GROUP BY",
    "SELECT COUNT(*) FROM visits UNION ALL SELECT COUNT(*) FROM patients": "apart",
    "SELECT COUNT(*) FROM visits WHERE patient IN (SELECT id FROM patients)": "join",
    "SELECT COUNT(*) FROM visits WHERE cost > (SELECT AVG(cost) FROM visits)": "join",
    "SELECT COUNT(*) FROM visits WHERE EXISTS (SELECT 1 FROM patients)": "join",
    "SELECT COUNT(*) FROM visits WHERE COUNT(*) > 5": "HAVING",
    "SELECT SUM(AVG(cost)) FROM visits": "HAVING",
    "SELECT SUM(DISTINCT cost) FROM visits": "COUNT(DISTINCT",
    "SELECT COUNT(DISTINCT region, drug) FROM visits": "GROUP BY",
    "SELECT VAR_SAMP(cost) FROM visits": "VAR_POP",
    "SELECT STDDEV_SAMP(cost) FROM visits": "STDDEV_POP",
    "SELECT STRING_AGG(drug, ',') FROM visits": "COUNT",
    "SELECT SLEEP(10), COUNT(*) FROM visits": "functions",
    "SELECT COUNT(*) FROM visits WHERE LENGTH(drug) > 3": "functions",
    "SELECT COUNT(*) FROM visits WHERE drug LIKE 'a%'": "IN (",
    "SELECT COUNT(*) FROM visits WHERE CAST(drug AS INT) = 1": "declare",
    "SELECT COUNT(*) FROM visits WHERE age::text = '1'": "declare",
    "SELECT COUNT(*) FROM visits WHERE cost = NULL": "IS NULL",
    "SELECT COUNT(*) FROM visits WHERE cost = ?": "value itself",
    "SELECT COUNT(*) FROM visits WHERE cost = :p": "value itself",
    "SELECT COUNT(*) FROM visits WHERE cost = @p": "value itself",
    "SELECT COUNT(*) FROM visits WHERE day > CURRENT_DATE": "docs/sql.md",
    "SELECT COUNT(*) FROM visits WHERE day > DATE '2026-13-01'": "2026-01-31",
    "SELECT COUNT(*) FROM visits WHERE age % 2 = 0": "CASE",
    "SELECT SUM(CASE WHEN urgent THEN 1 END) FROM visits": "ELSE",
    "SELECT /*+ BROADCAST(visits) */ COUNT(*) FROM visits": "leave it out",
    "SELECT COUNT(*) FROM visits TABLESAMPLE (10 PERCENT)": "leave it out",
    "SELECT COUNT(*) FROM visits FOR UPDATE": "leave it out",
    "SELECT region, COUNT(*) FROM visits GROUP BY ROLLUP (region)": "total",
    "SELECT region, COUNT(*) FROM visits GROUP BY ALL": "GROUP BY 1",
    "SELECT region, COUNT(*) FROM visits GROUP BY 3": "position",
    "SELECT region, COUNT(*) FROM visits GROUP BY region ORDER BY 3": "position",
    "SELECT COUNT(*) FROM visits GROUP BY 'x'": "position",
    "SELECT DATE_TRUNC('month', day) AS day, COUNT(*) FROM visits GROUP BY day": "GROUP BY 1",
    "SELECT region, COUNT(*) FROM visits GROUP BY region QUALIFY 1 = 1": "HAVING",
    "SELECT region, COUNT(*) FROM visits GROUP BY region HAVING COUNT(*)": "HAVING COUNT(*) >= 100",
    "SELECT region, COUNT(*) FROM visits GROUP BY region HAVING COUNT(*) > 'a'": "one kind",
    "SELECT region, COUNT(*) FROM visits GROUP BY region HAVING cost > 3": "ask for AVG(cost).",
    "SELECT COUNT(*) FROM visits LIMIT -1": "LIMIT 10",
    "SELECT COUNT(*) FROM visits LIMIT 1 + 1": "LIMIT 10",
    "SELECT COUNT(*) FROM visits FETCH FIRST 3 ROWS ONLY": "LIMIT 10",
    "SELECT COUNT(*) AS n, SUM(cost) AS n FROM visits": "aliases",
    "SELECT COUNT(*) FROM visits, patients": "JOIN ... ON",
    "SELECT COUNT(*) FROM visits CROSS JOIN areas": "JOIN ... ON",
    "SELECT COUNT(*) FROM visits NATURAL JOIN areas": "JOIN ... ON",
    "SELECT COUNT(*) FROM areas RIGHT JOIN visits ON areas.region = visits.region": "LEFT JOIN",
    "SELECT COUNT(*) FROM areas LEFT JOIN visits ON areas.region = visits.region": "second",
    "SELECT COUNT(*) FROM visits v LEFT JOIN patients p ON v.patient = p.id": "LEFT",
    "SELECT COUNT(*) FROM visits v JOIN patients p ON v.region = p.region": "units",
    "SELECT COUNT(*) FROM visits v JOIN patients p ON v.patient = p.id AND v.cost > 5": "WHERE",
    "SELECT COUNT(*) FROM visits v JOIN patients p ON v.patient = p.id OR v.region = p.region": "WHERE",
    "SELECT COUNT(*) FROM visits v JOIN visits v ON v.patient = v.patient": "aliases",
    "SELECT region, COUNT(*) FROM visits v JOIN patients p ON v.patient = p.id GROUP BY region": "say which",
    "SELECT SUM(n) FROM (SELECT COUNT(*) AS n FROM visits)": "unit",
    "SELECT SUM(n) FROM (SELECT region, COUNT(*) AS n FROM visits GROUP BY region)": "unit",
    "SELECT COUNT(*) FROM (SELECT cost FROM visits LIMIT 5)": "end",
    "SELECT COUNT(*) FROM (SELECT cost FROM visits ORDER BY cost)": "end",
    "SELECT COUNT(*) FROM (SELECT DISTINCT region FROM visits)": "GROUP BY",
    "SELECT COUNT(*) FROM (SELECT cost * 2 FROM visits)": "AS",
    "SELECT COUNT(*) FROM (SELECT cost FROM visits UNION SELECT cost FROM visits)": "apart",
    "SELECT patient FROM (SELECT patient, SUM(cost) AS s FROM visits GROUP BY patient) GROUP BY patient": "subquery",
    "WITH RECURSIVE a AS (SELECT 1 AS x FROM visits) SELECT COUNT(*) FROM a": "RECURSIVE",
    "WITH a(x) AS (SELECT cost FROM visits) SELECT COUNT(*) FROM a": "",
    "SELECT SUM(x) FROM (SELECT patient, SUM(free) AS x FROM visits GROUP BY patient)": "contribution_bounds_per_group",
    "SELECT SUM(x) FROM (SELECT patient, SUM(cost, contribution_bounds_per_group => (9000, 9999)) AS x FROM visits "
    "GROUP BY patient)": "within",
    "SELECT SUM(cost, contribution_bounds => (0, 1)) FROM visits": "contribution_bounds_per_row",
    "SELECT SUM(cost, contribution_bounds_per_row => 5) FROM visits": "(0, 100)",
    "SELECT MEDIAN(cost, contribution_bounds_per_group => (0, 5)) FROM visits": "contribution_bounds_per_row",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(privacy_unit_column = region) COUNT(*) FROM visits": "declared",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, kappa = 3) COUNT(*) FROM visits": "max_groups_contributed",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 'x') COUNT(*) FROM visits": "epsilon = 1",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, epsilon = 2) COUNT(*) FROM visits": "once",
    "SELECT COUNT(*) FROM (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) cost FROM visits)": "outermost",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) region, SUM(cost, contribution_bounds_per_group => (0, 5)), "
    "MEDIAN(age) FROM visits GROUP BY region": "apart",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refusals_say_what_to_write_instead(text: str) -> None:
    with pytest.raises(SitrError) as caught:
        parsed(text, DECLARED)
    assert caught.value.code in ("SITR-Q01", "SITR-A01")
    assert caught.value.do
    assert REFUSED[text].lower() in caught.value.do.lower()


def test_what_a_node_has_beside_the_known_is_refused() -> None:
    """Also what sqlglot may read one day and does not now."""
    node = exp.Anonymous(this="SUM", expressions=[exp.column("cost")])
    only(node, "this", "expressions")
    node.set("unheard_of", True)
    with pytest.raises(NotAllowed):
        only(node, "this", "expressions")
    node.set("unheard_of", None)
    only(node, "this", "expressions")


def test_what_is_shown_of_a_query_is_short() -> None:
    assert shown(exp.column("cost")) == "cost"
    assert len(shown(exp.Anonymous(this="SUM", expressions=[exp.column("x" * 10_000)]))) < 200

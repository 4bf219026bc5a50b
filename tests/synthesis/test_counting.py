"""SQL that counts: what is read of it, and what is not."""

from datetime import date
from fractions import Fraction

import pytest

from sitr.errors import InvalidArgument
from sitr.synthesis.counting import read_combination, read_counting
from sitr.tables.codes import Code
from sitr.tables.domains import Domain

CODES = (
    Code.of("age", Domain("number", lower=0, upper=99)),
    Code.of("sex", Domain("string", categories=("f", "m"))),
    Code.of("smokes", Domain("boolean")),
    Code.of("day", Domain("date", lower=0, upper=999)),
    Code.of("grade", Domain("number", categories=(1, 2, 3))),
    Code.of("cost", Domain("number", lower=0, upper=1000, float=True)),
)


@pytest.mark.parametrize(
    ("where", "conditions"),
    [
        ("age = 7", ((0, (7, 7)),)),
        ("7 = age", ((0, (7, 7)),)),
        ("age < 7", ((0, (0, 6)),)),
        ("age <= 7", ((0, (0, 7)),)),
        ("7 > age", ((0, (0, 6)),)),
        ("age > 7", ((0, (8, 99)),)),
        ("age > -7", ((0, (-6, 99)),)),
        ("age < 7.5", ((0, (0, 7)),)),
        ("age BETWEEN 7 AND 9 AND sex = 'f'", ((0, (7, 9)), (1, ["f"]))),
        ("(age >= 7 AND (age < 9))", ((0, (7, 99)), (0, (0, 8)))),
        ("sex IN ('f', 'm')", ((1, ["f", "m"]),)),
        ("SEX IS NULL", ((1, None),)),
        ("people.smokes", ((2, [True]),)),
        ("NOT smokes", ((2, [False]),)),
        ("smokes = true", ((2, [True]),)),
        ("day >= DATE '1970-01-05'", ((3, (4, 999)),)),
        ("day = '1970-01-05'", ((3, (date(1970, 1, 5), date(1970, 1, 5))),)),
        ("grade >= 2", ((4, [2, 3]),)),
        ("grade BETWEEN 1 AND 2", ((4, [1, 2]),)),
        ("cost < 8", ((5, (0, Fraction(7.999999999999999))),)),
    ],
)
def test_conditions(where, conditions):
    assert read_counting(f"SELECT COUNT(*) FROM people WHERE {where}", CODES).conditions == conditions


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT AVG(age) FROM people",
        "SELECT COUNT(age) FROM people",
        "SELECT COUNT(DISTINCT sex) FROM people",
        "SELECT COUNT(*), COUNT(*) FROM people",
        "SELECT COUNT(*) FILTER (WHERE smokes) FROM people",
        "SELECT COUNT(*) OVER () FROM people",
        "SELECT COUNT(*) + 1 FROM people",
        "SELECT DISTINCT COUNT(*) FROM people",
        "SELECT COUNT(*) FROM people AS a, people AS b",
        "SELECT COUNT(*) FROM (SELECT * FROM people LIMIT 3)",
        "SELECT COUNT(*) FROM people TABLESAMPLE 10%",
        "SELECT COUNT(*) FROM people USING SAMPLE 10",
        "SELECT COUNT(*) FROM people WHERE age = 1 OR age = 2",
        "SELECT COUNT(*) FROM people WHERE age <> 1",
        "SELECT COUNT(*) FROM people WHERE age IN (1, 2)",
        "SELECT COUNT(*) FROM people WHERE age IN (SELECT 1)",
        "SELECT COUNT(*) FROM people WHERE age = '7'",
        "SELECT COUNT(*) FROM people WHERE age + 1 = 7",
        "SELECT COUNT(*) FROM people WHERE age = cost",
        "SELECT COUNT(*) FROM people WHERE age",
        "SELECT COUNT(*) FROM people WHERE sex = 'x'",
        "SELECT COUNT(*) FROM people WHERE sex IS NOT NULL",
        "SELECT COUNT(*) FROM people WHERE day = 'soon'",
        "SELECT COUNT(*) FROM people WHERE height = 3",
        "SELECT sex, COUNT(*) FROM people GROUP BY sex HAVING COUNT(*) > 3",
        "SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY 2 LIMIT 1",
        "SELECT sex, COUNT(*) FROM people GROUP BY sex, age",
        "SELECT sex, COUNT(*) FROM people GROUP BY ROLLUP (sex)",
        "SELECT age + 1, COUNT(*) FROM people GROUP BY age + 1",
        "SELECT COUNT(*) FROM people UNION ALL SELECT COUNT(*) FROM people",
        "WITH people AS (SELECT 1) SELECT COUNT(*) FROM people",
        "SELECT 1",
        "nonsense (",
    ],
)
def test_anything_else_is_not_read(sql):
    assert read_counting(sql, CODES) is None


@pytest.mark.parametrize("by", ["sex, age", "age, sex", "ALL"])
def test_groups(by):
    found = read_counting(f"SELECT age, COUNT(*) AS n, sex FROM people WHERE smokes GROUP BY {by} ORDER BY n", CODES)
    assert found.keys == ((0, 0), (2, 1))
    assert found.of_row((7, 123, None)) == ((2, [True]), (0, 7), (1, None))


FOUND = Code("town", Domain("string"), None, (), nulls=True)  # whose values are not known yet


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("age < 16 AND smokes", {"age": (0, 15), "smokes": [True]}),
        ("(16 > age) AND NOT smokes AND sex IS NULL", {"age": (0, 15), "smokes": [False], "sex": None}),
        ("SEX IN ('f', 'm') AND day < DATE '1970-01-05'", {"sex": ["f", "m"], "day": (0, 3)}),
        ("town = 'Oslo' AND grade > 1", {"town": ["Oslo"], "grade": [2, 3]}),
        ("sex = 'x'", {"sex": ["x"]}),  # which the plan refuses: it knows what is found later
    ],
)
def test_a_combination(sql, wanted):
    assert read_combination(sql, (*CODES, FOUND)) == wanted


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "age",
        "1",
        "age < 16 OR smokes",
        "age >= 10 AND age < 16",  # a column twice: BETWEEN
        "age < 16; smokes",
        "age < 16 smokes",
        "smokes = yes",
        "height > 2",
        "town > 'M'",  # which ones those are is not known
        "sex <> 'f'",
        "sex NOT IN ('f')",
        "age < grade",
        "SELECT 1",
        "age < (SELECT 16)",
        "age IN (1, 2)",
        "EXISTS (SELECT 1)",
        "COUNT(*) > 3",
        "*",
        "'",
        "(" * 2000,
    ],
)
def test_what_is_no_combination(sql):
    with pytest.raises(InvalidArgument, match=r"(?s)impossible=.* is not understood.*age < 16 AND married"):
        read_combination(sql, (*CODES, FOUND))

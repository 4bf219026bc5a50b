"""SQL on rows that were drawn: one SELECT, which reaches nothing else."""

import pyarrow
import pytest

from sitr.errors import InvalidArgument
from sitr.synthesis.answers import NOT_MEASURED, Count
from sitr.synthesis.sandbox import SampleAnswer, answered

ROWS = pyarrow.table({"age": [30, 40, 40], "sex": ["f", "m", None]})


def test_a_select_is_answered():
    found = answered('SELECT age, COUNT(*) AS n FROM "the ""old""" GROUP BY age ORDER BY age', 'the "old"', ROWS)
    assert found.to_pylist() == [{"age": 30, "n": 1}, {"age": 40, "n": 2}]
    assert answered("WITH x AS (FROM people) SELECT MAX(age) AS m FROM x", "people", ROWS).to_pylist() == [{"m": 40}]


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "SELECT 1; SELECT 2",
        "DROP TABLE people",
        "INSERT INTO people VALUES (1, 'f')",
        "CREATE TABLE x AS SELECT 1",
        "COPY people TO '{folder}/stolen.csv'",
        "EXPORT DATABASE '{folder}'",
        "ATTACH '{folder}/x.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "PRAGMA enable_external_access = true",
    ],
)
def test_what_is_not_one_select_is_refused(sql, tmp_path):
    with pytest.raises(InvalidArgument):
        answered(sql.replace("{folder}", str(tmp_path)), "people", ROWS)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM '{file}'",
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM read_parquet('{file}')",
        "SELECT * FROM read_blob('{file}')",
        "SELECT * FROM sniff_csv('{file}')",
        "SELECT * FROM glob('{file}')",
        "SELECT * FROM query('SELECT * FROM read_text(''{file}'')')",
        "SELECT * FROM read_text('https://example.org')",
        "SELECT getenv('HOME')",
        "SELECT * FROM ROWS",
        "SELECT * FROM given",
        "SELECT * FROM secret",
        "SELECT heights FROM people",
        "SELEC 1",
    ],
)
def test_nothing_else_is_reached(sql, tmp_path):
    secret = pyarrow.table({"a": [1]})
    file = tmp_path / "secret.csv"
    file.write_text("a\n1\n")
    with pytest.raises(InvalidArgument, match="cannot be asked this"):
        answered(sql.replace("{file}", str(file)), "people", ROWS)
    assert secret.num_rows == 1


def test_two_questions_know_nothing_of_each_other():
    answered("SELECT * FROM people", "people", ROWS)
    with pytest.raises(InvalidArgument):
        answered("SELECT * FROM people", "others", ROWS)


def test_an_answer_is_shown_with_what_was_measured():
    found = answered("SELECT sex, COUNT(*) AS n, 2 AS count_low FROM people GROUP BY sex ORDER BY sex", "people", ROWS)
    counts = (Count(1.5, 0.0, 9.5), Count(2.5, None, None), Count(-1.0, 0.0, 3.0))
    shown = SampleAnswer(found, 3, counts, ("a remark",))
    assert shown.columns == ("sex", "n", "count_low", "count_estimate", "count_low_", "count_high")
    assert shown.to_arrow().column("count_low_").to_pylist() == [0.0, None, 0.0]
    assert shown.to_pandas()["count_estimate"].isna().tolist() == [False, True, False]
    lines = str(shown).splitlines()
    assert "from 0 to 10 with 95 %" in lines[1]
    assert NOT_MEASURED in lines[2]
    assert lines[3].startswith("(missing)")
    assert lines[-2:] == ["asked of 3 rows that were drawn from the model", "a remark"]


def test_an_answer_without_is_shown_so():
    shown = SampleAnswer(answered("SELECT AVG(age) AS mean FROM people, range(30) GROUP BY range", "people", ROWS), 3)
    assert shown.columns == ("mean",)
    assert "36.6667" in str(shown)
    assert "… 30 rows in all" in str(shown)
    assert str(shown).endswith(NOT_MEASURED)

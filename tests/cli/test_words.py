"""What is refused on the command line is refused in its own words: options, SQL and settings, not Python."""

from pathlib import Path

import pytest

import sitr
from sitr.cli.words import PHRASES, in_options
from tests.cli.clinics import COUNT, make_clinic
from tests.cli.helpers import run

FOUND = "SELECT diagnosis, COUNT(*) AS n FROM visits GROUP BY diagnosis"
MISTAKES = [
    ((COUNT, "--epsilon", "0"), "--epsilon 0.0 is not in"),
    ((COUNT, "--epsilon", "1", "--error", "5"), "Say one of --epsilon, --rho and --error."),
    ((COUNT, "--epsilon", "1", "--max-rows-per-unit", "1", "--max-groups-per-unit", "1"), "--max-rows-per-unit with"),
    (("SELECT AVG(patient) AS m FROM visits", "--epsilon", "1"), "AVG(x, contribution_bounds_per_row => (0, 100))"),
    (("SELECT AVG(cost) AS m FROM visits", "--error", "5%"), "--error 500"),
    ((FOUND, "--rho", "1"), "pass --epsilon 0.5 --delta 1e-6."),
    ((FOUND, "--epsilon", "1", "--delta", "0"), "pass --delta 1e-6."),
]


@pytest.mark.parametrize(("arguments", "said"), MISTAKES)
def test_a_mistake_is_told_in_options(tmp_path, arguments, said):
    result = run("explain", make_clinic(tmp_path), *arguments, "--analyst", "amina")
    assert result.exit_code in (2, 4)
    assert said in result.stderr
    assert not any(python in result.stderr for python in ("epsilon=", "delta=", "error=", "bounds=", "max_rows_per"))


def test_a_promise_that_is_none(tmp_path):
    result = run("budget", "create", "clinic", "--ledger", str(tmp_path / "book.db"))
    assert "Do: --epsilon 1, --epsilon 1 --delta 1e-6, or --rho 0.1." in result.stderr
    path = make_clinic(tmp_path)
    text = (tmp_path / "clinic.toml").read_text(encoding="utf-8").replace("epsilon = 1.0", "delta = 1e-6")
    (tmp_path / "clinic.toml").write_text(text, encoding="utf-8")
    assert "Do: epsilon = 1.0; epsilon = 1.0 and delta = 1e-6; or rho = 0.1." in run("tables", path).stderr


def test_the_same_question_again_names_the_option(tmp_path):
    path = make_clinic(tmp_path)
    run("budget", "begin", path)
    asked = ("query", path, COUNT, "--epsilon", "0.1", "--yes", "--analyst", "amina")
    run(*asked)
    assert "The same was answered before: --operation '" in run(*asked).stderr


def test_other_words_stay():
    for text in ("the query states epsilon = 0.5.", "declare max_rows for the table.", "n = count(): ± 24"):
        assert in_options(text) == text


def test_each_phrase_stands_in_a_message_of_the_library():
    """One that was changed there would silently not be told in options any more."""
    folder = Path(sitr.__file__).parent
    texts = [file.read_text(encoding="utf-8") for file in folder.rglob("*.py") if "cli" not in file.parts]
    for phrase in PHRASES:
        assert any(phrase in text for text in texts), phrase

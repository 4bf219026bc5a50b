"""`make test FAST=1` runs the tests that a change needs most."""

from pathlib import Path

from tests.nearest import nearest


def test_a_module_has_its_doctests_and_its_mirrored_tests():
    found = nearest([Path("src/sitr/query/facts.py"), Path("src/sitr/query/facts.py")])
    assert found == ["src/sitr/query/facts.py", "tests/query/test_facts.py"]


def test_a_file_of_tests_is_run_itself_and_a_helper_runs_its_neighbours():
    assert nearest([Path("tests/query/test_facts.py")]) == ["tests/query/test_facts.py"]
    neighbours = nearest([Path("tests/query/databases.py")])
    assert "tests/query/test_cases.py" in neighbours
    assert not any("/sql/" in one for one in neighbours)


def test_documents_are_tried_and_what_is_gone_is_not():
    assert nearest([Path("docs/queries.md")]) == ["tests/test_docs.py"]
    assert nearest([Path("src/sitr/query/no_longer.py"), Path("Makefile")]) == []

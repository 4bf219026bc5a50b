"""The rules of tests/conftest.py: a group runs in one process, and in CI a skip that nobody listed fails the run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

IN_A_TEST = "import pytest\ndef test_a(): pass\ndef test_b(): pytest.skip('no time')\n"
GROUPED = """
import os, pathlib, pytest

@pytest.mark.parametrize("number", range(4))
def test_any(number): pass

@pytest.mark.xdist_group("slow")
@pytest.mark.parametrize("number", range(4))
def test_grouped(number):
    with pathlib.Path("processes").open("a") as file:
        print(os.getpid(), file=file)
"""
OF_A_MODULE = "import pytest\npytest.skip('no time', allow_module_level=True)\n"


def run_pytest(folder: Path, source: str, *, ci: bool, args: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(Path(__file__).with_name("conftest.py").read_text())
    (folder / "test_ok.py").write_text("def test_ok(): pass\n")
    (folder / "test_it.py").write_text(source)
    env = {key: value for key, value in os.environ.items() if key != "CI" and not key.startswith("PYTEST_")}
    env |= {"CI": "true"} if ci else {}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *args]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("args", [(), ("-n", "1")], ids=["alone", "xdist"])
@pytest.mark.parametrize("source", [IN_A_TEST, OF_A_MODULE], ids=["test", "module"])
def test_an_unlisted_skip_fails_in_ci(tmp_path, source, args):
    result = run_pytest(tmp_path, source, ci=True, args=args)
    assert result.returncode == 1, result.stdout
    assert "skips that fail the run" in result.stdout
    assert "no time" in result.stdout


def test_a_skip_is_fine_elsewhere(tmp_path):
    result = run_pytest(tmp_path, IN_A_TEST, ci=False, args=())
    assert result.returncode == 0, result.stdout
    assert "skips that fail" not in result.stdout


def test_a_run_without_skips_is_fine_in_ci(tmp_path):
    result = run_pytest(tmp_path, "def test_a(): pass\n", ci=True, args=())
    assert result.returncode == 0, result.stdout


def test_the_tests_of_a_group_run_in_one_process(tmp_path):
    result = run_pytest(tmp_path, GROUPED, ci=False, args=("-n", "2", "--dist", "loadgroup"))
    assert result.returncode == 0, result.stdout
    processes = (tmp_path / "processes").read_text().split()
    assert len(processes) == 4
    assert len(set(processes)) == 1

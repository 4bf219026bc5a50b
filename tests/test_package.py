"""The package as a newcomer meets it: its names, its weight, its types, its silence."""

import importlib.metadata
import importlib.resources
import logging
import subprocess
import sys

import pytest

import sitr

PUBLIC = [
    "__version__",
    "correlation",
    "count",
    "count_distinct",
    "count_units",
    "covariance",
    "histogram",
    "max",
    "mean",
    "median",
    "min",
    "open",
    "quantile",
    "stddev",
    "sum",
    "variance",
]
HEAVY = {"ibis", "matplotlib", "pandas", "pyspark", "torch"}


def test_the_public_names_are_exactly_these():
    assert sitr.__all__ == PUBLIC


def test_what_this_file_imports_is_not_listed():
    assert {name for name in dir(sitr) if not name.startswith("_")} >= {*PUBLIC[1:]}
    assert {"Any", "TYPE_CHECKING", "annotations", "logging"}.isdisjoint(dir(sitr))


def test_the_public_names_are_sorted_and_exist():
    assert sitr.__all__ == sorted(set(sitr.__all__))
    assert all(hasattr(sitr, name) for name in sitr.__all__)


@pytest.mark.parametrize("module", ["sitr", "sitr.accounting"])
def test_importing_loads_nothing_heavy(module):
    code = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert module in loaded
    assert HEAVY.isdisjoint(loaded)


def test_types_are_published():
    assert importlib.resources.files("sitr").joinpath("py.typed").is_file()


def test_version_is_the_installed_one():
    assert sitr.__version__ == importlib.metadata.version("sitr")


def test_logger_has_a_null_handler():
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("sitr").handlers)


def test_logging_is_silent_until_asked_for():
    code = "import logging, sitr; logging.getLogger('sitr.accounting').error('heard')"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == result.stderr == ""

"""What all tests share: the Hypothesis profile, the groups of xdist, and the rule that CI skips nothing silently."""

import os
from pathlib import Path

import pytest
from _pytest.nodeid import NodeId
from hypothesis import settings

# Reasons, word for word, for which a test may be skipped in CI. Every entry is a hole in the tests: say why.
ALLOWED_SKIPS: frozenset[str] = frozenset(
    {
        "the real data are not in ../shared/data",  # they are large, not ours to ship, and only examples need them
        "no CUDA device",  # the kernels of sitr.learning run on nothing else; CI has none
    }
)

# The queries of tests are short: to optimise what Spark makes of them takes longer than to run it.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

settings.register_profile("sitr", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("sitr")


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Collect only test files here: doctests belong to the package, and a helper is imported by whoever needs it."""
    helper = collection_path.suffix == ".py" and not collection_path.name.startswith("test_")
    return True if helper else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let `--dist loadgroup` see the groups: Spark starts in one process, and its tests begin first.

    pytest-xdist 3.8 tells the group of a test in `_nodeid`, which pytest 9.2 no longer reads, and so silently groups
    nothing (pytest-dev/pytest-xdist#1386).
    """
    for item in items:
        if told := vars(item).get("_nodeid"):
            item._id = NodeId.parse(told)


def unlisted_skips(config: pytest.Config) -> list[str]:
    """The skips of this run that `ALLOWED_SKIPS` does not name, as "where: reason"; none outside CI.

    Under xdist the workers' reports reach the terminal reporter of the controller, and the workers have none.
    """
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if not os.environ.get("CI") or reporter is None:
        return []
    unlisted = []
    for report in reporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reason = reason.removeprefix("Skipped: ")
        if reason not in ALLOWED_SKIPS:
            unlisted.append(f"{report.nodeid}: {reason}")
    return unlisted


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    harmless = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    if session.exitstatus in harmless and unlisted_skips(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    unlisted = unlisted_skips(config)
    if unlisted:
        terminalreporter.section("skips that fail the run", red=True, bold=True)
        for line in unlisted:
            terminalreporter.line(line)
        terminalreporter.line("In CI every test runs. Make these run, or list the reason in tests/conftest.py.")

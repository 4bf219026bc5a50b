"""Tests in a fork of a warm process, on a copy of the tree: which test runs which line, and what notices a mutant.

Importing what sitr stands on takes longer than most tests, so it is done once, and each trial is a fork. A trial is two
processes: a keeper, and the tests under it. Whatever the tests leave running (a server, a worker that hangs) falls to
the keeper, which ends it.
"""

import atexit
import ctypes
import hashlib
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

WARM = [
    "click.testing",
    "duckdb",
    "hypothesis.extra.numpy",
    "hypothesis.stateful",
    "hypothesis.strategies",
    "ibis.backends.duckdb",
    "ibis.backends.postgres",
    "jsonschema",
    "mpmath",
    "pandas",
    "psycopg",
    "pyarrow.csv",
    "pyarrow.parquet",
    "rich.console",
    "scipy.integrate",
    "scipy.optimize",
    "scipy.signal",
    "scipy.special",
    "scipy.stats",
    "sqlalchemy.dialects.postgresql",
    "sqlalchemy.dialects.sqlite",
]
NOT_COPIED = shutil.ignore_patterns(".git", ".venv*", "build", "dist", "__pycache__", ".*_cache", ".hypothesis")
ADDRESS_SPACE = 6 << 30  # a mutant may ask for anything; an engine reserves more than it uses
MEMORY = Path("/dev/shm")  # files of tests, where there is such a place: to sync them costs nothing
PR_SET_CHILD_SUBREAPER = 36
MOST_CALLS = 200  # of one function in one test, of which the lines are traced
MOST_TRACED = 300_000  # calls of any function in one test; what it runs after them it has mostly run before


def warm_up() -> None:
    """Import what every trial needs and no mutant changes."""
    for name in WARM:
        importlib.import_module(name)


class Tree:
    """A copy of the tree, in which mutants are written."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(root, folder, ignore=NOT_COPIED)

    def write(self, name: str, source: bytes) -> None:
        """Replace a file; no compiled form of it is kept, as one of the same size and second would pass for it."""
        path = self.folder / name
        path.write_bytes(source)
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()

    @property
    def temporary(self) -> Path:
        """Where tests write."""
        name = f"sitr-mutants-{hashlib.sha256(bytes(self.folder)).hexdigest()[:16]}"
        return MEMORY / name if MEMORY.is_dir() else self.folder.with_suffix(".tmp")

    @property
    def said(self) -> Path:
        """What the last trial printed."""
        return self.folder.with_suffix(".log")

    @property
    def found(self) -> Path:
        """What the last trial found."""
        return self.folder.with_suffix(".json")


def start(tree: Tree, tests: list[str], plugin: Any, *, wall: float) -> int:
    """Run tests in a fork, under a plugin whose `found` is written down, and return its process id.

    The exit code is 0 where all tests passed, 1 where one failed, 2 where they took too long, 3 where nothing was run.
    """
    tree.found.unlink(missing_ok=True)
    keeper = os.fork()
    if keeper:
        return keeper
    try:
        code = _kept(lambda: _tests(tree, tests, plugin), wall)
        shutil.rmtree(tree.temporary, ignore_errors=True)
    except BaseException:
        traceback.print_exc()
        code = 3
    os._exit(code)


def _kept(run: Callable[[], int], wall: float) -> int:
    """Run a function in a fork; end it, and all that it leaves, when its time is over or the keeper is told to stop."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
    child = os.fork()
    if not child:
        code = 3
        try:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            code = run()
        except BaseException:
            traceback.print_exc()
        os._exit(code)
    status = None
    try:
        until = time.monotonic() + wall
        while status is None and time.monotonic() < until:
            done, status_now = os.waitpid(child, os.WNOHANG)
            status = status_now if done else None
            time.sleep(0.02)
    finally:
        if status is None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        _end_orphans()
    code = -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status)
    if code in (-signal.SIGKILL, -signal.SIGPROF):
        return 2
    return 1 if code < 0 else code


def _end_orphans() -> None:
    """End what a trial left: its processes have become children of the keeper; a server's folder goes with it."""
    while orphans := list(_children(os.getpid())):
        for orphan in orphans:
            try:
                works_in = Path(f"/proc/{orphan}/cwd").readlink()
                os.kill(orphan, signal.SIGKILL)
                os.waitpid(orphan, 0)
            except (ProcessLookupError, ChildProcessError, FileNotFoundError):
                continue
            if works_in.parent.name.startswith("sitr-pg-"):
                shutil.rmtree(works_in.parent, ignore_errors=True)


def _children(parent: int) -> Iterator[int]:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent and fields[0] != "Z":
            yield int(stat.parent.name)


def _tests(tree: Tree, tests: list[str], plugin: Any) -> int:
    """Become a process that runs tests in the tree, and return the code of `start`."""
    os.setsid()
    os.chdir(tree.folder)
    out = os.open(tree.said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(out, stream)
    source = str(tree.folder / "src")
    sys.path[:0] = [source, str(tree.folder)]
    os.environ.update(PYTHONPATH=source, PYTHONDONTWRITEBYTECODE="" if isinstance(plugin, Tracer) else "1")
    os.environ.pop("CI", None)
    sys.dont_write_bytecode = not isinstance(plugin, Tracer)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    atexit._clear()
    options = ["-x", "-q", "-c", "pyproject.toml", "--rootdir", ".", "-p", "no:cacheprovider"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # what is warm is not rewritten
    code = pytest.main([*options, f"--basetemp={tree.temporary}", *tests], plugins=[plugin])
    tree.found.write_text(json.dumps(plugin.found))
    atexit._run_exitfuncs()
    sys.stdout.flush()
    if code == pytest.ExitCode.NO_TESTS_COLLECTED:
        return 0 if isinstance(plugin, Tracer) else 3  # a file may have no doctest
    return int(code != pytest.ExitCode.OK)  # a usage error, too: a conftest.py could not import the mutant


def needs_server(test: str) -> bool:
    """Whether a test asks a server of PostgreSQL, as its name tells."""
    return "postgres" in test or "separation" in test


class Chosen:
    """Runs some tests in a given order, and tells which of them failed.

    A test that takes four times as long as it did, and ten seconds more, ends the process: the mutant loops.
    """

    def __init__(self, tests: list[tuple[str, float]]) -> None:
        self._places = {test: place for place, (test, _) in enumerate(tests)}
        self._seconds = dict(tests)
        self.found: dict[str, Any] = {"failed": ""}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        signal.setitimer(signal.ITIMER_PROF, 10 + 4 * self._seconds[item.nodeid])
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted(
            (item for item in items if item.nodeid in self._places), key=lambda item: self._places[item.nodeid]
        )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.found["failed"]:
            self.found["failed"] = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.found["failed"]:
            self.found["failed"] = f"{report.nodeid}, when it is read"


class Tracer:
    """Tells which test runs which lines of some files, and how long it takes.

    Caches of the package are emptied before each test: what a test only gets from an earlier one it runs as well. What
    a fixture that several tests share has run counts for each of them. Of a function that a test calls often, the first
    calls are traced.
    """

    def __init__(self, files: dict[str, str], *, server: bool) -> None:
        self._files, self._server = files, server  # the names of files by their paths
        self._lines: set[tuple[str, int]] = set()
        self._calls: Counter[CodeType] = Counter()
        self._left = MOST_TRACED
        self._fixtures: dict[str, set[tuple[str, int]]] = {}
        self._caches: list[Any] | None = None
        self.found: dict[str, Any] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out Spark, whose start takes longer than all the rest, and PostgreSQL but for what only it runs."""
        items[:] = [
            item for item in items if needs_server(item.nodeid) == self._server and "spark" not in item.nodeid.lower()
        ]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._empty_caches()
        self._lines = set()
        self._calls.clear()
        self._left = MOST_TRACED
        began = time.process_time()
        threading.settrace(self._enter)
        sys.settrace(self._enter)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            shared = [self._fixtures.get(name, set()) for name in getattr(item, "fixturenames", [])]
            lines: dict[str, list[int]] = {}
            for name, line in sorted(self._lines.union(*shared)):
                lines.setdefault(name, []).append(line)
            self.found[item.nodeid] = {"seconds": time.process_time() - began, "lines": lines}

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[Any]:
        outer, self._lines = self._lines, set()
        sys.settrace(self._enter)
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                self._fixtures.setdefault(fixturedef.argname, set()).update(self._lines)
            self._lines |= outer

    def _enter(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        self._left -= 1
        if self._left < 0:
            sys.settrace(None)  # of this thread; the next test begins anew
        if code.co_filename not in self._files:
            return None
        self._calls[code] += 1
        return self._step if self._calls[code] <= MOST_CALLS else None

    def _step(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self._lines.add((self._files[frame.f_code.co_filename], frame.f_lineno))
        return self._step

    def _empty_caches(self) -> None:
        if self._caches is None:
            modules = [module for name, module in list(sys.modules.items()) if name.split(".")[0] == "sitr"]
            values = [value for module in modules for value in vars(module).values()]
            self._caches = [value for value in values if callable(getattr(value, "cache_clear", None))]
        for cache in self._caches:
            cache.cache_clear()

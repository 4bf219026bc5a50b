"""Environments and processes of benchmarks: each library in its own, each run in a fresh process."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


class FailedError(Exception):
    """An environment could not be made, or a process ended without an answer."""


def interpreter(room: str, library: str | None) -> str:
    """The Python of a library's environment, which is made once for its requirements; without a library, ours."""
    if library is None:
        return sys.executable
    requirements = HERE / f"requirements-{room}-{library}.txt"
    folder = ROOT / f".venv-bench-{room}-{library}"
    recipe = f"{ROOT} {sys.version}".encode() + requirements.read_bytes()
    ready = folder / f".ready-{zlib.crc32(recipe)}"
    python = folder / "bin" / "python"
    if not ready.exists():
        print(f"sitr: making the environment {folder.name} from {requirements.name}", file=sys.stderr, flush=True)
        _checked([sys.executable, "-m", "venv", "--clear", str(folder)])
        install = ["-m", "pip", "install", "-qq", "--disable-pip-version-check", "-r", str(requirements)]
        _checked([str(python), *install])
        ready.touch()
    return str(python)


def _checked(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise FailedError(f"not installed: {_last_line(done.stderr)}")


def run(python: str, script: Path, arguments: list[str], *, threads: int, timeout: float) -> dict[str, Any]:
    """Run a script, and read the line that it prints.

    `peak_mb` becomes the largest resident size of all its processes together, looked at ten times a second, or the
    peak that the first of them reports, whichever is more: Spark does its work in processes of its own.
    """
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")}
    environment |= dict.fromkeys(("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(threads))
    with tempfile.TemporaryDirectory(prefix="sitr-bench-") as folder:
        process = subprocess.Popen(
            [python, str(script), *arguments],
            cwd=folder,  # Spark writes where it is started
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        watch = _Watch(process.pid)
        try:
            output, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired as error:
            raise FailedError(f"stopped after {timeout:.0f} s") from error
        finally:
            watch.stop()
            _end(process)
    if process.returncode:
        reason = "killed, as memory ran out?" if process.returncode == -signal.SIGKILL else _last_line(errors)
        raise FailedError(f"failed: {reason}")
    found = json.loads(output.strip().splitlines()[-1])
    if "peak_mb" in found:
        found["peak_mb"] = max(found["peak_mb"], watch.peak_mb)
    return found


class _Watch(threading.Thread):
    def __init__(self, session: int):
        super().__init__(daemon=True)
        self.session, self.peak_mb, self._over = session, 0.0, threading.Event()
        self.start()

    def run(self) -> None:
        page = os.sysconf("SC_PAGE_SIZE") / 2**20
        while not self._over.wait(0.1):
            self.peak_mb = max(self.peak_mb, page * sum(_resident_pages(pid) for pid in _members(self.session)))

    def stop(self) -> None:
        self._over.set()
        self.join()


def _members(session: int) -> list[int]:
    """The processes of a session, which is that of one script and of nothing else."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path("/proc", entry, "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has ended
                continue
            if int(fields[3]) == session:
                found.append(int(entry))
    return found


def _resident_pages(pid: int) -> int:
    try:
        return int(Path("/proc", str(pid), "statm").read_text().split()[1])
    except OSError:
        return 0


def _end(process: subprocess.Popen) -> None:
    """End what a script has left behind: a stopped one, or a Java machine that outlives it."""
    for _ in range(50):
        left = _members(process.pid)
        if not left:
            break
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL if process.poll() is None else signal.SIGTERM)
        process.poll()
        time.sleep(0.1)
    process.wait()


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return lines[-1][:160] if lines else "it said nothing"

"""A private PostgreSQL cluster in a folder of its own: no network, and it may be crashed."""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

PROGRAMS = Path("/usr/lib/postgresql/15/bin")
NEEDED = ("initdb", "pg_ctl", "pg_dump", "psql", "postgres")
MISSING = f"the programs of PostgreSQL 15 are not in {PROGRAMS}"
SETTINGS = {
    "listen_addresses": "''",
    "synchronous_commit": "on",
    "max_connections": "60",
    "shared_buffers": "16MB",
    "log_min_messages": "fatal",
    "autovacuum": "off",
}


def installed() -> bool:
    """Whether there is a PostgreSQL to run."""
    return all((PROGRAMS / name).exists() for name in NEEDED)


class Cluster:
    """One server, reached by a socket in its folder; databases belong to the role `owner`.

    Args:
        synced: Every commit is on the disk before it is answered. That matters if the machine fails, which none does
            here: a server that is crashed, or measured, is to be as it is where it is used.

    Attributes:
        folder: Where everything is; its path is short, since that of a socket must be under 108 bytes.
    """

    def __init__(self, *, synced: bool) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sitr-pg-", dir="/tmp"))
        self._numbers = itertools.count(1)
        if os.geteuid() == 0:  # initdb refuses root
            shutil.chown(self.folder, "postgres")
        self._run("initdb", "-D", str(self.data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        settings = SETTINGS | {"fsync": "on" if synced else "off", "unix_socket_directories": f"'{self.folder}'"}
        with (self.data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())
        self.start()
        self.sql("CREATE ROLE owner LOGIN CREATEROLE")

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def postmaster(self) -> int:
        """The process id of the server."""
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def start(self) -> None:
        """Start the server and wait until it answers."""
        self._run("pg_ctl", "start", "-D", str(self.data), "-w", "-t", "60", "-l", str(self.folder / "log"))

    def stop(self) -> None:
        """Stop the server as its owner would."""
        self._run("pg_ctl", "stop", "-D", str(self.data), "-m", "fast", "-w")

    def crash(self, *, kill: bool = False) -> None:
        """Stop the server as a failing machine does, without writing anything down; `start` recovers it."""
        if kill:
            os.kill(self.postmaster, signal.SIGKILL)
            self._forget_dead()
        else:
            self._run("pg_ctl", "stop", "-D", str(self.data), "-m", "immediate", "-w")

    def fresh_database(self, role: str = "owner") -> str:
        """Make a new, empty database, and return its address."""
        name = f"db{next(self._numbers)}"
        self.sql(f"CREATE DATABASE {name} OWNER owner")
        return self.url(name, role)

    def url(self, database: str, role: str = "owner") -> str:
        return f"postgresql://{role}@/{database}?host={self.folder}"

    def kill_backends(self, url: str) -> int:
        """End all connections to a database, and return how many there were."""
        where = f"datname = '{database_of(url)}' AND pid <> pg_backend_pid()"
        return self.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {where}").split().count("t")

    def drop(self, url: str) -> None:
        self.sql(f"DROP DATABASE IF EXISTS {database_of(url)} WITH (FORCE)")

    def sql(self, statement: str, database: str = "postgres", role: str = "postgres") -> str:
        """Run a statement as the superuser, and return what it says."""
        address = self.url(database, role)
        return self._run("psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement, address)

    def dump(self, url: str) -> str:
        """Return a database as SQL, as its owner would."""
        return self._run("pg_dump", "-d", url)

    def restore(self, url: str, dump: str) -> None:
        """Run a dump into an empty database."""
        with tempfile.NamedTemporaryFile("w", dir=self.folder, suffix=".sql") as file:
            file.write(dump)
            file.flush()
            os.chmod(file.name, 0o644)
            self._run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", file.name, url)

    def remove(self) -> None:
        if (self.data / "postmaster.pid").exists():
            self.crash()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _forget_dead(self) -> None:
        """Drop the lock of a killed server, and wait for its children: a new one does not start beside them."""
        (self.data / "postmaster.pid").unlink()
        (self.folder / ".s.PGSQL.5432.lock").unlink(missing_ok=True)
        until = time.monotonic() + 20
        while time.monotonic() < until and self._children():
            time.sleep(0.02)

    def _children(self) -> bool:
        """Whether any process still works in the folder; a dead one has no working folder."""
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (process / "cwd").readlink() == self.data:
                    return True
        return False

    def _run(self, program: str, *arguments: str) -> str:
        as_whom = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        command = [*as_whom, str(PROGRAMS / program), *arguments]
        # The server keeps what it inherits open: a pipe would never end.
        with tempfile.TemporaryFile("w+") as said:
            done = subprocess.run(command, stdout=said, stderr=said, stdin=subprocess.DEVNULL, cwd="/")
            said.seek(0)
            text = said.read()
        if done.returncode:
            raise RuntimeError(f"{program} failed: {text}")
        return text


def database_of(url: str) -> str:
    return url.split("@/")[1].split("?")[0]


@cache
def shared() -> Cluster:
    """The cluster of this process; gone with it."""
    cluster = Cluster(synced=False)
    atexit.register(_remove, cluster, os.getpid())
    return cluster


def _remove(cluster: Cluster, made_in: int) -> None:
    if os.getpid() == made_in:  # not in a fork
        cluster.remove()

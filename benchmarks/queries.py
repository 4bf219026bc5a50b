"""Queries: one private release from a table of ten million rows, ours beside the peers, in time, memory and error.

Each library does the same job in an environment of its own, which is made the first time, and in a fresh process
(`queries_beside.py`, `queries_peers/`). The tables are drawn from a fixed seed and kept under build/.

    make bench ROOM=queries
    python benchmarks/queries.py --quick --only peers --library opendp --json results.json
"""

import argparse
import json
import platform
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import processes
import pyarrow
import pyspark
import queries_audit
import queries_beside
import queries_scale

import sitr

# A part prints as it goes, and yields its rows.
PARTS: dict[str, Callable[[Path, argparse.Namespace], Iterator[dict[str, Any]]]] = {
    "peers": queries_beside.run,
    "scale": queries_scale.run,
    "audit": queries_audit.run,
}
FOLDER = processes.ROOT / "build" / "bench-queries"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="100,000 rows, one run each, a few minutes")
    parser.add_argument("--only", choices=tuple(PARTS), help="one part")
    parser.add_argument("--library", metavar="WORD", help="only peers with this word in their name")
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the table (10,000,000)")
    parser.add_argument("--threads", type=int, default=2, help="that an engine may use (2)")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one process (600)")
    parser.add_argument("--repeat-below", type=float, default=20.0, help="shorter runs are done thrice (20 s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results there as well")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    started = time.perf_counter()
    print(f"sitr {sitr.__version__}, Python {platform.python_version()}, DuckDB {duckdb.__version__}, ", end="")
    print(f"PyArrow {pyarrow.__version__}, PySpark {pyspark.__version__}\n")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that what was started is ended as well
    results: dict[str, list[dict[str, Any]]] = {}
    for name, part in PARTS.items():
        if options.only in (None, name):
            results[name] = []
            for row in part(FOLDER, options):
                results[name].append(row)
                if options.json:  # after every row: a run that is stopped leaves what it found
                    options.json.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
            print()
    print(f"The whole run took {time.perf_counter() - started:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main())

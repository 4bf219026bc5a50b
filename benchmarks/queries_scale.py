"""How the time of a release grows with rows and with groups, where DuckDB may use 1.5 GB of memory."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import processes
import queries_data

ROWS = (1_000_000, 10_000_000, 100_000_000)
GROUPS = 1_000_000
MEMORY = "1.5GB"


def run(folder: Path, options: Any) -> Iterator[dict[str, Any]]:
    """A row for each size of the table, and one for a million groups."""
    sizes = [rows // 100 for rows in ROWS] if options.quick else list(ROWS)
    print(f"count, sum and mean by region, at most 5 rows a person, {MEMORY} of memory; then by a million products\n")
    print(f"{'rows':>13}{'groups':>11}{'seconds':>10}{'µs a row':>10}{'x first':>9}{'peak MB':>9}")
    first = None
    for rows in sizes:
        path = queries_data.make(folder, rows, rows // 10, 50)
        row = _measured(path, rows, 50, options)
        first = first or row["microseconds"]
        yield _shown(row | {"ratio": row["microseconds"] / first})
    groups = GROUPS // 100 if options.quick else GROUPS
    path = queries_data.make(folder, 10 * groups, groups, groups)
    yield _shown(_measured(path, 10 * groups, groups, options))


def _measured(path: Path, rows: int, groups: int, options: Any) -> dict[str, Any]:
    begun = time.perf_counter()
    script, python = processes.HERE / "queries_sitr.py", processes.interpreter("queries", None)
    command = ["release", str(path), "--regions", str(groups), "--memory", MEMORY, "--threads", str(options.threads)]
    found = processes.run(python, script, command, threads=options.threads, timeout=options.timeout)
    return {
        "rows": rows,
        "groups": groups,
        "seconds": found["seconds"],
        "microseconds": 1e6 * found["seconds"] / rows,
        "peak_mb": found["peak_mb"],
        "process_seconds": time.perf_counter() - begun,
    }


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    ratio = f"{row['ratio']:.2f}" if "ratio" in row else "-"
    print(
        f"{row['rows']:>13,}{row['groups']:>11,}{row['seconds']:>10.2f}{row['microseconds']:>10.3f}{ratio:>9}"
        f"{row['peak_mb']:>9,.0f}",
        flush=True,
    )
    return row

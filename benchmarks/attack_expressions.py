"""Random expressions on every engine, held against the reference in Python: an expression has one meaning.

    python benchmarks/attack_expressions.py --count 2000 --seed 1 --engines duckdb postgresql spark

Goes on by seed: another seed is another campaign. A difference is printed with the expression and the row.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sitr.tables.duckdb import DuckDB
from sitr.tables.source import Source
from tests.tables import drawn, engines

LOT = 200  # expressions of one seed: each lot can be run again by itself


def run(count: int, seed: int, engines_: Sequence[str] = ("duckdb",)) -> list[str]:
    """Return what was found: each expression of which an engine says something else than the reference.

    Args:
        count: Expressions for each engine.
        seed: Of the first lot; the lots that follow have the seeds that follow.
        engines_: Which ones.
    """
    found: list[str] = []
    for name in engines_:
        source = opened(name)
        try:
            found += _attacked(source, count, seed)
        finally:
            source.close()
    return found


def _attacked(source: Source, count: int, seed: int) -> Iterator[str]:
    for lot, begin in enumerate(range(0, count, LOT)):
        for difference in drawn.differences(source, seed + lot, min(LOT, count - begin)):
            yield f"seed {seed + lot}: {difference}"


def opened(name: str) -> Source:
    """Return an engine without tables: `postgresql` is a server of the tests' own."""
    if name == "duckdb":
        return DuckDB(drawn.DECLARED)
    if name == "postgresql":
        from sitr.tables.postgresql import PostgreSQL
        from tests.ledger import cluster

        return PostgreSQL(replace(drawn.DECLARED, engine=name, address=cluster.shared().fresh_database()))
    from sitr.tables.spark import Spark

    return Spark(replace(drawn.DECLARED, engine=name, address="local[2]"))


def main() -> None:
    """Run a campaign and say what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engines", nargs="+", choices=engines.ENGINES, default=["duckdb", "postgresql"])
    asked = parser.parse_args()
    found = run(asked.count, asked.seed, asked.engines)
    for one in found:
        print(one)
    print(f"{asked.count} expressions on each of {', '.join(asked.engines)}: {len(found)} differences.")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()

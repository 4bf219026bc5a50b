"""A table of 10⁷ rows and 15 columns from Parquet, to a model and to as many synthetic rows in Parquet.

The rows are those of the census, drawn again, with one column more; numbers stay numbers, the others are texts. The
same plan runs on DuckDB and on Spark, in a process of its own each. Whatever noise is drawn, both release by one law if
what they count is the same: so all counts of columns and of pairs are compared as well.
"""

import hashlib
import json
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import processes
import pyarrow
import pyarrow.parquet
from synthesis_data import CENSUS_NUMBERS, DATA, census, census_sizes

import sitr
from sitr.synthesis.plan import EngineRows
from sitr.tables import Declaration

ROWS, CHUNK, SEED = 10**7, 10**6, 20260101
FOLDER = processes.ROOT / "build" / "bench-synthesis"
TIMEOUT = 1500
DELTA = 1e-9


def run(quick: bool) -> list[dict[str, object]]:
    if not DATA.exists():
        print(f"The real data are not in {DATA.name}.")
        return []
    rows = ROWS // 10 if quick else ROWS
    path = made(FOLDER / f"census-{rows}.parquet", rows)
    print(f"{rows:,} rows of 15 columns in {path.stat().st_size / 2**20:,.0f} MB of Parquet\n")
    found = []
    for engine in ("duckdb", "spark"):
        try:
            python = processes.interpreter("synthesis", None)
            one = processes.run(python, Path(__file__), [engine, str(path)], threads=2, timeout=TIMEOUT)
        except processes.FailedError as error:
            print(f"{engine}: {error}")
            continue
        found.append({"engine": engine, **one})
        stages = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in one["stages"].items())
        print(f"{engine}: {one['seconds']:.1f} s in all, peak {one['peak_mb']:,.0f} MB ({stages})")
    if len(found) == 2:
        same = found[0]["counted"] == found[1]["counted"]
        print("Both count the same." if same else "THEY DO NOT COUNT THE SAME.")
    return found


def made(path: Path, rows: int) -> Path:
    """The table; it is made once."""
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    names, real = list(census_sizes()), census().rows
    generator, unfinished = np.random.default_rng(SEED), path.with_suffix(".unfinished")
    writer = None
    for begin in range(0, rows, CHUNK):
        size = min(CHUNK, rows - begin)
        drawn = real[generator.integers(0, len(real), size)].astype(np.int16)
        columns = {
            f"c{place}": column if name in CENSUS_NUMBERS else texts(column)
            for place, (name, column) in enumerate(zip(names, drawn.T, strict=True))
        }
        table = pyarrow.table({**columns, "c14": generator.integers(0, 50, size).astype(np.int16)})
        writer = writer or pyarrow.parquet.ParquetWriter(unfinished, table.schema)
        writer.write_table(table)
    writer.close()
    unfinished.rename(path)
    return path


def texts(column: np.ndarray) -> pyarrow.Array:
    """Numbers as categories in words."""
    values = pyarrow.array([word(number) for number in range(int(column.max()) + 1)])
    return values.take(pyarrow.array(column))


def word(number: int) -> str:
    return f"value {number}"


def declared(path: Path, engine: str) -> Declaration:
    columns: dict[str, object] = {
        f"c{place}": {"type": "integer", "bounds": [0, size - 1], "nulls": "drop"}
        if name in CENSUS_NUMBERS
        else {"type": "string", "categories": [word(number) for number in range(size)], "nulls": "drop"}
        for place, (name, size) in enumerate(census_sizes().items())
    }
    columns["c14"] = {"type": "integer", "bounds": [0, 49], "nulls": "drop"}
    content = {
        "sitr": 1,
        "name": "census",
        "connection": {"engine": engine} | ({"address": "local[2]"} if engine == "spark" else {}),
        "privacy": {"delta": DELTA},
        "budgets": {"census": {"epsilon": 10, "delta": 1e-6}},
        "tables": {"census": {"source": path.name, "unit": "row", "columns": columns}},
    }
    return Declaration.of(content, path.parent)


def release(engine: str, path: Path) -> dict[str, object]:
    """Make the model and the rows, and say when each stage began; then count all over again, to compare."""
    begun = [("opening", time.perf_counter())]
    out = path.with_name(f"synthetic-{engine}.parquet")
    with sitr.open(declared(path, engine), ledger="memory://", analyst="bench") as database:
        wanted = database.table("census").synthesize()
        table = wanted.release(epsilon=1, progress=lambda stage: begun.append((stage, time.perf_counter())))
        begun.append(("drawing and writing", time.perf_counter()))
        table.to_parquet(out, pyarrow.parquet.ParquetFile(path).metadata.num_rows)
        begun.append(("", time.perf_counter()))
        out.unlink()
        coded = wanted.explain(epsilon=1).plan.coded
        counted = EngineRows(database.source, coded)
        bins = [np.arange(code.size) // 3 for code in coded.codes]
        parts = [*counted.singles(), *counted.pairs(bins).values()]
    return {
        "seconds": begun[-1][1] - begun[0][1],
        "stages": {stage: after - before for (stage, before), (_, after) in pairwise(begun)},
        "peak_mb": 0.0,
        "counted": hashlib.sha256(b"".join(np.ascontiguousarray(one, np.int64).tobytes() for one in parts)).hexdigest(),
    }


if __name__ == "__main__":
    print(json.dumps(release(sys.argv[1], Path(sys.argv[2]))))

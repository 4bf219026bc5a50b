"""Synthetic rows: how near they are to the real ones, in what time and memory, and beside the peers.

make bench ROOM=synthesis
python benchmarks/synthesis.py --quick --json results.json
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: all is measured on one core
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import importlib.metadata
import json
import platform
import sys
import time
from pathlib import Path

import synthesis_quality
import synthesis_scale

PARTS = ("scale", "quality")


def versions() -> dict[str, str]:
    found = {"Python": platform.python_version()}
    for name in ("sitr", "numpy", "scikit-learn", "duckdb", "pyspark"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one seed instead of five")
    parser.add_argument("--only", choices=PARTS, help="one part")
    parser.add_argument("--library", metavar="WORD", default="", help="only methods with it in their names")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results there as well")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    started = time.perf_counter()
    print(", ".join(f"{name} {number}" for name, number in versions().items()), end="\n\n")
    results = {}
    if options.only != "quality" and options.library in "sitr":  # no other library reads Parquet by an engine
        results["scale"] = synthesis_scale.run(options.quick)
    if options.only != "scale":
        results["quality"] = synthesis_quality.run(options.quick, options.library)
    print(f"\nThe whole run took {time.perf_counter() - started:.0f} s.")
    if options.json:
        options.json.write_text(json.dumps({"versions": versions(), **results}, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

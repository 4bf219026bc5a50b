"""The noise that mechanisms draw: how fast, what its clock tells, and whether it has its law on 10^8 draws.

The first part puts our samplers beside OpenDP's and NumPy's (`noise.py`); the second tests ours against exact laws
(`noise_laws.py`). It ends with 1 if a test gave alarm, which happens to an honest sampler
once in ten million runs.

    make bench ROOM=mechanisms
    python benchmarks/mechanisms.py --quick --json results.json
"""

import argparse
import importlib.metadata
import json
import platform
import sys
import time
from pathlib import Path

import noise
import noise_laws
import numpy
import scipy

import sitr


def versions() -> dict[str, str]:
    found = {"Python": platform.python_version(), "sitr": sitr.__version__}
    try:
        found["opendp"] = importlib.metadata.version("opendp")
    except importlib.metadata.PackageNotFoundError:
        found["opendp"] = "not installed"
    return {**found, "numpy": numpy.__version__, "scipy": scipy.__version__}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer draws, about half a minute")
    parser.add_argument("--only", choices=("noise", "laws"), help="one of the two parts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results there as well")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    started = time.perf_counter()
    print(", ".join(f"{name} {number}" for name, number in versions().items()), end="\n\n")
    laws = noise_laws.run(options.quick) if options.only != "noise" else []
    measured = noise.run(options.quick) if options.only != "laws" else {}
    print(f"\nThe whole run took {time.perf_counter() - started:.0f} s.")
    if options.json:
        record = {"versions": versions(), "laws": laws, **measured}
        options.json.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    return int(any(row["p"] < noise.ALARM for row in laws))


if __name__ == "__main__":
    sys.exit(main())

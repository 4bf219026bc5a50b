"""Private training: what a step costs beside the same step without privacy, and beside Opacus.

make bench ROOM=learning
python benchmarks/learning.py --only mnist --json results.json
python benchmarks/learning.py --only kills
python benchmarks/learning.py --device cuda --only gpt2
python benchmarks/learning.py --device cuda --only kernels

On a GPU it needs PyTorch with Triton, NumPy, SciPy and this repository, and there ours is beside no privacy alone, if
Opacus is not installed as well.
"""

import argparse
import importlib.util
import json
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import processes
from learning_models import CASES, Case

SCRIPTS = processes.HERE / "learning_peers"
TIMEOUT = 300.0
QUICK_KILLS = 20
PRECISIONS = {"cpu": ("fp32",), "cuda": ("tf32", "bf16")}
WORDS = {"fp32": "fp32", "tf32": "TF32", "bf16": "bf16 autocast"}
HEADER = f"{'':<21}{'ms a step':>11}{'CPU ms':>9}{'× time':>8}{'speed':>7}{'MB':>9}{'× MB':>7}"


@dataclass(frozen=True)
class Method:
    """Who makes the steps; `ours` says whether something was asked of it."""

    name: str
    script: str
    library: str | None = None
    ours: bool = False


NOT_PRIVATE = Method("not private", "process.py")
METHODS = {
    "cpu": (
        Method("sitr", "with_sitr.py", ours=True),
        Method("sitr, float noise", "with_sitr.py"),
        Method("Opacus hooks", "with_opacus.py", "opacus"),
        Method("Opacus ghost", "with_opacus.py", "opacus"),
    ),
    "cuda": (Method("sitr, float noise", "with_sitr.py", ours=True),),
}
OPACUS_HERE = (Method("Opacus hooks", "with_opacus.py"), Method("Opacus ghost", "with_opacus.py"))


def methods_of(device: str) -> tuple[Method, ...]:
    """All of a device. A GPU's PyTorch is not one that we install, so Opacus is used there where it is beside it."""
    beside = OPACUS_HERE if device == "cuda" and importlib.util.find_spec("opacus") else ()
    return (NOT_PRIVATE, *METHODS[device], *beside)


def measured(name: str, precision: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Let the methods take turns, each in a fresh process, and take medians."""
    methods, turns, failed = methods_of(options.device), {}, {}
    for _ in range(options.rounds):
        for method in methods:
            if method.name not in failed:
                try:
                    turns.setdefault(method.name, []).append(once(method, name, precision, options))
                except processes.FailedError as error:
                    failed[method.name] = str(error)
    rows = []
    for method in methods:
        about = {"case": name, "precision": precision, "method": method.name, "ours": method.ours}
        if method.name in failed:
            rows.append(about | {"failed": failed[method.name]})
            continue
        found = turns[method.name]
        medians = {key: statistics.median(one[key] for one in found) for key in ("seconds", "cpu", "memory")}
        rows.append(about | medians | {"steps": sum(one["steps"] for one in found), "torch": found[0]["torch"]})
    return compared(rows)


def once(method: Method, name: str, precision: str, options: argparse.Namespace) -> dict[str, Any]:
    python = processes.interpreter("learning", method.library)
    arguments = [method.name, name, precision, str(options.seconds)]
    return processes.run(python, SCRIPTS / method.script, arguments, threads=options.threads, timeout=TIMEOUT)


def compared(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add times and memory in those of no privacy."""
    base = rows[0]
    for row in rows:
        if "failed" not in row and "failed" not in base:
            row["times"], row["times_memory"] = row["seconds"] / base["seconds"], row["memory"] / base["memory"]
    return rows


def line(row: dict[str, Any]) -> str:
    if "failed" in row:
        return f"  {row['method']:<19}{row['failed']}"
    times, memory = row.get("times", float("nan")), row.get("times_memory", float("nan"))
    spent = f"{row['seconds'] * 1e3:>11.1f}{row['cpu'] * 1e3:>9.1f}{times:>8.2f}{1 / times:>7.2f}"
    return f"  {row['method']:<19}{spent}{row['memory']:>9.0f}{memory:>7.2f}"


def standing(row: dict[str, Any], case: Case) -> list[str]:
    """What was asked of ours in a case, and what was seen."""
    title = f"{case.title}, {WORDS[row['precision']]}"
    if "failed" in row:
        return [f"FAILED  {title}: {row['failed']}"]
    said = []
    for what, key, asked in (("time", "times", case.slowest), ("memory", "times_memory", case.memory)):
        if row["precision"] in asked and key in row:
            limit = asked[row["precision"]]
            word = "met   " if row[key] <= limit else "MISSED"
            said.append(f"{word}  {title}: {row[key]:.2f} × the {what} of no privacy, at most {limit:.2f} asked")
    return said


def lost(rows: list[dict[str, Any]]) -> list[str]:
    """Where another private method was faster, or needed less memory, than ours."""
    ours = next((row for row in rows if row["ours"]), None)
    if ours is None or "failed" in ours:
        return []
    said = []
    for row in rows[1:]:
        for key, words in (("seconds", "faster"), ("memory", "smaller")):
            if not row["method"].startswith("sitr") and key in row and row[key] < ours[key]:
                times = ours[key] / row[key]
                said.append(f"{CASES[row['case']].title}: {row['method']} is {times:.2f} times {words} than ours")
    return said


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=tuple(PRECISIONS), default="cpu")
    parser.add_argument("--only", default="", metavar="WORD", help=f"of {', '.join(CASES)}, kills; or CUDA kernels")
    parser.add_argument("--precision", choices=tuple(WORDS), help="one of the device's")
    parser.add_argument("--rounds", type=int, help="turns of each method: 3, on a GPU 1")
    parser.add_argument("--seconds", type=float, help="of steps in each turn: 10, on a GPU 3")
    parser.add_argument("--threads", type=int, default=2, help="of the CPU")
    parser.add_argument("--quick", action="store_true", help="one turn, two seconds")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results there as well")
    options = parser.parse_args()
    on_gpu = options.device == "cuda"
    options.rounds = options.rounds or (1 if options.quick or on_gpu else 3)
    options.seconds = options.seconds or (2.0 if options.quick else 3.0 if on_gpu else 10.0)
    return options


def main() -> int:
    options = arguments()
    started, rows = time.perf_counter(), []
    if options.device == "cuda" and options.only in ("", "kernels"):
        import learning_kernels

        rows += learning_kernels.run()
    for name, case in CASES.items():
        if case.device != options.device or options.only not in name:
            continue
        for precision in PRECISIONS[options.device]:
            if options.precision in (None, precision):
                print(f"\n{case.title}, {WORDS[precision]}\n{HEADER}", flush=True)
                found = measured(name, precision, options)
                print("\n".join(map(line, found)), flush=True)
                rows += found
    steps = [row for row in rows if "case" in row]
    print("\nAsked of sitr:")
    print("\n".join(f"  {said}" for row in steps if row["ours"] for said in standing(row, CASES[row["case"]])))
    print("\nWhere we lose:")
    groups = {(row["case"], row["precision"]): [] for row in steps}
    for row in steps:
        groups[row["case"], row["precision"]].append(row)
    losses = [said for group in groups.values() for said in lost(group)]
    print("\n".join(f"  {said}" for said in losses or ["nowhere in this run"]))
    if options.device == "cpu" and options.only in ("", "kills"):
        import learning_kills

        rows.append(learning_kills.run(QUICK_KILLS if options.quick else learning_kills.KILLS))
    print(f"\nThe whole run took {time.perf_counter() - started:.0f} s.")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")
    return int(any(row.get("faults") for row in rows))


if __name__ == "__main__":
    sys.exit(main())

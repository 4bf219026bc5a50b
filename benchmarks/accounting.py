"""Our accountant beside dp-accounting and prv-accountant on the same jobs: time, memory, and distance from the truth.

Every library answers every question in a process of its own, which is stopped after a time and at a size. The first
call after the imports is timed apart; then the call is repeated, with all memos of the library emptied in between, so
that each repetition does the whole job: it describes the events, composes them and asks for epsilon. The truth comes
from tests/accounting/references.json, which is computed another way and to 30 digits.

    make bench ROOM=accounting
    python benchmarks/accounting.py --quick --json results.json
"""

import argparse
import functools
import gc
import importlib
import importlib.metadata
import json
import math
import os
import platform
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from accounting_jobs import (
    BY_NAME,
    CASES,
    EVENTS,
    FILTERS,
    GOOGLE,
    KINDS,
    MICROSOFT,
    OURS,
    SGD,
    Answer,
    Case,
    Setting,
    admit,
    settings_of,
)

REFERENCES = Path(__file__).parent.parent / "tests" / "accounting" / "references.json"
NEEDS = {  # what is imported before the first call
    OURS: ("sitr.accounting",),
    GOOGLE: ("dp_accounting", "dp_accounting.pld.accountant"),
    MICROSOFT: ("prv_accountant", "prv_accountant.dpsgd"),
}
PACKAGES = ("sitr", "dp_accounting", "prv_accountant")  # whose memos are emptied between repetitions
ROUNDING = 1e-12  # a peer is not called wrong for so little; we are
MOST_RUNS, ENOUGH = 7, 6.0  # repeat this often, or for so many seconds

# --- One job in a process of its own ----------------------------------------------------------------------------------


def forget() -> None:
    """Empty the memos of the libraries, so that the next call does all of its work."""
    for thing in gc.get_objects():
        if isinstance(thing, functools._lru_cache_wrapper) and str(thing.__module__).split(".")[0] in PACKAGES:
            thing.cache_clear()


def measure(ask: Callable[[], Answer]) -> dict[str, Any]:
    """Time the first call, then more of them, each from the start."""
    times: list[float] = []
    answer: Answer = {}
    while not times or (len(times) <= MOST_RUNS and sum(times) + times[-1] < ENOUGH):
        forget()
        start = time.perf_counter()
        answer = ask()
        times.append(time.perf_counter() - start)
    later = times[1:] or times
    return {**answer, "first": times[0], "median": statistics.median(later), "runs": len(later)}


def asking(job: dict[str, Any]) -> Callable[[], Answer]:
    """Return the call that a job is."""
    if "filter" in job:
        return functools.partial(admit, job["filter"], job["kind"])
    case = BY_NAME[job["case"]]
    setting = next(s for s in settings_of(case) if (s.library, s.label) == (job["library"], job["setting"]))
    return functools.partial(setting.ask, case, **setting.options)


def child(job: dict[str, Any]) -> None:
    """Do one job and write what came of it to standard output."""
    signal.alarm(job["timeout"])  # ends this process, wherever it is
    resource.setrlimit(resource.RLIMIT_AS, (job["memory"] << 30, job["memory"] << 30))
    warnings.simplefilter("ignore")
    try:
        for name in NEEDS[job["library"]]:
            importlib.import_module(name)
        result = measure(asking(job))
    except Exception as error:
        result = {"error": " ".join(f"{type(error).__name__}: {error}".split())}
    print(json.dumps(result))


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Do one job in a fresh process; its peak memory is counted by the kernel, and an early end is an answer too."""
    with tempfile.TemporaryFile("w+") as output:
        command = [sys.executable, str(Path(__file__).resolve()), "--child", json.dumps(job)]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if process.returncode == -signal.SIGALRM:
        result = {"error": f"no answer in {job['timeout']} s"}
    elif process.returncode != 0 or not text:
        result = {"error": f"the process ended with {process.returncode}"}
    else:
        result = json.loads(text.splitlines()[-1])
    return {**result, "megabytes": usage.ru_maxrss / 1024}


# --- The truth --------------------------------------------------------------------------------------------------------


class Truth(NamedTuple):
    """A value, how far it may be off, and where it is from."""

    value: float
    error: float
    source: str


def truth_of(case: Case, references: list[dict[str, Any]]) -> Truth | None:
    """Find the reference of a case, or else its golden value."""
    for known in references if case.target is None else ():
        same = known["event"] == case.text and float(known["delta"]) == float(case.delta)
        if same and known["kind"] == "epsilon":
            value = float(known["epsilon"])
            return Truth(value, known["error"] + 4e-16 * value, REFERENCES.name)
    if case.golden:
        return Truth(float(case.golden), 10.0 ** -len(case.golden.partition(".")[2]), "golden value")
    return None


def load_references() -> list[dict[str, Any]]:
    return json.loads(REFERENCES.read_text()) if REFERENCES.exists() else []


# --- Running everything -----------------------------------------------------------------------------------------------

Row = dict[str, Any]


def judge(row: Row, truth: Truth | None) -> Row:
    """Add to a row what follows from the truth: signed relative error, and whether it is on the wrong side."""
    upper, lower = row.get("upper"), row.get("lower")
    if upper is None or math.isinf(upper):
        return row
    if lower is not None:
        row["width"] = (upper - lower) / abs(upper)
    if truth is not None:
        row["off"] = (upper - truth.value) / truth.value
        allowed = truth.error + (0.0 if row["library"] == OURS else ROUNDING * truth.value)
        row["under"] = upper < truth.value - allowed
        row["over"] = lower is not None and lower > truth.value + allowed
        row["blur"] = truth.error / truth.value
    return row


def hopeless(setting: Setting, before: Row | None, timeout: float) -> str:
    """Why a finer setting is not tried: the coarser one failed, or says that this one cannot end in time."""
    if before is None or not setting.step or not before["step"]:
        return ""
    if "error" in before:
        return "not tried: the coarser setting gave no answer"
    expected = before["first"] * before["step"] / setting.step
    return f"not tried: would take about {seconds(expected)}" if expected > timeout else ""


def run_case(case: Case, truth: Truth | None, limits: dict[str, int]) -> list[Row]:
    """Ask every library at every setting."""
    rows: list[Row] = []
    last: dict[str, Row] = {}
    for setting in settings_of(case):
        row = {"library": setting.library, "setting": setting.label, "step": setting.step}
        if why := hopeless(setting, last.get(setting.library), limits["timeout"]):
            row["error"] = why
        else:
            row |= run({"case": case.name, "library": setting.library, "setting": setting.label, **limits})
        rows.append(judge(row, truth))
        if setting.step:
            last[setting.library] = row
    return rows


def run_filters(limits: dict[str, int], quick: bool) -> list[Row]:
    """Let every filter admit every kind of event; a union, which asks for the curve of each that is new, meets few."""
    names = FILTERS[-2:] if quick else FILTERS
    return [
        {"filter": name, "kind": kind, **run({"library": OURS, "filter": name, "kind": kind, **limits})}
        for name in names
        for kind in (KINDS[:2] if name == "choose_union" else KINDS)
    ]


# --- Words and tables -------------------------------------------------------------------------------------------------


def seconds(value: float | None) -> str:
    if value is None:
        return ""
    if value >= 100:
        return f"{value:.3g} s"
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.3g} ms"


def table(head: Iterable[str], rows: Iterable[Iterable[str]], left: int = 2) -> str:
    """Align columns, the first `left` to the left. A short row has one cell of free text after those."""
    lines = [tuple(head), *map(tuple, rows)]
    columns = range(len(lines[0]))
    widths = [max(len(line[k]) for line in lines if k < left or len(line) == len(lines[0])) for k in columns]

    def shown(line: tuple[str, ...]) -> str:
        cells = [c.ljust(w) if k < left else c.rjust(w) for k, (c, w) in enumerate(zip(line, widths, strict=False))]
        return "  " + "  ".join(cells).rstrip()

    return "\n".join(map(shown, lines))


def show_case(case: Case, truth: Truth | None, rows: list[Row]) -> str:
    """One job: a line that says what it is, and a table."""
    text = case.text if len(case.parts) <= 3 else f"{len(case.parts)} parts, from {case.parts[0]} to {case.parts[-1]}"
    what = "epsilon" if case.target is None else "noise"
    asked = f"delta = {case.delta}" if case.target is None else f"noise for ({case.target:g}, {case.delta})"
    known = f"{what} = {truth.value:.12g} ({truth.source})" if truth else "no reference"
    head = ("library", "setting", "first", "median", "runs", what, "off by", "width", "memory", "times ours")
    body = [_cells(row, rows[0]) for row in rows]
    return f"{case.name}: {text}; {asked}; {known}\n{table(head, body)}\n"


def _cells(row: Row, our: Row) -> list[str]:
    start = [row["library"], row["setting"]]
    if "error" in row:
        shown = row["error"] if len(row["error"]) <= 90 else row["error"][:87] + "..."
        return [*start, f"{shown} [{row['megabytes']:.0f} MB]" if "megabytes" in row else shown]
    ratio = row["median"] / our["median"] if "median" in our and row is not our else None
    return [
        *start,
        seconds(row["first"]),
        seconds(row["median"]),
        str(row["runs"]),
        f"{row['upper']:.10g}",
        (f"{row['off']:+.1e}" + (" UNDER" if row["under"] else "")) if "off" in row else "",
        f"{row['width']:.1e}" if "width" in row else "",
        f"{row['megabytes']:.0f} MB",
        f"{ratio:.3g}" if ratio is not None else "",
    ]


def show_filters(rows: list[Row]) -> str:
    """The table of filters."""
    head = ("filter", "events", "first", "median", "runs", "memory")
    body = [
        [row["filter"], row["kind"], row["error"]]
        if "error" in row
        else [
            row["filter"],
            row["kind"],
            seconds(row["first"]),
            seconds(row["median"]),
            str(row["runs"]),
            f"{row['megabytes']:.0f} MB",
        ]
        for row in rows
    ]
    return f"Filters: {EVENTS} events made and admitted; no peer has filters\n{table(head, body)}\n"


# --- What follows -----------------------------------------------------------------------------------------------------


def label(row: Row) -> str:
    return f"{row['library']} {row['setting']}".strip()


def faster(row: Row, our: Row) -> bool:
    return row["median"] < our["median"] or row["first"] < our["first"]


def closer(row: Row, our: Row) -> bool:
    """Whether a row is nearer to the truth than ours, beyond what the truth itself may be off by; or narrower."""
    nearer = "off" in row and "off" in our and abs(row["off"]) + row["blur"] < abs(our["off"]) - row["blur"]
    return nearer or row.get("width", math.inf) < our.get("width", 0.0)


def compare(row: Row, our: Row) -> str:
    """Times and distances of a row and of ours, in words."""
    text = f"{seconds(row['median'])} (first call {seconds(row['first'])})"
    text += f", ours {seconds(our['median'])} ({seconds(our['first'])})"
    if "off" in row:
        text += f"; off by {row['off']:+.1e}{', which is under the truth' if row['under'] else ''}"
        text += f", ours {our['off']:+.1e}"
    return text


def answered(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if "upper" in row and math.isfinite(row["upper"])]


def losses(results: dict[str, list[Row]]) -> dict[str, list[str]]:
    """List, over all cases, where a peer did better than we, by the way in which it did."""
    found: dict[str, list[str]] = {
        "No answer from us, one from a peer": [],
        "A peer is faster, and at least as close": [],
        "A peer is faster, and further off": [],
        "A peer is slower, and closer": [],
    }
    none, both, loose, slow = found.values()
    for name, (our, *peers) in results.items():
        for row in answered(peers):
            if not answered([our]):
                none.append(f"{name}: {label(row)} answers {row['upper']:.8g}; ours: {our.get('error', 'infinite')}")
                continue
            worse = "off" not in row or abs(row["off"]) > abs(our["off"]) + row["blur"]
            if faster(row, our):
                (loose if worse else both).append(f"{name}: {label(row)}: {compare(row, our)}")
            elif closer(row, our):
                slow.append(f"{name}: {label(row)}: {compare(row, our)}")
    return found


def wrong_side(results: dict[str, list[Row]]) -> list[str]:
    """List every answer that promises more privacy than there is, ours included, and every bracket above the truth."""
    return [
        f"{name}: {label(row)}: {row['upper']:.10g} ({row['off']:+.1e}){' and its lower end too high' * row['over']}"
        for name, rows in results.items()
        for row in rows
        if row.get("under") or row.get("over")
    ]


def no_answer(results: dict[str, list[Row]]) -> list[str]:
    """List what ended without a finite number."""
    return [
        f"{name}: {label(row)}: {row.get('error', 'infinite')[:110]}"
        for name, rows in results.items()
        for row in rows
        if row not in answered(rows)
    ]


def goals(results: dict[str, list[Row]], filters: list[Row]) -> list[str]:
    """Say how the numbers stand to what was asked of this library."""
    lines = []
    for name, needed in (*((name, 20) for name in SGD), ("200 different events", 10)):
        our, *peers = results.get(name, [{}])
        for row in answered(peers) if answered([our]) else ():
            if row["setting"].startswith("PLD"):
                ratio = row["median"] / our["median"]
                lines.append(f"{name}: {ratio:.3g} times as fast as {label(row)}; asked: {needed}")
    sizes = [row["megabytes"] for row in (*(rows[0] for rows in results.values()), *filters)]
    lines += [f"memory, over all cases and filters: at most {max(sizes):.0f} MB; asked: 500 MB"] if sizes else []
    times = [row["first"] for row in filters if "first" in row]
    lines += [f"{EVENTS} events through the slowest filter: {seconds(max(times))}; asked: 1 s"] if times else []
    return lines


def listed(title: str, lines: list[str]) -> str:
    return "\n".join([f"{title}:", *(f"  {line}" for line in lines or ["nowhere in this run"]), ""])


# --- The command ------------------------------------------------------------------------------------------------------


def versions() -> dict[str, str]:
    import sitr

    found = {"Python": platform.python_version(), OURS: sitr.__version__}
    for name in (GOOGLE, MICROSOFT, "numpy", "scipy"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few cases, about two minutes")
    parser.add_argument("--only", metavar="WORD", help="only cases whose name has this word; `filters` for the filters")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results there as well")
    parser.add_argument("--timeout", type=int, default=60, metavar="SECONDS", help="for one library on one case")
    parser.add_argument("--memory", type=int, default=8, metavar="GIBIBYTES", help="address space of one process")
    parser.add_argument("--child", type=json.loads, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Run the jobs, print the tables, and then what they say."""
    options = arguments()
    if options.child:
        child(options.child)
        return
    limits = {"timeout": options.timeout, "memory": options.memory}
    started, references, word = time.perf_counter(), load_references(), options.only or ""
    print(", ".join(f"{name} {number}" for name, number in versions().items()))
    print("first: the first call after the imports; median: of the calls after it, with memos emptied between them")
    print("off by: of the upper end, against the reference; + is the safe side; width: of the bracket; both relative\n")
    results: dict[str, list[Row]] = {}
    truths: dict[str, Truth | None] = {}
    for case in CASES:
        if word in case.name and (case.quick or not options.quick):
            truths[case.name] = truth_of(case, references)
            results[case.name] = run_case(case, truths[case.name], limits)
            print(show_case(case, truths[case.name], results[case.name]), flush=True)
    filters = run_filters(limits, options.quick) if word in "filters" else []
    if filters:
        print(show_filters(filters))
    lost = losses(results)
    print(listed("What was asked", goals(results, filters)))
    print("WHERE WE LOSE\n")
    for title, lines in lost.items():
        print(listed(title, lines))
    print(listed("ON THE WRONG SIDE: answers under the truth, brackets beside it", wrong_side(results)))
    print(listed("NO ANSWER", no_answer(results)))
    print(f"The whole run took {seconds(time.perf_counter() - started)}.")
    if options.json:
        record = {
            "versions": versions(),
            "limits": limits,
            "truths": {name: truth and truth._asdict() for name, truth in truths.items()},
            "results": results,
            "filters": filters,
            "losses": lost,
            "wrong_side": wrong_side(results),
        }
        text = json.dumps(record, indent=1, ensure_ascii=False)
        options.json.write_text(text.replace("Infinity", '"inf"') + "\n")


if __name__ == "__main__":
    main()

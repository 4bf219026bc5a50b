"""One job, ours beside the peers: a count, a sum and a mean for each of 50 regions, from ten million rows."""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import processes
import queries_data

SCRIPTS = processes.HERE / "queries_peers"
REGIONS = 50
ROWS_A_PERSON = 10
NAME_OF_OURS = "sitr"


@dataclass(frozen=True)
class Library:
    """Who does the job, how it was told to, and on what its noise is looked at."""

    name: str
    script: Path
    setting: str
    environment: str | None = None  # of requirements-queries-<environment>.txt
    variants: tuple[str, ...] = ("public", "private")
    in_regions: tuple[str, ...] = ()  # variants where not five rows are kept, but five regions with one row in each
    noise: tuple[int, int, int] | None = None  # regions, rows in each, releases


def _peer(name: str, environment: str, setting: str, **rest: Any) -> Library:
    return Library(name, SCRIPTS / f"with_{environment}.py", setting, environment, **rest)


OURS = Library(NAME_OF_OURS, processes.HERE / "queries_sitr.py", "over DuckDB.", noise=(50, 600, 200))
OURS_ON_SPARK = Library(
    "sitr on Spark",
    processes.HERE / "queries_sitr_spark.py",
    "over Spark 4.0.",
    variants=("public",),
    noise=(50, 600, 3),
)
FLOORS = (
    Library(
        "DuckDB, no noise",
        SCRIPTS / "floor_duckdb.py",
        "the bounded aggregate alone: five random rows of each person, then count and sum by region.",
        variants=("public",),
    ),
    Library("Spark, no noise", SCRIPTS / "floor_spark.py", "the same in Spark 4.0.", variants=("public",)),
)
PAIRS = ((FLOORS[0], OURS), (FLOORS[1], OURS_ON_SPARK))
TURNS = 3  # of each of a pair
PEERS = (
    _peer(
        "OpenDP",
        "opendp",
        "truncate_per_group(5), len and sum with Laplace noise, ε halved between them; float costs; up to a million "
        "rows in a region and 50 regions declared, as float sums ask for it. Private: threshold on len, for δ.",
        noise=(50, 600, 200),
    ),
    _peer(
        "diffprivlib",
        "diffprivlib",
        "knows rows only: bounded by hand (NumPy), histogram and sum at ε/10 each for one row. Selects no keys.",
        variants=("public",),
        noise=(500, 600, 20),
    ),
    _peer(
        "SmartNoise SQL",
        "smartnoise",
        "pandas, max_ids 5, COUNT(*) and SUM at ε/2 each. Cannot declare keys: censor_dims off returns those of the "
        "table. Private: censor_dims on, ε/3 each.",
        noise=(500, 600, 10),
    ),
    _peer(
        "PipelineDP",
        "pipelinedp",
        "local backend, max_contributions 5, Laplace noise; COUNT, SUM and MEAN share a count and a sum about the "
        "middle, ε/2 each. Private: truncated geometric, ε/3 each, and five regions with one row in each.",
        in_regions=("private",),
        noise=(500, 600, 10),
    ),
    _peer(
        "Tumult Analytics",
        "tumult",
        "Spark 3.5 on this machine, MaxRowsPerID(5), count and sum at ε/2 each with Laplace noise. Private: get_groups "
        "with ε/10 and δ, the rest halved.",
        noise=(5000, 20, 1),
    ),
)


def run(folder: Path, options: Any) -> Iterator[dict[str, Any]]:
    """The table: each library on the same file, in turn."""
    rows = 100_000 if options.quick else options.rows
    path = queries_data.make(folder, rows, max(rows // ROWS_A_PERSON, 1), REGIONS)
    kept = _kept(path)
    print(
        f"{rows:,} rows, {rows // ROWS_A_PERSON:,} people, {REGIONS} regions; at most 5 rows a person "
        f"({kept['rows']:,} rows are left); ε = 1, δ = 1e-6 in all; {options.threads} threads\n"
    )
    print(
        f"{'':<18}{'regions':<9}{'seconds':>9}{'x ours':>8}{'x floor':>9}{'peak MB':>9}"
        f"{'count ±':>10}{'sum ±':>10}{'mean ±':>10}  {'runs':>4}"
    )
    chosen = [
        library
        for library in (FLOORS[0], OURS, *FLOORS[1:], OURS_ON_SPARK, *PEERS)  # what is compared with comes first
        if options.library is None or options.library.lower() in library.name.lower() or library in (OURS, FLOORS[0])
    ]
    table: list[dict[str, Any]] = []
    turns: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for library in chosen:
        for variant in library.variants:
            if library in FLOORS:
                turns |= _in_turn(library, next(ours for floor, ours in PAIRS if floor is library), path, options)
            runs = turns.get((library.name, variant), [])
            row = {"library": library.name, "regions": variant}
            row |= _measured(library, variant, path, folder, options, runs)
            _check(row, library, kept)
            _add_ratios(row, table)
            _show(row)
            table.append(row)
            yield row
    _explain(chosen, table)


def _kept(path: Path) -> dict[str, int]:
    """How many rows are left by either way of bounding: known without noise, whichever rows were drawn."""
    query = """
        select sum(least(n, 5)), sum(least(d, 5))
        from (select count(*) as n, count(distinct region) as d from read_parquet(?) group by person)
    """
    by_rows, by_regions = duckdb.execute(query, [str(path)]).fetchone()
    return {"rows": int(by_rows), "regions": int(by_regions)}


def _called(library: Library, variant: str, options: Any, mode: str, file: Path, *arguments: str) -> dict[str, Any]:
    python = processes.interpreter("queries", library.environment)
    command = [mode, str(file), "--variant", variant, *arguments, "--threads", str(options.threads)]
    return processes.run(python, library.script, command, threads=options.threads, timeout=options.timeout)


def _in_turn(floor: Library, ours: Library, path: Path, options: Any) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Runs of both, one after the other, so that whatever else the machine does slows down both alike."""
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {(one.name, "public"): [] for one in (floor, ours)}
    try:
        for _ in range(1 if options.quick else TURNS):
            for one in (floor, ours):
                found = _called(one, "public", options, "release", path, "--regions", str(REGIONS))
                runs[one.name, "public"].append(found)
    except processes.FailedError:
        return {}  # each is tried again, and told
    return runs


def _measured(
    library: Library, variant: str, path: Path, folder: Path, options: Any, runs: list[dict[str, Any]]
) -> dict[str, Any]:
    def call(mode: str, file: Path, *arguments: str) -> dict[str, Any]:
        return _called(library, variant, options, mode, file, *arguments)

    try:
        if not runs:
            runs = [call("release", path, "--regions", str(REGIONS))]
            if "skipped" in runs[0]:
                return {"failed": runs[0]["skipped"]}
            if not options.quick and runs[0]["seconds"] < options.repeat_below:
                runs += [call("release", path, "--regions", str(REGIONS)) for _ in range(2)]
        row = {
            "seconds": statistics.median(run["seconds"] for run in runs),
            "all_seconds": [run["seconds"] for run in runs],
            "start_seconds": statistics.median(run["start_seconds"] for run in runs),
            "peak_mb": max(run["peak_mb"] for run in runs),
            "answers": runs[0]["answers"],
        }
        if library.noise:
            regions, rows_each, releases = library.noise
            releases = max(releases // 10, 1) if options.quick else releases
            file = queries_data.small(folder, regions, rows_each)
            looked = call("noise", file, "--regions", str(regions), "--releases", str(releases))
            row |= _errors(file, looked["answers"], row["answers"])
    except processes.FailedError as reason:
        return {"failed": str(reason)}
    return row


def _errors(file: Path, releases: list[dict[str, Any]], answers: dict[str, Any]) -> dict[str, Any]:
    """Mean absolute errors: of count and sum as seen on the small table, of the mean as they make it in the large one.

    Each pair of errors, of a count and of the sum beside it, is put on the count and the sum of every region of the
    large table in turn; the mean is their ratio for every library here.
    """
    query = "select region, count(*), sum(cost) from read_parquet(?) group by region"
    truth = {region: (count, total) for region, count, total in duckdb.execute(query, [str(file)]).fetchall()}
    pairs = [
        (count - truth[region][0], total - truth[region][1])
        for release in releases
        for region, (count, total, _) in release.items()
    ]
    means = [
        abs((total + in_total) / (count + in_count) - total / count)
        for in_count, in_total in pairs
        for count, total, _ in answers.values()
        if count > 0 and count + in_count > 0
    ]
    return {
        "draws": len(pairs),
        "count_error": statistics.fmean(abs(count) for count, _ in pairs),
        "sum_error": statistics.fmean(abs(total) for _, total in pairs),
        "mean_error": statistics.fmean(means),
    }


def _check(row: dict[str, Any], library: Library, kept: dict[str, int]) -> None:
    """All regions are there, and their counts add up to what bounding leaves, but for noise."""
    if "failed" in row:
        return
    left = kept["regions" if row["regions"] in library.in_regions else "rows"]
    off = sum(count for count, _, _ in row["answers"].values()) - left
    row["counts_off_by"] = off
    spread = row.get("count_error", 0.0) * (2 * REGIONS) ** 0.5  # the mean size of Laplace noise is its scale
    faults = []
    if len(row["answers"]) != REGIONS:
        faults.append(f"{len(row['answers'])} of {REGIONS} regions")
    elif abs(off) > 6 * spread:
        faults.append(f"counts are off by {off:,.0f} in all, where noise explains {spread:,.0f}")
    row["faults"] = faults


def _add_ratios(row: dict[str, Any], table: list[dict[str, Any]]) -> None:
    alike = [other for other in table if other["regions"] == row["regions"]]
    ours = next((other for other in alike if other["library"] == NAME_OF_OURS), {})
    engine = FLOORS[1 if row["library"] == OURS_ON_SPARK.name else 0].name  # what it would cost without privacy
    floor = next((other for other in table if other["library"] == engine), {})
    for name, other in (("to_ours", ours), ("to_floor", floor)):
        if "seconds" in row and "seconds" in other:
            row[name] = row["seconds"] / other["seconds"]


def _show(row: dict[str, Any]) -> None:
    begin = f"{row['library']:<18}{'-' if 'no noise' in row['library'] else row['regions']:<9}"
    if "failed" in row:
        print(f"{begin}{row['failed']}", flush=True)
        return

    def cell(name: str, width: int, pattern: str) -> str:
        return f"{format(row[name], pattern) if name in row else '-':>{width}}"

    print(
        begin
        + cell("seconds", 9, ".2f")
        + cell("to_ours", 8, ".1f")
        + cell("to_floor", 9, ".1f")
        + cell("peak_mb", 9, ",.0f")
        + cell("count_error", 10, ",.2f")
        + cell("sum_error", 10, ",.0f")
        + cell("mean_error", 10, ".2g")
        + f"{len(row['all_seconds']):>6}"
        + "".join(f"  {fault}" for fault in row["faults"]),
        flush=True,
    )


def _explain(libraries: list[Library], table: list[dict[str, Any]]) -> None:
    print("\n±: mean absolute error that noise makes in one region, beside the same answer without noise.")
    for library in libraries:
        rows = [row for row in table if row["library"] == library.name]
        drawn = {row["draws"] for row in rows if "draws" in row}
        starts = [row["start_seconds"] for row in rows if row.get("start_seconds")]
        print(
            f"  {library.name}: {library.setting}"
            + (f" Noise seen in {' and '.join(f'{number:,}' for number in sorted(drawn))} draws." if drawn else "")
            + (f" Spark started in {max(starts):.0f} s, which is not in the time." if starts else "")
        )
    lost = list(_losses(table))
    if any(row["library"] == NAME_OF_OURS and "seconds" in row for row in table):
        print("\nWhere we lose:" if lost else "\nNo peer was faster or closer.")
        for line in lost:
            print(f"  {line}")


def _losses(table: list[dict[str, Any]]) -> Iterator[str]:
    peers = {library.name for library in PEERS}
    for ours in table:
        if ours["library"] != NAME_OF_OURS or "seconds" not in ours:
            continue
        for row in table:
            if row["library"] in peers and row["regions"] == ours["regions"] and "seconds" in row:
                for what in ("seconds", "peak_mb", "count_error", "sum_error", "mean_error"):
                    # A hundredth is the accuracy of an error that is seen in ten thousand draws.
                    if what in row and what in ours and row[what] < ours[what] * 0.98:
                        where = f"{row['library']}, {row['regions']} regions"
                        yield f"{where}, {what}: {row[what]:.4g}, ours {ours[what]:.4g}"

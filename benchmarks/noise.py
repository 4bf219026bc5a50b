"""Our samplers beside OpenDP's and NumPy's: draws per second, what a new parameter costs, and what the clock tells.

NumPy's generators are fast and not private: neither exact nor unpredictable. They are the speed that can be had.

    make bench ROOM=mechanisms
    python benchmarks/noise.py --quick
"""

import argparse
import gc
import math
import secrets
import statistics
import time
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import stats

from sitr.mechanisms import gaussian, laplace
from sitr.mechanisms.randomness import SYSTEM
from sitr.mechanisms.samplers import draws
from sitr.mechanisms.samplers.intervals import exp_interval

try:
    import opendp.prelude as dp

    dp.enable_features("contrib")
except ImportError:  # then its columns are empty
    dp = None

Row = dict[str, Any]

LAPLACE, GAUSSIAN = "discrete Laplace", "discrete Gaussian"
SCALES = (1, 10, 1000, 10**6)
ASKED_SCALES = (1, 10, 1000)
TIMES = 5  # the best of so many
OURS_AT_ONCE, THEIRS_AT_ONCE = 1_000_000, 20_000  # OpenDP's time per draw does not depend on how many there are
ALARM = 1e-9  # false alarms of one test
UNSAFE = np.random.default_rng()

# --- Speed ------------------------------------------------------------------------------------------------------------


def cpu(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def rate(call: Callable[[], Any], count: int) -> float:
    """Draws per second of CPU time: the best of a few, after one that fills all tables."""
    call()
    return count / min(cpu(call) for _ in range(TIMES))


def our_draws(law: str, scale: int, count: int) -> Any:
    if law == LAPLACE:
        return draws.discrete_laplace(Fraction(scale), count, SYSTEM)
    return draws.discrete_gaussian(Fraction(scale) ** 2, count, SYSTEM)


def numpy_draws(law: str, scale: int, count: int) -> Any:
    return UNSAFE.laplace(0, scale, count) if law == LAPLACE else UNSAFE.normal(0, scale, count)


def opendp_mechanism(law: str, scale: float, kind: str, vector: bool) -> Callable[[Any], Any]:
    """OpenDP's mechanism: vectors draw faster than numbers, whole numbers faster than floats."""
    atom = dp.atom_domain(T=kind, nan=False) if kind == "f64" else dp.atom_domain(T=kind)
    if law == LAPLACE:
        metric = dp.l1_distance(T=kind) if vector else dp.absolute_distance(T=kind)
        return dp.m.make_laplace(dp.vector_domain(atom) if vector else atom, metric, scale=float(scale))
    metric = dp.l2_distance(T="f64") if vector else dp.absolute_distance(T="f64")
    return dp.m.make_gaussian(dp.vector_domain(atom) if vector else atom, metric, scale=float(scale))


def opendp_rate(law: str, scale: float, kind: str, count: int) -> float | None:
    """The faster of a list and an array of zeros."""
    if dp is None:
        return None
    made = opendp_mechanism(law, scale, kind, vector=True)
    zeros = np.zeros(count, dtype=np.int64 if kind == "i64" else np.float64)
    return max(rate(lambda value=value: made(value), count) for value in (zeros, zeros.tolist()))


def speed(quick: bool) -> list[Row]:
    """Draws per second, at every scale, and of whole mechanisms for floats."""
    count, theirs = (OURS_AT_ONCE // 10, THEIRS_AT_ONCE // 10) if quick else (OURS_AT_ONCE, THEIRS_AT_ONCE)
    rows = []
    for law in (LAPLACE, GAUSSIAN):
        for scale in SCALES:
            rows.append(
                {
                    "law": law,
                    "scale": scale,
                    "asked": scale in ASKED_SCALES,
                    "slack": 5 if law == GAUSSIAN and scale == 1000 else 2,
                    "ours": rate(lambda law=law, scale=scale: our_draws(law, scale, count), count),
                    "opendp": opendp_rate(law, scale, "i64", theirs),
                    "numpy": rate(lambda law=law, scale=scale: numpy_draws(law, scale, count), count),
                }
            )
        made = (laplace if law == LAPLACE else gaussian)(scale=1.0, sensitivity=1.0, length=count)
        zeros = np.zeros(count)
        rows.append(
            {
                "law": f"{law.split()[1]} mechanism, floats",
                "scale": 1.0,
                "asked": False,
                "slack": 2,
                "ours": rate(lambda made=made, zeros=zeros: made.release(zeros), count),
                "opendp": opendp_rate(law, 1.0, "f64", theirs),
                "numpy": rate(lambda law=law, zeros=zeros: zeros + numpy_draws(law, 1, count), count),
            }
        )
    return rows


def show_speed(rows: list[Row]) -> str:
    head = ("noise", "scale", "ours", "OpenDP", "NumPy", "ours/OpenDP", "NumPy/ours", "asked")
    body = []
    for row in rows:
        theirs = row["opendp"]
        asked = f"≥ 100, ≤ {row['slack']}: {'met' if met(row) else 'MISSED'}" if row["asked"] else ""
        body.append(
            (
                row["law"],
                f"{row['scale']:g}",
                f"{row['ours'] / 1e6:.1f}",
                f"{theirs / 1e6:.3f}" if theirs else "",
                f"{row['numpy'] / 1e6:.1f}",
                f"{row['ours'] / theirs:.0f}" if theirs else "",
                f"{row['numpy'] / row['ours']:.2f}",
                asked,
            )
        )
    return f"Million draws per second of CPU time, best of {TIMES}\n{table(head, body, 1)}\n"


def met(row: Row) -> bool:
    fast = row["opendp"] is None or row["ours"] >= 100 * row["opendp"]
    return bool(fast and row["numpy"] <= row["slack"] * row["ours"])


# --- A new parameter --------------------------------------------------------------------------------------------------


def forget() -> None:
    """Empty the tables, so that the next draw has a new parameter."""
    for memo in (draws._coin_table, draws._digit_table, draws._two_sided_table, draws._normal_table):
        memo.cache_clear()
    draws._half_normal_table.cache_clear()
    exp_interval.cache_clear()


def setup(quick: bool) -> list[Row]:
    """CPU time of the first draw with a new parameter, of the first 100,000, and of one draw later."""
    rows = []

    def median(call: Callable[[], Any], before: Callable[[], None] = lambda: None) -> float:
        times = []
        for _ in range(3 if quick else 9):
            before()
            times.append(cpu(call))
        return statistics.median(times)

    def one(call: Callable[[], Any]) -> float:
        call()
        return cpu(lambda: [call() for _ in range(1000)]) / 1000

    for law in (LAPLACE, GAUSSIAN):
        for scale in SCALES:
            row: Row = {
                "law": law,
                "scale": scale,
                "first": median(lambda law=law, scale=scale: our_draws(law, scale, 1), forget),
                "many": median(lambda law=law, scale=scale: our_draws(law, scale, 100_000), forget),
                "one": one(lambda law=law, scale=scale: our_draws(law, scale, 1)),
                "numpy": one(lambda law=law, scale=scale: numpy_draws(law, scale, 1)),
            }
            if dp is not None:
                number = opendp_mechanism(law, scale, "i64", vector=False)
                row["opendp first"] = median(
                    lambda law=law, scale=scale: opendp_mechanism(law, scale, "i64", vector=False)(0)
                )
                row["opendp one"] = one(lambda number=number: number(0))
            rows.append(row)
    return rows


def show_setup(rows: list[Row]) -> str:
    head = ("noise", "scale", "first", "first 100,000", "one later", "OpenDP first", "OpenDP later", "NumPy one")
    keys = ("first", "many", "one", "opendp first", "opendp one", "numpy")
    body = [(row["law"], f"{row['scale']:g}", *(duration(row.get(key)) for key in keys)) for row in rows]
    text = "CPU time of the first draw with a new parameter (our tables are made then), and of one draw later"
    return f"{text}\n{table(head, body, 1)}\n"


# --- The clock --------------------------------------------------------------------------------------------------------


def twin_coin(x: Fraction) -> bool:
    """Bernoulli(e^{-x}), 0 ≤ x ≤ 1, by Canonne, Kamath and Steinke (2020): its work is random."""
    k = 1
    while secrets.randbelow(k * x.denominator) < x.numerator:
        k += 1
    return k % 2 == 1


def twin_laplace(scale: int) -> int:
    """Their discrete Laplace: its work grows with what it draws."""
    while True:
        low = secrets.randbelow(scale)
        if not twin_coin(Fraction(low, scale)):
            continue
        high = 0
        while twin_coin(Fraction(1)):
            high += 1
        found, negative = low + scale * high, secrets.randbelow(2)
        if found or not negative:
            return -found if negative else found


def twin_gaussian(sigma: int) -> int:
    """Their discrete Gaussian, by rejection from the discrete Laplace."""
    t = sigma + 1
    while True:
        found = twin_laplace(t)
        x = (abs(found) - Fraction(sigma**2, t)) ** 2 / (2 * sigma**2)
        if all(twin_coin(Fraction(1)) for _ in range(math.floor(x))) and twin_coin(x - math.floor(x)):
            return found


def clocked(name: str, draw: Callable[[], Any], count: int) -> Row:
    """Time single draws and set the times, all of them, against the size of what was drawn."""
    for _ in range(200):
        draw()
    times, found = np.empty(count), np.empty(count)
    gc.disable()
    for place in range(count):
        start = time.perf_counter_ns()
        drawn = draw()
        times[place] = time.perf_counter_ns() - start
        found[place] = drawn
    gc.enable()
    size = np.abs(found)
    order = np.argsort(size, kind="stable")
    groups = [order[: count // 4], order[count // 4 : 3 * count // 4], order[3 * count // 4 :], order[-count // 100 :]]
    ranked = float(stats.spearmanr(times, size).statistic)
    slow = np.argsort(times)[-count // 100 :]
    return {
        "name": name,
        "count": count,
        "pearson": float(np.corrcoef(times, size)[0, 1]),
        "spearman": ranked,
        # Draws are independent of each other, so whatever the clock does a rank correlation with it is normal.
        "p": float(2 * stats.norm.sf(abs(ranked) * math.sqrt(count - 1))),
        "medians": [float(np.median(times[group])) / 1000 for group in groups],
        "slowest": float(size[slow].mean() / size.mean()),
    }


def clock(quick: bool) -> list[Row]:
    """Time single draws: our samplers and mechanisms, a twin that rejects one at a time, and OpenDP."""
    ours, twin, theirs = (4000, 2000, 1000) if quick else (100_000, 30_000, 20_000)

    def single(call: Callable[..., Any], parameter: Fraction) -> Callable[[], Any]:
        return lambda: call(parameter, 1, SYSTEM)[0]

    count, average = (make(scale=10.0, sensitivity=1, integers=True) for make in (laplace, gaussian))
    of_float = laplace(scale=10.0, sensitivity=1.0)
    rows = [
        clocked("ours, Laplace 10", single(draws.discrete_laplace, Fraction(10)), ours),
        clocked("ours, Laplace 1000", single(draws.discrete_laplace, Fraction(1000)), ours),
        clocked("ours, Gaussian 10", single(draws.discrete_gaussian, Fraction(100)), ours),
        clocked("ours, Gaussian 10,000", single(draws.discrete_gaussian, Fraction(10**8)), ours),
        clocked("ours, laplace().release(0)", lambda: count.release(0).value, ours),
        clocked("ours, laplace().release(0.0)", lambda: of_float.release(0.0).value, ours),
        clocked("ours, gaussian().release(0)", lambda: average.release(0).value, ours),
        clocked("scalar twin, Laplace 10", lambda: twin_laplace(10), twin),
        clocked("scalar twin, Gaussian 10", lambda: twin_gaussian(10), twin),
    ]
    for law, name in ((LAPLACE, "OpenDP, Laplace 10"), (GAUSSIAN, "OpenDP, Gaussian 10")) if dp is not None else ():
        made = opendp_mechanism(law, 10, "i64", vector=False)
        rows.append(clocked(name, lambda made=made: made(0), theirs))
    return rows


def show_clock(rows: list[Row]) -> str:
    head = ("draws", "count", "Pearson", "rank", "p", "median µs at the smallest ¼, middle, largest ¼, 1 %", "slow")
    body = [
        (
            row["name"],
            str(row["count"]),
            f"{row['pearson']:+.4f}",
            f"{row['spearman']:+.4f}",
            f"{row['p']:.1e}{' LEAKS' if row['p'] < ALARM else ''}",
            " / ".join(f"{one:.2f}" for one in row["medians"]),
            f"{row['slowest']:.2f}",
        )
        for row in rows
    ]
    text = "Correlation of the time of a single draw with |noise|, wall clock, nothing trimmed"
    return f"{text}; slow: mean |noise| of the slowest 1 % over that of all\n{table(head, body, 1)}\n"


# --- Words ------------------------------------------------------------------------------------------------------------


def duration(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value * 1e6:.3g} µs" if value < 1e-3 else f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"


def table(head: Iterable[str], rows: Iterable[Iterable[str]], left: int) -> str:
    """Align columns, the first `left` to the left."""
    lines = [tuple(head), *map(tuple, rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(lines[0]))]

    def shown(line: tuple[str, ...]) -> str:
        cells = (c.ljust(w) if k < left else c.rjust(w) for k, (c, w) in enumerate(zip(line, widths, strict=True)))
        return "  " + "  ".join(cells).rstrip()

    return "\n".join(map(shown, lines))


def losses(speeds: list[Row], setups: list[Row], clocks: list[Row]) -> list[str]:
    """Say where another does better, from the same numbers."""
    lines = []
    for row in speeds:
        name = f"{row['law']} {row['scale']:g}"
        if row["asked"] and not met(row):
            lines.append(f"{name}: what was asked is MISSED")
        if row["numpy"] > row["ours"]:
            lines.append(f"{name}: NumPy draws {row['numpy'] / row['ours']:.2f} times as fast")
        if row["opendp"] and row["opendp"] > row["ours"]:
            lines.append(f"{name}: OpenDP draws {row['opendp'] / row['ours']:.2f} times as fast")
    for row in setups:
        name = f"{row['law']} {row['scale']:g}"
        if row.get("opendp first", math.inf) < row["first"]:
            ratio, even = row["first"] / row["opendp first"], row["first"] / row["opendp one"]
            text = f"{name}: the first draw of a new parameter takes {duration(row['first'])}"
            lines.append(f"{text}, {ratio:.3g} times OpenDP's; OpenDP has then drawn {even:.0f}")
        if row["numpy"] < row["one"]:
            lines.append(f"{name}: one draw by itself takes {row['one'] / row['numpy']:.3g} times NumPy's")
        if row.get("opendp one", math.inf) < row["one"]:
            lines.append(f"{name}: one draw by itself takes {row['one'] / row['opendp one']:.3g} times OpenDP's")
    lines += [f"{row['name']}: the clock tells of the noise" for row in clocks if ours_leaks(row)]
    return lines


def ours_leaks(row: Row) -> bool:
    return bool(row["name"].startswith("ours") and row["p"] < ALARM)


def run(quick: bool) -> dict[str, list[Row]]:
    """Measure all, printing each table as it is ready, and then where we lose."""
    speeds = speed(quick)
    print(show_speed(speeds), flush=True)
    setups = setup(quick)
    print(show_setup(setups), flush=True)
    clocks = clock(quick)
    print(show_clock(clocks), flush=True)
    print("WHERE WE LOSE")
    print("\n".join(f"  {line}" for line in losses(speeds, setups, clocks) or ["nowhere in this run"]), flush=True)
    return {"speed": speeds, "setup": setups, "clock": clocks}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer draws, about twenty seconds")
    run(parser.parse_args().quick)

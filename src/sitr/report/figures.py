"""The figures of the seeds, drawn from `numbers`: SVG and PNG for the eye, CSV for everyone else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _validate
from ..accounting import Gaussian
from ..display import rounded_up
from ..pictures import (
    BLACK,
    BLUE,
    FORMATS,
    GREEN,
    GREY,
    ORANGE,
    SAID,
    SKY,
    VERMILION,
    drawn,
    empty_figure,
    require_matplotlib,
)
from . import numbers
from .numbers import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def write_figures(
    folder: str | Path, formats: Iterable[str] = FORMATS, progress: Callable[[str], object] | None = None
) -> list[Path]:
    """Write every figure of `FIGURES` to a folder, as pictures and as the CSV of its numbers.

    Args:
        folder: Where to; it is made if it is not there.
        formats: Of the pictures: "svg", "png", or both.
        progress: Called with the name of each figure when it is written.

    Returns:
        The files, in the order they were written.

    Raises:
        MissingExtra: matplotlib is not installed.

    Example:
        >>> len(FIGURES)
        10
    """
    chosen = [_validate.choice("formats", name, FORMATS) for name in formats]
    require_matplotlib()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for name, figure in FIGURES.items():
        written += _write(folder / name, figure, chosen)
        if progress is not None:
            progress(name)
    return written


class Picture(NamedTuple):
    """A figure: the tables it shows, by the end of their file names, how to draw them, and whether Markdown is made."""

    tables: dict[str, Callable[[], Table]]
    draw: Callable[..., Figure]
    markdown: bool = False


def _write(path: Path, picture: Picture, formats: Iterable[str]) -> list[Path]:
    tables = {ending: make() for ending, make in picture.tables.items()}
    written = []
    for ending, table in tables.items():
        written.append(path.with_name(f"{path.name}{ending}.csv"))
        written[-1].write_text(table.to_csv(), encoding="utf-8")
        if picture.markdown:
            written.append(path.with_name(f"{path.name}{ending}.md"))
            written[-1].write_text(table.to_markdown() + "\n", encoding="utf-8")
    drawing = drawn(lambda: picture.draw(*tables.values()))
    for name in formats:
        written.append(path.with_name(f"{path.name}.{name}"))
        drawing.save(written[-1])
    return written


def write_pictures(
    folder: str | Path, pictures: Mapping[str, Callable[[], Figure]], formats: Iterable[str] = FORMATS
) -> list[Path]:
    """Draw pictures into a folder, which is made if it is not there; return the files in the order they were written.

    Raises:
        InvalidArgument: A format is none.
        MissingExtra: matplotlib is not installed.
    """
    chosen = [_validate.choice("formats", name, FORMATS) for name in formats]
    require_matplotlib()
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, draw in pictures.items():
        drawing = drawn(draw)
        for form in chosen:
            written.append(folder / f"{name}.{form}")
            drawing.save(written[-1])
    return written


def _legend(figure: Figure, columns: int, *axes: Axes) -> None:
    """One legend for the whole figure, under the axes, where it covers nothing."""
    entries = [entry for panel in axes for entry in zip(*panel.get_legend_handles_labels(), strict=True)]
    handles, labels = [handle for handle, _ in entries], [label for _, label in entries]
    figure.legend(handles, labels, loc="outside lower center", ncols=columns)


def _note(axes: Axes, text: str, x: float, y: float, **options: Any) -> None:
    axes.text(x, y, text, transform=axes.transAxes, fontsize=9, color=SAID, **options)


def _draw_rdp_table(table: Table) -> Figure:
    """Table II: formulas as the seed has them, numbers from the accountant."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 3.1))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.text(
        0.02,
        0.93,
        "DP and Rényi DP of the basic mechanisms (Mironov 2017, Table II)",
        fontsize=13,
        weight="bold",
        va="center",
    )
    formulas = (
        (
            r"$\left|\ln\frac{p}{1-p}\right|$",
            r"$\frac{1}{\alpha-1}\ln\left[p^{\alpha}(1-p)^{1-\alpha}+(1-p)^{\alpha}p^{1-\alpha}\right]$",
            r"$(2p-1)\ln\frac{p}{1-p}$",
        ),
        (
            r"$1/\lambda$",
            r"$\frac{1}{\alpha-1}\ln\left[\frac{\alpha}{2\alpha-1}e^{(\alpha-1)/\lambda}"
            r"+\frac{\alpha-1}{2\alpha-1}e^{-\alpha/\lambda}\right]$",
            r"$1/\lambda+e^{-1/\lambda}-1$",
        ),
        (r"$\infty$", r"$\alpha/(2\sigma^2)$", r"$1/(2\sigma^2)$"),
    )
    heads = ("Mechanism", "DP: ε", "Rényi DP: ε(α), α > 1", "α = 1", "example", "ε(1)", "ε(2)", "ε(10)", "ε(∞)")
    places = (0.02, 0.165, 0.255, 0.545, 0.685, 0.775, 0.83, 0.885, 0.94)
    for place, head in zip(places, heads, strict=True):
        axes.text(place, 0.78, head, weight="bold", va="center")
    for height, width in ((0.85, 1.2), (0.71, 0.7), (0.05, 1.2)):
        axes.plot((0.02, 0.98), (height, height), color=BLACK, linewidth=width)
    for row, cells, height in zip(table.rows, formulas, (0.59, 0.37, 0.15), strict=True):
        shown = (row[0], *cells, row[4], *("∞" if math.isinf(v) else f"{v:.3f}" for v in row[5:]))
        for i, (place, text) in enumerate(zip(places, shown, strict=True)):
            axes.text(place, height, text, fontsize=13 if i in (1, 2, 3) else 10, va="center")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    return figure


def _draw_rdp_curves(table: Table) -> Figure:
    figure, axes = empty_figure(
        "Rényi differential privacy of the basic mechanisms (Mironov 2017, Figure 1)", (10, 3.9), 1, 3
    )
    panels = (
        ("randomized_response", "Randomized response", "p"),
        ("laplace", "Laplace noise", "λ"),
        ("gaussian", "Gaussian noise", "σ"),
    )
    for panel, (mechanism, title, letter) in zip(axes[0], panels, strict=True):
        part = table.where(mechanism=mechanism)
        styles = zip(
            dict.fromkeys(part["parameter"].tolist()), (BLUE, VERMILION, GREEN), ("-", "--", "-."), strict=True
        )
        for parameter, colour, dash in styles:
            curve = part.where(parameter=parameter)
            panel.plot(curve["alpha"], curve["epsilon"], dash, color=colour, label=f"{letter} = {parameter:g}")
        panel.set(title=title, xlabel="order α", ylim=(0, None), xlim=(1, 10))
        panel.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=3, columnspacing=1.2, handlelength=2)
    axes[0, 0].set_ylabel("Rényi divergence ε(α), nats")
    return figure


def _draw_bad_outcomes(table: Table) -> Figure:
    figure, axes = empty_figure(
        "A bad outcome S after n self-compositions (Mironov 2017, Figure 2, and the exact curve)",
        (10, 6.6),
        2,
        3,
        sharex=True,
    )
    bounds = (
        ("naive", "naïve: nε", GREY, ":"),
        ("generic_rdp", "generic RDP (Prop. 4)", ORANGE, "-."),
        ("advanced", "advanced composition, best δ", BLUE, "--"),
        ("rdp", "RDP curve, best α (Prop. 10)", GREEN, "-"),
        ("exact_upper", "exact", BLACK, "-"),
    )
    rows = (("randomized_response", "Randomized response, p = 0.52"), ("laplace", "Laplace noise, λ = 20"))
    for line, (mechanism, words) in zip(axes, rows, strict=True):
        for panel, p in zip(line, numbers.PROBABILITIES, strict=True):
            part = table.where(mechanism=mechanism, probability=p)
            for column, label, colour, dash in bounds:
                panel.semilogy(part["count"], part[column], dash, color=colour, label=label)
            panel.set_ylim(0.95, 1.3 / p)
        line[0].set_ylabel(f"{words}\nPr[f(D′) ∈ S] / Pr[f(D) ∈ S]")
    for panel, p in zip(axes[0], numbers.PROBABILITIES, strict=True):
        panel.set_title(rf"Pr[f(D) ∈ S] = $10^{{{round(math.log10(p))}}}$")
    for panel in axes[-1]:
        panel.set(xlabel="number of compositions n", xlim=(0, None))
    _legend(figure, 5, axes[0, 0])
    return figure


def _draw_advanced_composition(table: Table) -> Figure:
    figure, axes = empty_figure(
        "Advanced composition halved (Dwork and Rothblum 2016): k steps of ε = 0.25, at δ = 10⁻⁶", (10, 4.6), 1, 2
    )
    curves = (
        ("basic", "basic: kε", GREY, ":"),
        ("advanced", "Dwork–Rothblum–Vadhan", VERMILION, "--"),
        ("advanced_halved", "Theorem 1: mean loss halved", BLUE, "-."),
        ("advanced_tanh", "mean loss ε tanh(ε/2)", SKY, "-"),
        ("exact_upper", "exact, worst steps", BLACK, "-"),
        ("laplace", "exact, Laplace noise", GREEN, "-"),
    )
    left, right = axes[0]
    for column, label, colour, dash in curves:
        left.plot(table["count"], table[column], dash, color=colour, label=label)
        right.plot(table["count"], table[column] / table["exact_upper"], dash, color=colour)
    dots = slice(8, None, 8)
    optimal = table["kairouz_oh_viswanath"]
    left.plot(table["count"][dots], optimal[dots], "o", color=BLACK, ms=4, mfc="white", label="Kairouz–Oh–Viswanath")
    right.plot(table["count"][dots], (optimal / table["exact_upper"])[dots], "o", color=BLACK, ms=4, mfc="white")
    left.set(title="total ε", xlabel="number of steps k", ylabel="ε, nats", ylim=(0, 60), xlim=(0, None))
    right.set(title="relative to the exact ε of the worst steps", xlabel="number of steps k", ylabel="ratio")
    right.set(ylim=(0.85, 2.5), xlim=(0, None))
    _legend(figure, 4, left)
    return figure


def _draw_counting_queries(table: Table, ratios: Table) -> Figure:
    figure, axes = empty_figure("Noise on n counting queries, at ε = 0.5 (Dwork and Rothblum 2016)", (10, 4.6), 1, 2)
    curves = (
        ("pure", "pure ε-DP: Laplace noise", GREY, ":"),
        ("classical", r"(ε,δ)-DP, classical: $\sqrt{2n\,\ln(1.25/\delta)}\,/\varepsilon$", VERMILION, "--"),
        ("tail", r"(ε,δ)-DP, tail bound: $\sqrt{2n\,\ln(1/\delta)}\,/\varepsilon$", ORANGE, "-."),
        ("exact", "(ε,δ)-DP, exact calibration", BLACK, "-"),
        ("cdp", r"$(\varepsilon(e^{\varepsilon}-1)/2,\ \varepsilon)$-CDP: $\sqrt{n}\,/\varepsilon$", BLUE, "-"),
    )
    left, right = axes[0]
    for column, label, colour, dash in curves:
        left.loglog(table["count"], table[column], dash, color=colour, label=label)
        if column in ratios.columns:
            right.semilogx(ratios["delta"], ratios[column], dash, color=colour)
    right.semilogx(ratios["delta"], [1.0] * len(ratios.rows), color=BLUE)
    left.set(title="noise for each query, δ = 10⁻⁶", xlabel="number of queries n")
    left.set_ylabel("standard deviation, people")
    right.set(title="relative to CDP, any n", xlabel="δ", ylabel="ratio of standard deviations", ylim=(0, None))
    right.invert_xaxis()
    spent = Gaussian(noise_multiplier=1 / numbers.COUNTING_EPSILON).epsilon(numbers.DELTA).upper
    _note(right, f"the CDP noise alone is ({rounded_up(spent)}, $10^{{-6}}$)-DP", 0.97, 0.05, ha="right")
    _legend(figure, 3, left)
    return figure


def _draw_query_allowances(table: Table) -> Figure:
    title = "What each of k queries may have, ε = 1 and δ = 10⁻⁶ in all (Dwork and Rothblum 2016)"
    figure, axes = empty_figure(title, (10, 4.6), 1, 2)
    curves = (
        ("basic", "basic: ε/k", GREY, ":"),
        ("advanced", "Dwork–Rothblum–Vadhan", VERMILION, "--"),
        ("advanced_tanh", "mean loss ε tanh(ε/2)", SKY, "-"),
        ("classical", r"rule of thumb: $\varepsilon\,/\sqrt{2k\,\ln(1/\delta)}$", ORANGE, "-."),
        ("exact", "exact, any pure queries", BLACK, "-"),
        ("laplace", "exact, Laplace noise", GREEN, "--"),
    )
    left, right = axes[0]
    for column, label, colour, dash in curves:
        left.loglog(table["count"], table[column], dash, color=colour, label=label)
        right.semilogx(table["count"], table[column] / table["exact"], dash, color=colour)
    left.set(title="ε of each query", xlabel="number of queries k", ylabel="ε, nats")
    right.set(title="relative to the exact ε", xlabel="number of queries k", ylabel="ratio", ylim=(0, None))
    _legend(figure, 3, left)
    return figure


def _draw_loss_tails(table: Table) -> Figure:
    title = "How probable a privacy loss above x is: 100 releases with Laplace noise, λ = 10"
    figure, axes = empty_figure(title, (10, 4.7))
    curves = (
        ("concentrated", r"concentrated DP: $e^{-t^2/2}$ (Dwork and Rothblum 2016)", VERMILION, "--"),
        ("renyi", "Rényi curve, best order", BLUE, "-."),
        ("upper", "all neighbours and analysts", BLACK, "-"),
        ("pair_upper", "neighbours farthest apart, exact", GREEN, "-"),
        ("delta", "δ(x)", GREY, ":"),
    )
    for column, label, colour, dash in curves:
        axes[0, 0].semilogy(table["loss"], table[column], dash, color=colour, label=label)
    axes[0, 0].set(xlabel="privacy loss x, nats", ylabel="probability of a larger one", xlim=(0, None), ylim=(1e-13, 2))
    _legend(figure, 3, axes[0, 0])
    return figure


def _draw_maximally_divergent(profiles: Table, means: Table) -> Figure:
    title = "Any pair, reduced to one with losses −ε, 0 and ε alone (Dwork and Rothblum 2016)"
    figure, axes = empty_figure(title, (10, 4.7), 1, 2)
    left, right = axes[0]
    curves = (
        ("antipodal", "no outcome of loss 0: randomized response", BLACK, "-"),
        ("laplace_reduced", "Laplace noise, reduced", BLUE, "--"),
        ("laplace", "Laplace noise", BLUE, "-"),
        ("exponential_reduced", "exponential mechanism, reduced", GREEN, "--"),
        ("exponential", "exponential mechanism", GREEN, "-"),
    )
    for column, label, colour, dash in curves:
        left.plot(profiles["epsilon"], profiles[column], dash, color=colour, label=label)
        if column in means.columns:
            right.semilogx(means["epsilon"], means[column] / means["epsilon"], dash, color=colour)
    for column, label, colour, dash in (
        ("advanced", r"bound of 2010: $\varepsilon(e^{\varepsilon}-1)$", VERMILION, ":"),
        ("halved", r"halved: $\varepsilon(e^{\varepsilon}-1)/2$", ORANGE, "-."),
    ):
        right.semilogx(means["epsilon"], means[column] / means["epsilon"], dash, color=colour, label=label)
    left.set(title="privacy profile, pure ε = 1", xlabel="ε, nats", ylabel="δ", xlim=(0, None), ylim=(0, None))
    right.set(title="mean loss, in parts of ε", xlabel="pure ε, nats", ylabel="mean loss / ε", ylim=(0, 1.1))
    _legend(figure, 3, left, right)
    return figure


def _draw_group_privacy(table: Table) -> Figure:
    figure, axes = empty_figure("Group privacy: ε = 1 at δ = 10⁻⁶ for one person, s people together", (10, 4.7), 1, 2)
    left, right = axes[0]
    curves = (
        ("epsilon_gaussian", "Gaussian noise, exact", BLUE, "-", "o"),
        ("epsilon_zcdp", "its zCDP s²ρ, and CDP (s²μ, sτ)", SKY, "--", "s"),
        ("epsilon_sampled", "sampled Gaussian noise, exact", GREEN, ":", "^"),
        ("epsilon_pure", "pure ε-DP: sε", GREY, "-", "D"),
    )
    for column, label, colour, dash, mark in curves:
        left.plot(table["size"], table[column], dash, marker=mark, ms=4.5, color=colour, label=label)
    left.set(title="ε of the group, at δ = 10⁻⁶", xlabel="group size s", ylabel="ε, nats", ylim=(0, None))
    curves = (
        ("delta_loose", r"any (ε,δ)-DP, older bound: $s\,e^{(s-1)\varepsilon}\delta$", VERMILION, "--", "v"),
        ("delta_any", r"any (ε,δ)-DP, tight: $\delta\,(e^{s\varepsilon}-1)/(e^{\varepsilon}-1)$", BLACK, "-", "s"),
        ("delta_gaussian", "", BLUE, "-", "o"),
        ("delta_sampled", "", GREEN, ":", "^"),
    )
    for column, label, colour, dash, mark in curves:
        right.semilogy(table["size"], table[column], dash, marker=mark, ms=4.5, color=colour, label=label or None)
    right.set(title="δ of the group, at ε = s", xlabel="group size s", ylabel="δ")
    for panel in (left, right):
        panel.set_xticks(table["size"][1::2])
    _legend(figure, 3, left, right)
    return figure


def _draw_training(profile: Table, tradeoff: Table) -> Figure:
    title = "A DP-SGD run: σ = 1.1, sampling rate 256/60,000, 14,062 steps"
    figure, axes = empty_figure(title, (10, 4.7), 1, 2)
    left, right = axes[0]
    left.semilogy(
        profile["moments_accountant"], profile["delta"], "--", color=VERMILION, label="moments accountant, λ ≤ 64"
    )
    left.semilogy(profile["rdp"], profile["delta"], "-.", color=BLUE, label="Rényi curve, best order")
    left.semilogy(profile["epsilon_upper"], profile["delta"], color=BLACK, label="exact: safe end of the bracket")
    left.semilogy(profile["epsilon_lower"], profile["delta"], ":", color=ORANGE, label="exact: other end")
    width = float(((profile["epsilon_upper"] - profile["epsilon_lower"]) / profile["epsilon_upper"]).max())
    _note(left, f"relative width of the bracket ≤ {rounded_up(width, 1)}", 0.03, 0.05)
    left.set(title="(ε,δ) curve", xlabel="ε, nats", ylabel="δ", xlim=(0, None))
    right.plot((0, 1), (1, 0), color=GREY, linewidth=1, label="blind guessing")
    right.plot(tradeoff["type_one"], tradeoff["type_two_lower"], color=BLACK)
    right.plot(tradeoff["type_one"], tradeoff["type_two_upper"], ":", color=ORANGE)
    right.set(title="trade-off curve", xlabel="type-I error", ylabel="least type-II error", xlim=(0, 1), ylim=(0, 1))
    _legend(figure, 3, left, right)
    return figure


FIGURES: dict[str, Picture] = {
    "table-2-mechanisms": Picture({"": numbers.rdp_table}, _draw_rdp_table, markdown=True),
    "figure-1-rdp-curves": Picture({"": numbers.rdp_curves}, _draw_rdp_curves),
    "figure-2-bad-outcomes": Picture({"": numbers.bad_outcomes}, _draw_bad_outcomes),
    "advanced-composition": Picture({"": numbers.advanced_composition}, _draw_advanced_composition),
    "counting-queries": Picture(
        {"": numbers.counting_queries, "-by-delta": numbers.counting_noise_ratio}, _draw_counting_queries
    ),
    "query-allowances": Picture({"": numbers.query_allowances}, _draw_query_allowances),
    "loss-tails": Picture({"": numbers.loss_tails}, _draw_loss_tails),
    "maximally-divergent": Picture(
        {"-profiles": numbers.divergent_profiles, "-means": numbers.divergent_means}, _draw_maximally_divergent
    ),
    "group-privacy": Picture({"": numbers.group_privacy}, _draw_group_privacy),
    "dp-sgd": Picture({"-profile": numbers.training_profile, "-tradeoff": numbers.training_tradeoff}, _draw_training),
}

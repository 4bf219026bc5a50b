"""The Fundamental Law of Information Recovery, shown: overly accurate answers to too many questions destroy privacy.

A secret bit of each of n people; an attacker asks how many of a random half of them have it, four times as often as
there are people, and solves for the bits by least squares. Without noise everyone is recovered; with noise well under
√n nearly everyone; with the noise that a small ε asks for, about as many as by tossing a coin. Whatever the attacker
does, the accountant's δ at ε = 0 bounds how many that can be.

    python examples/reconstruction.py reconstruction-output
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import lsq_linear

from sitr.accounting import calibrate_noise
from sitr.display import rounded_up
from sitr.mechanisms import gaussian

PEOPLE = 256
QUESTIONS_EACH = 4  # questions asked for each person in the data
DELTA = 1e-6
FRACTIONS = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0)  # of √n: standard deviations of the noise
EPSILONS = (10.0, 3.0, 1.0, 0.1)  # of all answers together
REPEATS = 5


class Outcome(NamedTuple):
    """What an attack found.

    Attributes:
        label: The noise in words.
        noise: Its standard deviation; 0 without noise.
        epsilon: What all answers together cost at `DELTA`; infinite without noise.
        limit: The part of the bits that any attack can expect to find, at most.
        recovered: The part that this one found.
    """

    label: str
    noise: float
    epsilon: float
    limit: float
    recovered: float


def reconstruct(questions: Any, answers: Any) -> Any:
    """Return the bits, from 0 to 1 each, that fit the answers best, rounded."""
    found = lsq_linear(questions, answers, bounds=(0.0, 1.0), lsq_solver="exact", max_iter=50)
    return np.rint(found.x).astype(np.int64)


def attack(label: str, noise: float, people: int = PEOPLE, repeats: int = REPEATS, seed: int = 0) -> Outcome:
    """Answer too many counting questions with noise of a standard deviation, and try to recover the data.

    Each answer is released by one mechanism, and the accountant composes all of them: one person's bit moves every
    answer by 1 at most. The seed makes people and questions; the noise is the mechanism's own.
    """
    chance, count = np.random.default_rng(seed), QUESTIONS_EACH * people
    mechanism = None if noise == 0 else gaussian(scale=noise, sensitivity=1, integers=True, adjacency="replace_one")
    right = 0
    for _ in range(repeats):
        secret = chance.integers(0, 2, people)
        questions = chance.integers(0, 2, (count, people))
        exact = (questions @ secret).tolist()
        answers = exact if mechanism is None else [mechanism.release(answer).value for answer in exact]
        right += int(np.sum(reconstruct(questions.astype(float), np.array(answers, dtype=float)) == secret))
    recovered = right / (people * repeats)
    if mechanism is None:
        return Outcome(label, 0.0, math.inf, 1.0, recovered)
    event = mechanism.event * count
    # A fair bit is guessed right with probability (1 + total variation)/2 at most, and δ(0) is the total variation.
    limit = (1 + float(event.delta(epsilon=0.0))) / 2
    return Outcome(label, mechanism.scale, float(event.epsilon(delta=DELTA)), limit, recovered)


def noise_for(epsilon: float, people: int = PEOPLE) -> float:
    """Return the standard deviation for which all answers together cost ε at `DELTA`."""
    count = QUESTIONS_EACH * people
    found = calibrate_noise(
        lambda scale: gaussian(scale=scale, sensitivity=1, integers=True).event * count,
        epsilon=epsilon,
        delta=DELTA,
        bounds=(0.1, 1e6),
    )
    return found.value


def outcomes(people: int = PEOPLE, repeats: int = REPEATS) -> list[Outcome]:
    """Return what the attack finds without noise, with noise in parts of √n, and with what several ε ask for."""
    planned = [("no noise", 0.0)]
    planned += [(f"{part:g} √n", part * math.sqrt(people)) for part in FRACTIONS]
    planned += [(f"as ε = {epsilon:g} asks", noise_for(epsilon, people)) for epsilon in EPSILONS]
    return [attack(label, noise, people, repeats, seed) for seed, (label, noise) in enumerate(planned)]


def table(found: Iterable[Outcome]) -> str:
    """Return the outcomes as text."""
    lines = [f"{'noise':<18}{'deviation':>10}{f'ε at δ = {DELTA:g}':>16}{'recovered':>12}{'expected most':>15}"]
    for one in found:
        cost, limit = rounded_up(one.epsilon), f"≤ {100 * one.limit:.1f} %"
        lines.append(f"{one.label:<18}{one.noise:>10.1f}{cost:>16}{100 * one.recovered:>10.1f} %{limit:>13}")
    return "\n".join(lines)


def draw(found: list[Outcome], people: int) -> Any:
    """Return the picture: what was recovered against the noise, and against what the accountant says it cost."""
    from matplotlib.figure import Figure

    from sitr.pictures import BLUE, GREY, VERMILION

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    figure.suptitle("The Fundamental Law: too many answers, too accurate", x=0.01, horizontalalignment="left")
    left, right = figure.subplots(1, 2, sharey=True)
    noisy = sorted((one for one in found if one.noise > 0), key=lambda one: one.noise)
    for axes, places, name in (
        (left, [one.noise / math.sqrt(people) for one in noisy], "standard deviation of the noise, in √n"),
        (right, [one.epsilon for one in noisy], f"ε of all answers together, at δ = {DELTA:g}"),
    ):
        axes.semilogx(
            places, [100 * one.recovered for one in noisy], "o-", color=BLUE, label="recovered by least squares"
        )
        axes.semilogx(
            places, [100 * one.limit for one in noisy], "--", color=VERMILION, label="the most any attack can expect"
        )
        axes.axhline(50, color=GREY, linewidth=1, linestyle=":", label="tossing a coin")
        axes.set_xlabel(name)
    left.set_ylabel("bits recovered, per cent")
    left.set_title(f"{people} people, {QUESTIONS_EACH * people} questions about random halves of them", loc="left")
    right.set_title("the same, by what it cost", loc="left")
    right.invert_xaxis()
    left.set_ylim(40, 103)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def main(folder: str) -> None:
    """Attack, print the table, and leave the picture in a folder."""
    from matplotlib import rc_context

    from sitr.pictures import METADATA, STYLE

    found = outcomes()
    print(table(found))
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    with rc_context(STYLE):
        figure = draw(found, PEOPLE)
        for kind, metadata in METADATA.items():
            figure.savefig(target / f"reconstruction.{kind}", metadata=metadata)
            print(target / f"reconstruction.{kind}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Say where the picture goes: python examples/reconstruction.py FOLDER")
    main(sys.argv[1])

"""The blueprint of seed 004: name functions of bounded sensitivity, choose noise, read the analysis, then release."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from .. import _validate
from ..accounting import Bracket, Event, compose
from ..accounting.notation import event_text
from ..display import rounded_up, scientific
from ..errors import InvalidArgument
from ..release import Release
from .mechanism import Mechanism
from .randomness import source_of

RESERVED = ("unsafe_seed", "unsafe_without_noise")


@dataclass(frozen=True)
class Step:
    """One step of a blueprint as the analysis shows it.

    Attributes:
        name: As the blueprint has it.
        event: What the step costs.
        epsilon: Its ε alone, at the δ of the analysis.
        share: Which part it is of the sum of all such ε; NaN where a step has no finite one.
        error95: What its noise stays within; None where only the release can say it, or no number does.
    """

    name: str
    event: Event
    epsilon: Bracket
    share: float
    error95: Any


@dataclass(frozen=True)
class Analysis:
    """What a blueprint will cost and how wrong it will be, before anything is drawn; `print` shows it as a table.

    Attributes:
        steps: Each of them alone.
        event: All of them composed.
        delta: Where ε is stated.
        epsilon: Of all of them together, at that δ.
    """

    steps: tuple[Step, ...]
    event: Event
    delta: float
    epsilon: Bracket

    def __str__(self) -> str:
        head = ("step", f"ε at δ = {scientific(self.delta)}", "share", "95 % error", "event")
        rows = [
            (step.name, _epsilon(step.epsilon), _share(step.share), _error(step.error95), event_text(step.event))
            for step in self.steps
        ]
        total = f"{_epsilon(self.epsilon)}, and at least {self.epsilon.lower:.6g} (adjacency: {self.event.adjacency})"
        widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head) - 1)]
        lines = ["  ".join([*map(str.ljust, row, widths), row[-1]]).rstrip() for row in (head, *rows)]
        return "\n".join([*lines, f"together: ε = {total}"])


class Blueprint:
    """Several mechanisms that are released together: named, analysed, then drawn, all of them or none.

    Args:
        steps: Mechanisms by name: each adds noise to a function of bounded sensitivity, or chooses by such functions.

    Attributes:
        event: What a release costs: the steps composed.
        steps: The mechanisms by name.

    Raises:
        InvalidArgument: A step is no mechanism, or its name is reserved.
        IncompatibleAdjacency: Two steps speak of different neighbours.

    Privacy: the steps are fixed in advance and see the same people, so their losses add, in both orders (THEORY 4.5).
    The analysis reads no data and costs nothing. An analyst who chooses a step after seeing another needs a filter
    (THEORY 5.1).

    Example:
        >>> from sitr.mechanisms import bounded_sum, laplace
        >>> blueprint = Blueprint(
        ...     visits=laplace(epsilon=0.5, sensitivity=1, integers=True, adjacency="add_remove"),
        ...     cost=bounded_sum(bounds=(0, 1000), rho=0.02),
        ... )
        >>> print(blueprint.explain(delta=1e-6))
        step    ε at δ = 1e-06  share   95 % error  event
        visits  0.500           37.5 %  6           discrete_laplace(2, adjacency="add_remove")
        cost    0.835           62.5 %  9800        discrete_gaussian(..., adjacency="add_remove")
        together: ε = 1.32, and at least 1.31276 (adjacency: add_remove)
        >>> answers = blueprint.release(visits=3, cost=[120.0, 80.5, 999.0])
        >>> sorted(answers), answers["visits"].error95
        (['cost', 'visits'], 6.0)
    """

    def __init__(self, **steps: Mechanism) -> None:
        if not steps:
            raise InvalidArgument("a blueprint without steps.", do="Name one or more: Blueprint(visits=laplace(...)).")
        for name, step in steps.items():
            if name in RESERVED or not isinstance(step, Mechanism):
                raise InvalidArgument(
                    f"{name}={_validate.shown(step)} is not a mechanism, or its name is reserved.",
                    do="Pass what laplace, gaussian, bounded_sum and their like return.",
                )
        self.steps = MappingProxyType(steps)
        self.event = compose(*(step.event for step in steps.values()))

    def __repr__(self) -> str:
        return f"Blueprint({', '.join(f'{name}={step!r}' for name, step in self.steps.items())})"

    def explain(self, delta: float = 1e-6) -> Analysis:
        """Return what each step costs alone, what all cost together, and how wrong each will be; nothing is drawn.

        Args:
            delta: Where ε is stated: in [0, 1).

        Privacy: reads no data. ε of all together is a bracket that holds the truth (THEORY 4.5). As δ is spent once and
        not once for each step, it may be more than the sum of the steps' own at that δ.

        Example:
            >>> from sitr.mechanisms import gaussian
            >>> counts = {f"count{i}": gaussian(scale=40.0, sensitivity=1, integers=True) for i in range(10)}
            >>> round(float(Blueprint(**counts).explain(delta=1e-6).epsilon), 4)
            0.3...
        """
        delta = _validate.real("delta", delta, 0, 1, open_high=True)
        alone = {name: step.event.epsilon(delta=delta) for name, step in self.steps.items()}
        whole = math.fsum(map(float, alone.values()))
        parts = tuple(
            Step(name, step.event, alone[name], _part(float(alone[name]), whole), step.error95)
            for name, step in self.steps.items()
        )
        return Analysis(parts, self.event, delta, self.event.epsilon(delta=delta))

    def release(
        self, *, unsafe_seed: int | None = None, unsafe_without_noise: bool = False, **values: Any
    ) -> dict[str, Release]:
        """Return a release for each step, by name; all values are checked before anything is drawn.

        Args:
            unsafe_seed: For tests: noise from a seeded stream. The releases are stamped NOT PRIVATE.
            unsafe_without_noise: For tests: no noise at all. The releases are stamped NOT PRIVATE.
            values: What each step takes, by the name of the step: all of them, and no others.

        Raises:
            InvalidArgument: A step has no value, a value no step, or a value is not of the kind that its step takes.

        Privacy: all releases together cost `event`; each states its own. If one value is refused, nothing leaves.

        Example:
            >>> from sitr.mechanisms import laplace
            >>> blueprint = Blueprint(a=laplace(epsilon=1.0, sensitivity=1), b=laplace(epsilon=1.0, sensitivity=1))
            >>> {name: one.value for name, one in blueprint.release(a=1, b=2, unsafe_without_noise=True).items()}
            {'a': 1.0, 'b': 2.0}
        """
        without, unknown = self.steps.keys() - values.keys(), values.keys() - self.steps.keys()
        if without or unknown:
            raise InvalidArgument(
                f"values for {_listed(values)} are not those for {_listed(self.steps)}.",
                why="a blueprint is released whole, or not at all.",
                do="Pass one value for each step, by its name.",
            )
        source = None if unsafe_without_noise else source_of(unsafe_seed)
        checked = {name: self._checked(name, values[name]) for name in self.steps}
        return {name: step._released(checked[name], source) for name, step in self.steps.items()}

    def _checked(self, name: str, value: Any) -> Any:
        try:
            return self.steps[name]._checked(value)
        except InvalidArgument as error:
            raise InvalidArgument(f"{name}: {error.what}", why=error.why, do=error.do) from None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "no step"


def _part(one: float, whole: float) -> float:
    return one / whole if 0 < whole < math.inf else math.nan


def _epsilon(bracket: Bracket) -> str:
    return rounded_up(float(bracket))


def _share(share: float) -> str:
    return "–" if math.isnan(share) else f"{100 * share:.3g} %"


def _error(error: Any) -> str:
    return f"{error:.4g}" if isinstance(error, (int, float)) else "–"

"""The measurements of a plan: each is one vector with noise, or one private choice, and has its own price."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..accounting import Event
from ..mechanisms import HistogramQuantiles, PartitionSelection
from ..tables.tally import Measure, Tally
from .designs import Design, Total
from .noise import Noise


class Noisy:
    """A vector with noise, which is its price."""

    noise: Noise

    @property
    def event(self) -> Event:
        """What it costs."""
        return self.noise.event


@dataclass(frozen=True)
class Sums(Noisy):
    """Counts, and sums of values and of their squares and products, in the statistics of one design."""

    design: Design | Total
    measures: Mapping[str, Measure]
    noise: Noise

    @property
    def label(self) -> str:
        """What is measured, for people."""
        if not self.measures:
            return "rows"
        if isinstance(self.design, Total):
            return f"sum of {next(iter(self.measures.values())).value}"
        what = {0: "rows with", 1: "rows and sum of", 2: "rows, sum and squares of"}[max(self.design.degrees)]
        return f"{what} {' and '.join(str(one.value) for one in self.measures.values())}"

    @property
    def widths(self) -> dict[str, int]:
        """Of the grids."""
        return widths(self.measures)


def widths(measures: Mapping[str, Measure]) -> dict[str, int]:
    """Return how many steps the grid of each measure has."""
    return {name: one.width for name, one in measures.items()}


@dataclass(frozen=True)
class Units(Noisy):
    """How many units are in each group."""

    noise: Noise
    label = "units"


@dataclass(frozen=True)
class Groups:
    """Which groups may be named: those in which enough units are."""

    selection: PartitionSelection
    label = "which groups to list"

    @property
    def event(self) -> Event:
        """What it costs."""
        return self.selection.event


@dataclass(frozen=True)
class Distinct(Noisy):
    """How many different values there are in each group."""

    name: str
    tally: Tally
    noise: Noise

    @property
    def label(self) -> str:
        """What is measured, for people."""
        return f"different {self.tally.distinct}"


@dataclass(frozen=True)
class Bins(Noisy):
    """How many rows are in each bin of a histogram."""

    name: str
    tally: Tally
    edges: tuple[Any, ...]
    noise: Noise

    @property
    def label(self) -> str:
        """What is measured, for people."""
        return f"rows in {len(self.edges) - 1} bins of {self.name}"


@dataclass(frozen=True)
class Ranks:
    """Quantiles of one measure, from its histogram."""

    measure: Measure
    wanted: Mapping[str, float]
    tally: Tally
    mechanism: HistogramQuantiles

    @property
    def event(self) -> Event:
        """What it costs."""
        return self.mechanism.event

    @property
    def label(self) -> str:
        """What is measured, for people."""
        return f"quantiles of {self.measure.value}"


Measurement = Sums | Units | Groups | Distinct | Bins | Ranks

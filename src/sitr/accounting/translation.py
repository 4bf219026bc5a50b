"""Events of other libraries, read as ours: those of dp_accounting, and the history of an Opacus accountant.

Neither library is imported: an event is known by the name of its class and by its fields, all of which must be known,
as an unknown one may change the meaning of the rest. What has no counterpart of the same meaning is refused.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple, NoReturn

from .. import _validate
from ..errors import IncompatibleAdjacency, InvalidArgument, InvalidRecord, NoSuchGuarantee
from ..units import ADJACENCIES, Adjacency
from .events import (
    MOST_COUNT,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    PoissonSampled,
    PureDP,
    RandomizedResponse,
    ZeroConcentrated,
    compose,
)
from .losses.rounding import rounded_up


def from_dp_accounting(event: object, *, adjacency: Adjacency = "add_remove") -> Event:
    """Read a `DpEvent` of dp_accounting, or the named tuple that its `to_named_tuple` makes.

    Raises:
        InvalidRecord: The event has no counterpart here, or its class has fields that are not known.
        IncompatibleAdjacency: It is not defined between such neighbours.
        NoSuchGuarantee: It says of itself that it is not private.

    Example:
        >>> from collections import namedtuple
        >>> LaplaceDpEvent = namedtuple("LaplaceDpEvent", ["noise_multiplier"])
        >>> from_dp_accounting(LaplaceDpEvent(2.0)).pure()
        0.5
    """
    _validate.choice("adjacency", adjacency, ADJACENCIES)
    try:
        return _read(event, adjacency) or PureDP(0.0, adjacency=adjacency)
    except RecursionError:
        raise InvalidRecord("the event is nested too deeply.", do="compose events side by side instead.") from None


def from_opacus(history: object) -> Event:
    """Read the history of an Opacus accountant: the accountant, its `state_dict()`, or the list itself.

    Raises:
        InvalidRecord: The history is empty, or not a list of (noise_multiplier, sample_rate, steps).

    Example:
        >>> round(float(from_opacus([(1.1, 256 / 60000, 14062)]).epsilon(delta=1e-5)), 4)
        2.3816
    """
    if isinstance(history, Mapping):
        history = history.get("history")
    rows = getattr(history, "history", history)
    if not isinstance(rows, (list, tuple)) or not rows:
        raise InvalidRecord(
            "this is not the history of an Opacus accountant.",
            do="Pass privacy_engine.accountant, its state_dict(), or a list of (noise_multiplier, sample_rate, steps).",
        )
    return compose([_opacus_steps(row) for row in rows])


def _opacus_steps(row: Any) -> Event:
    if not isinstance(row, (list, tuple)) or len(row) != 3:
        raise InvalidRecord("a row of the history is not (noise_multiplier, sample_rate, steps).")
    noise_multiplier, sample_rate, steps = row
    return PoissonSampled(Gaussian(noise_multiplier), sample_rate) * _validate.integer("steps", steps, 1, MOST_COUNT)


class _Kind(NamedTuple):
    """A class of dp_accounting: its fields, how it is read, and between which neighbours it is defined."""

    fields: tuple[str, ...]
    read: Callable[[Any, Adjacency], Event | None]
    adjacencies: tuple[Adjacency, ...] = ("add_remove", "replace_one")


def _read(event: object, adjacency: Adjacency) -> Event | None:
    """Read an event; None where it did nothing."""
    name = _name_of(event)
    if name not in KINDS:
        raise InvalidRecord(
            f"{_validate.shown(name)} is not an event that has a counterpart here.",
            why="an event that is not understood must not be counted as another.",
            do=f"Known: {', '.join(sorted(KINDS))}.",
        )
    kind = KINDS[name]
    if set(_fields_of(event)) != set(kind.fields):
        raise InvalidRecord(
            f"{name} has other fields than {', '.join(kind.fields) or 'none'}.",
            why="a field that is not known may change the meaning of the others.",
            do="upgrade sitr, or describe the event in its own words.",
        )
    if adjacency not in kind.adjacencies:
        raise IncompatibleAdjacency(
            f"{name} is not read between neighbours of the kind {adjacency}.",
            why="its sensitivity, or its sampling, is defined between others.",
            do=f"Known: adjacency={kind.adjacencies[0]!r}.",
        )
    return kind.read(event, adjacency)


def _name_of(event: object) -> str:
    """The name of the class, which a named tuple of dp_accounting keeps in a field."""
    name = getattr(event, "class_name", None) or type(event).__name__
    return name.decode() if isinstance(name, bytes) else str(name)


def _fields_of(event: object) -> tuple[str, ...]:
    """The names of the fields of an attrs class, a named tuple or a dataclass; without any there are none."""
    if hasattr(event, "__attrs_attrs__"):
        return tuple(field.name for field in event.__attrs_attrs__)
    if hasattr(event, "_fields"):
        return tuple(name for name in event._fields if name not in ("module_name", "class_name"))
    return tuple(field.name for field in dataclasses.fields(event)) if dataclasses.is_dataclass(event) else ()


def _moves(adjacency: Adjacency) -> int:
    """How many bounded contributions neighbours differ in: a replaced one is taken away, and another one added."""
    return 1 if adjacency == "add_remove" else 2


def _gaussian(event: Any, adjacency: Adjacency) -> Event:
    return Gaussian(_multiplier(event) / _moves(adjacency), adjacency=adjacency)


def _laplace(event: Any, adjacency: Adjacency) -> Event:
    return Laplace(_multiplier(event) / _moves(adjacency), adjacency=adjacency)


def _multiplier(event: Any) -> float:
    return _validate.real("noise_multiplier", event.noise_multiplier, 0, math.inf)


def _discrete_laplace(event: Any, adjacency: Adjacency) -> Event:
    """P(x) ∝ e^{-a|x|}: the scale is 1/a, rounded down, so that no loss is."""
    rate = _validate.real("noise_parameter", event.noise_parameter, 1e-12, 1e12)
    sensitivity = _validate.integer("sensitivity", event.sensitivity, 1, 10**15)
    scale = 1 / rate
    scale = scale if Fraction(scale) * Fraction(rate) <= 1 else math.nextafter(scale, 0)
    return DiscreteLaplace(scale, sensitivity * _moves(adjacency), adjacency=adjacency)


def _response(event: Any, adjacency: Adjacency) -> Event | None:
    """The truth with 1 - noise, and else any of the k answers, the true one among them; rounded up."""
    k = _validate.integer("num_buckets", event.num_buckets, 1, 10**9)
    noise = Fraction(_validate.real("noise_parameter", event.noise_parameter, 0, 1))
    if k == 1:
        return None
    return RandomizedResponse(rounded_up(1 - noise + noise / k), k, adjacency=adjacency)


def _zcdp(event: Any, adjacency: Adjacency) -> Event:
    return ZeroConcentrated(event.rho, event.xi, adjacency=adjacency)


def _sampled(event: Any, adjacency: Adjacency) -> Event | None:
    rate = _validate.real("sampling_probability", event.sampling_probability, 0, 1)
    inside = _read(event.event, adjacency)
    return PoissonSampled(inside, rate) if rate > 0 and inside is not None else None


def _repeated(event: Any, adjacency: Adjacency) -> Event | None:
    inside = _read(event.event, adjacency)
    count = _validate.integer("count", event.count, 0, 2**63)
    return inside * count if count > 0 and inside is not None else None


def _together(event: Any, adjacency: Adjacency) -> Event | None:
    if not isinstance(event.events, (list, tuple)):
        raise InvalidArgument("events is not a list.", do="Pass a ComposedDpEvent of a list of events.")
    each = [read for inner in event.events if (read := _read(inner, adjacency)) is not None]
    return compose(each) if each else None


def _nothing(event: Any, adjacency: Adjacency) -> None:
    return None


def _not_private(event: Any, adjacency: Adjacency) -> NoReturn:
    raise NoSuchGuarantee(
        "the event says that it is not private.",
        why="what was released with it has no guarantee at all.",
        do="leave out what came with it, or describe how it was protected.",
    )


# Sampling of a fixed size, trees, repeated selection, truncated batches and mixtures have other curves, not these.
KINDS = {
    "ComposedDpEvent": _Kind(("events",), _together),
    "DiscreteLaplaceDpEvent": _Kind(("noise_parameter", "sensitivity"), _discrete_laplace),
    "GaussianDpEvent": _Kind(("noise_multiplier",), _gaussian),
    "LaplaceDpEvent": _Kind(("noise_multiplier",), _laplace),
    "NoOpDpEvent": _Kind((), _nothing),
    "NonPrivateDpEvent": _Kind((), _not_private),
    "PoissonSampledDpEvent": _Kind(("sampling_probability", "event"), _sampled, ("add_remove",)),
    "RandomizedResponseDpEvent": _Kind(("noise_parameter", "num_buckets"), _response, ("replace_one",)),
    "SelfComposedDpEvent": _Kind(("event", "count"), _repeated),
    "ZCDpEvent": _Kind(("rho", "xi"), _zcdp),
}

"""What an event is: a frozen description whose meaning never changes, because ledgers keep it.

An event says what was released and with which public parameters; everything that can be said of its privacy loss is
its curve (`Answers`). Compatibility promise: no event type and no parameter is ever removed or changes meaning;
docs/decisions/0005 has the rules, `schema.py` the JSON form.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar

from ... import _validate, markup
from ...display import counted, shortened
from ...errors import InvalidArgument
from ...units import ADJACENCIES, Adjacency, join
from ..curve import Answers
from ..losses.law import Pair
from ..parts import Parts
from ..renyi import Claim

MOST_COUNT = 10**9
SHOWN = 20  # events of a composition that are drawn,
LONGEST = 200  # and characters of each
MOST_RELEASES = 10**30  # in all, with what is repeated inside of what is repeated: their costs must be numbers


@dataclass(frozen=True, repr=False)
class Event(Answers):
    """What was done. `event * k`, `a + b` and `sum(events)` compose (THEORY 4.5); each answers for its privacy loss.

    Args:
        adjacency: The relation that its sensitivity was measured in; `None` joins with anything.

    Example:
        >>> from sitr.accounting import Gaussian, Laplace
        >>> event = Gaussian(noise_multiplier=10) * 100 + Laplace(noise_multiplier=20) * 30
        >>> round(float(event.epsilon(delta=1e-6)), 4)
        5.0871
    """

    type: ClassVar[str] = ""
    adjacency: Adjacency | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if type(self) is Event:
            raise InvalidArgument("an Event by itself describes nothing.", do="Make one, such as Gaussian(10).")
        if self.adjacency is not None:
            _validate.choice("adjacency", self.adjacency, ADJACENCIES)
        self._check()

    def _check(self) -> None:
        """Validate the parameters and bring them to their plain types."""

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def parameters(self) -> dict[str, Any]:
        """Return the arguments that make this event; the attribute `at_x` is the argument `x`, as x is a question.

        Example:
            >>> from sitr.accounting import ApproximateDP
            >>> ApproximateDP(epsilon=0.5, delta=1e-6).parameters()
            {'epsilon': 0.5, 'delta': 1e-06, 'adjacency': None}
        """
        ordered = sorted(fields(self), key=lambda f: f.name == "adjacency")
        return {f.name.removeprefix("at_"): getattr(self, f.name) for f in ordered}

    @property
    def claimed(self) -> bool:
        """Whether the curve rests on the user's word: a table of their own mechanism (THEORY 1.2, 2.6).

        Example:
            >>> from sitr.accounting import Gaussian, PrivacyProfile
            >>> table = PrivacyProfile([(0.5, 1e-3)])
            >>> table.claimed, Gaussian(noise_multiplier=10).claimed, float(table.delta(epsilon=0.5))
            (True, False, 0.001)
        """
        return False

    @property
    def parts(self) -> Parts:
        """The dominating pairs, or claims, that this event is made of, with their counts (THEORY 1.2, 2.6)."""
        return ((self._part, 1),)

    @property
    def releases(self) -> int:
        """How many events without others in them this one is made of, each as often as it is repeated (THEORY 4.5).

        Example:
            >>> from sitr.accounting import Laplace, PoissonSampled
            >>> (PoissonSampled(Laplace(noise_multiplier=2) * 3, 0.1) * 10).releases
            30
        """
        return 1

    def _refuse_too_many(self) -> None:
        if self.releases > MOST_RELEASES:
            raise InvalidArgument(
                f"more than {MOST_RELEASES:.0e} releases in all are not accounted for.", do="Compose fewer of them."
            )

    @cached_property
    def _part(self) -> Pair | Claim:
        return self._describe()

    def _describe(self) -> Pair | Claim:
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # what was computed is not what was done

    def __add__(self, other: object) -> Event:
        return compose(self, other) if isinstance(other, Event) else NotImplemented

    def __radd__(self, other: object) -> Event:
        return self if type(other) is int and other == 0 else NotImplemented  # where `sum(events)` begins

    def __mul__(self, count: object) -> Event:
        count = _validate.integer("count", count, 1, MOST_COUNT)
        return self if count == 1 else Composed(((self, count),))

    __rmul__ = __mul__

    def to_dict(self) -> dict[str, Any]:
        """Return the event as a JSON-ready dictionary with its schema version.

        Example:
            >>> from sitr.accounting import PureDP
            >>> PureDP(epsilon=0.5).to_dict()
            {'schema_version': 1, 'type': 'pure_dp', 'epsilon': 0.5}
        """
        from ..schema import to_dict

        return to_dict(self)

    def to_json(self) -> str:
        """Return the event as canonical JSON; `Event.from_json` reads it back.

        Example:
            >>> from sitr.accounting import Laplace
            >>> Laplace(noise_multiplier=20).to_json()
            '{"noise_multiplier":20.0,"schema_version":1,"type":"laplace"}'
        """
        from ..schema import to_json

        return to_json(self)

    @staticmethod
    def from_dict(record: dict[str, Any]) -> Event:
        """Read an event from the dictionary of `to_dict`.

        Example:
            >>> Event.from_dict({"schema_version": 1, "type": "pure_dp", "epsilon": 0.5})
            PureDP(epsilon=0.5)
        """
        from ..schema import from_dict

        return from_dict(record)

    @staticmethod
    def from_json(text: str) -> Event:
        """Read an event from the JSON of `to_json`.

        Example:
            >>> Event.from_json('{"schema_version": 1, "type": "gaussian", "noise_multiplier": 2}')
            Gaussian(noise_multiplier=2.0)
        """
        from ..schema import from_json

        return from_json(text)

    @staticmethod
    def from_dp_accounting(event: object, *, adjacency: Adjacency = "add_remove") -> Event:
        """Read a `DpEvent` of Google's dp_accounting, which need not be installed.

        Gaussian, Laplace and discrete Laplace noise, randomized response, zCDP, Poisson sampling and composition are
        read; everything else is refused, as other kinds of sampling have other curves.

        Args:
            event: The event, or the named tuple that its `to_named_tuple()` makes.
            adjacency: The neighbours that the accountant was made for: "add_remove" (`ADD_OR_REMOVE_ONE`, its default)
                or "replace_one" (`REPLACE_ONE`). A noise multiplier there is noise over the bound on one contribution:
                a replaced one moves a sum twice as far (THEORY 1.1).

        Raises:
            InvalidRecord: The event has no counterpart here, or has fields that are not known.
            IncompatibleAdjacency: It is not defined between such neighbours, as sampling under `replace_one`.
            NoSuchGuarantee: It says of itself that it is not private.

        Privacy: what is read is what the event says was done, under `adjacency`; nothing is tested.

        Example:
            >>> from collections import namedtuple
            >>> GaussianDpEvent = namedtuple("GaussianDpEvent", ["noise_multiplier"])  # stands for that of the library
            >>> Event.from_dp_accounting(GaussianDpEvent(2.0), adjacency="replace_one")
            Gaussian(noise_multiplier=1.0, adjacency='replace_one')
        """
        from ..translation import from_dp_accounting

        return from_dp_accounting(event, adjacency=adjacency)

    @staticmethod
    def from_opacus(history: object) -> Event:
        """Read what an Opacus accountant recorded: rows of (noise_multiplier, sample_rate, steps).

        Args:
            history: `privacy_engine.accountant`, its `state_dict()`, or the list of rows.

        Raises:
            InvalidRecord: This is no such history, or it is empty.

        Privacy: each row is Gaussian noise on Poisson samples, under `add_remove` (THEORY 2.7). Opacus records the same
        rows for shuffled batches and for batches that are accumulated over several samples, where they are not what was
        done: the caller has to know that neither was the case.

        Example:
            >>> event = Event.from_opacus([(1.1, 256 / 60000, 14062)])
            >>> round(float(event.epsilon(delta=1e-5)), 6)
            2.381597
        """
        from ..translation import from_opacus

        return from_opacus(history)

    def __repr__(self) -> str:
        defaults = {f.name.removeprefix("at_"): f.default for f in fields(self)}
        shown = [f"{name}={value!r}" for name, value in self.parameters().items() if value != defaults[name]]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_html_(self) -> str:
        return markup.page(markup.code(shortened(repr(self), LONGEST)))


@dataclass(frozen=True, repr=False)
class Composed(Event):
    """Several events, each with a count, released one after the other on the same data.

    Privacy: the losses add, in both orders (THEORY 4.5); the parameters are fixed in advance, the queries need not
    be. For parameters chosen after seeing answers, enforce with a filter (THEORY 5).

    Example:
        >>> from sitr.accounting import Laplace
        >>> (Laplace(noise_multiplier=2) * 3).parts[0][1]
        3
    """

    type = "composed"
    events: tuple[tuple[Event, int], ...]

    def _check(self) -> None:
        merged: dict[Event, int] = {}
        adjacency = self.adjacency
        for event, count in _counted(self.events):
            if not isinstance(event, Event):
                raise InvalidArgument(f"{_validate.shown(event)} is not an event.", do="Compose events only.")
            adjacency = join(adjacency, event.adjacency)
            for inner, times in event.events if isinstance(event, Composed) else ((event, 1),):
                total = merged.get(inner, 0) + times * _validate.integer("count", count, 1, MOST_COUNT)
                merged[inner] = _validate.integer("count", total, 1, MOST_COUNT)
        if not merged:
            raise InvalidArgument("nothing to compose.", do="Pass at least one event.")
        self._set(events=tuple(merged.items()), adjacency=adjacency)
        self._refuse_too_many()

    @property
    def claimed(self) -> bool:
        """Whether any of the events rests on the user's word."""
        return any(event.claimed for event, _ in self.events)

    @cached_property
    def releases(self) -> int:
        """How many there are in all."""
        return sum(count * event.releases for event, count in self.events)

    @property
    def parts(self) -> Parts:
        """The parts of all events, with their counts."""
        return tuple((part, n * count) for event, count in self.events for part, n in event.parts)

    def __repr__(self) -> str:
        shown = (repr(event) if count == 1 else f"{event!r} * {count}" for event, count in self.events)
        return " + ".join(shown)

    def _repr_html_(self) -> str:
        rows = [(shortened(repr(event), LONGEST), f"{count:,}") for event, count in self.events[:SHOWN]]
        more = len(self.events) - len(rows)
        below = [f"… {counted(more, 'more event')}"] if more else []
        return markup.page(markup.table(("event", "times"), rows, numbers=1), markup.lines(*below))


def compose(*events: Event | Iterable[Event]) -> Event:
    """Return the composition of all events (THEORY 4.5); equal ones are counted together.

    Args:
        events: Any number of events, or one list of them.

    Raises:
        IncompatibleAdjacency: They speak of different neighbours.

    Privacy: that of `Composed`: the losses add, in both orders, for parameters fixed in advance.

    Example:
        >>> from sitr.accounting import Gaussian, Laplace
        >>> event = compose(Laplace(noise_multiplier=2), Laplace(noise_multiplier=2), Gaussian(noise_multiplier=5))
        >>> event
        Laplace(noise_multiplier=2.0) * 2 + Gaussian(noise_multiplier=5.0)
        >>> round(float(event.epsilon(delta=1e-6)), 4)
        1.7724
        >>> compose([Laplace(noise_multiplier=scale) for scale in (2, 2, 4)]).pure()
        1.25
    """
    several = events[0] if len(events) == 1 and not isinstance(events[0], Event) else events
    if not isinstance(several, Iterable):
        raise InvalidArgument(f"{_validate.shown(several)} is not an event.", do="Compose events only.")
    each: tuple[Any, ...] = tuple(several)  # what is no event is refused by `Composed`
    return each[0] if len(each) == 1 and isinstance(each[0], Event) else Composed(tuple((e, 1) for e in each))


def _counted(events: Any) -> list[tuple[Any, Any]]:
    """Check an iterable of events with their counts, as far as its shape goes."""
    try:
        return [(event, count) for event, count in events]
    except (TypeError, ValueError):
        raise InvalidArgument("events is not a list of (event, count).", do="Compose with `*` and `+`.") from None

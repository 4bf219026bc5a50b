"""Events as JSON, for ever: version 1 of the schema, which only grows (docs/decisions/0005).

A record has `schema_version`, `type` and the event's own parameters; nested events have no version of their own, and
parameters at their default may be left out. Infinity, which only a Rényi order can be, is the string "inf". Reading is
strict: what this version does not know, it refuses, and never guesses. `event.schema.json` says the same for others.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any, NoReturn

from ..errors import InvalidArgument, InvalidRecord
from . import batches, events
from .events import Event

SCHEMA_VERSION = 1
TYPES: dict[str, type[Event]] = {
    kind.type: kind
    for module in (events, batches)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, Event) and kind is not Event
}
PARAMETERS: dict[str, Mapping[str, inspect.Parameter]] = {
    name: inspect.signature(kind).parameters for name, kind in TYPES.items()
}


def event_schema() -> dict[str, Any]:
    """Return the published JSON Schema (2020-12) of the records of all events.

    The file is `event.schema.json` in the package `sitr.accounting`; it stays there, and `$id` names its version.

    Example:
        >>> event_schema()["$id"], event_schema()["properties"]["schema_version"]
        ('urn:sitr:event:1', {'const': 1})
    """
    text = files(__package__).joinpath("event.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def to_dict(event: Event) -> dict[str, Any]:
    """Return the record of an event, with its schema version.

    Example:
        >>> from sitr.accounting import Laplace
        >>> to_dict(Laplace(noise_multiplier=2) * 3)["events"]
        [{'event': {'type': 'laplace', 'noise_multiplier': 2.0}, 'count': 3}]
    """
    return {"schema_version": SCHEMA_VERSION, **_record(event)}


def to_json(event: Event) -> str:
    """Return canonical JSON: sorted keys, no spaces, shortest numbers that read back exactly.

    Example:
        >>> from sitr.accounting import PureDP
        >>> to_json(PureDP(epsilon=0.1))
        '{"epsilon":0.1,"schema_version":1,"type":"pure_dp"}'
    """
    return json.dumps(to_dict(event), sort_keys=True, separators=(",", ":"), allow_nan=False)


def from_dict(record: dict[str, Any]) -> Event:
    """Read an event from its record.

    Raises:
        InvalidRecord: The record is of a newer schema, of an unknown type, incomplete, or has something more.
        InvalidArgument: A parameter is outside its range.

    Example:
        >>> from_dict({"schema_version": 1, "type": "laplace", "noise_multiplier": 2})
        Laplace(noise_multiplier=2.0)
    """
    if not isinstance(record, dict):
        raise InvalidRecord("the record of an event is not an object.", do="Pass what `to_dict` returned.")
    _check_version(record.get("schema_version"))
    try:
        return _read({name: value for name, value in record.items() if name != "schema_version"})
    except RecursionError:
        raise _too_deep() from None


def from_json(text: str) -> Event:
    """Read an event from JSON.

    Raises:
        InvalidRecord: The text is not JSON (NaN and repeated names are not), or not the record of an event.
        InvalidArgument: A parameter is outside its range.

    Example:
        >>> from_json('{"schema_version":1,"type":"pure_dp","epsilon":0.1}')
        PureDP(epsilon=0.1)
    """
    if not isinstance(text, (str, bytes)):
        raise InvalidArgument(f"text={text!r:.40} is not text.", do="Pass what `to_json` returned.")
    try:
        record = json.loads(text, object_pairs_hook=_unrepeated, parse_constant=_no_constant)
    except RecursionError:
        raise _too_deep() from None
    except InvalidRecord:
        raise
    except ValueError as error:  # not JSON, not UTF-8, or an integer of thousands of digits
        raise InvalidRecord(f"the record of an event is not JSON: {error}.") from None
    return from_dict(record)


def _record(event: Event) -> dict[str, Any]:
    defaults = PARAMETERS[event.type]
    given = {name: value for name, value in event.parameters().items() if value != defaults[name].default}
    return {"type": event.type, **{name: WRITERS.get(name, _plain)(value) for name, value in given.items()}}


def _plain(value: Any) -> Any:
    """A value of JSON: tuples as lists, infinity as a string, no negative zero."""
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    if isinstance(value, str):
        return value
    return "inf" if value == math.inf else value + 0


def _counted(events: tuple[tuple[Event, int], ...]) -> list[dict[str, Any]]:
    return [{"event": _record(event), "count": count} for event, count in events]


WRITERS: dict[str, Callable[[Any], Any]] = {
    "event": _record,
    "formula": _record,
    "local": _record,
    "events": _counted,
}


def _check_version(version: Any) -> None:
    if type(version) is int and version == SCHEMA_VERSION:
        return
    if type(version) is int and version > SCHEMA_VERSION:
        raise InvalidRecord(
            f"schema_version={version} is newer than {SCHEMA_VERSION}.",
            why="a newer record may mean something that this version does not know.",
            do="upgrade sitr to read it.",
        )
    raise InvalidRecord(f"schema_version={version!r:.40} is not {SCHEMA_VERSION}.", do="Pass what `to_dict` returned.")


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidRecord(f"{twice!r:.40} is given twice in one object.", do="Give it once.")
    return record


def _no_constant(name: str) -> NoReturn:
    raise InvalidRecord(f"{name} is not JSON.", do='Write a number; an infinite Rényi order is "inf".')


def _too_deep() -> InvalidRecord:
    return InvalidRecord("the record of an event is nested too deeply.", do="compose events side by side instead.")


def _read(record: Any) -> Event:
    """Read an event without a version, which is how events stand inside others."""
    if not isinstance(record, dict):
        raise InvalidRecord("the record of an event is not an object.", do="Pass what `to_dict` returned.")
    name = record.get("type")
    if not isinstance(name, str) or name not in TYPES:
        raise InvalidRecord(f"type={name!r:.40} is no known event.", do=f"Known: {', '.join(sorted(TYPES))}.")
    kind = TYPES[name]
    parameters = {key: value for key, value in record.items() if key != "type"}
    _check_names(kind, parameters)
    return kind(**{key: READERS.get(key, _scalar)(key, value) for key, value in parameters.items()})


def _check_names(kind: type[Event], given: dict[str, Any]) -> None:
    """Refuse what is unknown, which may change the meaning of the rest, and ask for what is missing."""
    known = PARAMETERS[kind.type]
    unknown = [f"{name!r:.40}" for name in given if name not in known]
    missing = [repr(name) for name, p in known.items() if p.default is inspect.Parameter.empty and name not in given]
    if unknown or missing:
        parts = [
            f"{word} {', '.join(names)}" for word, names in (("lacks", missing), ("has unknown", unknown)) if names
        ]
        raise InvalidRecord(
            f"the record of {kind.type} {' and '.join(parts)}.", do=f"Its parameters: {', '.join(known)}."
        )


def _scalar(name: str, value: Any) -> Any:
    """A number or a word, left to the checks of the event; a float that JSON could not hold is refused here."""
    if not isinstance(value, (int, float, str)) or (isinstance(value, float) and not math.isfinite(value)):
        raise InvalidRecord(f"{name}={value!r:.40} is neither a finite number nor a word.")
    return value


def _numbers(name: str, value: Any) -> tuple[Any, ...]:
    return tuple(_scalar(name, v) for v in _list(name, value))


def _rows(name: str, value: Any) -> tuple[tuple[Any, ...], ...]:
    rows = [_list(name, row) for row in _list(name, value)]
    return tuple(tuple(math.inf if i == 0 and v == "inf" else _scalar(name, v) for i, v in enumerate(r)) for r in rows)


def _list(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidRecord(f"{name} is not a list where one belongs.")
    return value


def _event(_: str, value: Any) -> Event:
    return _read(value)


def _counts(name: str, value: Any) -> tuple[tuple[Event, Any], ...]:
    entries = _list(name, value)
    if any(not isinstance(entry, dict) or set(entry) != {"event", "count"} for entry in entries):
        raise InvalidRecord("the entries of a composed event are not objects of 'event' and 'count' alone.")
    return tuple((_read(entry["event"]), _scalar("count", entry["count"])) for entry in entries)


# A parameter's name says its shape, in every event; the others are scalars.
READERS: dict[str, Callable[[str, Any], Any]] = {
    "event": _event,
    "formula": _event,
    "local": _event,
    "events": _counts,
    "points": _rows,
    "losses": _numbers,
    "probabilities": _numbers,
}

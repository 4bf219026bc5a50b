"""Events as JSON, for ever: version 1 of the schema, which only grows (docs/decisions/0005).

A record has `schema_version`, `type` and the event's own parameters; nested events have no version of their own, and
parameters at their default may be left out. Infinity in a table of Rényi orders is the string "inf".
"""

from __future__ import annotations

import json
import math
from dataclasses import fields
from typing import Any

from ..errors import InvalidRecord, SitrError
from . import events as kinds
from .events import Composed, Event

SCHEMA_VERSION = 1
TYPES: dict[str, type[Event]] = {
    kind.type: kind
    for kind in vars(kinds).values()
    if isinstance(kind, type) and issubclass(kind, Event) and kind is not Event
}


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
        InvalidRecord: The record is of a newer schema, of an unknown type, or incomplete.

    Example:
        >>> from_dict({"schema_version": 1, "type": "laplace", "noise_multiplier": 2})
        Laplace(noise_multiplier=2.0)
    """
    if not isinstance(record, dict):
        raise InvalidRecord("the record of an event is not an object.", do="Pass what `to_dict` returned.")
    version = record.get("schema_version")
    if version != SCHEMA_VERSION or isinstance(version, bool):
        raise InvalidRecord(
            f"schema_version={version!r} is not {SCHEMA_VERSION}.",
            why="a newer record may mean something that this version does not know.",
            do="upgrade sitr to read it.",
        )
    return _read({name: value for name, value in record.items() if name != "schema_version"})


def from_json(text: str) -> Event:
    """Read an event from JSON.

    Example:
        >>> from_json('{"schema_version":1,"type":"pure_dp","epsilon":0.1}')
        PureDP(epsilon=0.1)
    """
    try:
        return from_dict(json.loads(text))
    except (json.JSONDecodeError, TypeError) as error:
        raise InvalidRecord(f"the record of an event is not JSON: {error}.") from None


def _record(event: Event) -> dict[str, Any]:
    if isinstance(event, Composed):
        inner = [{"event": _record(part), "count": count} for part, count in event.events]
        return {"type": event.type, "events": inner, **_adjacency(event)}
    defaults = {f.name.removeprefix("at_"): f.default for f in fields(event)}
    plain = {name: _plain(value) for name, value in event.parameters().items() if value != defaults[name]}
    return {"type": event.type, **plain}


def _adjacency(event: Event) -> dict[str, Any]:
    return {} if event.adjacency is None else {"adjacency": event.adjacency}


def _plain(value: Any) -> Any:
    if isinstance(value, Event):
        return _record(value)
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return "inf" if value == math.inf else value


def _read(record: Any) -> Event:
    if not isinstance(record, dict) or record.get("type") not in TYPES:
        shown = record.get("type") if isinstance(record, dict) else record
        raise InvalidRecord(f"type={shown!r} is no known event.", do=f"Known: {', '.join(sorted(TYPES))}.")
    kind = TYPES[record["type"]]
    arguments = {name: _value(value) for name, value in record.items() if name != "type"}
    try:
        return kind(**arguments)
    except SitrError:
        raise
    except TypeError:
        raise InvalidRecord(
            f"the record of a {kind.type} has parameters {sorted(arguments)}.",
            why="some are missing or unknown.",
            do=f"see the JSON schema of {kind.type}.",
        ) from None


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return _read(value)
    if isinstance(value, list):
        if value and all(isinstance(v, dict) and set(v) == {"event", "count"} for v in value):
            return tuple((_read(v["event"]), v["count"]) for v in value)
        return tuple(_value(v) for v in value)
    return math.inf if value == "inf" else value

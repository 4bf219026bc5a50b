"""Whether texts stay apart in an engine."""

from __future__ import annotations

import pyarrow

from ..expressions import Column
from ..relations import Scan
from ..tally import Key, Tally
from .trial import Trial, as_number, as_numbers

TEXTS = [
    "a",
    "A",
    "a ",
    "\u00e4",
    "a\u0308",
    "",
    None,
    "o'clock",
    'say "x"',
    "back\\slash",
    "RAND()",
    "%s {} $1",
    "عين",
    "🦉",
]
AWKWARD = "Größe \"x\" `y` 'z' %s"


def texts_hold(trial: Trial) -> dict[str, bool]:
    """Texts that look alike, under a name that has to be quoted."""
    columns = {"place": {"type": "integer"}, AWKWARD: {"type": "string", "nulls": "group"}}
    frame = pyarrow.table(
        {"place": pyarrow.array(range(len(TEXTS)), pyarrow.int64()), AWKWARD: pyarrow.array(TEXTS, pyarrow.string())}
    )
    written = [one for one in TEXTS if one is not None]
    text = Column(AWKWARD)
    asked = {str(at): as_number(text == one) for at, one in enumerate(written)}
    got = trial.values(
        frame,
        columns,
        asked | {"list": as_number(text.isin(["A", "\u00e4", "o'clock"])), "gone": as_number(text.is_null())},
    )
    keys = trial.ask(frame, columns, lambda schema: Tally(Scan("trial"), (Key("text", text, None),), None, {}))
    return {
        "text is equal only to itself": all(
            got[str(at)] == as_numbers([None if other is None else other == one for other in TEXTS])
            for at, one in enumerate(written)
        )
        and got["list"] == as_numbers([None if one is None else one in ("A", "\u00e4", "o'clock") for one in TEXTS])
        and got["gone"] == as_numbers([one is None for one in TEXTS]),
        "text keeps groups apart, under any name": sorted((row["key0"] or "", row["key0"] is None) for row in keys)
        == sorted((one or "", one is None) for one in TEXTS)
        and all(int(row["sum0"]) == 1 for row in keys),
    }

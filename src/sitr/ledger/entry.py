"""An entry of the book, and the chain that holds entries together.

An entry says what happened as JSON. Its hash covers the ledger's own id, its place, the hash before it and everything
it says: an entry that is changed, taken out or moved breaks the chain from there on. What a chain cannot show, that its
end was cut off, an anchor does (`anchor`).
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from ..errors import LedgerDamaged

CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
BEFORE_ALL = "0" * 64  # the hash before the first entry

# What a body may be at most; the functions of PostgreSQL hold it to the same. Older entries may be larger.
LONGEST_BODY = 2**20  # bytes
DEEPEST_BODY = 50  # levels of JSON
LONGEST_NUMBER = 250  # digits

# What may happen. `open` is the first entry; an operation is reserved, started and committed, or refunded; what is
# `outside` is charged to nothing.
KINDS = ("open", "migrate", "budget", "raise", "replace", "declare", "reserve", "start", "commit", "refund", "outside")


class Head(NamedTuple):
    """The last entry's place and hash: with it, the whole book is fixed.

    Example:
        >>> str(Head(41, "9f" * 32))
        '41:9f9f9f9f9f9f9f9f...'
    """

    seq: int
    hash: str

    def __str__(self) -> str:
        return f"{self.seq}:{self.hash[:16]}..."


@dataclass(frozen=True)
class Entry:
    """One line of the book.

    Attributes:
        seq: Its place, from 1 on, without gaps.
        at: When it was written, by the clock of the store: a remark, which nothing depends on.
        kind: What happened, one of `KINDS`.
        operation: The operation that it belongs to, if any.
        analyst: Who asked, as claimed by the caller; on PostgreSQL, as logged in.
        body: What happened, in canonical JSON.
        hash: The hash of all this and of the entry before.
    """

    seq: int
    at: str
    kind: str
    operation: str | None
    analyst: str | None
    body: str
    hash: str

    @cached_property
    def record(self) -> dict[str, Any]:
        """The body as it reads.

        Example:
            >>> Entry(1, "2026-01-01T00:00:00+00:00", "open", None, None, '{"version":"0.1.0"}', "").record
            {'version': '0.1.0'}
        """
        try:
            record = json.loads(self.body)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise LedgerDamaged(f"entry {self.seq} cannot be read: its body is no JSON object.")
        return record

    @property
    def head(self) -> Head:
        """Where the book ended when it was written."""
        return Head(self.seq, self.hash)

    @property
    def time(self) -> datetime:
        """When it was written."""
        try:
            return datetime.fromisoformat(self.at)
        except ValueError:
            raise LedgerDamaged(f"entry {self.seq} cannot be read: its date is none.") from None

    def name_in(self, ledger: str) -> str:
        """Return how a release cites it: the id of the ledger, and the place.

        Example:
            >>> Entry(41, "2026-01-01T00:00:00+00:00", "reserve", "q-1", "amina", "{}", "ab").name_in("b7c1")
            'b7c1/41'
        """
        return f"{ledger}/{self.seq}"

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as exports hold it.

        Example:
            >>> Entry(1, "2026-01-01T00:00:00+00:00", "open", None, None, "{}", "ab").to_dict()["kind"]
            'open'
        """
        names = ("seq", "at", "kind", "operation", "analyst", "hash")
        return {**{name: getattr(self, name) for name in names}, "body": self.record}


def chained(
    ledger: str, previous: str, seq: int, at: str, kind: str, operation: str | None, analyst: str | None, body: str
) -> Entry:
    """Return the entry that stands after another, with its hash.

    Example:
        >>> chained("b7", BEFORE_ALL, 1, "2026-01-01T00:00:00+00:00", "open", None, None, "{}").hash[:16]
        '83917487d91df7ed'
    """
    return Entry(
        seq, at, kind, operation, analyst, body, _hash(ledger, previous, seq, at, kind, operation, analyst, body)
    )


def entry_hash(ledger: str, previous: str, entry: Entry) -> str:
    """Return the hash of an entry that stands after another; its own `hash` is not looked at.

    Lines are joined by line ends, which no part can contain: names are printable, and JSON escapes them.

    Example:
        >>> entry = Entry(1, "2026-01-01T00:00:00+00:00", "open", None, None, "{}", "")
        >>> entry_hash("b7", BEFORE_ALL, entry)[:16]
        '83917487d91df7ed'
    """
    about = (entry.seq, entry.at, entry.kind, entry.operation, entry.analyst, entry.body)
    return _hash(ledger, previous, *about)


def _hash(
    ledger: str, previous: str, seq: int, at: str, kind: str, operation: str | None, analyst: str | None, body: str
) -> str:
    lines = (ledger, previous, str(seq), at, kind, operation or "", analyst or "", body)
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def canonical(record: Any) -> str:
    r"""Return JSON in the one form that is hashed: sorted names, no spaces, ASCII, finite numbers.

    Example:
        >>> canonical({"b": 1, "a": "ε"})
        '{"a":"\\u03b5","b":1}'
    """
    return CANONICAL.encode(record)


def sealed(record: dict[str, Any]) -> str:
    """Return the body of a new entry, with a secret of its own in it.

    Privacy: everyone sees hashes of entries, as heads and in anchors, and few know what the entries say. Without a
    secret, whoever guesses what an entry says could confirm the guess by its hash. Entries of a start and a commit
    have a secret already: their holder.

    Example:
        >>> sealed({"reason": "never ran"}) == sealed({"reason": "never ran"})
        False
    """
    return canonical({**record, "nonce": secrets.token_hex(16)})


def start_body(holder: str) -> str:
    """Return the body of the entry of a start: only the hash of its holder, so that who reads it cannot commit.

    Example:
        >>> start_body("a secret") == canonical({"holder": sha256(b"a secret")})
        True
    """
    return f'{{"holder":"{sha256(holder.encode())}"}}'


def sha256(content: bytes) -> str:
    """Return the SHA-256 of bytes in hexadecimal digits.

    Example:
        >>> sha256(b"")[:16]
        'e3b0c44298fc1c14'
    """
    return hashlib.sha256(content).hexdigest()


def now() -> str:
    """Return the time as entries write it, in UTC.

    Example:
        >>> now()[-6:]
        '+00:00'
    """
    seconds, parts = divmod(time.time_ns() // 1000, 10**6)
    return f"{_to_the_second(seconds)}.{parts:06}+00:00"


@lru_cache(maxsize=1)  # of thousands of entries that are written within a second, one works out its date
def _to_the_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:19]

"""What was asked, in the words of who asked: kept beside the digest of the request, for those who read the book."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..display import scientific, shortened
from .entry import LONGEST_NUMBER

LONGEST_QUESTION = 2000  # characters; the digest of the request covers all of it
MOST_TABLES = 50
# An entry holds no longer numbers, also within a text; one at which the text itself was cut takes no second ellipsis.
DIGITS = re.compile(f"[0-9]{{{LONGEST_NUMBER // 2}}}[0-9]*…?")


@dataclass(frozen=True)
class Asked:
    """A question and its price.

    Attributes:
        text: The question, in SQL or in words, as the analyst wrote it.
        tables: The tables that it reads.
        epsilon: The ε that was asked for; or
        rho: the ρ.
        delta: The δ that it spends; 0 where it spends none.
        declaration: The name and the version of the declaration that it was asked under.

    Privacy: a question holds what its analyst wrote, and nothing of the data.

    Example:
        >>> asked = Asked("SELECT COUNT(*) FROM visits", ("visits",), epsilon=0.1)
        >>> asked.price, Asked.of(asked.record()) == asked
        ('ε = 0.1', True)
    """

    text: str
    tables: tuple[str, ...] = ()
    epsilon: float | None = None
    rho: float | None = None
    delta: float = 0.0
    declaration: str = ""

    def record(self) -> dict[str, Any]:
        """What an entry keeps of it: what is too long is cut, and says so.

        Example:
            >>> len(Asked("x" * 10**6).record()["text"]) < LONGEST_QUESTION + 50
            True
        """
        lines = self.text.replace("\r\n", "\n")
        shown = "".join(sign if sign.isprintable() or sign in "\n\t" else "\ufffd" for sign in lines)
        text = DIGITS.sub(lambda found: f"{found[0][:20]}…", shortened(shown, LONGEST_QUESTION))
        price = {"epsilon": self.epsilon, "rho": self.rho, "delta": self.delta or None}
        about = {"text": text, "tables": list(self.tables[:MOST_TABLES]), "declaration": self.declaration}
        return about | {name: amount for name, amount in price.items() if amount is not None}

    @classmethod
    def of(cls, record: Any) -> Asked | None:
        """Read what an entry keeps, as far as it is of the right kind: an analyst may have written it by hand.

        Example:
            >>> Asked.of(None) is None, Asked.of({"text": 7, "tables": ["a", 7], "epsilon": "x"})
            (True, Asked(text='', tables=('a',), epsilon=None, rho=None, delta=0.0, declaration=''))
        """
        if not isinstance(record, Mapping):
            return None
        listed = record.get("tables")
        return cls(
            text=_text(record.get("text")),
            tables=tuple(filter(None, map(_text, listed))) if isinstance(listed, list) else (),
            epsilon=_number(record.get("epsilon")),
            rho=_number(record.get("rho")),
            delta=_number(record.get("delta")) or 0.0,
            declaration=_text(record.get("declaration")),
        )

    @property
    def price(self) -> str:
        """What it cost, in the measure that was asked for.

        Example:
            >>> Asked("", rho=0.02, delta=1e-9).price
            'ρ = 0.02 at δ = 1e-09'
        """
        amount = "" if self.epsilon is None else f"ε = {self.epsilon:g}"
        amount = amount if self.rho is None else f"ρ = {self.rho:g}"
        return f"{amount} at δ = {scientific(self.delta)}" if amount and self.delta else amount


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) else None

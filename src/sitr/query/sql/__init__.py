"""SQL, read into our own plan: what is not on the list is refused, and no text of it ever reaches an engine."""

from __future__ import annotations

from .statement import Parsed, parsed

__all__ = ["Parsed", "parsed"]

"""Every error and warning of sitr: a stable code, and three lines: what happened, why it matters, what to do.

Messages are built from public parameters and declared names only; never from a value of the data.
"""

from __future__ import annotations


class SitrError(Exception):
    """The parent of all errors of sitr.

    Args:
        what: One sentence: what went wrong.
        why: Why it matters; may be empty.
        do: What to do about it; may be empty.

    Example:
        >>> print(InvalidArgument("delta=2 is outside (0, 1).", do="Pass a small probability such as 1e-6."))
        InvalidArgument [SITR-A01]: delta=2 is outside (0, 1).
        Do: Pass a small probability such as 1e-6.
    """

    code = "SITR-000"

    def __init__(self, what: str, *, why: str = "", do: str = "") -> None:
        super().__init__(what)
        self.what, self.why, self.do = what, why, do

    def __str__(self) -> str:
        lines = [f"{type(self).__name__} [{self.code}]: {self.what}"]
        lines += [f"Why: {self.why}"] if self.why else []
        lines += [f"Do: {self.do}"] if self.do else []
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.what, self.why, self.do)


def _rebuild(kind: type[SitrError], what: str, why: str, do: str) -> SitrError:
    return kind(what, why=why, do=do)


class InvalidArgument(SitrError, ValueError):
    """An argument is of the wrong kind or outside its range."""

    code = "SITR-A01"


class NoSuchGuarantee(SitrError, ValueError):
    """The guarantee that was asked for does not exist, or none is proved, for this event."""

    code = "SITR-G01"


class IncompatibleAdjacency(SitrError, ValueError):
    """Two statements about different neighbours cannot be joined."""

    code = "SITR-G02"


class CannotCalibrate(SitrError, ValueError):
    """No parameter in the searched range meets the target."""

    code = "SITR-G03"


class BudgetExceeded(SitrError, ValueError):
    """A filter refused an event: admitting it would break the promise."""

    code = "SITR-B01"


class InvalidRecord(SitrError, ValueError):
    """A stored event cannot be read: not JSON, of an unknown type, or of a newer schema."""

    code = "SITR-R01"


class InvalidNotation(SitrError, ValueError):
    """The text of an event cannot be parsed."""

    code = "SITR-N01"


class MissingExtra(SitrError, ImportError):
    """An optional part of sitr is not installed."""

    code = "SITR-X01"


class PrivacyWarning(UserWarning):
    """True, but weaker than you may think."""


class AccuracyWarning(UserWarning):
    """The answer may be too noisy to use."""

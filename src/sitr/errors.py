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


class LedgerError(SitrError, RuntimeError):
    """The parent of what a ledger refuses or cannot do, apart from a budget that is used up."""

    code = "SITR-L00"


class UnknownName(LedgerError):
    """The ledger has no budget, or no operation, of that name."""

    code = "SITR-L01"


class OperationTaken(LedgerError):
    """The operation id stands for another request, or for another analyst's."""

    code = "SITR-L02"


class AlreadySpent(LedgerError):
    """The operation was charged and may have run, or was refunded: it never runs again under this id."""

    code = "SITR-L03"


class AlreadyAnswered(LedgerError):
    """The operation has an answer, which is kept: `Ledger.answer` returns it, free of charge."""

    code = "SITR-L04"


class LedgerUnavailable(LedgerError):
    """The ledger cannot be read or written now: locked, full, read-only, or not reached."""

    code = "SITR-L05"


class ConnectionLost(LedgerUnavailable):
    """The connection broke in the middle of a step: ask again with the same operation id."""

    code = "SITR-L09"


class LedgerDamaged(LedgerError):
    """What is stored is no valid ledger: damaged, changed, or older than its anchor."""

    code = "SITR-L06"


class WrongLedger(LedgerError):
    """It is a ledger, but not the one that was asked for, or of a schema that this version does not know."""

    code = "SITR-L07"


class NotPermitted(LedgerError):
    """Only an owner, only the analyst who asked, or only the process that reserved, may do this."""

    code = "SITR-L08"


class InvalidDeclaration(SitrError, ValueError):
    """A declaration cannot be read, is not consistent, or does not fit the database."""

    code = "SITR-D01"


class DeclarationChanged(InvalidDeclaration):
    """A declaration is not the one that a budget of the book was promised under."""

    code = "SITR-D02"


class NotAllowed(SitrError, ValueError):
    """A query asks for what the plan language does not have, or what no proof covers."""

    code = "SITR-Q01"


class EngineFailed(SitrError, RuntimeError):
    """The engine did not answer; nothing of what it said is repeated, since that may hold values."""

    code = "SITR-Q02"


class Cancelled(SitrError, RuntimeError):
    """A query was stopped; what it was charged stays."""

    code = "SITR-Q03"


class UselessQuestion(SitrError, ValueError):
    """By what is declared, the answer would tell nothing: it is not paid for by mistake."""

    code = "SITR-Q04"


class NoSuchWord(NotAllowed, AttributeError):
    """A word of pandas that the object does not have; the message says what to write instead."""

    code = "SITR-Q05"


class RanksParted(SitrError, RuntimeError):
    """The processes that make a training run together are no longer at the same step of it."""

    code = "SITR-T01"


class PrivacyWarning(UserWarning):
    """This guarantee holds, but it is weak."""


class AccuracyWarning(UserWarning):
    """The answer may be too noisy to use."""

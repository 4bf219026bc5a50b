"""The book read again from its first entry: what every budget holds, and whether every entry was allowed."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ..accounting import Event
from ..accounting.filters import MOST
from ..errors import InvalidRecord, LedgerDamaged, SitrError
from .budget import TOLERANCE, Keeper, block_kinds, check_share, keys
from .entry import KINDS, Entry, canonical, sha256
from .store import Charge
from .terms import Recorded, differences


class Fault(Exception):
    """An entry that should not be there, and why."""


@dataclass
class Account:
    """A budget while the book is read.

    Attributes:
        keepers: Its promise and its filter, as created, and after every raise.
        whole: What was spent on the whole dataset, in units of the filter.
        blocks: What each block spent besides.
    """

    keepers: list[Keeper]
    whole: tuple[int, int] = (0, 0)
    blocks: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def keeper(self) -> Keeper:
        """What keeps it now."""
        return self.keepers[-1]

    @property
    def version(self) -> int:
        """How often it was defined: 1, and one more for each raise."""
        return len(self.keepers)

    @property
    def peak(self) -> tuple[int, int]:
        """The most that any block spent, of either limit."""
        spent = self.blocks.values()
        return max((cost for cost, _ in spent), default=0), max((delta for _, delta in spent), default=0)

    @property
    def used(self) -> tuple[int, int]:
        """What a running total of the store must say."""
        peak = self.peak
        return self.whole[0] + peak[0], self.whole[1] + peak[1]

    def add(self, charge: Charge, sign: int = 1) -> tuple[int, int]:
        """Add a charge, or take it back, and return the most that a unit it touched has used by then."""
        more = (sign * charge.cost, sign * charge.delta)
        if not charge.blocks:
            self.whole = (self.whole[0] + more[0], self.whole[1] + more[1])
            return self.used
        for name in charge.blocks:
            cost, delta = self.blocks.get(name, (0, 0))
            self.blocks[name] = (cost + more[0], delta + more[1])
        touched = [self.blocks[name] for name in charge.blocks]
        return self.whole[0] + max(cost for cost, _ in touched), self.whole[1] + max(delta for _, delta in touched)


@dataclass
class Operation:
    """An operation while the book is read."""

    reserved: Entry
    state: str = "reserved"
    holder: str = ""
    committed: Entry | None = None


class Replay:
    """Applies entries one after the other.

    Args:
        recount: Work out again what every event costs, and compare. Without it charges are taken as they stand.
    """

    def __init__(self, *, recount: bool = False) -> None:
        self.accounts: dict[str, Account] = {}
        self.operations: dict[str, Operation] = {}
        self.terms: dict[tuple[str, str], Recorded] = {}
        self._recount = recount

    def apply(self, entry: Entry) -> None:
        """Take the next entry.

        Raises:
            Fault: It could not have been written by the rules.
        """
        step = getattr(self, f"_{entry.kind}", None) if entry.kind in KINDS else None
        if step is None:
            raise Fault(f"nothing is known of the kind {entry.kind!r}")
        try:
            step(entry, entry.record)
        except (KeyError, TypeError, AttributeError, ValueError, RecursionError, OverflowError, LedgerDamaged) as error:
            if isinstance(error, SitrError):
                raise Fault(error.what) from None
            raise Fault("its body lacks something, or has something of the wrong kind") from None

    def read(self, entry: Entry) -> None:
        """Take the next entry, for whoever only wants to know what the book says.

        Raises:
            LedgerDamaged: It breaks the rules: `verify` says more.
        """
        try:
            self.apply(entry)
        except Fault as fault:
            raise LedgerDamaged(f"entry {entry.seq} breaks the rules: {fault}.", do="sitr ledger verify.") from None

    def _open(self, entry: Entry, record: dict[str, Any]) -> None:
        if entry.seq != 1:
            raise Fault("a book is opened once")

    def _migrate(self, entry: Entry, record: dict[str, Any]) -> None:
        """The form of the tables changed; what was spent did not."""

    def _budget(self, entry: Entry, record: dict[str, Any]) -> None:
        name, keeper = record["name"], Keeper.from_json(record["definition"])
        if name in self.accounts:
            raise Fault(f"the budget {name!r} was created before")
        if not keeper.keeps_promise():
            raise Fault(f"the filter of the budget {name!r} allows more than it promises")
        dataset = name.partition("/")[0]
        if name != dataset:
            check_share(self.accounts[dataset].keeper.budget, keeper.budget)
        self.accounts[name] = Account([keeper])

    def _raise(self, entry: Entry, record: dict[str, Any]) -> None:
        account = self.accounts[record["name"]]
        keeper = Keeper.from_json(record["definition"])
        due = account.keeper.raised(keeper.budget)  # refuses what does not raise it
        if keeper.kind != due.kind or not keeper.keeps_promise() or keeper.order != due.order:
            raise Fault("the raised budget has another filter than the rules give it")
        account.whole = account.keeper.rescaled(account.whole, keeper)
        account.blocks = {name: account.keeper.rescaled(used, keeper) for name, used in account.blocks.items()}
        account.keepers.append(keeper)

    def _declare(self, entry: Entry, record: dict[str, Any]) -> None:
        now = Recorded.of(entry).terms
        if now.dataset not in self.accounts or "/" in now.dataset:
            raise Fault(f"there is no dataset {now.dataset!r} with a budget")
        if record["digests"] | {"settings": ""} != now.record["digests"] | {"settings": ""}:
            raise Fault("its digests are not of what it says")
        if differences(self.terms, now) and not record.get("reason"):
            raise Fault("it changes what the promise depends on, and gives no reason")
        self.terms[now.dataset, now.declaration] = Recorded(record)

    def _reserve(self, entry: Entry, record: dict[str, Any]) -> None:
        operation = _named(entry)
        if operation in self.operations:
            raise Fault(f"operation {operation!r} was reserved before")
        keepers = self._keepers_of(entry, record)
        charges = charges_of(record, keepers)
        for charge in charges:
            self._charge(charge)
        self.operations[operation] = Operation(entry)
        if self._recount:  # last: a charge that is too small is one all the same
            for charge in charges:
                _check_paid(charge, keepers[charge.name], record["event"])

    def _keepers_of(self, entry: Entry, record: dict[str, Any]) -> dict[str, Keeper]:
        """What keeps the budgets that a reservation charges, which are all that it falls under."""
        if any("/" in dataset for dataset in record["datasets"]):
            raise Fault("it names a share where a dataset belongs")
        names = keys(record["datasets"], str(entry.analyst), record["purpose"])
        keepers = {name: self.accounts[name].keeper for name in names if name in self.accounts}
        if not keepers or sorted(record["budgets"]) != sorted(keepers) or not set(record["datasets"]) <= keepers.keys():
            raise Fault("it does not charge all the budgets that it falls under")
        if len(set(record["blocks"])) < len(record["blocks"]) or len(set(names)) < len(names):
            raise Fault("it names a block or a dataset twice")
        if record["blocks"] and len(block_kinds(keepers.values())) > 1:
            raise Fault("it names blocks of two kinds")
        return keepers

    def _charge(self, charge: Charge) -> None:
        account = self.accounts[charge.name]
        if charge.version != account.version:
            raise Fault(f"it was worked out for another version of the budget {charge.name!r}")
        if any(type(units) is not int or units < 0 for units in (charge.cost, charge.delta)):
            raise Fault("it charges less than nothing, or no whole number")
        if max(account.add(charge)) > MOST:
            raise Fault(f"it takes more than the budget {charge.name!r} had left")

    def _start(self, entry: Entry, record: dict[str, Any]) -> None:
        self._pass(entry, "reserved", "started").holder = str(record["holder"])

    def _commit(self, entry: Entry, record: dict[str, Any]) -> None:
        operation = self._pass(entry, "started", "committed")
        operation.committed = entry
        if operation.holder != sha256(record["holder"].encode()):
            raise Fault("it was committed by another holder than it was started by")

    def _refund(self, entry: Entry, record: dict[str, Any]) -> None:
        self._pass(entry, "reserved", "refunded")
        for charge in self.refunds(_named(entry)):
            self.accounts[charge.name].add(charge, -1)

    def refunds(self, operation: str) -> list[Charge]:
        """Return what a refund would give back: what was charged, rounded down in units of the limits of today."""
        record = self.operations[operation].reserved.record
        charged = charges_of(record, {name: self.accounts[name].keeper for name in record["budgets"]})
        return [_today(charge, self.accounts[charge.name]) for charge in charged]

    def _pass(self, entry: Entry, before: str, after: str) -> Operation:
        operation = self.operations.get(_named(entry))
        if operation is None or operation.state != before or operation.reserved.analyst != entry.analyst:
            raise Fault(f"operation {entry.operation!r} was not {before} by {entry.analyst!r}")
        operation.state = after
        return operation


def _check_paid(charge: Charge, keeper: Keeper, event: dict[str, Any]) -> None:
    due = keeper.units(event_of(event))
    if charge.cost < due[0] * (1 - TOLERANCE) or charge.delta < due[1] * (1 - TOLERANCE):
        raise Fault(f"it charges {charge.name!r} less than its event costs")


def charges_of(record: dict[str, Any], keepers: dict[str, Keeper]) -> list[Charge]:
    """Return what a reservation charges, in the order of names; blocks count apart only where their budget says so."""
    blocks = tuple(record["blocks"])
    return [
        Charge(name, due["version"], due["cost"], due["delta"], blocks if keepers[name].budget.parallel else ())
        for name, due in sorted(record["budgets"].items())
    ]


def _today(charge: Charge, account: Account) -> Charge:
    then, now = account.keepers[charge.version - 1].filter(), account.keeper.filter()
    cost = int(charge.cost * Fraction(then.limit) / Fraction(now.limit))
    delta = int(charge.delta * Fraction(then.delta) / Fraction(now.delta)) if charge.delta else 0
    return charge._replace(version=account.version, cost=cost, delta=delta)


def event_of(record: dict[str, Any]) -> Event:
    """Return the event of a record; a book has few different ones, and each is read once.

    Raises:
        InvalidRecord: It is none.
    """
    try:
        return _event(canonical(record))
    except SitrError:
        raise
    except (ValueError, TypeError, RecursionError):
        raise InvalidRecord("the event of an entry cannot be read.") from None


@lru_cache(maxsize=4096)
def _event(text: str) -> Event:
    return Event.from_json(text)


def _named(entry: Entry) -> str:
    if entry.operation is None or entry.analyst is None:
        raise Fault("it names no operation, or no analyst")
    return entry.operation

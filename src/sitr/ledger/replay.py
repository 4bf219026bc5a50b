"""The book read again from its first entry: what every budget holds, and whether every entry was allowed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ..accounting import Event
from ..accounting.filters import covers
from ..errors import InvalidRecord, LedgerDamaged, SitrError
from .budget import block_kinds, check_share, keys
from .entry import KINDS, Entry, canonical, sha256
from .joining import Joining
from .keeper import Keeper
from .request import units_of
from .standing import Standing
from .terms import Recorded, differences
from .totals import Charge, Vector, holds, less, peak, plus


class Fault(Exception):
    """An entry that should not be there, and why."""


@dataclass
class Account:
    """A budget while the book is read.

    Attributes:
        keepers: Its promise and its filters, as created, and after every raise.
        whole: What was spent on the whole dataset, in units of each limit.
        blocks: What each block spent besides.
        replaced: The version in which it was last replaced, as shares may be.
    """

    keepers: list[Keeper]
    whole: Vector
    blocks: dict[str, Vector] = field(default_factory=dict)
    replaced: int = 0

    @property
    def keeper(self) -> Keeper:
        """What keeps it now."""
        return self.keepers[-1]

    @property
    def version(self) -> int:
        """How often it was defined: 1, and one more for each raise, and for a filter that joined."""
        return len(self.keepers)

    @property
    def peak(self) -> Vector:
        """The most that any block spent, of each limit."""
        return peak(self.keeper.nothing, self.blocks.values())

    @property
    def used(self) -> Vector:
        """What a running total of the store must say."""
        return plus(self.whole, self.peak)

    @property
    def standing(self) -> Standing:
        """What is left of it."""
        return Standing(self.keeper, self.used)

    @property
    def dearest(self) -> str | None:
        """The block that has the least left, of those that spent anything."""

        def left(block: str) -> float:
            return Standing(self.keeper, plus(self.whole, self.blocks[block])).remaining.share

        return min((name for name, used in self.blocks.items() if used != self.keeper.nothing), key=left, default=None)

    def add(self, charge: Charge) -> bool:
        """Add a charge, and return whether the promise holds then for all whom it touched."""
        if not charge.blocks:
            self.whole = plus(self.whole, charge.units)
            return holds(self.used, charge.ways)
        for name in charge.blocks:
            self.blocks[name] = plus(self.blocks.get(name, self.keeper.nothing), charge.units)
        return all(holds(plus(self.whole, self.blocks[name]), charge.ways) for name in charge.blocks)

    def give_back(self, charge: Charge) -> None:
        """Take a charge back; what is dead stays dead."""
        if not charge.blocks:
            self.whole = less(self.whole, charge.units)
        for name in charge.blocks:
            self.blocks[name] = less(self.blocks[name], charge.units)

    def join(self, told: dict[str, Any]) -> None:
        """Go on with a filter on pure ε beside the Rényi order, which counts so much already."""
        self.whole = (told["whole"], *self.whole)
        self.blocks = {name: (told["blocks"][name], *used) for name, used in self.blocks.items()}
        self.keepers.append(self.keeper.joined())

    def replace(self, keeper: Keeper, told: dict[str, Any]) -> None:
        """Go on with other limits, of which so much is counted already."""
        self.whole = tuple(told["whole"])
        self.blocks = {name: tuple(used) for name, used in told["blocks"].items()}
        self.keepers.append(keeper)
        self.replaced = self.version

    def rescale(self, keeper: Keeper) -> None:
        """Go on in the units of other limits, rounded up."""
        self.whole = self.keeper.rescaled(self.whole, keeper)
        self.blocks = {name: self.keeper.rescaled(used, keeper) for name, used in self.blocks.items()}
        self.keepers.append(keeper)


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
        self.outside: list[Entry] = []
        self._recount = recount

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Replay:
        """Return what a book says that has these entries.

        Raises:
            LedgerDamaged: One of them breaks the rules: `verify` says more.
        """
        replay = cls()
        for entry in entries:
            replay.read(entry)
        return replay

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
        """The form of the tables changed, what was spent did not; filters may have joined, which count all of it."""
        joined = record.get("joined", {})
        for name, told in joined.items():
            account = self.accounts[name]
            if not account.keeper.alone or told["definition"] != account.keeper.joined().to_json():
                raise Fault(f"another filter joined those of the budget {name!r} than the rules give it")
            if told["blocks"].keys() != account.blocks.keys():
                raise Fault(f"it counts other blocks than the budget {name!r} has")
            if not all(map(_is_unit, (told["whole"], *told["blocks"].values()))):
                raise Fault("it counts less than nothing, or no whole number")
        due = self._joining(joined) if self._recount else {}
        for name, told in joined.items():
            self.accounts[name].join(told)
        for name, joining in due.items():  # last: a filter that counts too little has joined all the same
            if not joining.accepts(joined[name]):
                raise Fault(f"it counts less pure ε of the budget {name!r} than its events have")

    def joining(self) -> dict[str, dict[str, Any]]:
        """Return what an entry says where a filter on pure ε joins the Rényi order of every budget that has no other.

        Where an event has no pure ε, it would be dead on the whole dataset for ever: there it does not join.
        """
        alone = [name for name, account in self.accounts.items() if account.keeper.alone]
        told = {name: joining.record for name, joining in self._joining(alone).items()}
        return {name: record for name, record in told.items() if record["whole"] is not None}

    def _joining(self, names: Iterable[str]) -> dict[str, Joining]:
        """What filters on pure ε have to count that join these budgets now: all that was charged and not refunded."""
        found = {name: Joining(self.accounts[name].keeper, self.accounts[name].blocks) for name in names}
        for operation in self.operations.values():
            record = operation.reserved.record
            for name in found.keys() & record["budgets"].keys() if operation.state != "refunded" else ():
                found[name].add(event_of(record["event"]), record["blocks"])
        return found

    def _budget(self, entry: Entry, record: dict[str, Any]) -> None:
        name, keeper = record["name"], Keeper.from_json(record["definition"])
        if name in self.accounts:
            raise Fault(f"the budget {name!r} was created before")
        if not keeper.keeps_promise():
            raise Fault(f"the filter of the budget {name!r} allows more than it promises")
        dataset = name.partition("/")[0]
        if name != dataset:
            check_share(self.accounts[dataset].keeper.budget, keeper.budget)
        self.accounts[name] = Account([keeper], keeper.nothing)

    def _raise(self, entry: Entry, record: dict[str, Any]) -> None:
        account = self.accounts[record["name"]]
        keeper = Keeper.from_json(record["definition"])
        due = account.keeper.raised(keeper.budget)  # refuses what does not raise it
        if not (keeper.keeps_promise() and keeper.follows(due)):
            raise Fault("the raised budget has another filter than the rules give it")
        account.rescale(keeper)

    def _replace(self, entry: Entry, record: dict[str, Any]) -> None:
        name, keeper = record["name"], Keeper.from_json(record["definition"])
        dataset, account = name.partition("/")[0], self.accounts[name]
        if name == dataset or not record["reason"]:
            raise Fault("the budget of a dataset is only raised, and a share replaced with a reason")
        check_share(self.accounts[dataset].keeper.budget, keeper.budget)
        if not keeper.keeps_promise():
            raise Fault(f"the filter of the share {name!r} allows more than it says")
        counted = [record["whole"], *record["blocks"].values()]
        if record["blocks"].keys() != account.blocks.keys() or {len(one) for one in counted} != {len(keeper.nothing)}:
            raise Fault(f"it counts other blocks, or in other places, than the share {name!r} has")
        if not all(_is_unit(units) for one in counted for units in one):
            raise Fault("it counts less than nothing, or no whole number")
        due = self.recounted(name, keeper) if self._recount else None
        account.replace(keeper, record)
        if due is not None and not (  # last: a share that counts too little was replaced all the same
            all(map(covers, account.whole, due.whole))
            and all(all(map(covers, account.blocks[block], used)) for block, used in due.blocks.items())
        ):
            raise Fault(f"it counts less than was charged to the share {name!r}")

    def recounted(self, name: str, keeper: Keeper) -> Account:
        """Return a budget with all that was charged to it and not refunded, in the measure of another keeper.

        Raises:
            NoSuchGuarantee: Something has no price there.
        """
        made = Account([keeper], keeper.nothing, dict.fromkeys(self.accounts[name].blocks, keeper.nothing))
        for operation in self.operations.values():
            record = operation.reserved.record
            if operation.state != "refunded" and name in record["budgets"]:
                blocks = tuple(record["blocks"]) if keeper.budget.parallel else ()
                made.add(Charge(name, 1, keeper.units(event_of(record["event"])), keeper.ways, blocks))
        return made

    def _declare(self, entry: Entry, record: dict[str, Any]) -> None:
        now = Recorded.of(entry).terms
        if now.dataset not in self.accounts or "/" in now.dataset:
            raise Fault(f"there is no dataset {now.dataset!r} with a budget")
        if record["digests"] | {"settings": ""} != now.record["digests"] | {"settings": ""}:
            raise Fault("its digests are not of what it says")
        if differences(self.terms, now) and not record.get("reason"):
            raise Fault("it changes what the promise depends on, and gives no reason")
        self.terms[now.dataset, now.declaration] = Recorded(record)

    def _outside(self, entry: Entry, record: dict[str, Any]) -> None:
        """Something left that no promise covers: no budget changes."""
        self.outside.append(entry)
        if record["name"] not in self.accounts or "/" in record["name"]:
            raise Fault(f"there is no dataset {record['name']!r} with a budget")
        if entry.operation is not None or not all(_is_line(record[name]) for name in ("what", "notion", "reason")):
            raise Fault("it does not say what left, by which notion and why, or belongs to an operation")

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
        if record["blocks"] and len(block_kinds(keeper.budget for keeper in keepers.values())) > 1:
            raise Fault("it names blocks of two kinds")
        return keepers

    def _charge(self, charge: Charge) -> None:
        account = self.accounts[charge.name]
        if charge.version != account.version:
            raise Fault(f"it was worked out for another version of the budget {charge.name!r}")
        if not all(map(_is_unit, charge.units)):
            raise Fault("it charges less than nothing, or no whole number")
        if len(charge.units) != len(account.whole):
            raise Fault(f"it charges the budget {charge.name!r} in other places than its filters have")
        if not account.add(charge):
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
            self.accounts[charge.name].give_back(charge)

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
    if not keeper.filter.accepts(event_of(event), charge.units):
        raise Fault(f"it charges {charge.name!r} less than its event costs")


def _is_line(text: Any) -> bool:
    return isinstance(text, str) and bool(text.strip())


def _is_unit(units: Any) -> bool:
    return units is None or (type(units) is int and units >= 0)


def charges_of(record: dict[str, Any], keepers: dict[str, Keeper]) -> list[Charge]:
    """Return what a reservation charges, in the order of names; blocks count apart only where their budget says so."""
    blocks = tuple(record["blocks"])
    charged = [(name, due, keepers[name]) for name, due in sorted(record["budgets"].items())]
    return [
        Charge(name, due["version"], units_of(due), keeper.ways, blocks if keeper.budget.parallel else ())
        for name, due, keeper in charged
    ]


def _today(charge: Charge, account: Account) -> Charge:
    if charge.version < account.replaced:  # what was spent under a share that was replaced stays spent
        return charge._replace(version=account.version, units=account.keeper.nothing)
    then = account.keepers[charge.version - 1]
    return charge._replace(version=account.version, units=then.rescaled(charge.units, account.keeper, up=False))


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

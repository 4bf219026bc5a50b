"""The book: every release is charged here before a row is read, and nothing that was charged is forgotten."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

from .. import _validate
from ..accounting import Event
from ..errors import AlreadyAnswered, LedgerDamaged, NotPermitted
from .address import store_at
from .anchor import hold_to, write_mark
from .answer import Answer, stored_answer
from .asked import Asked
from .budget import Budget, key
from .budgets import Budgets
from .declaration import declare
from .entry import Entry, Head
from .grant import Grant
from .history import History
from .journal import Line, journal
from .opening import open_book
from .outside import note_outside
from .promise import make_promise, raise_promise
from .reason import check_reason
from .refund import refund
from .replacement import replace_share
from .request import Request
from .reservation import answered_before, reserve
from .standing import Amount, Standing
from .statement import Statement
from .store import Store
from .terms import Recorded, Terms, latest
from .verification import Verification, verify


class Ledger:
    """A durable account of everything that was released.

    Open one with `Ledger.open`. A step is on the disk before it is answered; what crashes after `reserve` stays spent.

    Privacy: every budget is kept by its filter for analysts who choose each event after seeing all answers (THEORY
    5.1), also when several ask at once (THEORY 5.3). In one process `analyst` is a claim, which is recorded; who can
    write the store can forge it, and an anchor elsewhere shows that up to its last line.

    Example:
        >>> from sitr.accounting import Laplace
        >>> ledger = Ledger.open("memory://")
        >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
        >>> with ledger.reserve("clinic", Laplace(noise_multiplier=4), analyst="amina", operation="q-17") as grant:
        ...     grant.commit(42)
        >>> ledger.spent("clinic").value, ledger.remaining("clinic").value
        (0.25, 0.75)
        >>> ledger.answer("q-17", analyst="amina").value, ledger.verify().valid
        (42, True)
    """

    def __init__(self, store: Store, id: str, anchor: Path | None, answers: Path | None) -> None:
        self.store, self.id, self.answers = store, id, answers
        self._anchor = anchor
        self._budgets = Budgets(store)

    @classmethod
    def open(
        cls,
        url: str | Path,
        *,
        create: bool = True,
        expect: str | None = None,
        anchor: str | Path | None = None,
        answers: str | Path | None = None,
        wait: float = 10.0,
    ) -> Ledger:
        """Open a book, or begin one.

        Args:
            url: "sqlite:///book.db" or just "book.db" or its path, "postgresql://user@host/database", or "memory://".
            create: Begin a new book where there is none; otherwise that is an error.
            expect: The id that the book must have.
            anchor: A file elsewhere, for an owner. It is compared with the book now, and gets a line for every charge.
            answers: The folder for large answers; for SQLite it is beside the file by default.
            wait: How many seconds to wait for another process that writes.

        Raises:
            UnknownName: There is no book, and none was to be made.
            WrongLedger: It is another book than expected, or made by a later version of sitr.
            LedgerDamaged: It cannot be read, or it is older than its anchor.
            LedgerUnavailable: It cannot be reached, or not be made.

        Example:
            >>> ledger = Ledger.open("memory://")
            >>> ledger.head.seq
            1
        """
        store, beside = store_at(url, _validate.real("wait", wait, 0, 3600))
        try:
            held_to = Path(anchor) if anchor else None
            id = open_book(store, create=create, expect=expect, anchor=held_to)
            return cls(store, id, held_to, Path(answers) if answers else beside)
        except BaseException:
            store.close()
            raise

    def __repr__(self) -> str:
        return f"Ledger({self.store.place!r}, id={self.id!r})"

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Give connections back; a ledger that is used again opens them anew."""
        self.store.close()

    @cached_property
    def in_memory(self) -> bool:
        """Whether the book is gone with the process."""
        return self.store.place == "memory"

    @property
    def head(self) -> Head:
        """The end of the book: its place and hash fix everything before."""
        identity = self.store.identity()
        if identity is None or identity.id != self.id:
            raise LedgerDamaged(f"the ledger at {self.store.place} is gone, or was exchanged while it was open.")
        return identity.head

    def name_of(self, entry: Entry) -> str:
        """Return how a release cites an entry: the ledger's id and the place.

        Example:
            >>> ledger = Ledger.open("memory://")
            >>> ledger.name_of(next(ledger.entries())).endswith("/1")
            True
        """
        return entry.name_in(self.id)

    # Budgets

    def create_budget(
        self, dataset: str, budget: Budget, *, analyst: str | None = None, purpose: str | None = None
    ) -> None:
        """Promise a limit: on a dataset, or within it on what one analyst, or one purpose, may spend of it.

        A view, a new version or the growth of a dataset stays on the budget of its dataset; deleting a person from the
        data refunds nothing.

        Raises:
            InvalidArgument: There is a budget of that name, or the share differs from its dataset in whom it protects.
            UnknownName: A share of a dataset that has no budget.

        Privacy: every release is charged to the dataset. A share limits further and never replaces that: analysts may
            talk to each other.

        Example:
            >>> ledger = Ledger.open("memory://")
            >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
            >>> ledger.create_budget("clinic", Budget(epsilon=0.25), analyst="amina")
            >>> ledger.remaining("clinic", analyst="amina").value
            0.25
        """
        name = key(dataset, analyst=analyst, purpose=purpose)
        self._marked(make_promise(self.store, self._budgets, name, budget))

    def raise_budget(
        self, dataset: str, budget: Budget, *, reason: str, analyst: str | None = None, purpose: str | None = None
    ) -> None:
        """Raise a budget, which weakens the promise: a dated change that every statement shows.

        Raises:
            InvalidArgument: The new limits are not higher, or the budget is of another kind.

        Privacy: the Rényi order of an (ε,δ) budget stays, since it was fixed in advance (THEORY 5.1); its limit grows.

        Example:
            >>> ledger = Ledger.open("memory://")
            >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
            >>> ledger.raise_budget("clinic", Budget(epsilon=2.0), reason="second wave")
            >>> ledger.remaining("clinic").value
            2.0
        """
        name = key(dataset, analyst=analyst, purpose=purpose)
        reason = check_reason(reason)
        self._marked(raise_promise(self.store, self._budgets.total(name), budget, reason))

    def replace_share(
        self, dataset: str, budget: Budget, *, reason: str, analyst: str | None = None, purpose: str | None = None
    ) -> None:
        """Give the share of an analyst, or of a purpose, other limits: lower ones, or of another kind.

        What was charged to the share is counted again in the measure of the new limits, and stays spent, also if it is
        more than they are; it is refunded to the dataset alone.

        Raises:
            InvalidArgument: It is no share; or what was charged to it has no price in the new limits.
            UnknownName: There is no such share.

        Privacy: a share is a limit within the dataset's promise, and no promise of its own; the dataset's stays.

        Example:
            >>> from sitr.accounting import Laplace
            >>> ledger = Ledger.open("memory://")
            >>> ledger.create_budget("clinic", Budget(epsilon=2.0, delta=1e-6))
            >>> ledger.create_budget("clinic", Budget(epsilon=0.5), analyst="amina")
            >>> grant = ledger.reserve("clinic", Laplace(noise_multiplier=4), analyst="amina")
            >>> ledger.replace_share("clinic", Budget(epsilon=1.0), reason="a second study", analyst="amina")
            >>> ledger.remaining("clinic", analyst="amina").value
            0.75
        """
        name = key(dataset, analyst=analyst, purpose=purpose)
        self._marked(replace_share(self.store, name, budget, check_reason(reason)))

    def declare(self, terms: Terms, *, reason: str | None = None) -> bool:
        """Write down what the promise of a dataset depends on, as its owner; return whether anything was new.

        Args:
            terms: What a declaration says of the dataset.
            reason: Why the promise is another than it was; needed where it is.

        Raises:
            DeclarationChanged: The book knows other terms, and no reason is given.
            InvalidDeclaration: Another declaration of the book reads one of the sources, with another unit or budget.

        Privacy: a promise to a unit means nothing without what a unit is, and where its rows are.

        Example:
            >>> ledger = Ledger.open("memory://")
            >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
            >>> terms = Terms("clinic", "clinic", 1, {"tables.visits.unit": "named by patient"})
            >>> ledger.declare(terms), ledger.declare(terms)
            (True, False)
        """
        self._budgets.total(key(terms.dataset))
        written = declare(self.store, terms, None if reason is None else check_reason(reason))
        return written is not None and self._marked(written) is not None

    def terms(self, declaration: str | None, datasets: Iterable[str] = ()) -> dict[tuple[str, str], Recorded]:
        """Return the terms that hold for a declaration, and for datasets, by dataset and declaration; of None all.

        As an analyst of a ledger in PostgreSQL, one sees their digests, and none without a name.

        Example:
            >>> Ledger.open("memory://").terms("clinic", ["clinic"])
            {}
        """
        return latest(self.store.declared(declaration, list(datasets)))

    @property
    def has_terms(self) -> bool:
        """Whether the book says of any budget what its promise depends on; analysts see that as well.

        Example:
            >>> Ledger.open("memory://").has_terms
            False
        """
        return self.store.has_terms()

    def budgets(self) -> dict[str, Budget]:
        """Return all budgets by name; an analyst's share of "clinic" is "clinic/analyst/amina".

        Example:
            >>> ledger = Ledger.open("memory://")
            >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
            >>> print(ledger.budgets()["clinic"])
            ε = 1 for one person added or removed
        """
        return self._budgets.all()

    def budget(self, dataset: str, *, analyst: str | None = None, purpose: str | None = None) -> Budget:
        """Return one budget as it stands now.

        Example:
            >>> ledger = Ledger.open("memory://")
            >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
            >>> ledger.budget("clinic").epsilon
            1.0
        """
        return self._budgets.standing(key(dataset, analyst=analyst, purpose=purpose)).budget

    def spent(self, dataset: str, *, analyst: str | None = None, purpose: str | None = None) -> Amount:
        """Return what was charged, rounded up, in the measure of the budget's filter (THEORY 5.1).

        Example:
            >>> from sitr.accounting import Laplace
            >>> ledger = Ledger.open("memory://")
            >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
            >>> grant = ledger.reserve("clinic", Laplace(noise_multiplier=4), analyst="amina")
            >>> ledger.spent("clinic").value
            0.25
        """
        return self._budgets.standing(key(dataset, analyst=analyst, purpose=purpose)).spent

    def remaining(self, dataset: str, *, analyst: str | None = None, purpose: str | None = None) -> Amount:
        """Return the most that one more event may cost, rounded down.

        Example:
            >>> from sitr.accounting import Laplace
            >>> ledger = Ledger.open("memory://")
            >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
            >>> grant = ledger.reserve("clinic", Laplace(noise_multiplier=4), analyst="amina")
            >>> ledger.remaining("clinic").share
            0.75
        """
        return self._budgets.standing(key(dataset, analyst=analyst, purpose=purpose)).remaining

    def left_for(
        self, datasets: str | Iterable[str], *, analyst: str, purpose: str | None = None
    ) -> dict[str, Standing]:
        """Return how every budget stands that a release would be charged to, by its name.

        As an analyst of a ledger in PostgreSQL, one sees no other analyst's.

        Raises:
            UnknownName: A dataset has no budget.

        Example:
            >>> ledger = Ledger.open("memory://")
            >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
            >>> ledger.create_budget("clinic", Budget(epsilon=0.5), analyst="amina")
            >>> {name: one.remaining.value for name, one in ledger.left_for("clinic", analyst="amina").items()}
            {'clinic': 1.0, 'clinic/analyst/amina': 0.5}
        """
        return self._budgets.left_for([datasets] if isinstance(datasets, str) else datasets, analyst, purpose)

    def standings(self, names: Iterable[str]) -> dict[str, Standing]:
        """Return how budgets stand, by name, as far as they exist; in PostgreSQL, analysts do not see others' shares.

        Example:
            >>> ledger = Ledger.open("memory://")
            >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
            >>> {name: standing.remaining.value for name, standing in ledger.standings(["clinic", "lab"]).items()}
            {'clinic': 1.0}
        """
        return self._budgets.paying((), list(names))

    # Releases

    def reserve(
        self,
        datasets: str | Iterable[str],
        event: Event,
        *,
        analyst: str,
        operation: str | None = None,
        purpose: str | None = None,
        blocks: Iterable[str] = (),
        request: Mapping[str, Any] | None = None,
        asked: Asked | None = None,
    ) -> Grant:
        """Charge an event to every budget that it falls under, or to none; use what is returned in a `with` block.

        Args:
            datasets: Every private dataset that the release reads.
            event: What will be done; a batch that is declared as a whole is one composed event, at its joint cost.
            analyst: Who asks.
            operation: An id for this release, to ask again after a crash. Left out, one is made up.
            purpose: What for; a budget for that purpose is charged as well.
            blocks: The blocks of the data that are read; none means all of it.
            request: What exactly is asked (plan, version of the declaration, parameters), as JSON can hold it. The same
                id with another request is refused.
            asked: The same for people, who read it in the book: the question and its price.

        Raises:
            BudgetExceeded: It does not fit; the message says by how much, and what would.
            UnknownName: A dataset has no budget.
            AlreadyAnswered: This operation has an answer: `answer` returns it.
            AlreadySpent: This operation was started and has no answer, or was refunded.
            OperationTaken: The id stands for another request, or another analyst's.
            NoSuchGuarantee: The event has no guarantee in a budget's measure.
            IncompatibleAdjacency: The event speaks of other neighbours than a budget.

        Privacy: the charge is on the disk before this returns, so no answer can leave without one. The filter of each
            budget holds for analysts who choose every event after seeing all answers (THEORY 5.1).

        Example:
            >>> from sitr.accounting import Laplace
            >>> ledger = Ledger.open("memory://")
            >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
            >>> with ledger.reserve("clinic", Laplace(noise_multiplier=2), analyst="amina", operation="q-1") as grant:
            ...     grant.commit(42)
            >>> ledger.reserve("clinic", Laplace(noise_multiplier=1), analyst="amina")
            Traceback (most recent call last):
            sitr.errors.BudgetExceeded: BudgetExceeded [SITR-B01]: budget 'clinic': ε: 1.00 requested, 0.500 left, ...
            Why: ...
            Do: what fits into this budget: the same with 2.00 times the noise.
        """
        wanted = Request(datasets, event, analyst, operation, purpose, blocks, request, asked)
        return Grant(self, event, self._marked(reserve(self.store, self._budgets, wanted)))

    def once(
        self,
        datasets: str | Iterable[str],
        event: Event,
        compute: Callable[[], Any],
        *,
        analyst: str,
        operation: str | None = None,
        **about: Any,
    ) -> Answer:
        """Reserve, compute and commit, or return what was committed before under the same id, free of charge.

        Args:
            datasets: As in `reserve`.
            event: As in `reserve`.
            compute: Returns the answer; it is called once, after the charge, or never.
            analyst: As in `reserve`.
            operation: As in `reserve`; only what has an id can be asked again.
            about: `purpose`, `blocks`, `request` and `asked`, as in `reserve`.

        Example:
            >>> from sitr.accounting import Laplace
            >>> ledger = Ledger.open("memory://")
            >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
            >>> ask = dict(analyst="amina", operation="q-17")
            >>> first = ledger.once("clinic", Laplace(noise_multiplier=4), lambda: 42, **ask)
            >>> again = ledger.once("clinic", Laplace(noise_multiplier=4), lambda: 43, **ask)
            >>> first.value, again.value, ledger.spent("clinic").value
            (42, 42, 0.25)
        """
        try:
            grant = self.reserve(datasets, event, analyst=analyst, operation=operation, **about)
        except AlreadyAnswered:
            return self.answer(str(operation), analyst=analyst)
        with grant:
            grant.commit(compute())
        return self.answer(grant.operation, analyst=analyst)

    def asked_before(
        self,
        datasets: str | Iterable[str],
        event: Event,
        *,
        analyst: str,
        purpose: str | None = None,
        request: Mapping[str, Any] | None = None,
    ) -> str | None:
        """Return the operation under which an analyst was answered the very same lately, to be asked for again free.

        Looks at the last hundreds of entries; as an analyst of a ledger in PostgreSQL, at none.

        Example:
            >>> from sitr.accounting import Laplace
            >>> ledger = Ledger.open("memory://")
            >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
            >>> ledger.asked_before("clinic", Laplace(noise_multiplier=4), analyst="amina") is None
            True
        """
        return answered_before(self.store, Request(datasets, event, analyst, None, purpose, (), request))

    def answer(self, operation: str, *, analyst: str) -> Answer:
        """Return a stored answer, with its date, to the analyst who asked for it; nothing runs and nothing is charged.

        Raises:
            UnknownName: There is no answer of that id.
            NotPermitted: Another analyst asked for it.
            LedgerDamaged: What is stored is not what was committed.

        Privacy: the same bytes again are no new release.

        Example:
            >>> from sitr.accounting import Laplace
            >>> ledger = Ledger.open("memory://")
            >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
            >>> with ledger.reserve("clinic", Laplace(noise_multiplier=2), analyst="amina", operation="q-1") as grant:
            ...     grant.commit(42)
            >>> ledger.answer("q-1", analyst="amina").value
            42
        """
        return stored_answer(self.store, self.id, _validate.name("operation", operation), analyst, self.answers)

    def allow(self, analyst: str) -> None:
        """Let a PostgreSQL role ask under its own name: it may execute the functions of the protocol and nothing else.

        Raises:
            NotPermitted: The store is SQLite, where whoever can open the file can do everything.
        """
        self.store.allow(analyst)

    def refund(self, operation: str, *, reason: str) -> None:
        """Give back what an operation was charged that never started, as an owner; it never runs under its id.

        Raises:
            UnknownName: There is no such operation.
            NotPermitted: It was started: it may have run.

        Privacy: what never started has read no row, and has told nothing.

        Example:
            >>> from sitr.accounting import Laplace
            >>> ledger = Ledger.open("memory://")
            >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
            >>> grant = ledger.reserve("clinic", Laplace(noise_multiplier=2), analyst="amina", operation="q-1")
            >>> ledger.refund("q-1", reason="never ran")
            >>> ledger.remaining("clinic").value
            1.0
        """
        operation, reason = _validate.name("operation", operation), check_reason(reason)
        self._marked(refund(self.store, operation, reason))

    def note_outside(self, dataset: str, what: str, *, notion: str, reason: str, analyst: str | None = None) -> None:
        """Write down, as an owner, what left of a dataset that its promise does not cover; nothing is charged.

        Every statement, list and picture of the dataset shows it from then on, as outside the promise.

        Args:
            dataset: Of whose people it was made.
            what: What left, in a line.
            notion: What holds of it in place of the promise, in a line: "random DP with α = 1, γ = 0.04".
            reason: Why it was made.
            analyst: By whom.

        Raises:
            UnknownName: The dataset has no budget.

        Privacy: what is noted here protects nobody in the sense of the promise. It is no event, and has no price that a
            budget could pay.

        Example:
            >>> ledger = Ledger.open("memory://")
            >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
            >>> about = {"notion": "random DP with α = 1, γ = 0.04", "reason": "for a study"}
            >>> ledger.note_outside("clinic", "a histogram of diagnoses", **about)
            >>> print(ledger.statement("clinic").outside[0].what, ledger.remaining("clinic").value)
            a histogram of diagnoses 1.0
        """
        name = key(dataset)
        self._budgets.total(name)
        self._marked(note_outside(self.store, name, what, notion, reason, analyst))

    # Evidence

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """Yield the entries of the book after a place, in order.

        Example:
            >>> [entry.kind for entry in Ledger.open("memory://").entries()]
            ['open']
        """
        return self.store.entries(after)

    def releases(self) -> list[Line]:
        """Return a line for each release: when, who, what for, the question, its price, and what was left after it.

        As an analyst of a ledger in PostgreSQL, one sees one's own.

        Example:
            >>> from sitr.accounting import Laplace
            >>> ledger = Ledger.open("memory://")
            >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
            >>> grant = ledger.reserve("clinic", Laplace(noise_multiplier=4), analyst="amina", purpose="audit")
            >>> [(line.analyst, line.purpose, line.question, line.state) for line in ledger.releases()]
            [('amina', 'audit', 'laplace(4)', 'reserved')]
        """
        try:
            return journal(self.entries())
        except NotPermitted:
            return journal(self.store.mine(), whole=False)

    def verify(
        self, *, anchor: str | Path | None = None, progress: Callable[[int], object] | None = None
    ) -> Verification:
        """Read the whole book: the chain, every charge worked out again from its event, totals, answers, the anchor.

        Args:
            anchor: The file that `write_anchor` wrote; left out, the one that the ledger was opened with.
            progress: Called with the number of entries that were read, now and then.

        Example:
            >>> ledger = Ledger.open("memory://")
            >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
            >>> found = ledger.verify()
            >>> found.valid, found.head.seq
            (True, 2)
        """
        where = Path(anchor) if anchor is not None else self._anchor
        return verify(self.store, self.id, self.answers, where, progress)

    def write_anchor(self, path: str | Path) -> Head:
        """Hold the book to a file elsewhere, write its end down there, and return it.

        Raises:
            LedgerDamaged: The file knows entries that the book has lost, or has otherwise.
            WrongLedger: The file is another ledger's.

        Privacy: an anchor proves history up to its last line; an owner who can write both can forge both.

        Example:
            >>> import tempfile
            >>> ledger, anchor = Ledger.open("memory://"), Path(tempfile.mkdtemp()) / "anchor"
            >>> ledger.write_anchor(anchor).seq, ledger.verify(anchor=anchor).anchored[:21]
            (1, 'anchored up to entry ')
        """
        hold_to(Path(path), self.store, self.id)
        head = self.head
        write_mark(Path(path), self.id, head)
        return head

    def statement(self, dataset: str, *, analyst: str | None = None, purpose: str | None = None) -> Statement:
        """Return all there is to say of a budget; the exact composition is a report and never enforces (THEORY 5.1).

        Example:
            >>> from sitr.accounting import Laplace
            >>> ledger = Ledger.open("memory://")
            >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
            >>> grant = ledger.reserve("clinic", Laplace(noise_multiplier=4) * 2, analyst="amina")
            >>> statement = ledger.statement("clinic")
            >>> statement.spent.value, statement.fits, round(statement.exact.upper, 6)
            (0.5, 'Laplace(noise_multiplier=2.00)', 0.5)
        """
        history = History.of(self.entries(), key(dataset, analyst=analyst, purpose=purpose))
        if not history.promises:
            raise self._budgets.unknown(history.name)
        return history.statement(self.id)

    # Within

    def _marked(self, entry: Entry) -> Entry:
        """Nothing is granted before the anchor knows of the charge."""
        self.store.saw(entry.head)
        if self._anchor is not None:
            write_mark(self._anchor, self.id, entry.head)
        return entry

"""A model of the ledger in some fifty lines, and histories that both go through step by step."""

import random
from collections import Counter, defaultdict

import pytest

from sitr.accounting import ZeroConcentrated
from sitr.errors import SitrError
from sitr.ledger import Budget, Ledger

DATASETS = ("clinic", "school", "tax")
OFTEN = {"create": 2, "raise": 1, "reserve": 14, "start": 8, "commit": 8, "refund": 2, "answer": 4, "crash": 1}
KINDS = [kind for kind, times in OFTEN.items() for _ in range(times)]
BLOCKS = ((), ("a",), ("b",), ("a", "b"))
PARALLEL = "clinic"  # whose blocks count once
SMALL = 2.0**-20  # what one unit of δ stands for; one of ρ stands for 1


class Refused(Exception):
    """Carries the name of the error that the ledger is to raise."""


class Model:
    """What a ledger is to do, in whole units of ρ and of δ: two limits, and either may be reached first."""

    def __init__(self):
        self.limits, self.operations = {}, {}
        self.whole, self.blocks = defaultdict(lambda: (0, 0)), defaultdict(lambda: (0, 0))

    def used(self, name):
        return plus(self.whole[name], most(used for (of, _), used in self.blocks.items() if of == name))

    def create(self, name, limit):
        self.need(name not in self.limits, "InvalidArgument")
        self.limits[name] = limit

    def double(self, name):
        self.need(name in self.limits, "UnknownName")
        self.limits[name] = tuple(2 * limit for limit in self.limits[name])

    def reserve(self, operation, names, cost, blocks):
        self.need(self.limits.keys() >= set(names), "UnknownName")
        known = self.operations.get(operation)
        if known is not None:
            self.need(known["request"] == (names, cost, blocks), "OperationTaken")
            self.need(known["state"] != "committed", "AlreadyAnswered")
            self.need(known["state"] == "reserved", "AlreadySpent")
            return
        for name in names:  # all of them, or none
            apart = [self.blocks[name, block] for block in self.apart(name, blocks)]
            used = plus(self.whole[name], most(apart)) if apart else self.used(name)
            self.need(within(plus(used, cost), self.limits[name]), "BudgetExceeded")
        self.add(names, blocks, cost)
        self.operations[operation] = {"request": (names, cost, blocks), "state": "reserved", "holder": None}

    def start(self, grant):
        operation = self.operations[grant.operation]
        self.need(operation["state"] == "reserved", "AlreadySpent")
        operation.update(state="started", holder=grant)

    def commit(self, grant, answer):
        operation = self.operations[grant.operation]
        self.need(operation["holder"] is grant, "AlreadySpent")
        self.need(operation["state"] == "started" or operation["answer"] == answer, "AlreadyAnswered")
        operation.update(state="committed", answer=answer)

    def refund(self, name):
        self.need(name in self.operations, "UnknownName")
        operation = self.operations[name]
        self.need(operation["state"] == "reserved", "NotPermitted")
        operation["state"] = "refunded"
        names, cost, blocks = operation["request"]
        self.add(names, blocks, tuple(-one for one in cost))

    def answer(self, name):
        self.need(self.operations.get(name, {}).get("state") == "committed", "UnknownName")
        return self.operations[name]["answer"]

    def add(self, names, blocks, cost):
        for name in names:
            for block in self.apart(name, blocks):
                self.blocks[name, block] = plus(self.blocks[name, block], cost)
            if not self.apart(name, blocks):
                self.whole[name] = plus(self.whole[name], cost)

    @staticmethod
    def apart(name, blocks):
        return blocks if name == PARALLEL else ()

    @staticmethod
    def need(condition, error):
        if not condition:
            raise Refused(error)


def plus(one, other):
    return one[0] + other[0], one[1] + other[1]


def most(used):
    """The most that any has used, of either limit."""
    return tuple(map(max, zip((0, 0), *used, strict=True)))


def within(used, limits):
    return used[0] <= limits[0] and used[1] <= limits[1]


class Pair:
    """A ledger and the model beside it; every step is made on both, and both must agree."""

    def __init__(self, url):
        self.url, self.ledger, self.model, self.grants = url, Ledger.open(url), Model(), []
        self.outcomes = Counter()

    def step(self, kind, first, second, third):
        name, operation, blocks = DATASETS[first % len(DATASETS)], f"q{second}", BLOCKS[second % len(BLOCKS)]
        # Mostly the same request under the same id; some cost more ρ than δ, and some the other way about.
        cost = 1 + second % 3 + (third % 7 == 0), second // 3 % 5
        both = DATASETS[second % len(DATASETS)], DATASETS[(second + 1) % len(DATASETS)]
        names = both if second % 4 == 0 else both[:1]  # what a release reads
        grant = self.grants[-1 - third % min(len(self.grants), 4)] if self.grants else None
        if kind == "crash":
            self.crash()
        endless = kind == "raise" and self.model.limits.get(name, (0, 0))[0] >= 128
        if kind == "crash" or endless or (grant is None and kind in ("start", "commit")):
            return
        limits = 8 * 2**first, 8 * 2**first
        blocked = {"disjoint_by": "ward"} if name == PARALLEL else {}
        ask = {"analyst": "amina", "operation": operation, "blocks": blocks}
        real, ideal = {
            "create": (
                lambda: self.ledger.create_budget(name, budget(limits, **blocked)),
                lambda: self.model.create(name, limits),
            ),
            "raise": (lambda: self.double(name, blocked), lambda: self.model.double(name)),
            "reserve": (
                lambda: self.reserve(names, ZeroConcentrated(cost[0], delta=cost[1] * SMALL), ask),
                lambda: self.model.reserve(operation, names, cost, blocks),
            ),
            "start": (lambda: grant.start(), lambda: self.model.start(grant)),
            "commit": (lambda: grant.commit(third), lambda: self.model.commit(grant, third)),
            "refund": (
                lambda: self.ledger.refund(operation, reason="model"),
                lambda: self.model.refund(operation),
            ),
            "answer": (
                lambda: self.ledger.answer(operation, analyst="amina").value,
                lambda: self.model.answer(operation),
            ),
        }[kind]
        wanted, got = outcome(ideal), outcome(real)
        assert got == wanted, (kind, name, operation, cost, blocks)
        self.outcomes[f"{kind}: {got if isinstance(got, str) else 'done'}"] += 1
        self.compare()

    def reserve(self, names, event, ask):
        self.grants.append(self.ledger.reserve(names, event, **ask))

    def double(self, name, blocked):
        now = self.ledger.budget(name)
        doubled = Budget(rho=2 * now.rho, delta=2 * now.delta, **blocked)
        self.ledger.raise_budget(name, doubled, reason="model")

    def crash(self):
        """The process dies: grants are gone, and the book is opened again."""
        self.grants.clear()
        self.outcomes["crash"] += 1
        if self.url != "memory://":
            self.ledger.close()
            self.ledger = Ledger.open(self.url, create=False)

    def compare(self):
        for name, limits in self.model.limits.items():
            used, spent = self.model.used(name), self.ledger.spent(name)
            assert spent.value == used[0]
            assert spent.delta == pytest.approx(used[1] * SMALL, rel=1e-12)
            assert within(used, limits)

    def close(self):
        found = self.ledger.verify()
        self.ledger.close()
        assert found.valid, found


def budget(limits, **about):
    return Budget(rho=float(limits[0]), delta=limits[1] * SMALL, **about)


def outcome(act):
    """What a step returned, or the name of its error."""
    try:
        return act()
    except Refused as refused:
        return str(refused)
    except SitrError as error:
        return type(error).__name__


def run_history(fresh, steps, seed, *, book=1000):
    """Make so many random steps, with a new book now and then; return how often what happened."""
    chance, outcomes = random.Random(seed), Counter()
    while steps > 0:
        pair = Pair(fresh())
        for _ in range(min(book, steps)):
            pair.step(chance.choice(KINDS), chance.randrange(3), chance.randrange(60), chance.randrange(1000))
        pair.close()
        outcomes += pair.outcomes
        steps -= book
    return outcomes

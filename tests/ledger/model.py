"""A model of the ledger in some fifty lines, and histories that both go through step by step."""

import random
from collections import Counter

from sitr.accounting import PureDP
from sitr.errors import SitrError
from sitr.ledger import Budget, Ledger

DATASETS = ("clinic", "school", "tax")
OFTEN = {"create": 2, "raise": 1, "reserve": 14, "start": 8, "commit": 8, "refund": 2, "answer": 4, "crash": 1}
KINDS = [kind for kind, times in OFTEN.items() for _ in range(times)]
BLOCKS = ((), ("a",), ("b",), ("a", "b"))
PARALLEL = "clinic"  # whose blocks count once


class Refused(Exception):
    """Carries the name of the error that the ledger is to raise."""


class Model:
    """What a ledger is to do, in whole units: every ε here is a whole number."""

    def __init__(self):
        self.limits, self.whole, self.blocks, self.operations = {}, Counter(), Counter(), {}

    def used(self, name):
        return self.whole[name] + max((n for (of, _), n in self.blocks.items() if of == name), default=0)

    def create(self, name, limit):
        self.need(name not in self.limits, "InvalidArgument")
        self.limits[name] = limit

    def double(self, name):
        self.need(name in self.limits, "UnknownName")
        self.limits[name] *= 2

    def reserve(self, operation, names, cost, blocks):
        self.need(self.limits.keys() >= set(names), "UnknownName")
        known = self.operations.get(operation)
        if known is not None:
            self.need(known["request"] == (names, cost, blocks), "OperationTaken")
            self.need(known["state"] != "committed", "AlreadyAnswered")
            self.need(known["state"] == "reserved", "AlreadySpent")
            return
        for name in names:  # all of them, or none
            before = max((self.blocks[name, b] for b in self.apart(name, blocks)), default=None)
            most = self.used(name) if before is None else self.whole[name] + before
            self.need(most + cost <= self.limits[name], "BudgetExceeded")
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
        self.add(names, blocks, -cost)

    def answer(self, name):
        self.need(self.operations.get(name, {}).get("state") == "committed", "UnknownName")
        return self.operations[name]["answer"]

    def add(self, names, blocks, cost):
        for name in names:
            for block in self.apart(name, blocks):
                self.blocks[name, block] += cost
            self.whole[name] += 0 if self.apart(name, blocks) else cost

    @staticmethod
    def apart(name, blocks):
        return blocks if name == PARALLEL else ()

    @staticmethod
    def need(condition, error):
        if not condition:
            raise Refused(error)


class Pair:
    """A ledger and the model beside it; every step is made on both, and both must agree."""

    def __init__(self, url):
        self.url, self.ledger, self.model, self.grants = url, Ledger.open(url), Model(), []
        self.outcomes = Counter()

    def step(self, kind, first, second, third):
        name, operation, blocks = DATASETS[first % len(DATASETS)], f"q{second}", BLOCKS[second % len(BLOCKS)]
        cost = 1 + second % 3 + (third % 7 == 0)  # mostly the same request under the same id
        both = DATASETS[second % len(DATASETS)], DATASETS[(second + 1) % len(DATASETS)]
        names = both if second % 4 == 0 else both[:1]  # what a release reads
        grant = self.grants[-1 - third % min(len(self.grants), 4)] if self.grants else None
        if kind == "crash":
            self.crash()
        endless = kind == "raise" and self.model.limits.get(name, 0) >= 128
        if kind == "crash" or endless or (grant is None and kind in ("start", "commit")):
            return
        limit = {"epsilon": 8.0 * 2**first, "disjoint_by": "ward" if name == PARALLEL else None}
        ask = {"analyst": "amina", "operation": operation, "blocks": blocks}
        real, ideal = {
            "create": (
                lambda: self.ledger.create_budget(name, Budget(**limit)),
                lambda: self.model.create(name, 8 * 2**first),
            ),
            "raise": (lambda: self.double(name, limit), lambda: self.model.double(name)),
            "reserve": (
                lambda: self.reserve(names, PureDP(epsilon=float(cost)), ask),
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

    def double(self, name, limit):
        now = self.ledger.budget(name)
        self.ledger.raise_budget(name, Budget(**{**limit, "epsilon": now.epsilon * 2}), reason="model")

    def crash(self):
        """The process dies: grants are gone, and the book is opened again."""
        self.grants.clear()
        self.outcomes["crash"] += 1
        if self.url != "memory://":
            self.ledger.close()
            self.ledger = Ledger.open(self.url, create=False)

    def compare(self):
        for name, limit in self.model.limits.items():
            assert self.ledger.spent(name).value == self.model.used(name)
            assert self.model.used(name) <= limit

    def close(self):
        found = self.ledger.verify()
        self.ledger.close()
        assert found.valid, found


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

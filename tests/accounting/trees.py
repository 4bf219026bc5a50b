"""Random trees of events, as plain data drawn by a seed: what a fuzzer of the accountant asks about.

A tree knows how to become an event, a Python expression, and smaller trees; what it costs is computed elsewhere, from
the same data and by other means.
"""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from sitr import accounting

LEAVES = (
    "Gaussian",
    "Laplace",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "RandomizedResponse",
    "Exponential",
    "PureDP",
    "ApproximateDP",
    "Guarantees",
    "Concentrated",
    "ZeroConcentrated",
    "Renyi",
    "PrivacyProfile",
    "LossDistribution",
)
CLAIMS = frozenset({"Concentrated", "ZeroConcentrated", "Renyi"})  # known by a Rényi curve alone


@dataclass(frozen=True)
class Tree:
    """An event: its class, its arguments by name, and the events in it with their counts."""

    kind: str
    arguments: tuple[tuple[str, object], ...] = ()
    inside: tuple[tuple["Tree", int], ...] = ()

    def __getitem__(self, name):
        return dict(self.arguments)[name]

    def get(self, name, default):
        return dict(self.arguments).get(name, default)

    @lru_cache(maxsize=32)  # noqa: B019  # what an event has computed serves all that is asked of it
    def event(self):
        """The event itself."""
        if self.kind == "Composed":
            return accounting.Composed(tuple((tree.event(), count) for tree, count in self.inside))
        named = dict(self.arguments)
        for tree, _ in self.inside:
            named[self._place] = tree.event()
        return getattr(accounting, self.kind)(**named)

    @property
    def _place(self):
        """The argument that is the event inside."""
        return {"Renyi": "formula", "ShuffledReports": "local"}.get(self.kind, "event")

    def __str__(self):
        if self.kind == "Composed":
            return "(" + " + ".join(str(tree) + (f" * {n}" if n > 1 else "") for tree, n in self.inside) + ")"
        shown = [f"{self._place}={tree}" for tree, _ in self.inside]
        shown += [f"{name}={_text(value)}" for name, value in self.arguments]
        return f"{self.kind}({', '.join(shown)})"

    def walk(self) -> Iterator["Tree"]:
        """This tree and all in it."""
        yield self
        for tree, _ in self.inside:
            yield from tree.walk()

    def smaller(self) -> Iterator["Tree"]:
        """Trees with less in them: a branch alone, fewer branches, lower counts, rounder numbers."""
        for tree, _ in self.inside:
            yield tree
        for i, (tree, count) in enumerate(self.inside):
            rest = self.inside[:i] + self.inside[i + 1 :]
            if self.kind == "Composed" and rest:
                yield Tree(self.kind, self.arguments, rest)
            for fewer in {1, 2, count // 10, count // 2, count - 1}:
                if 1 <= fewer < count:
                    yield Tree(self.kind, self.arguments, (*self.inside[:i], (tree, fewer), *self.inside[i + 1 :]))
            for less in tree.smaller():
                yield Tree(self.kind, self.arguments, (*self.inside[:i], (less, count), *self.inside[i + 1 :]))
        for i, (name, value) in enumerate(self.arguments):
            for simpler in _simpler(name, value):
                changed = (*self.arguments[:i], (name, simpler), *self.arguments[i + 1 :])
                yield Tree(self.kind, changed, self.inside)


def _text(value):
    return repr(value).replace("inf", "float('inf')")


def _simpler(name, value):
    if name == "losses" or name == "probabilities":
        return
    if isinstance(value, tuple):
        for i in range(len(value)):
            if len(value) > 1:
                yield value[:i] + value[i + 1 :]
        for i, row in enumerate(value):
            for digits in (1, 2):
                rounder = tuple(round_to(x, digits) for x in row)
                if rounder != row:
                    yield (*value[:i], rounder, *value[i + 1 :])
    elif isinstance(value, int):
        yield from (n for n in (1, 2, value // 2) if 1 <= n < value)
    else:
        yield from (x for x in (1.0, 0.5, *(round_to(value, d) for d in (1, 2, 3))) if len(repr(x)) < len(repr(value)))


def round_to(value, digits):
    """A number with fewer digits."""
    return float(f"{value:.{digits}g}")


# --- Drawing ----------------------------------------------------------------------------------------------------------


class Drawing:
    """Numbers of a tree, ordinary ones mostly, and those at the ends of what is accepted."""

    def __init__(self, seed):
        self.random = random.Random(f"tree {seed}")

    def logs(self, low, high):
        return math.exp(self.random.uniform(math.log(low), math.log(high)))

    def chance(self, probability):
        return self.random.random() < probability

    def rounded(self, value):
        """Often a number that a person would write."""
        return round_to(value, 2) if self.chance(0.5) else value

    def noise(self):
        return self.logs(1e-4, 1e12) if self.chance(0.1) else self.rounded(self.logs(0.3, 60))

    def epsilon(self, most=1e4):
        if self.chance(0.12):
            return self.random.choice([0.0, 1e-30, 1e-9, 1e-3, min(700.0, most), most, self.logs(1e-12, most)])
        return self.rounded(self.logs(0.01, 12))

    def delta(self):
        if self.chance(0.2):
            return self.random.choice([0.0, 0.0, 1e-300, 1e-30, 0.5, 0.99, 1 - 1e-12, self.logs(1e-20, 1)])
        return self.rounded(self.logs(1e-9, 0.2))

    def rate(self):
        if self.chance(0.1):
            return self.random.choice([1.0, 1 - 1e-12, 1e-15, 1e-9, self.logs(1e-15, 1)])
        return self.rounded(self.logs(1e-3, 0.9))

    def count(self):
        size = self.random.random()
        if size < 0.5:
            return 1
        if size < 0.8:
            return self.random.randint(2, 10)
        if size < 0.97:
            return int(self.logs(10, 500))
        return int(self.logs(500, 10**9))

    def table(self):
        """(ε, δ) that fall, now and then in any order."""
        size = self.random.randint(1, 4)
        rows = sorted((self.epsilon(600.0), self.delta()) for _ in range(size))
        if self.chance(0.7):
            deltas = sorted((delta for _, delta in rows), reverse=True)
            rows = [(epsilon, delta) for (epsilon, _), delta in zip(rows, deltas, strict=True)]
        return tuple(rows)

    def orders(self):
        """(α, ε) of a Rényi table."""
        size = self.random.randint(1, 3)
        alphas = [self._order() for _ in range(size)]
        return tuple(sorted((alpha, self.rounded(self.logs(1e-3, 5))) for alpha in alphas))

    def _order(self):
        if self.chance(0.2):
            return self.random.choice([1.0, math.inf, 1.0000001, 1e6])
        return self.rounded(self.logs(1.05, 100))

    def losses(self):
        """A law of the user's own, whose probabilities are whole multiples of 2^-20 and sum to one exactly."""
        size, whole = self.random.randint(1, 4), 2**20
        heavy = self.random.choice([0, 0, 1, whole // 64, whole // 4])
        cuts = sorted(self.random.randint(0, whole - heavy) for _ in range(size - 1))
        parts = [b - a for a, b in zip([0, *cuts], [*cuts, whole - heavy], strict=True)]
        top = self.epsilon(600.0) if self.chance(0.2) else self.logs(0.05, 4)
        values = [self.random.uniform(0, 1) * top for _ in parts]
        values += [0.0 if self.chance(0.1) else 1e-9]
        values = [self.random.choice(values) for _ in parts] if self.chance(0.2) else values[: len(parts)]
        # Losses may be negative as long as Q's masses, p e^{-l}, leave no more than one.
        left = 1 - math.fsum(p / whole * math.exp(-v) for p, v in zip(parts, values, strict=True))
        if left > 0.01 and parts[0] and self.chance(0.6):
            own = parts[0] / whole
            values[0] = max(-math.log((own * math.exp(-values[0]) + 0.9 * left) / own), -600.0)
        return tuple(values), tuple(p / whole for p in parts), heavy / whole


def leaf(draw: Drawing) -> Tree:
    """One event that holds no other."""
    kind = draw.random.choice(LEAVES)
    if kind in ("Gaussian", "Laplace"):
        named = {"noise_multiplier": draw.noise()}
    elif kind in ("DiscreteGaussian", "DiscreteLaplace"):
        far = draw.chance(0.06)
        scale = draw.logs(1.0, 1e6) if far else draw.rounded(draw.logs(0.3, 12))
        named = {"scale": scale, "sensitivity": int(draw.logs(1, 1e4 if far else 6))}
    elif kind == "RandomizedResponse":
        ordinary = draw.rounded(draw.random.uniform(0.05, 0.97))
        p = draw.random.choice([1e-12, 1 - 1e-9, 0.5, 0.5 + 1e-9]) if draw.chance(0.1) else ordinary
        named = {"p": p, "k": 10**6 if draw.chance(0.05) else draw.random.randint(2, 6)}
    elif kind == "Exponential":
        named = {"epsilon": max(draw.epsilon(), 1e-9)}
    elif kind == "PureDP":
        named = {"epsilon": draw.epsilon()}
    elif kind == "ApproximateDP":
        named = {"epsilon": draw.epsilon(), "delta": draw.delta()}
    elif kind in ("Guarantees", "PrivacyProfile"):
        named = {"points": draw.table()}
    elif kind == "Concentrated":
        size = 1e3 if draw.chance(0.1) else 1.5
        named = {"mu": draw.logs(1e-3, size), "tau": draw.rounded(draw.logs(1e-2, size))}
    elif kind == "ZeroConcentrated":
        rho = draw.random.choice([0.0, 1e-12, 30.0, 700.0]) if draw.chance(0.15) else draw.rounded(draw.logs(1e-3, 2))
        xi = 0.0 if draw.chance(0.6) else draw.rounded(draw.logs(1e-3, 2))
        named = {"rho": rho, "xi": xi, "delta": 0.0 if draw.chance(0.6) else draw.delta()}
    elif kind == "Renyi":
        named = {"points": draw.orders(), "delta": 0.0 if draw.chance(0.6) else draw.delta()}
    else:
        losses, probabilities, mass = draw.losses()
        named = {"losses": losses, "probabilities": probabilities, "infinite_mass": mass}
    return Tree(kind, tuple(named.items()))


def tree(draw: Drawing, depth: int = 3) -> Tree:
    """An event of any kind: a leaf, a composition, a sample, or the Rényi curve of one."""
    shape = draw.random.random()
    if depth == 0 or shape < 0.15:
        return leaf(draw)
    if shape < 0.25:
        return far_samples(draw) if draw.chance(0.3) else rare_steps(draw)
    if shape < 0.6:
        parts = [(tree(draw, depth - 1), draw.count()) for _ in range(draw.random.choice([1, 2, 2, 3]))]
        return Tree("Composed", (), tuple(parts))
    if shape < 0.95:
        return Tree("PoissonSampled", (("sampling_prob", draw.rate()),), ((tree(draw, depth - 1), 1),))
    delta = 0.0 if draw.chance(0.6) else draw.delta()
    return Tree("Renyi", (("delta", delta),), ((tree(draw, depth - 1), 1),))


def rare_steps(draw: Drawing) -> Tree:
    """Steps of a training run that rarely see a person, beside something else."""
    noise = Tree("Gaussian", (("noise_multiplier", draw.rounded(draw.logs(0.4, 2))),))
    step = Tree("PoissonSampled", (("sampling_prob", draw.rounded(draw.logs(1e-5, 0.05))),), ((noise, 1),))
    return Tree("Composed", (), ((step, draw.count()), (leaf(draw), draw.random.choice([1, 1, 2, 5]))))


def far_samples(draw: Drawing) -> Tree:
    """Losses so large that e to them is hardly a number, on samples, and samples of them, that hardly anyone is in."""
    kind = draw.random.choice(["Gaussian", "Laplace", "PureDP", "Exponential"])
    size = draw.rounded(draw.logs(10, 1000))
    named = ("noise_multiplier", 1 / size) if kind in ("Gaussian", "Laplace") else ("epsilon", size)
    found = Tree(kind, (named,))
    for _ in range(draw.random.choice([1, 1, 2, 3])):
        found = Tree("PoissonSampled", (("sampling_prob", draw.rounded(draw.logs(1e-15, 1))),), ((found, 1),))
    return found


PURE = ("RandomizedResponse", "PureDP", "Laplace", "DiscreteLaplace", "Exponential")


def crowded(draw: random.Random, whole: Tree, people: int | None = None) -> Tree:
    """The same tree where people are replaced and their number stays: batches and passes for samples, shuffled reports.

    `people` is how many there are, where that is settled.
    """
    n = people or draw.choice([1, 2, 3, 4, 5, 10, 100, 201, 10**4, 10**6])
    if whole.kind == "PoissonSampled" and draw.random() < 0.75:
        n = people or (10**15 if whole["sampling_prob"] < 1e-6 else n)
        batch = min(max(round(whole["sampling_prob"] * n), 1), n)
        inside = crowded(draw, whole.inside[0][0], batch)
        return Tree("SampledWithoutReplacement", (("n", n), ("batch", batch)), ((inside, 1),))
    if whole.kind == "PoissonSampled":
        inside = crowded(draw, whole.inside[0][0], people and draw.randint(1, people))
        return Tree("ShuffledEpochs", (("epochs", draw.choice([1, 2, 7, 100, 10**9])),), ((inside, 1),))
    if whole.kind in PURE and n <= 10**9 and draw.random() < 0.5:
        return Tree("ShuffledReports", (("n", n),), ((whole, 1),))
    return Tree(whole.kind, whole.arguments, tuple((crowded(draw, inner, people), n) for inner, n in whole.inside))


# --- Questions --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """A method of the accountant, its argument, and the size of the group that it is asked for."""

    name: str
    argument: float | None = None
    group: int = 1

    def ask(self, event):
        asked = event if self.group == 1 else event.group(self.group)
        if self.argument is None:
            found = getattr(asked, self.name)
            return found() if callable(found) else found
        return getattr(asked, self.name)(self.argument)

    def __str__(self):
        group = "" if self.group == 1 else f".group({self.group})"
        if self.argument is None:
            return f"{group}.{self.name}" + ("" if self.name == "infinite_mass" else "()")
        return f"{group}.{self.name}({_text(self.argument)})"


def questions(draw: Drawing) -> list[Question]:
    """What one tree is asked: δ and ε always, the rest now and then."""
    asked = [Question("delta", draw.epsilon(1e4)), Question("epsilon", _asked_delta(draw)), Question("infinite_mass")]
    if draw.chance(0.2):
        asked.append(Question("delta", 0.0))
    others = {
        "tradeoff": lambda: draw.random.choice([0.0, 0.5, 0.05, 1e-9, draw.random.random()]),
        "bad_outcome": lambda: draw.random.choice([1e-3, 1e-9, 0.1, draw.random.random()]),
        "rdp": lambda: draw.random.choice([1.0, 2.0, 1.5, 32.0, math.inf, 1.0000001]),
        "pure": lambda: None,
        "zcdp": lambda: None,
        "cdp": lambda: None,
        "gdp": lambda: None,
        "expected_loss": lambda: None,
    }
    name = draw.random.choice(sorted(others))
    asked.append(Question(name, others[name]()))
    if draw.chance(0.15):
        size = draw.random.choice([2, 3, 5, 40])
        asked.append(Question("delta", draw.epsilon(100.0), size))
        asked.append(Question("epsilon", _asked_delta(draw), size))
    return asked


def _asked_delta(draw):
    if draw.chance(0.15):
        return draw.random.choice([0.0, 1e-300, 1e-30, 0.5, 0.9, 1 - 2**-53])
    return draw.rounded(draw.logs(1e-12, 0.3))


def drawn(seed: int, deepest: int = 3, crowds: float = 0.15) -> tuple[Tree, list[Question], Drawing]:
    """The tree of a seed, what is asked of it, and the numbers that are left to draw; a share of trees are crowds."""
    draw, apart = Drawing(seed), random.Random(f"crowd {seed}")
    depth = min(draw.random.choice([0, 1, 1, 1, 2, 2, 3]), deepest)
    whole = tree(draw, depth)
    if apart.random() < crowds:
        whole = crowded(apart, whole)
    return whole, questions(draw), draw

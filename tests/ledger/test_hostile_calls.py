"""Thousands of random calls of all that an analyst may execute: none shows, takes or grants what is not hers."""

import json
import random
import re

import psycopg
import pytest

from sitr.accounting import Laplace, PureDP
from sitr.errors import NotPermitted
from sitr.ledger import Budget, Ledger
from sitr.ledger.asked import Asked
from sitr.ledger.entry import sha256
from sitr.ledger.postgres import FOR_ANALYSTS
from sitr.ledger.terms import EACH_ROW, Terms
from tests.ledger import stores
from tests.ledger.test_separation import Team

CALLS = 400
COSTS = (2**40, 1, 0, -1, 2**61, 10**30, None, 0.5, "1", True)
SECRET = "zebra"  # stands in all that is not hers to see
PROMISE = {"unit": "patient", "tables.visits.unit": f"named by {SECRET}", "tables.visits.source": f"{SECRET}.csv"}


@pytest.fixture
def team(tmp_path):
    """A book in which another analyst was answered, shares were replaced and a declaration changed."""
    team = Team(stores.fresh("postgresql", tmp_path)())
    book = team.ledger
    book.create_budget("lab", Budget(epsilon=1.0))
    book.create_budget(f"{SECRET}set", Budget(epsilon=1.0))
    for analyst, epsilon in ((team.amina, 0.5), (team.badr, 0.1233217)):
        book.create_budget("clinic", Budget(epsilon=epsilon), analyst=analyst)
    book.replace_share("clinic", Budget(epsilon=0.25), reason=SECRET, analyst=team.amina)
    book.replace_share("clinic", Budget(epsilon=0.3211237), reason=SECRET, analyst=team.badr)
    book.create_budget("clinic", Budget(epsilon=0.5), purpose="audit")
    places = {"visits": f"/{SECRET}.csv"}
    book.declare(Terms("clinic", "clinic", 1, PROMISE, {"visits": f"{SECRET}.csv"}, {"delta": SECRET}, places))
    book.declare(Terms("clinic", "clinic", 2, PROMISE | {"tables.visits.unit": EACH_ROW}, places=places), reason=SECRET)
    book.declare(Terms(f"{SECRET}set", SECRET, 1, {"tables.a.source": SECRET}))
    asked = Asked(f"SELECT {SECRET}", tables=(SECRET,), epsilon=0.01)
    with team.open(team.badr) as his:
        for operation, answer in (("small", SECRET), ("other", {"n": SECRET})):
            about = {"analyst": team.badr, "operation": operation, "request": {"plan": SECRET}, "asked": asked}
            with his.reserve("clinic", Laplace(noise_multiplier=123.456), **about) as grant:
                grant.commit(answer)
        his.reserve("clinic", Laplace(noise_multiplier=123.456), analyst=team.badr, operation="open", asked=asked)
    return team


class Hostile:
    """Random arguments, most of them nearly right."""

    def __init__(self, team, seed):
        self.random, self.team, self.mine = random.Random(seed), team, []

    def call(self):
        """A function and what it is called with."""
        name = self.random.choice([function.partition("(")[0] for function in FOR_ANALYSTS])
        return name, getattr(self, f"_{name}", list)()

    def _name(self):
        team = self.team
        usual = [
            team.amina,
            team.badr,
            "owner",
            "postgres",
            "clinic",
            "lab",
            "audit",
            "small",
            "open",
            "public",
        ]
        odd = [
            "",
            " ",
            "%",
            "_",
            "'",
            '"',
            "a\nb",
            "x" * 300,
            "*",
            "../x",
            "{}",
            "[]",
            "null",
            "clinic/analyst/",
            "\u202e",
        ]
        return self.random.choice([*usual * 2, *odd, *self.mine, f"q{self.random.randrange(10**6)}", None])

    def _analyst(self):
        return self.random.choice([self.team.amina] * 6 + [self._name()])

    def _operation_of_hers(self):
        return self.random.choice([*self.mine[-3:], *self.mine[-3:], self._name()])

    def _names(self):
        shares = [
            f"clinic/analyst/{self.team.badr}",
            f"clinic/analyst/{self.team.amina}",
            "clinic/purpose/audit",
            "sitr",
        ]
        return self.random.choice([None, [], [self._name() for _ in range(3)], self.random.sample(shares, 2)])

    def _reserve(self):
        share = f"clinic/analyst/{self.team.amina}"  # of version 2: it was replaced
        cost = self.random.choice([2**40, 2**50])
        said = {
            "datasets": ["clinic"],
            "blocks": [],
            "purpose": None,
            "event": PureDP(epsilon=0.001).to_dict(),
            "nonce": "0f" * 16,
            "request": sha256(b"r"),
            "budgets": {"clinic": {"units": [cost, 0], "version": 1}, share: {"units": [cost, 0], "version": 2}},
        }
        for _ in range(self.random.choice([0, 0, 1, 2])):
            self._spoil(said)
        fresh = f"q{self.random.randrange(10**9)}"
        return [self.random.choice([fresh] * 4 + [self._name()]), self._analyst(), json.dumps(said)]

    def _spoil(self, said):
        """Change one thing, so that it would be cheaper, or another's, or something else."""
        place = self.random.choice([*said, "budgets", "budgets", "budgets", "asked", "more"])
        dues = list(said["budgets"].values())
        due = {"units": [self.random.choice(COSTS), 0], "version": self.random.choice([1, 1, 2, 0, None, "1"])}
        if place == "budgets" and dues and self.random.random() < 0.7:
            part = self.random.choice(["units", "version"])
            self.random.choice(dues)[part] = self.random.choice(
                [due[part], due[part], None, [], [[1]], [2**40, -(2**40)]]
            )
        elif place == "budgets":
            others = [
                "lab",
                "clinic/purpose/audit",
                f"clinic/analyst/{self.team.badr}",
                f"clinic/analyst/{self.team.amina}",
            ]
            name = self.random.choice([*others, "clinic"])
            said["budgets"] = {one: its for one, its in said["budgets"].items() if one != name}
            said["budgets"] |= {name: due} if self.random.random() < 0.5 else {}
        elif place == "purpose":
            said["purpose"] = self.random.choice(["audit", "audit", self._name()])
            said["budgets"]["clinic/purpose/audit"] = {"units": [2**40, 0], "version": 1}
        else:
            wrong = [None, [], {}, "", ["clinic", "lab"], ["lab"], ["clinic", "clinic"], ["a"], [None], self._names()]
            said[place] = self.random.choice(wrong)

    def _start(self):
        holder = self.random.choice([sha256(b"h")] * 4 + ["h", None])
        return [self._operation_of_hers(), self._analyst(), json.dumps({"holder": holder})]

    def _commit(self):
        about = {"holder": "h", "sha256": sha256(b"x"), "bytes": 1, "media": "text/plain"}
        if self.random.random() < 0.4:
            about[self.random.choice([*about, "left", "reason"])] = self.random.choice(
                [None, 2, "", "application/json"]
            )
        content, path = self.random.choice(
            [(b"x", None)] * 4 + [(None, "/etc/passwd"), (None, sha256(b"x")), (b"y", "y")]
        )
        return [self._operation_of_hers(), self._analyst(), "h", json.dumps(about), "text/plain", content, path]

    def _totals(self):
        return [self._names()]

    def _operation(self):
        return [self._name()]

    def _kept(self):
        return [self._name(), self._analyst()]

    def _declared(self):
        return [self.random.choice([None, "clinic", self._name()]), self._names()]


def state(team):
    """The limits of all budgets, how many entries of each kind others wrote, and what every budget has used."""
    with psycopg.connect(team.owner) as owner:
        budgets = owner.execute("SELECT name, version, body, whole || peak FROM sitr.budget").fetchall()
        kinds = owner.execute("SELECT kind, analyst, count(*) FROM sitr.entry GROUP BY kind, analyst").fetchall()
    limits = {name: (version, body) for name, version, body, _ in budgets}
    return limits, {row for row in kinds if row[1] != team.amina}, {name: used for name, _, _, used in budgets}


def check_charged(team, record, before, used):
    """Whatever is granted is charged to every budget that it falls under, and no budget gets anything back."""
    due = {"clinic", f"clinic/analyst/{team.amina}"} | (
        {"clinic/purpose/audit"} if record["purpose"] == "audit" else set()
    )
    grown = {name for name in used if used[name] != before[name]}
    assert due <= grown <= due | {"lab"}, record
    assert all(now >= was for name in used for now, was in zip(used[name], before[name], strict=True)), record


@pytest.mark.parametrize("seed", range(4))
def test_no_call_shows_takes_or_grants_what_is_not_hers(team, seed):
    hostile, granted = Hostile(team, seed), 0
    limits, others, used = state(team)
    secrets = (SECRET, "123.456", "0.1233217", "0.3211237", sha256(SECRET.encode()))
    with psycopg.connect(team.url(team.amina), autocommit=True) as hers:
        for _ in range(CALLS):
            function, arguments = hostile.call()
            asked = f"SELECT * FROM sitr.{function}({', '.join(['%s'] * len(arguments))})"
            try:
                rows = hers.execute(asked, arguments).fetchall()
                told = str(rows)
            except psycopg.Error as error:
                rows, told = [], f"{error} {error.diag.message_detail} {error.diag.context}"
            assert not [secret for secret in secrets if secret in told], (function, arguments, told)
            if function == "reserve" and rows:
                before, used = used, state(team)[2]
                check_charged(team, json.loads(arguments[2]), before, used)
                hostile.mine.append(arguments[0])
                granted += 1
    assert granted > 5  # otherwise little was tried
    assert state(team) == (limits, others, used)
    found = (
        team.ledger.verify()
    )  # an event that costs more than she charged, or is none, is named: nothing else is wrong
    told = [problem for problem in (found.problem, *found.others) if problem]
    assert [one for one in told if not re.search("less than its event costs|event .*cannot|schema_version", one)] == []


def test_every_function_that_is_open_to_analysts_is_called():
    names = {function.partition("(")[0] for function in FOR_ANALYSTS}
    without = {"identity", "mine", "has_terms"}  # take nothing
    assert {name for name in names if hasattr(Hostile, f"_{name}")} == names - without


def test_terms_and_shares_are_the_owners(team):
    """Nor by the library: an analyst writes no terms, and her share stays what its owner gave her."""
    with Ledger.open(team.url(team.amina)) as hers:
        limit = hers.budget("clinic", analyst=team.amina)
        for act in (
            lambda: hers.declare(Terms("clinic", "clinic", 3, PROMISE), reason="mine"),
            lambda: hers.declare(Terms("lab", "clinic", 1, {})),
            lambda: hers.replace_share("clinic", Budget(epsilon=9.0), reason="more", analyst=team.amina),
            lambda: hers.raise_budget("clinic", Budget(epsilon=9.0), reason="more", analyst=team.amina),
        ):
            with pytest.raises(NotPermitted):
                act()
        assert hers.budget("clinic", analyst=team.amina) == limit
        assert hers.has_terms
        assert hers.terms(None) == {}
        assert hers.releases() == []
    assert [entry.record["version"] for entry in team.ledger.entries() if entry.kind == "declare"] == [1, 2, 1]

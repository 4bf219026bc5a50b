"""What objects draw of themselves: well-formed, escaped whatever it holds, and short."""

import xml.etree.ElementTree
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sitr
from sitr import markup
from sitr.accounting import ApproximateDP, Bracket, Gaussian, Laplace, PrivacyProfile, compose
from sitr.ledger import Budget, Ledger
from tests.query.test_answer import made
from tests.tables import clinic

HOSTILE = '</td><script>alert(1)</script>&"<b>'
PLAIN = st.text(st.characters(codec="utf-8", categories=("L", "M", "N", "P", "S", "Zs")))


def read(page):
    """The elements of a page, which is well-formed, and nothing in it but what we write."""
    root = xml.etree.ElementTree.fromstring(page)
    assert (root.tag, root.get("class")) == ("div", "sitr")
    assert {one.tag for one in root.iter()} <= {"div", "p", "b", "pre", "table", "thead", "tbody", "tr", "th", "td"}
    assert all(one.keys() in ([], ["style"]) for one in root.iter() if one is not root)
    return root


def texts(page, tag):
    return ["".join(one.itertext()) for one in read(page).iter(tag)]


@given(PLAIN, PLAIN)
def test_every_text_is_only_a_text(one, other):
    page = markup.page(
        markup.title(one, other),
        markup.lines(one),
        markup.code(other),
        markup.table((one, other), [(other, one)], numbers=1),
    )
    assert texts(page, "p") == [f"{one} {other}" if other else one, one]
    assert texts(page, "pre") == [other]
    assert texts(page, "th") == [one, other]
    assert texts(page, "td") == [other, one]


def test_numbers_stand_on_the_right():
    cells = list(read(markup.page(markup.table(("a", "b", "c"), [("x", "1", "2")], numbers=2))).iter("td"))
    assert [cell.get("style") for cell in cells] == ["text-align: left", "text-align: right", "text-align: right"]
    assert texts(markup.page(markup.table((), [("a", "b")])), "th") == []


def ledger_statement():
    ledger = Ledger.open("memory://")
    ledger.create_budget("clinic", Budget(epsilon=1.0, unit="<b>"))
    return ledger.statement("clinic")


@pytest.fixture(scope="module")
def database():
    with clinic.database() as opened:
        yield opened


def drawn(database):
    """Something of each kind that draws itself, and a text that is seen in it."""
    visits = database.table("visits")
    question = visits.filter(visits["ward"] == HOSTILE).group_by("region").aggregate(n=sitr.count())
    profile = visits.profile("cost")
    return [
        (Bracket(1.0, 2.0, HOSTILE), HOSTILE),
        (Gaussian(1.0).epsilon([1e-3, 1e-6]), "by closed form"),
        (Gaussian(noise_multiplier=2.0), "Gaussian(noise_multiplier=2.0)"),
        (Laplace(2.0) * 3000 + Gaussian(5.0), "3,000"),
        (PrivacyProfile([(0.01 * step, 0.5 - 0.001 * step) for step in range(1, 200)]), "characters in all"),
        (Budget(epsilon=1.0, unit=HOSTILE), HOSTILE),
        (ledger_statement(), "ε = 1 for one <b> added or removed"),
        (database, "about units named by patient"),
        (visits, "east, north, south, west"),
        (visits[["age", "cost"]], "0 to 120"),
        (question, HOSTILE),
        (database.sql("SELECT COUNT(*) AS n FROM visits WHERE age < 3"), "WHERE age < 3"),
        (question.explain(epsilon=1.0), "This would cost ε = 1"),
        (made(value={"region": [HOSTILE, "b", None], "n": [1, 2, 3], "m": [1, 2, 3]}, notes=(HOSTILE,)), HOSTILE),
        (profile, "the bounds of cost"),
        (profile.explain(epsilon=1.0), "in equal parts"),
        (profile.release(epsilon=1.0), "cost: bounds = ["),
        (visits.synthesize(["age", "region"]).explain(epsilon=1.0), "Nothing has been read"),
    ]


def test_each_object_draws_itself_well_formed_and_escaped(database):
    for one, said in drawn(database):
        assert said in "".join(read(one._repr_html_()).itertext()), type(one)


def test_each_object_is_short_to_itself(database):
    for one, _ in drawn(database):
        shown = repr(one)
        assert shown.count("\n") == 0, type(one)
        assert len(shown) < 500 or isinstance(one, PrivacyProfile), type(
            one
        )  # an event can be made again from its repr


def test_what_is_long_is_cut_and_says_so(database):
    many = Gaussian(1.0).epsilon([1e-6] * 30)
    assert "… 10 more numbers" in many._repr_html_()
    assert repr(many) == "Bracket(of 30 numbers, method='closed form', safe='upper')"
    events = compose([ApproximateDP(0.1 + 0.001 * step, 1e-9) for step in range(23)])
    assert "… 3 more events" in events._repr_html_()
    assert len(texts(events._repr_html_(), "td")) == 40
    wide = database.table("visits").derive(**{f"x{place}": database.table("visits")["age"] for place in range(30)})
    assert repr(wide).endswith("… 28 more)")
    long = database.table("visits").filter(database.table("visits")["ward"].isin(["a" * 99, "b" * 99, "c" * 99]))
    assert "characters in all" in repr(long.aggregate(n=sitr.count()))


def test_reprs_say_what_matters():
    assert repr(Budget(epsilon=1.0, delta=1e-6, unit="patient")) == "Budget(epsilon=1.0, delta=1e-06, unit='patient')"
    assert eval(repr(Budget(rho=0.5, per="month"))) == Budget(rho=0.5, per="month")
    said = "ε = 1 for one <b> added or removed; left: 100 % of the budget (ε 1.00)"
    assert repr(ledger_statement()) == f"Statement('clinic': {said})"
    assert repr(made()) == "Answer(3 rows: region, n, m; charged in entry book/3)"
    assert "NOT PRIVATE" in repr(replace(made(), private=False))
    assert repr(Bracket(1.0, 2.0, "by hand")) == "Bracket(lower=1.0, upper=2.0, method='by hand', safe='upper')"

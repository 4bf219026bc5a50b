"""What analysts of PostgreSQL can call by hand: the functions refuse what Python's side refuses, and tell no secret."""

import json
import random

import psycopg
import pytest

from sitr import _validate
from sitr.accounting import PureDP
from sitr.errors import AlreadyAnswered, InvalidArgument, LedgerDamaged
from sitr.ledger import Budget, Ledger
from sitr.ledger.answer import LARGE, LARGEST, MEDIA, OutOfReach
from sitr.ledger.entry import DEEPEST_BODY, LONGEST_BODY, LONGEST_NUMBER, canonical, chained, sha256
from sitr.ledger.keeper import Keeper
from sitr.ledger.request import Request, fits
from tests.faults import points
from tests.ledger import stores
from tests.ledger.test_separation import EVENT, Team, body

RESERVE = "SELECT sitr.reserve(%s, %s, %s)"
START = "SELECT sitr.start(%s, %s, %s)"
COMMIT = "SELECT sitr.commit(%s, %s, %s, %s, %s, %s, %s)"
WHEN = ("before", "after")  # points, as they are watched


@pytest.fixture
def team(tmp_path):
    return Team(stores.fresh("postgresql", tmp_path)())


# What a head tells


def test_a_guess_of_anothers_request_cannot_be_confirmed_by_the_head(team):
    """Badr sees the head before and after, and that amina reserved something then: all but what she asked."""
    ask = ("clinic", EVENT, team.amina, "q", None, (), {"plan": "how many are ill"})
    with team.open(team.badr) as ledger, team.open(team.amina) as other:
        before, charges = ledger.head, Request(*ask).charges({"clinic": (1, Keeper.of(Budget(epsilon=1.0)))})
        other.reserve(*ask[:2], analyst=team.amina, operation="q", request=ask[-1])
        ((seq, at, kind, operation, analyst),) = team.sql(
            team.url(team.badr), "SELECT seq, at, kind, operation, analyst FROM sitr.operation('q')"
        )
        guess = json.loads(Request(*ask).body(charges))
        seen = ledger.head
    for said in (guess, {name: value for name, value in guess.items() if name != "nonce"}):
        assert (
            chained(team.ledger.id, before.hash, seq, at, kind, operation, analyst, canonical(said)).hash != seen.hash
        )
    truth = json.loads(next(team.ledger.entries(after=seq - 1)).body)
    assert chained(team.ledger.id, before.hash, seq, at, kind, operation, analyst, canonical(truth)).hash == seen.hash
    assert {name for name in truth if truth[name] != guess[name]} == {"nonce"}


def test_every_entry_that_says_something_has_a_secret_of_its_own(ledger):
    ledger.create_budget("clinic", Budget(epsilon=1.0))
    ledger.create_budget("clinic", Budget(epsilon=0.5), analyst="badr")
    ledger.raise_budget("clinic", Budget(epsilon=2.0), reason="more")
    with ledger.reserve("clinic", EVENT, analyst="amina") as grant:
        grant.commit("a")
    ledger.reserve("clinic", EVENT, analyst="amina", operation="q")
    ledger.refund("q", reason="never ran")
    secrets = [entry.record.get("nonce") or entry.record["holder"] for entry in list(ledger.entries())[1:]]
    assert len(secrets) == 8
    assert len(set(secrets)) == 8
    assert min(map(len, secrets)) == 32  # hexadecimal digits: 128 bits


def test_a_retry_goes_on_with_the_reservation_that_is_there(ledger):
    ledger.create_budget("clinic", Budget(epsilon=1.0))
    first = ledger.reserve("clinic", EVENT, analyst="amina", operation="q", request={"plan": 1})
    with ledger.reserve("clinic", EVENT, analyst="amina", operation="q", request={"plan": 1}) as again:
        again.commit("a")
    assert again.entry == first.entry
    with pytest.raises(AlreadyAnswered):
        ledger.reserve("clinic", EVENT, analyst="amina", operation="q", request={"plan": 1})
    assert ledger.spent("clinic").value == 0.25


def test_no_reservation_by_hand_is_without_a_secret(team):
    asked = json.loads(body(clinic={"units": [2**58, 0]}))
    del asked["nonce"]
    others = ("", "0f" * 15, "0F" * 16, "g" * 32, 7, ["0f" * 16], "0f" * 16 + "\n")
    for wrong in (asked, *({**asked, "nonce": other} for other in others)):
        with pytest.raises(psycopg.Error, match="not of the form"):
            team.as_amina(RESERVE, ["q", team.amina, json.dumps(wrong)])


# Names


def test_every_character_is_judged_as_python_judges_it(team):
    every = "SELECT code FROM generate_series(1, 1114111) AS code WHERE code NOT BETWEEN 55296 AND 57343 AND "
    found = {code for (code,) in team.sql(team.owner, every + "sitr.is_name('a' || chr(code) || 'b')")}
    assert found == {code for code in range(1, 0x110000) if is_name(f"a{chr(code)}b")}


def is_name(text):
    try:
        return _validate.name("name", text) == text
    except InvalidArgument:
        return False


ODD = [*"aA1/ .'\"\\%:", "\u00e9", "e\u0301", "\u0301", "\u200b", "\u202e", "\u2066", "\ufeff", "\u00ad", "\u00a0"]
ODD += [
    "\u2028",
    "\u0085",
    "\t",
    "\n",
    "\x7f",
    "\ue000",
    "\U000e0001",
    "\U0001f600",
    "\ufe0f",
    "\u1100\u1161",
    "\uac00",
]
ODD += ["\u212b", "\u0378", "\U0010ffff", "\u3164", "\u0327\u0301", "\u0301\u0327", "x" * 197, "\u00e9" * 99, ""]


def test_every_text_is_judged_as_python_judges_it(team):
    chance = random.Random(14)
    texts = ["".join(chance.choices(ODD, k=chance.randrange(5))) for _ in range(20_000)]
    found = team.sql(
        team.owner,
        "SELECT sitr.is_name(text) FROM unnest(%s::text[]) WITH ORDINALITY AS u (text, n) ORDER BY n",
        [texts],
    )
    assert [one for (one,) in found] == [is_name(text) for text in texts]
    assert {is_name(text) for text in texts} == {True, False}


@pytest.mark.parametrize("what", ["operation", "purpose", "blocks", "datasets"])
def test_no_name_by_hand_is_one_that_python_refuses(team, what):
    for name in ("", " a", "a\u200b", "a\u202eb", "a\u3164", "\U000e0100", "e\u0301", "\ue000", "x" * 201):
        asked = json.loads(body(clinic={"units": [2**58, 0]}))
        if what != "operation":
            asked[what] = name if what == "purpose" else [*asked[what], name]
        with pytest.raises(psycopg.Error) as caught:
            team.as_amina(RESERVE, [name if what == "operation" else "q", team.amina, json.dumps(asked)])
        assert caught.value.sqlstate == "SL005"


# Answers


def begin(team, operation="q"):
    team.as_amina(RESERVE, [operation, team.amina, body(clinic={"units": [2**58, 0]})])
    team.as_amina(START, [operation, team.amina, json.dumps({"holder": sha256(b"h")})])


def commit(team, content=None, path=None, operation="q", **changes):
    about = {"holder": "h", "bytes": len(content or b""), "media": MEDIA[0], "sha256": sha256(content or b"")} | changes
    team.as_amina(COMMIT, [operation, team.amina, "h", json.dumps(about), about["media"], content, path])


def test_an_answer_by_hand_is_no_larger_than_one_of_ours(team):
    begin(team)
    with pytest.raises(psycopg.Error, match=f"more than {LARGE} bytes belongs in a file"):
        commit(team, bytes(LARGE + 1))
    for size in (LARGEST + 1, 10**15, 10**30, 1.5, -1, ""):
        with pytest.raises(psycopg.Error) as caught:
            commit(team, path=sha256(b""), bytes=size)
        assert caught.value.sqlstate == "SL005"
    commit(team, bytes(LARGE))
    assert len(team.ledger.answer("q", analyst=team.amina).content) == LARGE
    assert team.ledger.verify()


def test_no_file_by_hand_is_elsewhere_than_ours(team):
    begin(team)
    own = sha256(b"")
    for path in (
        "/etc/hostname",
        "../book",
        "a/../../b",
        "a",
        "",
        "C:\\x",
        "~/x",
        "f" * 64,
        own + "/",
        " " + own,
        "./" + own,
    ):
        with pytest.raises(psycopg.Error, match="not the one that its entry describes"):
            commit(team, path=path)
    assert team.ledger.spent("clinic").value > 0  # what was charged stays charged
    commit(team, path=sha256(b""))
    assert "were not compared" in team.ledger.verify().remarks[0]


def test_a_path_in_an_older_book_is_not_followed_where_an_analyst_could_have_named_it(team, tmp_path):
    begin(team)
    commit(team, path=sha256(b""))
    (tmp_path / "secret").write_bytes(b"")
    team.sql(team.owner, "ALTER TABLE sitr.answer DISABLE TRIGGER ALL")
    for path in (str(tmp_path / "secret"), "../secret"):
        team.sql(team.owner, "UPDATE sitr.answer SET path = %s", [path])
        team.ledger.answers = tmp_path / "answers"
        with pytest.raises(OutOfReach, match="was moved or lost"):
            team.ledger.answer("q", analyst=team.amina)
        assert team.ledger.verify()


def test_an_answer_by_hand_is_of_a_kind_that_is_known(team):
    begin(team)
    for media in ("", "t", "text/html", "application/json\n", None):
        with pytest.raises(psycopg.Error, match="not the one that its entry describes"):
            commit(team, b"x", media=media)


def test_an_answer_that_is_not_what_it_says_is_told(team):
    for number, (media, content) in enumerate([(MEDIA[2], b"{"), (MEDIA[2], b"[" * 10**5), (MEDIA[1], b"\xff")]):
        begin(team, f"q{number}")
        commit(team, content, operation=f"q{number}", media=media)
        answer = team.ledger.answer(f"q{number}", analyst=team.amina)
        assert answer.content == content
        with pytest.raises(LedgerDamaged, match=f"is not {media}"):
            _ = answer.value


def test_a_database_of_another_encoding_is_refused(tmp_path):
    from tests.ledger.cluster import database_of, shared

    url = stores.fresh("postgresql", tmp_path)().replace("/db", "/latin")
    shared().sql(f"CREATE DATABASE {database_of(url)} OWNER owner ENCODING LATIN1 LOCALE 'C' TEMPLATE template0")
    with pytest.raises(InvalidArgument, match="encoded in LATIN1"):
        Ledger.open(url)


# Both sides, by one generator

SMALL = PureDP(epsilon=2.0**-12)
VALUES = [
    None,
    True,
    0,
    -1,
    1,
    1.5,
    2**62,
    10**19,
    "",
    "x",
    "\u200b",
    [],
    [1],
    [None],
    {},
    {"a": 1},
    "0" * 64,
    "0f" * 16,
]
RAW = {
    "a number of many digits": lambda text: text.replace("{", '{"x": ' + "9" * LONGEST_NUMBER + ", ", 1),
    "a number that is none": lambda text: text.replace(str(SMALL.at_epsilon), "NaN"),
    "a number beyond doubles": lambda text: text.replace(str(SMALL.at_epsilon), "1e400"),
    "a minus": lambda text: text.replace('"units": [', '"units": [-'),
    "an exponent": lambda text: text.replace(", 0]", ", 0e0]"),
    "a dead place": lambda text: text.replace(", 0]", ", null]"),
    "spaces among units": lambda text: text.replace(", 0]", "\t, 0 \t]"),
    "a name twice": lambda text: text.replace(
        "{", '{"blocks": [7], "purpose": 7, "bytes": 7, "holder": 7, "nonce": 7, ', 1
    ),
    "a name twice, last": lambda text: text[:-1] + ', "nonce": "' + "ab" * 16 + '"}',
    "units twice": lambda text: text.replace('"units": ', '"units": [1, 0], "units": '),
    "a name in code": lambda text: text.replace('"bytes"', r'"\u0062ytes"').replace('"nonce"', r'"\u006eonce"'),
    "half a character": lambda text: text.replace('"nonce"', r'"\ud800": 1, "nonce"'),
    "a zero": lambda text: text.replace('"clinic"', r'"cli\u0000nic"'),
    "spaces": lambda text: "\t " + text.replace(",", " ,\t") + "  ",
    "a line": lambda text: text.replace(",", ",\n", 1),
    "depth": lambda text: text.replace('"event": {', '"event": {"x": ' + "[" * 60 + "]" * 60 + ", "),
    "size": lambda text: text.replace('"event": {', '"event": {"x": "' + "a" * LONGEST_BODY + '", '),
    "a list": lambda text: f"[{text}]",
    "nothing": lambda text: "",
    "no end": lambda text: text[:-1],
}


def changed(chance, record):
    """A record with something odd in it, or as it was, as text."""
    record = json.loads(json.dumps(record))
    for _ in range(chance.choice([0, 0, 1, 1, 2])):
        within = chance.choice([record, *(value for value in record.values() if isinstance(value, dict) and value)])
        name = chance.choice([*within, "more"])
        if chance.random() < 0.2:
            within.pop(name, None)
        elif isinstance(within.get(name), list) and chance.random() < 0.5:
            within[name] = [*within[name], chance.choice([*ODD, *VALUES])]
        else:
            within[name] = chance.choice([*ODD, *VALUES])
    text = json.dumps(record)
    return chance.choice(list(RAW.values()))(text) if chance.random() < 0.2 else text


def test_what_the_functions_accept_python_reads_and_verifies(team, tmp_path):
    """Every parameter of reserve, start and commit, odd in every way that we know; only an event may be false."""
    chance, tally = random.Random(14), {True: 0, False: 0}
    team.ledger.answers = tmp_path
    connection = psycopg.connect(team.url(team.amina), autocommit=True)

    def call(statement, *values):
        try:
            connection.execute(statement, values)
        except (psycopg.Error, ValueError, UnicodeError):  # the driver itself refuses a zero
            tally[False] += 1
            return False
        tally[True] += 1
        return True

    def text_or(usual):
        return chance.choice([*ODD, None]) if chance.random() < 0.03 else usual

    for turn in range(700):
        operation = text_or(f"q{turn}" + chance.choice(["", "", *ODD]))
        asked = {**json.loads(body(clinic={"units": [2**48, 0]})), "event": SMALL.to_dict()}
        if not call(RESERVE, operation, text_or(team.amina), changed(chance, asked)):
            continue
        assert is_name(operation)
        if not call(START, operation, text_or(team.amina), changed(chance, {"holder": sha256(b"h")})):
            continue
        content = chance.choice([b"", b"x", b"{}", b"\xff", bytes(LARGE + 1)])
        about = {"holder": "h", "bytes": len(content), "media": chance.choice(MEDIA), "sha256": sha256(content)}
        path = text_or(chance.choice([sha256(content), "/etc/hostname", "../x"])) if chance.random() < 0.3 else None
        kept = None if path is not None and chance.random() < 0.9 else content
        call(COMMIT, operation, team.amina, text_or("h"), changed(chance, about), text_or(about["media"]), kept, path)
    connection.close()
    assert min(tally.values()) > 200

    false = set()
    for entry in team.ledger.entries(after=2):
        assert fits(entry.record, entry.body)
        assert is_name(entry.operation)
        if entry.kind == "reserve":
            assert all(is_name(name) for name in (*entry.record["blocks"], *entry.record["datasets"]))
            assert entry.record["purpose"] is None or is_name(entry.record["purpose"])
            if entry.record["event"] != SMALL.to_dict() or entry.record["budgets"]["clinic"]["units"][0] < 2**48:
                false.add(entry.seq)
        if entry.kind == "commit":
            try:
                team.ledger.answer(entry.operation, analyst=team.amina)
            except OutOfReach:
                assert entry.record["sha256"] == sha256(b"") or len(entry.record["sha256"]) == 64
    told = team.ledger.verify()
    wrong = [told.problem, *told.others]
    assert {int(line.split()[1]) for line in wrong} <= false, wrong
    team.ledger.statement("clinic")
    reserved = [entry for entry in team.ledger.entries() if entry.kind == "reserve"]
    started = {entry.operation for entry in team.ledger.entries() if entry.kind == "start"}
    team.ledger.refund(next(entry.operation for entry in reserved if entry.operation not in started), reason="odd")


@pytest.mark.parametrize("inner", ["1", "[]", "{}", '{"a":1}', '["a"]'])
def test_depth_is_counted_alike(team, inner):
    for levels in (DEEPEST_BODY, DEEPEST_BODY + 1):
        inside = levels - 3 - (len(inner) > 2)  # the body, its event and what is in the lists are levels as well
        odd = f'"event": {{"x": {"[" * inside}{inner}{"]" * inside}, '
        check_alike(team, f"q{levels}", odd, levels == DEEPEST_BODY)


def test_size_and_digits_are_counted_alike(team):
    room = LONGEST_BODY - len(body(clinic={"units": [2**50, 0]})) - len('"x": "", ')
    filled = ('"' + "a" * room + '"', '"' + "a" * (room + 1) + '"', "9" * 249, "9" * 250)
    for number, (inner, fit) in enumerate(zip(filled, (True, False, True, False), strict=True)):
        check_alike(team, f"q{number}", f'"event": {{"x": {inner}, ', fit)


def check_alike(team, operation, odd, fit):
    text = body(clinic={"units": [2**50, 0]}).replace('"event": {', odd)
    assert fits(json.loads(text), text) == fit
    if fit:
        team.as_amina(RESERVE, [operation, team.amina, text])
        return
    with pytest.raises(psycopg.Error, match="a name is empty"):
        team.as_amina(RESERVE, [operation, team.amina, text])


# A book that was put back


def test_a_server_that_went_on_from_an_older_copy_grants_nothing_to_whoever_knows_more(team):
    """What was written since the copy is taken out by hand, and something else comes in its place."""
    small = PureDP(epsilon=0.01)
    with team.open(team.amina) as ledger, team.open(team.badr) as other:
        ledger.once("clinic", EVENT, lambda: 1, analyst=team.amina, operation="large")
        taken_out = "DELETE FROM sitr.entry WHERE operation = 'large'; DELETE FROM sitr.answer"
        for table in ("entry", "answer"):
            team.sql(team.owner, f"ALTER TABLE sitr.{table} DISABLE TRIGGER only_added_to")
        team.sql(team.owner, taken_out + "; UPDATE sitr.budget SET whole = '{0,0}'")
        for place in range(2):
            other.once("clinic", small, lambda: 2, analyst=team.badr, operation=f"after {place}")
        for _ in range(2):
            with pytest.raises(LedgerDamaged, match="older copy"):
                ledger.reserve("clinic", small, analyst=team.amina)


@pytest.mark.parametrize("others", [0, 1, 2])
def test_an_entry_that_was_put_back_is_missed_whatever_stands_in_its_place(team, others):
    """The answer to a reservation is taken out, which itself stays; the book is as long again, longer, or shorter."""
    small = PureDP(epsilon=0.01)
    with team.open(team.amina) as ledger, team.open(team.badr) as other:
        ledger.once("clinic", EVENT, lambda: 1, analyst=team.amina, operation="large")
        for table in ("entry", "answer"):
            team.sql(team.owner, f"ALTER TABLE sitr.{table} DISABLE TRIGGER only_added_to")
        team.sql(team.owner, "DELETE FROM sitr.entry WHERE kind = 'commit'; DELETE FROM sitr.answer")
        for turn in range(others):
            other.reserve("clinic", small, analyst=team.badr, operation=f"after {turn}")
        for _ in range(3):
            with pytest.raises(LedgerDamaged, match="older copy"):
                ledger.reserve("clinic", small, analyst=team.amina)


def test_that_the_book_goes_on_is_looked_up_only_where_others_wrote(team):
    """The hash of an entry shows the one before: a reservation right after one's own is one statement."""
    asked, small = [], PureDP(epsilon=0.01)
    with points.watched(asked.append), team.open(team.amina) as ledger, team.open(team.badr) as other:
        ledger.reserve("clinic", small, analyst=team.amina).start()
        asked.clear()
        ledger.reserve("clinic", small, analyst=team.amina)
        assert [point.split("(")[0] for point in asked] == [f"{when} SELECT * FROM sitr.reserve" for when in WHEN]
        other.reserve("clinic", small, analyst=team.badr)
        asked.clear()
        ledger.reserve("clinic", small, analyst=team.amina)
        steps = [f"{when} SELECT * FROM sitr.{step}" for step in ("reserve", "operation") for when in WHEN]
        assert [point.split("(")[0] for point in asked] == steps

"""`sitr synthesize`: the bill first, then a file of rows; what is spent is in the book."""

import json
from datetime import date, datetime

import pyarrow
import pyarrow.parquet
import pytest

from sitr.cli import payment
from sitr.synthesis.table import SyntheticTable
from tests.cli.clinics import SECRETS, make_clinic
from tests.cli.helpers import run, run_json
from tests.synthesis.visits import visits

ASKED = ("--epsilon", "0.5", "--analyst", "amina")


@pytest.fixture
def clinic(tmp_path):
    path = make_clinic(tmp_path)
    declared = (tmp_path / "clinic.toml").read_text()
    (tmp_path / "clinic.toml").write_text(declared.replace("epsilon = 1.0  # in all", "epsilon = 1.0\ndelta = 1e-6"))
    assert run("budget", "begin", path).exit_code == 0
    return path


def test_the_bill_is_free(clinic):
    result = run("synthesize", clinic, "visits", *ASKED, "--explain")
    assert result.exit_code == 0
    assert "This would cost ε = 0.500 at δ = 1e-08, once. Nothing has been read." in result.stdout
    assert "diagnosis" in result.stdout
    record = run_json("synthesize", clinic, "visits", *ASKED, "--explain")
    assert [one["name"] for one in record["columns"]] == ["region", "diagnosis", "cost", "day"]
    assert "synthesize" not in run("ledger", "show", "--ledger", clinic).stdout


def test_rows_and_a_model(clinic, tmp_path):
    rows, model = tmp_path / "visits.parquet", tmp_path / "visits.json"
    result = run(
        "synthesize", clinic, "visits", *ASKED, "--rows", "120", "--yes", "--out", str(rows), "--model", str(model),
        "--operation", "first",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert result.stdout.split() == [str(rows), str(model)]
    assert "charged in entry" in result.stderr
    found = pyarrow.parquet.read_table(rows)
    assert found.num_rows == 120
    assert found.column_names == ["region", "diagnosis", "cost", "day"]
    assert SyntheticTable.load(model).columns == ("region", "diagnosis", "cost", "day")
    assert SECRETS[1] not in result.stdout + result.stderr
    again = tmp_path / "again.parquet"
    record = run_json(
        "synthesize", clinic, "visits", *ASKED, "--rows", "7", "--yes", "--out", str(again), "--operation", "first"
    )
    assert record["kept"] is True
    assert record["out"] == str(again)
    assert pyarrow.parquet.read_table(again).num_rows == 7
    shown = run("ledger", "show", "--ledger", clinic).stdout
    assert "synthesize" in shown


def test_a_part_is_spent_on_how_near_the_rows_are(clinic, tmp_path):
    bill = run("synthesize", clinic, "visits", *ASKED, "--check", "0.1", "--explain").stdout
    assert "10 % of the price goes into measuring how close the result is to the data" in bill
    result = run("synthesize", clinic, "visits", *ASKED, "--check", "0.1", "--yes", "--out", str(tmp_path / "a"))
    assert result.exit_code == 0, result.stderr
    assert "mean of 6 pairs" in result.stderr
    again = ("--check", "0.1", "--yes", "--out", str(tmp_path / "b"))
    record = run_json("synthesize", clinic, "visits", "--epsilon", "0.1", "--analyst", "amina", *again)
    assert len(record["fit"]["distances"]) == 10


def test_rules_are_told_and_kept(clinic, tmp_path):
    rules = ("--impossible", "region = 'north' AND cost < 100", "--determines", "region:day")
    bill = run("synthesize", clinic, "visits", *ASKED, *rules, "--explain").stdout
    assert "in every row:\n  never region = 'north' AND cost < 100\n  region determines day\n" in bill
    record = run_json("synthesize", clinic, "visits", *ASKED, *rules, "--explain")
    assert record["rules"] == ["never region = 'north' AND cost < 100", "region determines day"]
    out = tmp_path / "rows.parquet"
    made = run("synthesize", clinic, "visits", *ASKED, *rules, "--rows", "500", "--yes", "--out", str(out))
    assert made.exit_code == 0, made.stderr
    rows = pyarrow.parquet.read_table(out).to_pandas()
    assert not (rows["region"].eq("north") & rows["cost"].lt(100)).any()
    assert len(rows) == 500
    days = rows.assign(day=rows["day"].notna()).groupby("region", dropna=False)["day"]
    assert (days.nunique() == 1).all()


def test_rules_that_no_row_keeps_leave_the_model(clinic, tmp_path):
    """What was paid for can be had, although nothing can be drawn from it."""
    rules = ("--column", "cost", "--impossible", "cost >= 0", "--impossible", "cost IS NULL")
    out, model = str(tmp_path / "rows.parquet"), tmp_path / "model.json"
    paid = ("synthesize", clinic, "visits", *ASKED, *rules, "--yes", "--operation", "first")
    refused = run(*paid, "--out", out)
    assert refused.exit_code != 0
    assert "The ledger has the model, for nothing: --operation first --model FILE." in refused.stderr
    assert run(*paid, "--model", str(model)).exit_code == 0
    assert model.stat().st_size > 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--impossible", "cost <"), "--impossible 'cost <' is not understood"),
        (("--impossible", "height > 2"), "Columns: region, diagnosis, cost, day"),
        (("--impossible", "region = 'west'"), "--impossible \"region = 'west'\": region: some of what is wanted"),
        (("--determines", "region"), "--determines region is no pair of columns: --determines town:country"),
        (("--determines", "region:"), "--determines region: is no pair of columns"),
        (("--determines", "a:b:c"), "--determines a:b:c is no pair of columns"),
        (("--determines", "regio:day"), "determines names 'regio', which is not among the columns"),
        (("--determines", "region:day", "--determines", "cost:day"), "--determines names day twice"),
        (("--determines", "region:day", "--determines", "day:region"), "in a circle"),
    ],
)
def test_rules_that_mean_nothing_are_refused(clinic, options, said):
    result = run("synthesize", clinic, "visits", *ASKED, *options, "--explain", env={"COLUMNS": "300"})
    assert result.exit_code in (2, 4)
    assert said in result.stderr.replace("\n", " ")


SHOP = """
sitr = 1
name = "shop"

[privacy]
unit = "customer"
delta = 1e-7

[ledger]
url = "book.db"

[budgets.shop]
epsilon = 5
delta = 1e-6

[tables.customers]
source = "customers.parquet"
unit = "id"
max_rows_per_unit = 1
columns = { id = { type = "integer" }, rich = { type = "boolean", nulls = "drop" } }

[tables.lines]
source = "lines.parquet"
unit = "id"
max_rows_per_unit = 20
columns = { id = { type = "integer" }, price = { type = "integer", bounds = [0, 9], nulls = "drop" } }
"""


@pytest.fixture
def shop(tmp_path):
    people = list(range(600))
    lines = [one for one in people for _ in range(1 + one % 3)]
    for name, columns in {
        "customers": {"id": people, "rich": [one % 2 == 0 for one in people]},
        "lines": {"id": lines, "price": [one % 10 for one in lines]},
    }.items():
        pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / f"{name}.parquet")
    path = tmp_path / "shop.toml"
    path.write_text(SHOP)
    assert run("budget", "begin", str(path)).exit_code == 0
    return str(path)


def test_two_linked_tables(shop, tmp_path):
    linked = ("customers", "--epsilon", "4", "--with", "lines", "--max-children", "5")
    bill = run("synthesize", shop, *linked, "--explain")
    assert bill.exit_code == 0, bill.stderr
    assert "children is the number of its children" in bill.stdout
    record = run_json("synthesize", shop, *linked, "--explain")
    assert [one["name"] for one in record["parents"]["columns"]] == ["rich", "children"]
    assert [one["name"] for one in record["columns"]] == ["price", "rich"]
    parents, children, model = (tmp_path / name for name in ("people.parquet", "bought.parquet", "model.json"))
    to = ("--out", str(parents), "--out-children", str(children), "--model", str(model), "--yes")
    result = run("synthesize", shop, *linked, *to, "--rows", "50", "--child-column", "price")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.split() == [str(parents), str(children), str(model)]
    above, below = (pyarrow.parquet.read_table(path) for path in (parents, children))
    assert above.num_rows == 50
    assert set(below["parent"].to_pylist()) <= set(above["id"].to_pylist())
    assert below.column_names == ["parent", "price"]
    shown = run("ledger", "show", "--ledger", shop, env={"COLUMNS": "160"}).stdout
    assert shown.count("synthesize customers with") == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--with", "lines", "--explain"), "--max-children 20"),
        (("--max-children", "3", "--explain"), "--max-children means nothing without --with"),
        (("--child-column", "price", "--explain"), "--child-column means nothing without --with"),
        (("--with", "lines", "--max-children", "3", "--check", "0.1", "--explain"), "--check cannot be told"),
        (
            ("--with", "lines", "--max-children", "3", "--impossible", "rich", "--explain"),
            "--impossible cannot be told",
        ),
        (("--with", "lines", "--max-children", "3", "--determines", "a:b", "--explain"), "--determines cannot be told"),
        (("--with", "lines", "--max-children", "3", "--out", "x", "--yes"), "--out-children"),
        (("--with", "line", "--max-children", "3", "--explain"), "line"),
    ],
)
def test_what_means_nothing_beside_others_is_refused(shop, options, said):
    result = run("synthesize", shop, "customers", "--epsilon", "1", *options)
    assert result.exit_code in (2, 4)
    assert said in result.stderr


VISITS = """
sitr = 1
name = "visits"

[privacy]
unit = "patient"
delta = 1e-8

[ledger]
url = "visits.db"

[budgets.visits]
epsilon = 5
delta = 1e-6

[tables.visits]
source = "visits.parquet"
unit = "patient"
max_rows_per_unit = 4

[tables.visits.columns]
patient = { type = "integer" }
age = { type = "integer", bounds = [0, 99], nulls = "drop" }
cost = { type = "float", bounds = [0, 1000] }  # every tenth is missing
price = { type = "decimal(8, 2)", bounds = [0, 20] }
smokes = { type = "boolean", nulls = "drop" }
region = { type = "string", categories = ["north", "south"] }
diagnosis = { type = "string" }  # which there are is found privately
day = { type = "date", bounds = [2020-01-01, 2020-12-31] }
at = { type = "timestamp", bounds = [2020-01-01T00:00:00, 2021-01-01T00:00:00] }
"""


def test_a_table_of_all_types_from_end_to_end(tmp_path):
    pyarrow.parquet.write_table(visits(), tmp_path / "visits.parquet")
    path, out = tmp_path / "visits.toml", tmp_path / "rows.parquet"
    path.write_text(VISITS)
    assert run("budget", "begin", str(path)).exit_code == 0
    bill = run("synthesize", str(path), "visits", "--epsilon", "4", "--explain")
    assert "values shared by about" in bill.stdout
    made = run("synthesize", str(path), "visits", "--epsilon", "4", "--rows", "3000", "--out", str(out), "--yes")
    assert made.exit_code == 0, made.stderr
    rows, real = pyarrow.parquet.read_table(out), visits()
    assert rows.column_names == real.column_names[1:]
    for name in ("age", "cost", "smokes", "region", "diagnosis", "day", "at"):
        assert rows.schema.field(name).type == real.schema.field(name).type
    frame = rows.to_pandas()
    assert 0.02 < frame["cost"].isna().mean() < 0.25
    assert frame["day"].dropna().between(date(2020, 1, 1), date(2020, 12, 31)).all()
    assert frame["at"].dropna().between(datetime(2020, 1, 1), datetime(2021, 1, 1)).all()
    assert set(frame["diagnosis"].dropna()) == {"flu", "cold", "cough"}  # and none that one person has
    assert frame.loc[frame["smokes"], "age"].mean() - frame.loc[~frame["smokes"], "age"].mean() > 20


def test_someone_is_asked_and_may_say_no(clinic, tmp_path, monkeypatch):
    rows = tmp_path / "visits.parquet"
    refused = run("synthesize", clinic, "visits", *ASKED, "--out", str(rows), input="y\n")
    assert refused.exit_code == 2
    assert "--yes" in refused.stderr
    monkeypatch.setattr(payment, "on_terminal", lambda: True)
    no = run("synthesize", clinic, "visits", *ASKED, "--out", str(rows), input="n\n")
    assert no.exit_code == 1
    assert "Spend ε = 0.5 at δ = 1e-08?" in no.stderr
    assert "Nothing was spent." in no.stderr
    assert not rows.exists()
    yes = run("synthesize", clinic, "visits", *ASKED, "--column", "region", "--out", str(rows), input="y\n")
    assert yes.exit_code == 0
    assert pyarrow.parquet.read_table(rows).column_names == ["region"]


def test_what_does_not_fit_is_told_before_anyone_is_asked(clinic, tmp_path, monkeypatch):
    monkeypatch.setattr(payment, "on_terminal", lambda: True)
    much = ("--epsilon", "9", "--analyst", "amina", "--out", str(tmp_path / "rows.parquet"))
    result = run("synthesize", clinic, "visits", *much, input="y\n")
    assert result.exit_code == 3
    assert "does not fit into what is left" in result.stderr
    assert not (tmp_path / "rows.parquet").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("visits", *ASKED, "--yes"), "Say where the rows go"),
        (("visit", *ASKED, "--explain"), "visit"),
        (("codes", *ASKED, "--explain"), "public"),
        (("visits", *ASKED, "--explain", "--column", "costs"), "costs"),
        (("visits", *ASKED, "--explain", "--max-rows-per-unit", "40"), "--max-rows-per-unit"),
    ],
)
def test_what_cannot_be_asked_costs_nothing(clinic, options, said):
    result = run("synthesize", clinic, *options)
    assert result.exit_code in (2, 4)
    assert said in result.stderr


def test_a_file_that_is_there_is_not_overwritten_and_nothing_spent(clinic, tmp_path):
    (tmp_path / "rows.parquet").write_text("mine")
    result = run("synthesize", clinic, "visits", *ASKED, "--yes", "--out", str(tmp_path / "rows.parquet"))
    assert result.exit_code == 1
    assert "nothing spent" in result.stderr
    assert (tmp_path / "rows.parquet").read_text() == "mine"
    book = run_json("ledger", "show", "--ledger", clinic)
    assert "synthesize" not in json.dumps(book)

"""Declarations: a full file is read as written; what is wrong is refused, and the message names the place."""

import copy
from datetime import date, datetime
from fractions import Fraction

import pytest

from sitr.errors import InvalidDeclaration
from sitr.tables.declaration import Declaration, KeyPath

FULL = """
sitr = 1
name = "clinic"
version = 3
time_zone = "Asia/Riyadh"
analysts = ["amina", "omar"]

[connection]
engine = "duckdb"
address = "clinic.db"

[privacy]
unit = "patient"
adjacency = "replace_one"
delta = 1e-7

[ledger]
url = "clinic.ledger"
id = "0123"

[budgets.clinic]
epsilon = 3.0
delta = 1e-6
analysts.amina = { epsilon = 1.0 }
purposes.planning = { rho = 0.1 }

[tables.stays]
source = "data/stays.parquet"
unit = "patient"
max_rows_per_unit = 5
row_id = "id"
expected_units = 1000
expected_rows = 3000
max_rows = 1000000
columns.patient = { type = "integer" }
columns.id = { type = "int64" }
columns.age = { type = "uint8", bounds = [0, 120], nulls = "drop" }
columns.cost = { type = "float", bounds = [0.1, 1000] }
columns.paid = { type = "decimal(10, 2)", bounds = [-0.5, 99.999] }
columns.region = { type = "string", categories = ["north", "south"], nulls = "group" }
columns.urgent = { type = "boolean" }
columns.begin = { type = "date", bounds = [2020-01-01, 2024-12-31] }
columns.seen = { type = "timestamp", bounds = [2020-01-01T00:00:00, 2024-12-31T12:00:00] }

[tables.tests]
unit = { through = "stays", on = { stay = "id" } }
max_rows_per_unit = 20
columns.stay = { type = "integer" }
columns.level = { type = "float" }

[tables.visitors]
unit = "row"
dataset = "door"
columns.hour = { type = "int8" }

[tables.codes]
public = true
key = ["code"]
columns.code = { type = "string" }
columns.name = { type = "string" }
"""
SMALL = {
    "sitr": 1,
    "name": "clinic",
    "tables": {
        "visits": {
            "unit": "patient",
            "max_rows_per_unit": 5,
            "columns": {"patient": {"type": "integer"}, "cost": {"type": "float", "bounds": [0, 1000]}},
        }
    },
}


def changed(path, value):
    content = copy.deepcopy(SMALL)
    *before, last = path.split(".")
    inner = content
    for name in before:
        inner = inner.setdefault(name, {})
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return content


def test_a_full_file_is_read_as_written(tmp_path):
    path = tmp_path / "clinic.toml"
    path.write_text(FULL, encoding="utf-8")
    declared = Declaration.read(path)
    assert (declared.name, declared.version, declared.engine, declared.address) == ("clinic", 3, "duckdb", "clinic.db")
    assert (declared.unit, declared.adjacency, declared.delta) == ("patient", "replace_one", 1e-7)
    assert (declared.time_zone, declared.ledger, declared.ledger_id) == ("Asia/Riyadh", "clinic.ledger", "0123")
    assert declared.analysts == ("amina", "omar")
    assert declared.folder == tmp_path
    assert declared.budgets["clinic"]["analysts"] == {"amina": {"epsilon": 1.0}}
    stays = declared.tables["stays"]
    assert (stays.source, stays.unit, stays.max_rows_per_unit, stays.row_id) == (
        "data/stays.parquet", "patient", 5, "id",
    )  # fmt: skip
    assert (stays.expected_units, stays.expected_rows, stays.max_rows, stays.dataset) == (1000, 3000, 10**6, "clinic")
    schema = stays.schema
    assert (schema["age"].span, schema["age"].required) == ((0, 120), True)
    assert schema["cost"].ends == (Fraction(1, 10), 1000)
    assert schema["paid"].ends == (Fraction(-1, 2), Fraction(9999, 100))  # the largest that is a multiple of a cent
    assert (schema["region"].categories, schema["region"].nulls) == (("north", "south"), True)
    assert schema["begin"].span == (18262, 20088)
    assert schema["seen"].span[1] - schema["seen"].span[0] == 86400 * 1826 + 43200
    assert not schema["patient"].bounded
    assert declared.tables["tests"].unit == KeyPath("stays", (("stay", "id"),))
    visitors, codes = declared.tables["visitors"], declared.tables["codes"]
    assert (visitors.unit, visitors.max_rows_per_unit, visitors.dataset) == (None, 1, "door")
    assert visitors.schema["hour"].span == (-128, 127)
    assert (codes.public, codes.key, codes.dataset, codes.source) == (True, ("code",), "", "codes")


def test_what_is_left_out_has_a_default():
    declared = Declaration.of(SMALL)
    assert (declared.version, declared.engine, declared.address, declared.unit) == (1, "duckdb", "", "person")
    assert (declared.adjacency, declared.delta, declared.time_zone) == ("add_remove", 0.0, "UTC")
    assert (declared.ledger, declared.ledger_id, declared.analysts, declared.budgets) == (None, None, (), {})
    table = declared.tables["visits"]
    assert (table.dataset, table.source, table.max_rows) == ("clinic", "visits", 10**9)


VISITS = "tables.visits"
COST = "tables.visits.columns.cost"


@pytest.mark.parametrize(
    ("path", "value", "messages"),
    [
        ("sitr", 2, ["sitr = 1"]),
        ("sitr", None, ["sitr = 1"]),
        ("sitr", True, ["sitr=True"]),
        ("name", None, ["name="]),
        ("name", "a/b", ["name=", "'/'"]),
        ("name", 5, ["name=5", "str"]),
        ("version", 0, ["version=0"]),
        ("version", "1", ["version='1'", "int"]),
        ("versoin", 2, ["'versoin' is not known here"]),
        ("time_zone", "Mars/Phobos", ["time_zone="]),
        ("time_zone", "../../etc/passwd", ["time_zone="]),
        ("analysts", "amina", ["analysts="]),
        ("analysts", [""], ["analysts="]),
        ("analysts", [3], ["analysts=3"]),
        ("connection.engine", "oracle", ["connection: engine='oracle'", "'spark'"]),
        ("connection.adress", "x", ["connection: 'adress' is not known"]),
        ("connection", "x", ["connection is not a table of settings"]),
        ("privacy.adjacency", "add", ["privacy: adjacency='add'"]),
        ("privacy.delta", 1, ["privacy: delta=1"]),
        ("privacy.delta", -1e-9, ["privacy: delta=-1e-09"]),
        ("privacy.delta", float("nan"), ["privacy: delta=nan"]),
        ("privacy.delta", 10**400, ["privacy: delta="]),
        ("privacy.delta", True, ["privacy: delta=True"]),
        ("privacy.epsilon", 1.0, ["privacy: 'epsilon' is not known"]),
        ("ledger.path", "x", ["ledger: 'path' is not known"]),
        ("budgets.clinic", 3, ["budgets.clinic is not a table"]),
        ("budgets.clinic.epslion", 3, ["budgets.clinic: 'epslion' is not known"]),
        ("budgets.clinic.epsilon", "3", ["budgets.clinic: epsilon='3'"]),
        ("budgets.clinic.analysts.amina", 1, ["budgets.clinic.analysts.amina is not a table"]),
        ("budgets.clinic.analysts.amina.eps", 1, ["budgets.clinic.analysts.amina: 'eps'"]),
        ("budgets.clinic.purposes.care.rho", "x", ["budgets.clinic.purposes.care: rho='x'"]),
        ("tables", {}, ["no tables"]),
        ("tables", [], ["tables is not a table"]),
        ("tables.a/b", {}, ["table='a/b'", "no columns"]),
        (VISITS, 3, ["tables.visits is not a table"]),
        (f"{VISITS}.columns", None, ["tables.visits: no columns"]),
        (f"{VISITS}.unit", None, ["tables.visits: unit is not declared"]),
        (f"{VISITS}.unit", 3, ["tables.visits: unit is not declared"]),
        (f"{VISITS}.unit", "pateint", ["tables.visits: 'pateint' is not among the columns"]),
        (f"{VISITS}.unit", "cost", ["tables.visits: 'cost' is a float"]),
        (f"{VISITS}.unit", {"through": "visits"}, ["tables.visits: unit is not declared"]),
        (f"{VISITS}.unit", {"through": "stays", "on": {"patient": "id"}}, ["tables.visits.unit: 'stays'"]),
        (f"{VISITS}.unit", {"through": "visits", "on": {"patient": "patient"}}, ["tables.visits.unit: 'visits'"]),
        (f"{VISITS}.unit", {"thruogh": "stays", "on": {"a": "b"}}, ["tables.visits.unit: 'thruogh'"]),
        (f"{VISITS}.max_rows_per_unit", None, ["tables.visits: max_rows_per_unit is not declared"]),
        (f"{VISITS}.max_rows_per_unit", 0, ["tables.visits: max_rows_per_unit=0"]),
        (f"{VISITS}.max_rows_per_unit", 1.5, ["tables.visits: max_rows_per_unit=1.5"]),
        (f"{VISITS}.unit", "row", ["tables.visits: max_rows_per_unit says nothing where each row is a unit"]),
        (f"{VISITS}.public", True, ["tables.visits: max_rows_per_unit says nothing where the table is public"]),
        (f"{VISITS}.max_row_per_unit", 1, ["tables.visits: 'max_row_per_unit' is not known"]),
        (f"{VISITS}.row_id", "id", ["tables.visits: 'id' is not among the columns"]),
        (f"{VISITS}.row_id", "cost", ["tables.visits: 'cost' is a float"]),
        (f"{VISITS}.public", "yes", ["tables.visits: public='yes'"]),
        (f"{VISITS}.key", "id", ["tables.visits: 'id' is not among"]),
        (f"{VISITS}.key", [["id"]], ["tables.visits: key is not a list of columns"]),
        (f"{VISITS}.dataset", "a/b", ["tables.visits: dataset='a/b'"]),
        (f"{VISITS}.expected_rows", 0, ["tables.visits: expected_rows=0"]),
        (f"{VISITS}.max_rows", 2**54, ["tables.visits: max_rows="]),
        (f"{VISITS}.source", 5, ["tables.visits: source=5"]),
        (COST, "float", ["tables.visits.columns.cost is not a table"]),
        (f"{COST}.type", None, [COST, "type=''"]),
        (f"{COST}.type", "money", [COST, "type='money'", "decimal(precision, scale)"]),
        (f"{COST}.type", "decimal(5,6)", [COST, "type="]),
        (f"{COST}.type", "decimal(39,2)", [COST, "type="]),
        (f"{COST}.type", "string", [COST, "bounds are two ends"]),
        (f"{COST}.bounds", [0], [COST, "bounds are two ends"]),
        (f"{COST}.bounds", [0, 1, 2], [COST, "bounds are two ends"]),
        (f"{COST}.bounds", 5, [COST, "bounds=5"]),
        (f"{COST}.bounds", [5, 5], [COST, "not in order"]),
        (f"{COST}.bounds", [6, 5], [COST, "not in order"]),
        (f"{COST}.bounds", ["a", "b"], [COST, "'a' is not a number"]),
        (f"{COST}.bounds", [0, float("inf")], [COST, "inf is not a number"]),
        (f"{COST}.bounds", [float("nan"), 1], [COST, "nan is not a number"]),
        (f"{COST}.bounds", [False, True], [COST, "False is not a number"]),
        (f"{COST}.bounds", [date(2020, 1, 1), date(2021, 1, 1)], [COST, "is not a number"]),
        (f"{COST}.bounds", [10**18, 10**18 + 1024], [COST, "64 bits"]),
        (f"{COST}.bound", [0, 1], [COST, "'bound' is not known"]),
        (f"{COST}.nulls", "keep", [COST, "nulls='keep'"]),
        (f"{COST}.categories", [1, 2], [COST, "categories are 1 to"]),
        (COST, {"type": "integer", "bounds": [0.2, 0.8]}, [COST, "no two steps"]),
        (COST, {"type": "integer", "categories": []}, [COST, "categories are 1 to"]),
        (COST, {"type": "integer", "categories": [1, True]}, [COST, "categories are 1 to"]),
        (COST, {"type": "integer", "categories": [1, 1]}, [COST, "categories repeat"]),
        (COST, {"type": "string", "categories": ["a", 1]}, [COST, "categories are 1 to"]),
        (COST, {"type": "string", "categories": [["a"]]}, [COST, "categories are 1 to"]),
        (COST, {"type": "date", "categories": [datetime(2024, 1, 1)]}, [COST, "categories are 1 to"]),
        (COST, {"type": "date", "bounds": [datetime(2024, 1, 1), datetime(2025, 1, 1)]}, [COST, "is not a date"]),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(path, value, messages):
    with pytest.raises(InvalidDeclaration) as caught:
        Declaration.of(changed(path, value))
    assert any(part in caught.value.what for part in messages), caught.value.what
    assert messages[0] in caught.value.what or path.startswith("tables.a/b")


@pytest.mark.parametrize(
    ("kind", "quoted", "plain"),
    [
        ("date", ["2025-01-01", "2025-12-31"], [date(2025, 1, 1), date(2025, 12, 31)]),
        ("timestamp", ["2025-01-01", "2025-12-31T12:30"], [datetime(2025, 1, 1), datetime(2025, 12, 31, 12, 30)]),
        (
            "timestamp",
            ["2025-01-01 00:00", "2025-12-31 12:30:59"],
            [datetime(2025, 1, 1), datetime(2025, 12, 31, 12, 30, 59)],
        ),
    ],
)
def test_dates_and_times_may_stand_in_quotes(kind, quoted, plain):
    for name in ("bounds", "categories"):
        one, other = (
            Declaration.of(changed(COST, {"type": kind, name: values})).tables["visits"].schema["cost"]
            for values in (quoted, plain)
        )
        assert one == other
        assert one.bounded or one.categories == tuple(plain)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("date", "15/08/2025"),
        ("date", "2025-02-30"),
        ("date", "20250101"),
        ("date", "2025-01-01T00:00"),
        ("date", "2025-W01-1"),
        ("timestamp", "2025-01-01T24:01"),
        ("timestamp", "2025-01-01T00:00Z"),
        ("timestamp", "noon"),
    ],
)
def test_a_text_that_is_no_date_is_refused_with_one_that_is(kind, text):
    for name in ("bounds", "categories"):
        with pytest.raises(InvalidDeclaration, match=f"{name}: '{text}' is not a {kind}") as caught:
            Declaration.of(changed(COST, {"type": kind, name: [text, text]}))
        assert COST in caught.value.what
        assert "with or without quotes" in caught.value.do


REGION = "tables.visits.columns.region"


def test_what_is_not_declared_may_be_one_group():
    settings = {"type": "string", "categories": ["north", "south"], "others": "group"}
    domain = Declaration.of(changed(REGION, settings)).tables["visits"].schema["region"]
    assert (domain.categories, domain.listed, domain.others) == (
        ("north", "south", "(other)"),
        ("north", "south"),
        True,
    )
    skipped = Declaration.of(changed(REGION, settings | {"others": "skip"})).tables["visits"].schema["region"]
    assert (skipped.categories, skipped.listed, skipped.others) == (("north", "south"), ("north", "south"), False)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"type": "string", "categories": ["a"], "others": "keep"}, "others='keep'"),
        ({"type": "string", "others": "group"}, "is for texts with 1 to 1,000 categories"),
        ({"type": "integer", "categories": [1], "others": "group"}, "is for texts with 1 to 1,000 categories"),
        ({"type": "string", "categories": list(map(str, range(1001))), "others": "group"}, "1 to 1,000 categories"),
        ({"type": "string", "categories": ["a", "(other)"], "others": "group"}, "'(other)' is a declared category"),
    ],
)
def test_a_group_of_all_others_that_could_be_mistaken_is_refused(settings, said):
    with pytest.raises(InvalidDeclaration) as caught:
        Declaration.of(changed(REGION, settings))
    assert REGION in caught.value.what
    assert said in caught.value.what


def test_what_tells_units_or_rows_apart_keeps_its_values():
    many = {"type": "string", "categories": ["a"], "others": "group"}
    said = r"tells units or rows apart"
    with pytest.raises(InvalidDeclaration, match=rf"tables.visits.columns.patient: .* {said}"):
        Declaration.of(changed("tables.visits.columns.patient", many))
    plain = {"patient": {"type": "integer"}, "id": {"type": "string"}}
    path = {"unit": {"through": "stays", "on": {"id": "id"}}}
    for place, first, second in (
        ("tests", {"columns": plain}, path | {"columns": plain | {"id": many}}),
        ("stays", {"columns": plain | {"id": many}}, path | {"columns": plain}),
    ):
        with pytest.raises(InvalidDeclaration, match=rf"tables.{place}.columns.id: .* {said}"):
            Declaration.of(two(first, second))
    codes = {"public": True, "key": "code", "columns": {"code": many}}
    with pytest.raises(InvalidDeclaration, match=said):
        Declaration.of(SMALL | {"tables": SMALL["tables"] | {"codes": codes}})


def two(first, second):
    columns = {"patient": {"type": "integer"}, "id": {"type": "integer"}, "name": {"type": "string"}}
    plain = {"unit": "patient", "max_rows_per_unit": 2, "columns": columns}
    return SMALL | {"tables": {"stays": plain | first, "tests": plain | second}}


def test_a_path_leads_to_a_table_of_the_same_budget_by_columns_of_one_kind():
    path = {"unit": {"through": "stays", "on": {"id": "id"}}}
    assert Declaration.of(two({}, path)).tables["tests"].unit == KeyPath("stays", (("id", "id"),))
    with pytest.raises(InvalidDeclaration, match=r"tables.tests.unit: name cannot equal stays.id"):
        Declaration.of(two({}, {"unit": {"through": "stays", "on": {"name": "id"}}}))
    with pytest.raises(InvalidDeclaration, match=r"tables.tests.unit: id cannot equal stays.nobody"):
        Declaration.of(two({}, {"unit": {"through": "stays", "on": {"id": "nobody"}}}))
    with pytest.raises(InvalidDeclaration, match="'there' is not among the columns"):
        Declaration.of(two({}, {"unit": {"through": "stays", "on": {"there": "id"}}}))
    with pytest.raises(InvalidDeclaration, match=r"tables.tests: its dataset is not that of 'stays'"):
        Declaration.of(two({"dataset": "other"}, path))
    content = two({"unit": "row"}, path)
    del content["tables"]["stays"]["max_rows_per_unit"]
    with pytest.raises(InvalidDeclaration, match=r"tables.tests.unit: 'stays' is not a declared table with a column"):
        Declaration.of(content)


def test_one_source_has_one_budget():
    assert Declaration.of(two({"source": "s"}, {"source": "s"}))
    for other in ({"dataset": "other"}, {"public": True}):
        content = two({"source": "s"}, {"source": "S"} | other)
        if "public" in other:
            del content["tables"]["tests"]["unit"], content["tables"]["tests"]["max_rows_per_unit"]
        with pytest.raises(InvalidDeclaration, match="read one source and have different budgets"):
            Declaration.of(content)


@pytest.mark.parametrize("source", ["v.parquet", "v.parquet/*.parquet", "v.parquet/a*.parquet"])
def test_the_files_of_a_folder_or_a_pattern_have_one_budget(tmp_path, source):
    (tmp_path / "v.parquet").mkdir()
    (tmp_path / "v.parquet" / "a.parquet").touch()
    for other in ("v.parquet/a.parquet", "v.parquet"):
        assert Declaration.of(two({"source": source}, {"source": other}), tmp_path)
        content = two({"source": source}, {"source": other, "dataset": "other"})
        with pytest.raises(InvalidDeclaration, match="read one source and have different budgets"):
            Declaration.of(content, tmp_path)


@pytest.mark.parametrize(
    ("one", "two_"), [("t/*.parquet", "t/x.parquet"), ("t.parquet", "t.parquet/x.parquet"), ("y.parquet", "y*.parquet")]
)
def test_patterns_that_overlap_have_one_budget_before_there_are_files(tmp_path, one, two_):
    for sources in ((one, two_), (two_, one)):
        content = two({"source": sources[0]}, {"source": sources[1], "dataset": "other"})
        with pytest.raises(InvalidDeclaration, match="read one source and have different budgets"):
            Declaration.of(content, tmp_path)


def test_one_budget_promises_to_rows_or_to_those_whom_rows_are_about():
    content = two({}, {"unit": "row"})
    del content["tables"]["tests"]["max_rows_per_unit"]
    with pytest.raises(InvalidDeclaration, match=r"tables.tests and tables.stays share a budget"):
        Declaration.of(content)
    content["tables"]["tests"]["dataset"] = "tests"
    assert Declaration.of(content).tables["tests"].dataset == "tests"
    content["tables"]["codes"] = {"public": True, "columns": {"code": {"type": "string"}}}
    assert Declaration.of(content).tables["codes"].dataset == ""


def test_a_row_that_is_a_unit_and_a_column_of_that_name_are_not_confused():
    content = changed("tables.visits.unit", "row")
    del content["tables"]["visits"]["max_rows_per_unit"]
    assert Declaration.of(content).tables["visits"].unit is None
    content["tables"]["visits"]["columns"]["row"] = {"type": "integer"}
    with pytest.raises(InvalidDeclaration, match=r"tables.visits: unit = .row. says that each row is a unit"):
        Declaration.of(content)


def test_a_row_that_is_a_unit_has_no_maximum():
    with pytest.raises(InvalidDeclaration, match="max_rows_per_unit says nothing where each row is a unit"):
        Declaration.of(changed("tables.visits.unit", "row"))


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InvalidDeclaration, match=r"nowhere.toml cannot be read"):
        Declaration.read(tmp_path / "nowhere.toml")
    (tmp_path / "bad.toml").write_text("sitr = ", encoding="utf-8")
    with pytest.raises(InvalidDeclaration, match=r"bad.toml is no TOML"):
        Declaration.read(tmp_path / "bad.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidDeclaration, match=r"bytes.toml is no TOML"):
        Declaration.read(tmp_path / "bytes.toml")


@pytest.mark.parametrize(
    ("kind", "span"),
    [("int8", (-128, 127)), ("uint16", (0, 65535)), ("int32", (-(2**31), 2**31 - 1)), ("uint32", (0, 2**32 - 1))],
)
def test_small_whole_numbers_have_the_bounds_of_their_type(kind, span):
    declared = Declaration.of(changed(COST, {"type": kind}))
    assert declared.tables["visits"].schema["cost"].span == span


@pytest.mark.parametrize("kind", ["int64", "uint64", "integer", "float", "decimal(38,0)"])
def test_large_numbers_have_no_bounds_unless_declared(kind):
    assert not Declaration.of(changed(COST, {"type": kind})).tables["visits"].schema["cost"].bounded


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("expected_units", "expected_unit", "Did you mean 'expected_units'?"),
        ("max_rows_per_unit", "max_row_per_unit", "'max_row_per_unit' is not known"),
        ("public", "publik", "'publik' is not known here"),
    ],
)
def test_a_misspelt_setting_is_told_what_was_meant(right, wrong, said):
    table = {"unit": "p", "max_rows_per_unit": 3, "expected_units": 9, "columns": {"p": {"type": "integer"}}}
    table = {wrong if name == right else name: value for name, value in (table | {wrong: 1}).items()}
    with pytest.raises(InvalidDeclaration) as refused:
        Declaration.of({"sitr": 1, "name": "clinic", "tables": {"t": table}})
    assert said in str(refused.value)

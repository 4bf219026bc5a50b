"""Names and texts that a hostile declaration or analyst would choose: each is only a name, or only a text."""

import pyarrow
import pytest

import sitr
from sitr.errors import EngineFailed, InvalidArgument, InvalidDeclaration
from sitr.session.database import open as open_database
from tests.query.databases import X, asked, column, declared, exact, paid, people, plan_of, spent, visits
from tests.tables.conftest import PARAMS


@pytest.fixture(params=PARAMS)
def engine(request):
    return request.param


NAMES = [
    'weird " name',
    "it's",
    "a.b.c",
    "with space",
    "semi;colon -- comment",
    "-- c",
    "💊",
    "زيارة",
    "{curly} %s %(x)s :x ? $1",
    "SELECT",
    "unit",
    "chosen_by",
    "place",
    "key0",
    "sum0",
    "units",
    "cell",
    "value",
    "row_id",
    "rows",
    "c0",
    "d3_0",
    "j4_0",
    "r0",
    "v0",
    "k0",
    "x0_0",
    "there0",
    "of_unit",
    "sitr_0",
    "back\\slash",
]


@pytest.mark.parametrize("begin", range(0, len(NAMES), 5))
def test_any_name_of_a_table_a_column_or_a_unit_is_only_a_name(engine, begin):
    """Names of the declaration and of the analyst are quoted, and clash with none of ours."""
    unit, row, x, t, table_name, made, n = (NAMES + NAMES)[begin : begin + 7]
    columns = {
        unit: column("integer"),
        row: column("integer"),
        x: column("integer", bounds=[0, 10]),
        t: column("string", categories=["u", "v"]),
    }
    declaration = {"unit": unit, "row_id": row, "max_rows_per_unit": 2, "columns": columns}
    frame = {unit: [1, 1, 1, 2], row: [1, 2, 3, 4], x: [1, 2, 3, 50], t: ["u", "u", "v", "v"]}
    content = {"privacy": {"delta": 1e-6}, "tables": {table_name: declaration}}
    table = asked(engine, {table_name: pyarrow.table(frame)}, content).table(table_name)
    longer = table.derive(**{made: table[x] + 1})
    answer = exact(longer.group_by(**{unit: longer[t]}).aggregate(**{n: sitr.count(), x: sitr.sum(made)}))
    assert answer.value[unit] == ["u", "v"]
    assert sum(answer.value[n]) == 3
    assert sum(exact(table.aggregate(**{n: sitr.histogram(x, [0, 5, 10])})).value[n]) == 2  # 50 is in no bin
    assert exact(table.aggregate(**{n: sitr.count_distinct(x)})).value[n] == [3]
    joined = table.join(table.per_unit(**{made: sitr.sum(x, bounds=(0, 10))}))
    assert exact(joined.aggregate(**{n: sitr.count()})).value[n] == [3]


def test_a_unit_named_row_is_not_taken_for_rows_that_are_units():
    """unit = "row" says that rows are units; a column of that name would silently not be protected."""
    content = {"tables": {"visits": {"unit": "row", "columns": {"row": column("integer")}}}}
    with pytest.raises(InvalidDeclaration, match="row"):
        declared(content)


def test_a_text_that_no_engine_takes_costs_nothing(engine):
    table = paid(engine, {"person": [1], "k": ["a"]}, k=column("string"))
    question = table.filter(table["k"] == "a\x00b").aggregate(n=sitr.count())
    if engine == "spark":  # which takes any
        assert exact(question).value["n"] == [0]
        return
    with pytest.raises(EngineFailed):
        question.release(epsilon=1.0)
    assert spent(table.database) == 0


INJECTIONS = [
    "'; DROP TABLE visits; --",
    "' OR '1'='1",
    "x' UNION SELECT * FROM visits --",
    "\\' OR 1=1 --",
    "$$; ATTACH 'evil.db'; $$",
    "%(x)s {0} :x ?",
    "\u2019 OR 1=1",
    "é\u0301",
]


@pytest.mark.parametrize("text", INJECTIONS)
def test_any_text_in_a_condition_or_a_list_is_only_a_text(engine, text):
    frame = {"person": [1, 2, 3], "k": [text, "other", None]}
    table = visits(engine, frame, k=column("string"))
    k = table["k"]
    matched = [
        table.filter(k == text),
        table.filter(k.isin([text, "nowhere"])),
        table.filter(~(k != text)),
        table.derive(c=k.fill_null(text)).filter(k.is_null() | (k == "nowhere")),
    ]
    for one in matched:
        assert exact(one.aggregate(n=sitr.count())).value["n"] == [1]
    listed = table.group_by("k", values={"k": [text, "nowhere"]}).aggregate(n=sitr.count())
    assert exact(listed).value["n"] == [1, 0]
    declared_ones = visits(engine, frame, k=column("string", categories=[text, "nowhere"]))
    assert exact(declared_ones.group_by("k").aggregate(n=sitr.count())).value["n"] == [1, 0]


@pytest.mark.parametrize(
    "source", ["visits'); DROP TABLE secret; --.csv", 'a"b.parquet', "it's.csv", "sub dir/é💊.csv"]
)
def test_any_source_is_only_a_path(tmp_path, source):
    path = tmp_path / source
    path.parent.mkdir(exist_ok=True)
    if source.endswith(".csv"):
        path.write_text("person\n1\n2\n")
    else:
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table({"person": [1, 2]}), path)
    content = people()
    content["tables"]["visits"]["source"] = source
    with open_database(declared(content, tmp_path), analyst="amina", ledger="memory://") as database:
        assert exact(database.table("visits").aggregate(n=sitr.count())).value["n"] == [2]


NO_PATHS = ["(SELECT 1 AS person)", "visits; DROP TABLE visits", "nowhere", "read_csv('/etc/passwd')"]


@pytest.mark.parametrize("source", NO_PATHS)
def test_a_source_is_no_query(source):
    content = people()
    content["tables"]["visits"]["source"] = source
    with pytest.raises(InvalidDeclaration, match="cannot be opened"):
        open_database(declared(content), analyst="amina", ledger="memory://")


def test_the_memory_of_the_engine_is_a_size():
    frames = {"visits": pyarrow.table({"person": [1]})}
    with pytest.raises(InvalidArgument, match="memory"):
        open_database(declared(people()), analyst="amina", ledger="memory://", frames=frames, memory="1GB'; SELECT '")
    with open_database(
        declared(people()), analyst="amina", ledger="memory://", frames=frames, memory="500MB"
    ) as database:
        assert exact(database.table("visits").aggregate(n=sitr.count())).value["n"] == [1]


def test_a_column_that_is_named_like_an_expression_is_another(engine):
    """By their text, a column "(x + 1)" and the sum of x and 1 would share one measurement, and one answer."""
    table = visits(engine, {"person": [1], "x": [1], "(x + 1)": [9]}, **{"x": X, "(x + 1)": X})
    answer = exact(table.aggregate(a=sitr.sum(table["x"] + 1), b=sitr.sum("(x + 1)")))
    assert (answer.raw["a"], answer.raw["b"]) == ([pytest.approx(2)], [pytest.approx(9)])


def test_a_derived_name_that_is_given_again_changes_no_other(engine):
    table = visits(engine, {"person": [1, 2], "a": [1, 2], "b": [3, 4]}, a=X, b=X)
    once = table.derive(a=table["a"] + 1)
    twice = once.derive(b=once["a"] * 2)
    answer = exact(twice.aggregate(a=sitr.sum("a"), b=sitr.sum("b")))
    assert (answer.raw["a"], answer.raw["b"]) == ([pytest.approx(5)], [pytest.approx(10)])


def test_bounds_that_are_too_fine_so_far_from_zero_are_refused(engine):
    """Their steps would leave 64 bits, and fail on the first row."""
    table = visits(engine, {"person": [1], "f": [1e17]}, f=column("float"))
    with pytest.raises(InvalidArgument, match="leave 64 bits"):
        table.aggregate(s=sitr.sum("f", bounds=(1e17, 1e17 + 64))).release(epsilon=1.0)


def test_bounds_whose_width_is_no_number_are_refused_before_the_charge(engine):
    table = paid(engine, {"person": [1], "f": [1e308]}, f=column("float"))
    with pytest.raises(InvalidArgument, match="so large"):
        table.aggregate(s=sitr.sum("f", bounds=(-1e308, 1e308))).release(epsilon=1.0)
    assert spent(table.database) == 0


def test_no_value_leaves_its_bounds_by_rounding(engine):
    """Steps of 1/100 near 10^15 are finer than doubles there: what is rounded past an end is clipped once more."""
    from decimal import Decimal

    low, high = 10**15, 10**15 + 1
    values = pyarrow.array([Decimal(low) + Decimal(cent) / 100 for cent in range(0, 101, 7)], pyarrow.decimal128(20, 2))
    for ends in ((low, high), (low, float(low) + 0.625)):
        table = visits(engine, {"person": list(range(len(values))), "x": values}, rows=1, x=column("decimal(20, 2)"))
        plan = plan_of(table.aggregate(s=sitr.sum("x", bounds=ends)))
        (measured,) = plan.measurements
        for tally in plan.tallies:
            found = table.database.source.run(tally)
            total = int(found.column(f"sum{tally.sums.index((('x0_0', 1),))}")[0].as_py())
            assert 0 <= total <= measured.noise.unit * len(values)

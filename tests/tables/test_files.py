"""Files: one that is put in the place of another while a database is open is refused before it is paid for."""

import gzip
import os
from contextlib import suppress

import pyarrow
import pyarrow.parquet
import pytest

import sitr
from sitr.errors import InvalidDeclaration
from sitr.session.database import open as opened
from sitr.tables.declaration import Declaration
from sitr.tables.files import Held, is_file, is_parquet
from tests.tables import engines

ENGINES = pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.xdist_group("spark"))])
KINDS = pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz", "rows.tsv", "rows.parquet"])
EPSILON = 1.0
pytestmark = pytest.mark.usefixtures("conforming")


def write(path, values):
    """Values of one column, so many as are given and each of one sign: files of as many are equally long."""
    content = ("x\n" + "".join(f"{value}\n" for value in values)).encode()
    if is_parquet(path.name):
        pyarrow.parquet.write_table(pyarrow.table({"x": values}), path)
    else:
        path.write_bytes(gzip.compress(content, mtime=0) if path.name.endswith(".gz") else content)


def database(folder, engine, *names):
    """A database with a table t0, t1, ... of one column for each file."""
    if reason := engines.missing(engine):
        pytest.skip(reason)
    plain = {"unit": "row", "columns": {"x": {"type": "integer", "bounds": [0, 9]}}}
    tables = {f"t{place}": plain | {"source": str(name)} for place, name in enumerate(names)}
    content = {"sitr": 1, "name": "d", "connection": {"engine": engine}, "tables": tables}
    content["budgets"] = {"d": {"epsilon": 100.0}}
    return opened(Declaration.of(content, folder), ledger="memory://", analyst="amina")


def refused(database, name, table="t0"):
    """A question is refused, and nothing is charged."""
    spent = database.ledger.spent("d").value
    with pytest.raises(InvalidDeclaration, match=rf"{name} is another file than it was") as caught:
        database.table(table).aggregate(n=sitr.count()).release(epsilon=EPSILON)
    assert caught.value.do == "open the database again."
    assert database.ledger.spent("d").value == spent


def answered(database, table="t0"):
    return database.table(table).aggregate(n=sitr.count()).release(epsilon=EPSILON).value["n"]


def like(path, other):
    """Give a file the times of another."""
    found = other.stat()
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


@ENGINES
@KINDS
def test_a_file_in_the_place_of_another_is_refused_even_if_it_looks_the_same(tmp_path, engine, name):
    """As long, of the same time, and with the same first line: its rows are other people's."""
    write(tmp_path / name, [1, 2, 3])
    write(tmp_path / f"new-{name}", [4, 5, 6])
    like(tmp_path / f"new-{name}", tmp_path / name)
    with database(tmp_path, engine, name) as one:
        answered(one)
        os.replace(tmp_path / f"new-{name}", tmp_path / name)
        refused(one, name)
    with database(tmp_path, engine, name) as again:
        answered(again)


@ENGINES
@KINDS
def test_a_file_that_was_removed_and_written_again_is_refused(tmp_path, engine, name):
    """A disk may give the number of a file that was removed to the next one."""
    write(tmp_path / name, [1, 2, 3])
    with database(tmp_path, engine, name) as one:
        (tmp_path / name).unlink()
        refused(one, name)
        write(tmp_path / name, [4, 5, 6])
        refused(one, name)


@ENGINES
@KINDS
def test_a_link_that_leads_to_another_file_is_refused(tmp_path, engine, name):
    for folder, values in (("first", [1, 2, 3]), ("second", [4, 5, 6])):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / name, values)
    like(tmp_path / "second" / name, tmp_path / "first" / name)
    (tmp_path / name).symlink_to(tmp_path / "first" / name)
    (tmp_path / "folder").symlink_to(tmp_path / "first")
    with database(tmp_path, engine, name, f"folder/{name}") as one:
        answered(one), answered(one, "t1")
        for link, place in (("folder", "second"), (name, f"second/{name}")):
            (tmp_path / link).unlink()
            (tmp_path / link).symlink_to(tmp_path / place)
        refused(one, name)
        refused(one, name, "t1")
        (tmp_path / name).unlink()
        (tmp_path / name).symlink_to(tmp_path / "first" / name)
        answered(one)  # it is the file that was opened


@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv"])
def test_a_text_file_that_grows_or_is_written_over_stays_itself_in_duckdb(tmp_path, name):
    write(tmp_path / name, [1, 2, 3])
    with database(tmp_path, "duckdb", name) as one:
        with (tmp_path / name).open("a") as file:
            file.write("4\n")
        answered(one)
        write(tmp_path / name, [5])
        answered(one)
        (tmp_path / name).write_text("y\n5\n")
        refused(one, name)


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_a_file_that_spark_alone_looks_up_is_known_by_its_number_where_it_is_on_this_machine(tmp_path, name):
    write(tmp_path / name, [1, 2, 3])
    write(tmp_path / f"new-{name}", [4, 5, 6])
    like(tmp_path / f"new-{name}", tmp_path / name)
    with database(tmp_path, "spark", f"file://{tmp_path}/{name}") as one:
        answered(one)
        os.replace(tmp_path / f"new-{name}", tmp_path / name)
        refused(one, name)


def test_only_what_a_question_reads_is_looked_up(tmp_path):
    for name in ("a.csv", "b.csv"):
        write(tmp_path / name, [1, 2, 3])
    with database(tmp_path, "duckdb", "a.csv", "b.csv") as one:
        (tmp_path / "b.csv").unlink()
        answered(one)
        refused(one, "b.csv", "t1")


def test_the_table_that_names_the_units_of_another_is_looked_up_with_it(tmp_path):
    (tmp_path / "stays.csv").write_text("id,who\n10,1\n")
    (tmp_path / "bills.csv").write_text("stay\n10\n")
    number = {"type": "integer"}
    stays = {"source": "stays.csv", "unit": "who", "max_rows_per_unit": 2, "columns": {"id": number, "who": number}}
    path = {"through": "stays", "on": {"stay": "id"}}
    bills = {"source": "bills.csv", "unit": path, "max_rows_per_unit": 2, "columns": {"stay": number}}
    content = {"sitr": 1, "name": "d", "tables": {"stays": stays, "bills": bills}}
    content["budgets"] = {"d": {"epsilon": 100.0}}
    with opened(Declaration.of(content, tmp_path), ledger="memory://", analyst="amina") as one:
        answered(one, "bills")
        (tmp_path / "new.csv").write_text("id,who\n10,2\n")
        os.replace(tmp_path / "new.csv", tmp_path / "stays.csv")
        refused(one, "stays.csv", "bills")


def held_open(path):
    """How many handles of this process lead to a file."""
    found = []
    for handle in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the one by which the folder itself is read
            found.append(os.readlink(f"/proc/self/fd/{handle}"))
    return found.count(str(path))


def test_what_is_held_is_let_go(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x\n")
    held, other = Held(), Held()
    held.check(path), held.check(path), other.check(path)
    assert held_open(path) == 2
    held.close()
    assert held_open(path) == 1
    del other
    assert held_open(path) == 0
    with pytest.raises(FileNotFoundError):
        held.check(tmp_path / "b.csv")


def test_a_database_lets_go_of_its_files_when_it_is_closed(tmp_path):
    write(tmp_path / "a.csv", [1])
    with database(tmp_path, "duckdb", "a.csv"):
        assert held_open(tmp_path / "a.csv") == 1
    assert held_open(tmp_path / "a.csv") == 0


def test_files_are_known_by_their_names():
    assert [is_file(name) for name in ("a.parquet", "A.CSV", "a.csv.gz", "a.tsv", "csv", "a.json")] == [True] * 4 + [
        False
    ] * 2
    assert is_parquet("A.Parquet")
    assert not is_parquet("a.csv")

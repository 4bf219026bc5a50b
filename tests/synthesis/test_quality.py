"""The quality of a synthetic table: what its noise tells, and in a test what the real rows tell."""

import sys

import numpy as np
import pyarrow
import pytest

from sitr.errors import InvalidArgument, MissingExtra
from sitr.release import NOT_PRIVATE
from sitr.synthesis import comparison, synthesizer
from sitr.synthesis.comparison import distance
from sitr.synthesis.table import SyntheticTable
from sitr.tables.codes import Code
from sitr.tables.domains import Domain

ROWS = 4000
CODES = (
    Code.of("smokes", Domain("boolean", required=True)),
    Code.of("age", Domain("number", lower=0, upper=99, required=True)),
    Code.of("region", Domain("string", categories=("north", "south", "west"))),
    Code.of("grade", Domain("number", categories=(1, 2, 3, 4), required=True)),
)


def people(rows=ROWS):
    generator = np.random.default_rng(1)
    smokes = generator.random(rows) < 0.4
    age = np.clip(generator.normal(np.where(smokes, 65, 35), 8).round(), 0, 99).astype(int)
    grade = np.clip(1 + age // 30, 1, 4)
    region = pyarrow.array(["north", None] * (rows // 2))
    return pyarrow.table({"smokes": smokes, "age": age, "region": region, "grade": grade, "more": age})


@pytest.fixture(scope="module")
def made():
    numbers = np.stack([code.numbers_of(people().column(code.name).combine_chunks()) for code in CODES], axis=1)
    mechanism = synthesizer(
        [code.size for code in CODES], epsilon=3.0, delta=1e-6, ordered=[code.ordered for code in CODES]
    )
    released = mechanism.release(numbers, unsafe_seed=1)
    return SyntheticTable(value=released.value, error95=None, event=released.event, codes=CODES, rows_per_unit=2)


def test_the_noise_tells_how_wrong_each_table_is(made):
    quality = made.quality()
    assert quality.columns == ("smokes", "age", "region", "grade")
    assert [one.columns for one in quality.singles] == [(name,) for name in quality.columns]
    measured = made.value.learnt.measured
    for one, table in zip((*quality.singles, *quality.tables), measured, strict=True):
        assert one.shape == table.shape
        assert one.noise == pytest.approx(1.96 * table.deviations.mean())
        assert one.error == pytest.approx(0.5 * 0.79788 * table.deviations.sum() / made.rows, rel=1e-4)
    pairs = {one.columns for one in quality.tables}
    assert len(pairs) + len(quality.unmeasured) == 6
    assert not pairs & set(quality.unmeasured)
    assert quality.pair_errors.keys() == pairs
    assert quality.rows == made.count()


def test_what_is_printed_spends_nothing_and_is_private(made):
    text = str(made.quality())
    assert NOT_PRIVATE not in text
    assert "rows: " in text
    assert "% of the rows" in text
    assert "smokes × age" in text
    assert "at most 2 of each unit" in text
    if made.quality().unmeasured:
        assert "seemed nearly independent" in text


@pytest.mark.parametrize("as_frame", [lambda table: table, lambda table: table.to_pandas()])
def test_true_distances_are_stamped(made, as_frame):
    quality = made.quality(unsafe_compare=as_frame(people()), seed=1)
    assert str(quality).startswith(NOT_PRIVATE)
    found = quality.comparison
    assert len(found.singles) == 4
    assert len(found.pairs) == 6
    assert len(found.triples) == 4
    assert max(found.singles.values()) < 0.1
    assert 0 < np.mean(list(found.pairs.values())) < 0.1
    assert found.shares["region"].tolist() == [0.5, 0, 0, 0.5]
    assert found.correlations.columns == ("age", "grade")
    numbers = people().select(["age", "grade"]).to_pandas().to_numpy()
    assert found.correlations.real == pytest.approx(np.corrcoef(numbers.T))
    assert found.correlations.worst < 0.2


def test_a_table_that_is_wrong_is_seen(made):
    table = people()
    shuffled = table.set_column(
        0, "smokes", pyarrow.array(np.random.default_rng(2).permutation(table.column("smokes")))
    )
    right, wrong = (made.quality(unsafe_compare=one, seed=1).comparison.pairs for one in (table, shuffled))
    assert wrong["smokes", "age"] > 0.3 > right["smokes", "age"]


def test_distances_are_those_of_dense_tables(monkeypatch):
    generator = np.random.default_rng(3)
    one, other = (generator.integers(0, 5, (200, 3)) for _ in range(2))
    dense = [np.zeros((5, 5, 5)) for _ in range(2)]
    for rows, table in zip((one, other), dense, strict=True):
        np.add.at(table, tuple(rows.T), 1 / 200)
    expected = np.abs(dense[0] - dense[1]).sum() / 2
    assert distance(one, other, (0, 1, 2), (5, 5, 5)) == pytest.approx(expected)
    monkeypatch.setattr(comparison, "DENSE", 3)
    assert distance(one, other, (0, 1, 2), (5, 5, 5)) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (people().drop_columns(["age"]), "has no column age"),
        (people().slice(0, 0), "no row"),
        (people().set_column(1, "age", pyarrow.array(["old"] * ROWS)), "another type"),
        ([1, 2], "no table of pandas"),
    ],
)
def test_what_cannot_be_compared_is_refused(made, frame, said):
    with pytest.raises(InvalidArgument, match=said) as refused:
        made.quality(unsafe_compare=frame)
    assert "old" not in str(refused.value)


def test_a_target_needs_real_rows_and_a_learner(made, monkeypatch):
    with pytest.raises(InvalidArgument, match="foretold on real rows"):
        made.quality(target="smokes")
    with pytest.raises(InvalidArgument, match="target='sex'"):
        made.quality(unsafe_compare=people(), target="sex")
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(MissingExtra, match=r"pip install .sitr.compare"):
        made.quality(unsafe_compare=people(), target="smokes")


@pytest.mark.parametrize(
    ("target", "measure", "least"), [("smokes", "AUC", 0.95), ("grade", "accuracy", 0.9), ("age", "R²", 0.6)]
)
def test_a_learner_sees_synthetic_rows_and_is_tested_on_real_ones(made, target, measure, least):
    found = made.quality(unsafe_compare=people(), target=target, seed=1)
    training = found.comparison.training
    assert (training.target, training.measure) == (target, measure)
    assert least < training.synthetic <= 1
    assert training.synthetic < training.real + 0.01
    assert f"{target} foretold on real rows, {measure}" in str(found)


def test_what_real_rows_do_not_hold_is_not_foretold(made):
    """Real rows whose columns have nothing to do with each other: what was learnt elsewhere does not help."""
    table = people()
    shuffled = {
        name: pyarrow.array(np.random.default_rng(place).permutation(table.column(name).to_pylist()).tolist())
        for place, name in enumerate(("smokes", "age", "grade"))
    }
    mixed = pyarrow.table({**shuffled, "region": table.column("region")})
    training = made.quality(unsafe_compare=mixed, target="smokes", seed=1).comparison.training
    assert 0.4 < training.synthetic < 0.6

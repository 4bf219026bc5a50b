"""Random histories against a model of some fifty lines: the same outcomes, the same charges."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ledger import stores
from tests.ledger.model import KINDS, Pair, run_history


@pytest.mark.parametrize("store", stores.ALL)
def test_histories_agree_with_the_model(store, tmp_path):
    outcomes = run_history(stores.fresh(store, tmp_path), 600, seed=9, book=200)
    wanted = {
        "reserve: done",
        "reserve: BudgetExceeded",
        "reserve: OperationTaken",
        "reserve: AlreadySpent",
        "reserve: AlreadyAnswered",
        "start: done",
        "start: AlreadySpent",
        "commit: done",
        "commit: AlreadySpent",
        "refund: done",
        "refund: NotPermitted",
        "answer: done",
        "crash",
    }
    assert wanted <= set(outcomes), outcomes


numbers = st.tuples(st.integers(0, 2), st.integers(0, 5), st.integers(0, 20))


@pytest.mark.parametrize("store", stores.ALL)
@settings(max_examples=25)
@given(history=st.lists(st.tuples(st.sampled_from(KINDS), numbers), max_size=40))
def test_any_history_agrees_with_the_model(store, history):
    with tempfile.TemporaryDirectory() as folder:
        pair = Pair(stores.fresh(store, Path(folder))())
        for kind, given_numbers in [("create", (0, 0, 0)), ("create", (1, 0, 0)), *history]:
            pair.step(kind, *given_numbers)
        pair.close()

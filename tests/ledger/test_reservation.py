"""The same request again: it goes on, is answered for nothing, or is refused, and is never charged twice."""

import pytest

from sitr.accounting import PureDP
from sitr.errors import AlreadyAnswered, AlreadySpent, OperationTaken
from sitr.ledger import Budget
from tests.ledger.acts import ONE, ask, spent


def test_asked_again_before_it_started_it_goes_on(clinic):
    first = clinic.reserve("clinic", ONE, analyst="amina", operation="q", request={"sql": "x"})
    again = clinic.reserve("clinic", ONE, analyst="amina", operation="q", request={"sql": "x"})
    assert (first.entry, spent(clinic)) == (again.entry, 1)
    with again:
        again.commit("a")
    with pytest.raises(AlreadySpent, match="another holder"):
        first.start()
    assert spent(clinic) == 1


def test_asked_again_with_an_empty_budget_it_still_goes_on(clinic):
    clinic.reserve("clinic", PureDP(epsilon=8), analyst="amina", operation="q")
    assert clinic.reserve("clinic", PureDP(epsilon=8), analyst="amina", operation="q").operation == "q"


def test_asked_again_after_the_answer_the_answer_is_free(clinic):
    ask(clinic, operation="q", answer={"n": 3})
    with pytest.raises(AlreadyAnswered, match="was answered on"):
        ask(clinic, operation="q")
    answer = clinic.answer("q", analyst="amina")
    assert (answer.value, spent(clinic)) == ({"n": 3}, 1)
    assert clinic.once("clinic", ONE, pytest.fail, analyst="amina", operation="q") == answer


@pytest.mark.parametrize(
    "other",
    [
        {"analyst": "badr"},
        {"event": PureDP(epsilon=0.5)},
        {"request": {"sql": "other"}},
        {"purpose": "p"},
        {"blocks": ["b"]},
        {"datasets": ["clinic", "school"]},
    ],
)
def test_an_id_stands_for_one_request(clinic, other):
    clinic.create_budget("school", Budget(epsilon=8))
    clinic.reserve("clinic", ONE, analyst="amina", operation="q")
    with pytest.raises(OperationTaken):
        ask(clinic, **{"operation": "q", **other})
    assert (spent(clinic), spent(clinic, "school")) == (1, 0)

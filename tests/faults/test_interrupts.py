"""Ctrl-C, and blocks that are left: nothing is charged twice, and no lock stays."""

import signal
import subprocess
import sys
import time
from contextlib import ExitStack

import pytest

from sitr.errors import (
    AlreadyAnswered,
    AlreadySpent,
    NotPermitted,
)
from sitr.ledger import Budget, Ledger
from tests.faults import harness, points
from tests.faults.acts import ask
from tests.faults.harness import ROOT, Outcome
from tests.faults.worker import ANALYST, DATASET, EVENT
from tests.ledger import stores


def test_ctrl_c_within_the_block_leaves_it_spent(fresh):
    url = fresh()
    harness.prepare(url, 20)
    with Ledger.open(url) as ledger:
        with pytest.raises(KeyboardInterrupt), ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation="q1"):
            raise KeyboardInterrupt
        assert ledger.spent(DATASET).value == pytest.approx(1)
        with pytest.raises(AlreadySpent, match="was started and has no answer"):
            ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation="q1")
        with pytest.raises(NotPermitted, match="was started"):
            ledger.refund("q1", reason="it was interrupted")
        ask(ledger, "q2")
        assert ledger.verify().valid


def test_to_leave_without_commit_is_spent(fresh):
    url = fresh()
    harness.prepare(url, 20)
    with Ledger.open(url) as ledger:
        with ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation="q1"):
            pass
        with pytest.raises(ZeroDivisionError), ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation="q2"):
            raise ZeroDivisionError
        assert ledger.spent(DATASET).value == pytest.approx(2)
        for name in ("q1", "q2"):
            with pytest.raises(AlreadySpent):
                ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation=name)


class Interrupt:
    """Raises KeyboardInterrupt at the n-th point from when it is armed."""

    left = 0

    def __call__(self, point):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("store", stores.ALL)
@pytest.mark.parametrize("step", ["reserve", "start", "commit", "create", "raise", "refund", "verify"])
def test_ctrl_c_at_every_statement_of_a_step(store, step, tmp_path):
    """Interrupted before or after any statement, the step is made or not made, and the ledger goes on."""
    url, count, interrupt = stores.fresh(store, tmp_path)(), 0, Interrupt()
    with points.watched(interrupt), Ledger.open(url, wait=1) as ledger, ExitStack() as stack:
        ledger.create_budget(DATASET, Budget(epsilon=128))
        other = ledger if store == "memory" else stack.enter_context(Ledger.open(url, wait=1))
        while True:
            count += 1
            name = f"q{count}"
            grant = ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation=name) if step != "reserve" else None
            if step == "commit":
                grant.start()
            act = {
                "reserve": lambda: ledger.reserve(DATASET, EVENT, analyst=ANALYST, operation=name),  # noqa: B023
                "start": grant and grant.start,
                "commit": grant and (lambda: grant.commit("a")),  # noqa: B023
                "create": lambda: ledger.create_budget(name, Budget(epsilon=1)),  # noqa: B023
                "raise": lambda: ledger.raise_budget(DATASET, Budget(epsilon=128.0 + count), reason="more"),  # noqa: B023
                "refund": lambda: ledger.refund(name, reason="not run"),  # noqa: B023
                "verify": ledger.verify,
            }[step]
            interrupt.left = count
            try:
                act()
            except KeyboardInterrupt as error:
                held = error  # as a notebook does, with all the frames that it passed through
            else:
                break  # it has fewer points than this
            finally:
                interrupt.left = 0
            kinds = {entry.kind for entry in other.store.operation(name)}
            ask(other, f"{name} of another process")
            found = ledger.verify()
            assert found.valid, (count, found)
            try:
                ask(ledger, name)
                assert kinds <= {"reserve"}
            except AlreadySpent:
                assert "commit" not in kinds
                assert kinds & {"start", "refund"}
            except AlreadyAnswered:
                assert "commit" in kinds
            assert held
        assert count >= 3
        charged = sum({"reserve": 1, "refund": -1}.get(entry.kind, 0) for entry in ledger.entries())
        assert ledger.spent(DATASET).value == pytest.approx(charged)


def test_ctrl_c_in_a_program_that_asks_in_a_loop(fresh, tmp_path):
    """A real SIGINT at some moment: the program ends by it, and the book is whole."""
    url, side = fresh(), str(tmp_path / "side")
    harness.prepare(url, 1000)
    code = (
        "import signal, sys; from tests.faults import worker\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a program in the background may not hear it
        "worker.work(worker.Job(sys.argv[1], sys.argv[2], [sys.argv[3] + str(n) for n in range(900)]))\n"
    )
    for turn in range(3):
        program = subprocess.Popen(
            [sys.executable, "-c", code, url, side, f"{turn}-"], cwd=ROOT, stderr=subprocess.PIPE, text=True
        )
        before, until = len(harness.left(side)), time.monotonic() + 30
        while len(harness.left(side)) < before + 3 + turn and time.monotonic() < until:
            time.sleep(0.003)
        program.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in program.communicate(timeout=30)[1]
        with Ledger.open(url) as ledger:
            outcome = Outcome()
            harness.check(ledger, side, 1000, outcome)
            assert outcome, outcome

"""Ranks: processes that train together draw once, add noise once and pay once, and none waits for one that failed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chi2, norm
from torch import nn

from sitr.errors import InvalidArgument, NotAllowed, RanksParted
from sitr.learning import attach
from sitr.learning.ranks import Ranks, _error_of, _told_of
from tests.learning.limits import product_limit
from tests.learning.loops import made, model_and_optimizer
from tests.learning.world import TIMEOUT, worlds

pytestmark = pytest.mark.xdist_group("ranks")  # one process plays all scenarios, for all tests

FALSE_ALARM = 1e-9
SIZES = (1, 2, 4)
EXACT = ("flat", "per_layer", "automatic", "adaptive", "shuffle")
WANTED = (
    *(f"{name}/{size}" for name in ("sums", "noise") for size in SIZES),
    *(f"{name}/4" for name in ("draws", "seen", "resume", "killed")),
    *(f"{name}/2" for name in ("ledger", "refused", "start_fails", "crash", "fails_first", "fails_later")),
    *(f"{name}/2" for name in ("all_fail", "leaves", "differ", "limit", "groups", "keeps_error")),
)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    crashed = WANTED.index("crash/2")
    ordered = [WANTED[crashed], *WANTED[:crashed], *WANTED[crashed + 1 :]]  # before it is resumed
    return worlds(tmp_path_factory.mktemp("worlds"), *ordered)


class TestSums:
    @pytest.mark.parametrize("size", SIZES[1:])
    @pytest.mark.parametrize("plan", EXACT)
    def test_are_those_of_one_process_to_the_last_bit(self, told: Any, plan: str, size: int) -> None:
        """The same draws and noise, each example computed by itself: sums, weights, norms and losses are the same."""
        (alone,) = told["sums/1"]
        members = [member[plan] for member in told[f"sums/{size}"]]
        assert members[0]["sums"] == alone[plan]["sums"]
        assert all(member["sums"] == [] for member in members[1:]), "only the first process knows sums without noise"
        for member in members:
            assert [member[name] for name in ("weights", "norm", "losses")] == [
                alone[plan][name] for name in ("weights", "norm", "losses")
            ]
            assert member["unsafe"] == pytest.approx(alone[plan]["unsafe"])
        assert any(one != 0 for step in members[0]["sums"] for one in np.concatenate([*map(np.ravel, step.values())]))

    @pytest.mark.parametrize("size", SIZES[1:])
    def test_of_floats_are_alike_in_all_processes(self, told: Any, size: int) -> None:
        (alone,) = told["sums/1"]
        members = [member["float"] for member in told[f"sums/{size}"]]
        assert len({member["weights"] for member in members}) == 1
        for step, other in zip(members[0]["sums"], alone["float"]["sums"], strict=True):
            for name, values in step.items():
                assert np.allclose(values, other[name], atol=1e-5)

    def test_are_limited_in_all_processes_together(self, told: Any) -> None:
        for member in told["limit/2"]:
            assert member["error"] == "InvalidArgument"
            assert "more than 7 people" in member["what"]


class TestNoise:
    @pytest.mark.statistical
    @pytest.mark.parametrize("size", SIZES)
    @pytest.mark.parametrize("kind", ["exact", "float"])
    def test_is_that_of_one_process(self, told: Any, kind: str, size: int) -> None:
        """Gradients of 25 empty steps are noise: Σ (g batch/σC)² over 26 weights is χ²; steps are independent.

        The sum of products of independent pairs has the limit of `product_limit`. Six cases, and two sides of two
        tests of each, share the false alarm.
        """
        each = FALSE_ALARM / 24
        values = np.array(told[f"noise/{size}"][0][kind]).reshape(25, 26) * 10 / 2.0
        total = float((values**2).sum())
        assert chi2.ppf(each, values.size) < total < chi2.isf(each, values.size)
        both = values[:-1:2] * values[1::2]
        assert abs(both.sum()) < product_limit(both.size, each)

    @pytest.mark.parametrize("size", SIZES[1:])
    @pytest.mark.parametrize("kind", ["exact", "float"])
    def test_is_the_same_in_all_processes(self, told: Any, kind: str, size: int) -> None:
        members = told[f"noise/{size}"]
        assert all(member[kind] == members[0][kind] for member in members)
        assert len(np.unique(np.reshape(members[0][kind], (25, 26)), axis=0)) == 25, "and another one in every step"

    def test_every_process_makes_every_step(self, told: Any) -> None:
        """T10: one example for four processes, and none."""
        assert [member["done"] for member in told["noise/4"]] == [6] * 4


class TestDraws:
    @pytest.mark.statistical
    def test_are_one_poisson_draw(self, told: Any) -> None:
        """T9: marginals q, and pairs q² within a step and across steps, over all processes together.

        As for one process (test_sampling): three tests share the false alarm.
        """
        steps, n, q, each = 500, 100, 0.3, FALSE_ALARM / 6
        inside = np.zeros((steps, n))
        for shares in told["draws/4"]:
            for step, places in enumerate(shares):
                inside[step, places] += 1
        assert inside.max() == 1, "no example goes to two processes"
        spread = ((inside.sum(0) - steps * q) ** 2).sum() / (steps * q * (1 - q))
        assert chi2.ppf(each, n) < spread < chi2.isf(each, n)
        for both in (inside[:, 0::2] * inside[:, 1::2], inside[0::2] * inside[1::2]):
            off = (both.mean() - q**2) / math.sqrt(q**2 * (1 - q**2) / both.size)
            assert abs(off) < norm.isf(each)

    def test_are_shared_out_by_place_alone(self, told: Any) -> None:
        """Who else is drawn does not move an example to another process, which may compute it otherwise."""
        for rank, shares in enumerate(told["draws/4"]):
            assert {place % 4 for places in shares for place in places} == {rank}

    def test_go_to_one_process_each_in_a_run(self, told: Any) -> None:
        steps = list(zip(*told["seen/4"], strict=True))
        assert len(steps) == 6
        for shares in steps:
            everyone = [place for places in shares for place in places]
            assert len(set(everyone)) == len(everyone)


class TestLedger:
    def test_has_one_entry(self, told: Any) -> None:
        """Only the first process finds the ledger; the others know what was paid."""
        first, other = told["ledger/2"]
        assert first["kinds"] == ["reserve", "start", "commit"]
        assert first["valid"]
        for member in (first, other):
            assert (member["error"], member["done"], member["paid"]) == ("", 6, [[0, 6]])
            assert "2 processes: one draw" in member["says"]
        assert "charged in entry" in first["charged"]
        assert "as the first of 2 processes says" in other["charged"]
        assert "Ledger   as the first process says" in other["says"]

    def test_refuses_all(self, told: Any) -> None:
        members = told["refused/2"]
        assert [member["error"] for member in members] == ["BudgetExceeded"] * 2
        assert members[0]["what"] == members[1]["what"]
        assert members[0]["spent"] == 0

    def test_that_is_lost_ends_all(self, told: Any) -> None:
        """An error of ours is the same everywhere; of another kind only its name is told, as it may hold values."""
        first, other = told["start_fails/2"]
        assert [first[0]["error"], other[0]["error"]] == ["LedgerUnavailable"] * 2
        assert [first[1]["error"], other[1]["error"]] == ["ZeroDivisionError", "RanksParted"]
        assert "the first process ended with ZeroDivisionError" in other[1]["what"]
        assert [one["done"] for one in (*first, *other)] == [0] * 4

    def test_a_killed_run_goes_on_in_other_processes(self, told: Any) -> None:
        """Two processes wrote it, up to step 5; four go on from step 4, and pay for steps 5 and 6."""
        assert told["crash/2"] == [None, None]
        members = told["resume/4"]
        for member in members:
            assert (member["error"], member["done"], member["paid"]) == ("", 6, [[0, 6], [4, 6]]), member["what"]
            assert set(member["made"]) <= {4, 5}
            assert member["state"] == 4, "the state of the optimizer came along"
        assert len({member["weights"] for member in members}) == 1
        assert members[0]["states"] == [["model", "started"], ["model/resumed-1", "committed"]]


class TestFailures:
    def quickly(self, *members: Any) -> None:
        assert all(member["seconds"] < TIMEOUT / 2 for member in members)

    def test_before_any_noise_cost_nothing(self, told: Any) -> None:
        first, last = told["fails_first/2"]
        assert (first["error"], last["error"]) == ("RanksParted", "ZeroDivisionError")
        assert "process 1 of 2 left the loop, or failed" in first["what"]
        assert (first["spent"], first["states"]) == (0, [["model", "refunded"]])
        for member in (first, last):
            assert "have parted" in member["again"]["what"]
            assert member["done"] == 0
            self.quickly(member, member["again"])

    def test_end_all_also_where_the_error_is_kept(self, told: Any) -> None:
        """As in a notebook: the frames of the loop live on with the error."""
        first, last = told["keeps_error/2"]
        assert (first["error"], last["error"]) == ("RanksParted", "InvalidArgument")
        self.quickly(first, last)

    def test_of_one_process_end_all_and_all_can_resume(self, told: Any) -> None:
        first, last = told["fails_later/2"]
        assert (first["error"], last["error"]) == ("RanksParted", "InvalidArgument")
        assert "reduced to one number" in last["what"]
        for member in (first, last):
            self.quickly(member, member["again"])
            again = member["again"]
            assert (again["error"], again["done"], again["paid"]) == ("", 6, [[0, 6], [3, 4]]), again["what"]
        assert first["states"] == [["model", "started"], ["model/resumed-1", "committed"]]

    def test_of_all_let_all_go_on(self, told: Any) -> None:
        first, last = told["all_fail/2"]
        for member in (first, last):
            assert (member["error"], member["left"]) == ("ZeroDivisionError", 3), "the step that was left is made"
            assert (member["again"]["error"], member["done"]) == ("", 6), member["again"]["what"]
        assert first["states"] == [["model", "committed"]]

    def test_leaving_is_for_all_or_none(self, told: Any) -> None:
        first, last = told["leaves/2"]
        for member in (first, last):
            assert (member[0]["error"], member[0]["done"]) == ("", 2), "all leave between two steps"
            assert "have parted" in member[2]["what"]
        assert (first[1]["error"], first[1]["done"]) == ("RanksParted", 4)
        assert (last[1]["error"], last[1]["done"]) == ("", 4)
        self.quickly(*first, *last)

    def test_a_killed_process_ends_all(self, told: Any) -> None:
        *others, dead = told["killed/4"]
        assert dead is None
        for member in others:
            assert member["error"] == "RanksParted"
            assert "has gone, or did not answer" in member["what"]
            assert member["done"] in (1, 2)
        self.quickly(*others)

    @pytest.mark.parametrize("what", ["weights", "plan", "examples", "seed", "model"])
    def test_what_differs_is_refused(self, told: Any, what: str) -> None:
        for member in told["differ/2"]:
            assert member[what]["error"] == "InvalidArgument"
            assert "differ from process to process" in member[what]["what"]

    def test_weights_that_drift_apart_end_the_run(self, told: Any) -> None:
        for member in told["differ/2"]:
            assert (member["drift"]["error"], member["drift"]["done"]) == ("RanksParted", 3)
            assert "weights of the processes differ before step 4" in member["drift"]["what"]

    def test_a_checkpoint_in_use_refuses_all(self, told: Any) -> None:
        for member in told["differ/2"]:
            assert "another run goes on" in member["locked"]["what"]


class TestGroups:
    def test_wrapped_models_are_refused(self, told: Any) -> None:
        for member in told["groups/2"]:
            assert member["wrapped"]["error"] == "NotAllowed"
            assert "pass model.module" in member["wrapped"]["what"]

    def test_groups_of_others_are_refused(self, told: Any) -> None:
        assert all("not of the group" in member["others"]["what"] for member in told["groups/2"])

    def test_a_group_of_one_trains_alone(self, told: Any) -> None:
        assert [[member[name] for name in ("size", "done", "first")] for member in told["groups/2"]] == [
            [1, 6, True]
        ] * 2

    def test_processes_that_do_not_know_each_other_are_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """torchrun started several, and each would train by itself."""
        monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
        monkeypatch.setenv("WORLD_SIZE", "4")
        with pytest.raises(InvalidArgument, match="init_process_group"):
            attach(*model_and_optimizer(), made())
        monkeypatch.setenv("WORLD_SIZE", "1")
        assert attach(*model_and_optimizer(), made()).ranks.size == 1

    def test_models_of_other_wrappers_are_refused(self) -> None:
        model, optimizer = model_and_optimizer()
        with pytest.raises(NotAllowed, match="averages gradients by itself"):
            attach(nn.DataParallel(model), optimizer, made())


class TestAlone:
    def test_waits_for_nobody(self) -> None:
        ranks = Ranks.of(None, nn.Linear(2, 2))
        sums = {"w": torch.arange(3)}
        ranks.add_up(sums)
        assert sums["w"].tolist() == ranks.scatter(sums["w"]).tolist() == [0, 1, 2]
        assert ranks.total(1, 2.5) == (1, 2.5)
        assert ranks.spread(lambda: (sums, 7), sums) == (sums, 7)
        assert ranks.content(lambda: None) is None

    def test_errors_are_told_whole_or_by_name(self) -> None:
        ours = InvalidArgument("it broke.", why="it matters.", do="mend it.")
        back = _error_of(*_told_of(ours))
        assert (type(back), str(back)) == (InvalidArgument, str(ours))
        other = _error_of(*_told_of(KeyError("a value of the data")))
        assert isinstance(other, RanksParted)
        assert "a value of the data" not in str(other)
        assert "KeyError" in str(other)

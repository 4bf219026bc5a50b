"""Shards: each number of a sum has noise once, from the process that holds it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from tests.learning.limits import product_limit
from tests.learning.world import TIMEOUT, worlds

pytestmark = pytest.mark.xdist_group("shards")

FALSE_ALARM = 1e-9
SIZES = (2, 4)


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    wanted = [
        "shard_crash/2",
        "shard_resume/4",
        "shard_sums/1",
        "shard_gpt/1",
        "shard_training/1",
        "shard_refusals/4",
        "shard_loop/2",
    ]
    wanted += [
        f"{name}/{size}" for name in ("shard_sums", "shard_gpt", "shard_noise", "shard_training") for size in SIZES
    ]
    return worlds(tmp_path_factory.mktemp("worlds"), *wanted)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("plan", ["flat", "per_layer", "adaptive"])
def test_sums_are_those_of_one_process_to_the_last_bit(told: Any, plan: str, size: int) -> None:
    """Put together, shards are the sums of whole weights; with two rows for four processes, two have none."""
    (alone,) = told["shard_sums/1"]
    members = [member[plan] for member in told[f"shard_sums/{size}"]]
    for step, whole in enumerate(alone[plan]["sums"]):
        for name, rows in whole.items():
            assert [row for member in members for row in member["sums"][step][name]] == rows
    assert {member["norm"] for member in members} == {alone[plan]["norm"]}


@pytest.mark.parametrize("size", SIZES)
def test_sums_of_a_transformer_are_those_of_one_process(told: Any, size: int) -> None:
    """Blocks in groups of their own, and a table that is the head as well."""
    (alone,) = told["shard_gpt/1"]
    for step, whole in enumerate(alone):
        for name, rows in whole.items():
            assert [row for member in told[f"shard_gpt/{size}"] for row in member[step][name]] == rows


@pytest.mark.statistical
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", ["exact", "float"])
def test_noise_is_that_of_one_process(told: Any, kind: str, size: int) -> None:
    """Σ (g batch/σC)² over all shards and 25 steps is χ²; shards are independent of each other, and so are steps.

    The sum of products of independent pairs has the limit of `product_limit`. Two sides of three tests of four cases
    share the false alarm.
    """
    each = FALSE_ALARM / 24
    members = [np.array(member[kind]) * 10 / 2.0 for member in told[f"shard_noise/{size}"]]
    whole = np.concatenate(members, axis=1)
    assert whole.shape == (25, 26)
    total = float((whole**2).sum())
    assert chi2.ppf(each, whole.size) < total < chi2.isf(each, whole.size)
    width = min(member.shape[1] for member in members[:2])
    for both in (members[0][:, :width] * members[1][:, :width], whole[:-1:2] * whole[1::2]):
        assert abs(both.sum()) < product_limit(both.size, each)


@pytest.mark.parametrize("size", SIZES)
def test_the_optimizer_trains_its_shards(told: Any, size: int) -> None:
    """Without noise, all weights end where those of one process end."""
    (alone,) = told["shard_training/1"]
    for member in told[f"shard_training/{size}"]:
        assert all(np.array_equal(one, other) for one, other in zip(member["weights"], alone["weights"], strict=True))
        assert member["trains"], "afterwards the model is trained as if there had been no run"


def test_every_process_makes_every_step(told: Any) -> None:
    """With one example for all, and with other numbers of micro-batches in each; and one charge for each run."""
    first, last = told["shard_loop/2"]
    assert first["done"] == last["done"] == 6
    assert first["weights"] == last["weights"] == first["kept"], "the ledger knows the whole weights"
    assert first["states"] == [["one", "committed"], ["two", "committed"], ["three", "started"], ["four", "committed"]]


def test_every_process_begins_correlated_noise_anew_behind_a_step_that_was_left(told: Any) -> None:
    """Each has noise of its own; rows of a stream that went on would be nearer than an example's steps are."""
    for member in told["shard_loop/2"]:
        before, after = member["streams"]
        assert before > 0
        assert after == 0


def test_a_failure_ends_all_and_leaves_shards(told: Any) -> None:
    first, last = told["shard_loop/2"]
    assert (first["error"], last["error"]) == ("RanksParted", "ZeroDivisionError")
    for member in (first, last):
        assert member["sharded"]
        assert member["again"]["error"] == "", member["again"]["what"]
        assert member["seconds"] < TIMEOUT / 2


def test_a_killed_run_goes_on_in_other_processes(told: Any) -> None:
    """Two processes wrote it; four go on with the same weights and moments."""
    assert told["shard_crash/2"] == [None, None]
    members = told["shard_resume/4"]
    for member in members:
        assert (member["done"], member["ended"]) == (4, 6)
        assert member["weights"] == member["had"]
        assert member["moments"] == members[0]["moments"]
        assert any(np.any(one) for one in member["moments"])


@pytest.mark.parametrize(
    ("what", "match"),
    [
        ("ignored", "not sharded along its first dimension"),
        ("partly", "the model itself is not"),
        ("mesh", "not sharded along its first dimension"),
        ("others", "among other processes"),
        ("crossed", "among other processes"),
    ],
)
def test_what_is_not_exact_is_refused(told: Any, what: str, match: str) -> None:
    for member in told["shard_refusals/4"]:
        assert member[what]["error"] == "NotAllowed", member[what]
        assert match in member[what]["what"]
        assert member["fits"]["error"] == "", member["fits"]["what"]

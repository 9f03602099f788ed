"""Checkpoints of two ranks as real processes: killed at every point, damaged, refused.

About 40 s.
"""

import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pretrain_jobs.checkpoint.inspection import find
from pretrain_testing import toy_checkpoints as toy
from pretrain_testing.ranks import RankResult, run_ranks, values_of
from pretrain_testing.s3 import rclone_server
from pretrain_testing.toy_checkpoints import ToySettings

EVERY_RANK = (
    "before_snapshot",
    "after_snapshot",
    "after_copy",
    "during_local_write",
    "after_local_write",
    "during_rank_upload",
    "after_rank_upload",
)
STARTING = (
    "after_claim",
    "after_completion",
    "after_listing",
    "during_download",
    "after_verification",
    "after_loading",
    "after_mark",
    "during_sweep",
    "after_sweep",
)
BEFORE_LOADING = ("after_listing", "during_download", "after_verification")
"""Points of a start at which rank 1 dies; once all have loaded, rank 0 goes on to sweep alone."""

COMMITTED = ("after_commit", "after_latest", "during_retention", "after_retention")
COORDINATOR = ("after_rank_manifest", "before_commit", *COMMITTED)
SETTLED = ("before_settling", "after_settling")

OWN_FILE = "rank-00001/zero_pp_rank_1_mp_rank_00_optim_states.pt"
SHARED_FILE = "rank-00000/mp_rank_00_model_states.pt"


def committed_steps(settings: ToySettings) -> list[int]:
    return sorted(found.key.step for found in find(settings.store) if found.state == "committed")


def newest_commit(settings: ToySettings) -> Path:
    return max((settings.root / "store").glob("step-*/*/COMMIT"))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Both ranks after three steps that nothing disturbed."""
    settings = ToySettings(tmp_path_factory.mktemp("undisturbed"))
    values: list[dict[str, Any]] = values_of(run_ranks(toy.save_each, 2, settings, [1, 2, 3]))
    return values


@pytest.mark.parametrize(
    ("point", "victim"),
    [(point, number % 2) for number, point in enumerate(EVERY_RANK)]
    + [(point, 0) for point in COORDINATOR]
    + [(point, number) for number, point in enumerate(SETTLED)],
)
def test_after_a_kill_at_any_point_the_next_attempt_goes_on_as_if_nothing_had_been(
    tmp_path: Path, undisturbed: list[dict[str, Any]], point: str, victim: int
) -> None:
    settings = ToySettings(tmp_path, keep_last=1)
    killed = run_ranks(toy.die_in_second_save, 2, settings, point, victim)
    assert killed[victim].signal == signal.SIGKILL
    assert killed[1 - victim].cause == "Infrastructure"

    manifests = list((tmp_path / "store").glob("step-000000002/*/ranks/*.json"))
    assert len(manifests) == 2 or point not in ("before_commit", *COMMITTED, *SETTLED)
    resumed = 2 if len(manifests) == 2 else 1
    steps = list(range(resumed + 1, 4))
    states = values_of(run_ranks(toy.save_each, 2, settings, steps))

    for state, expected in zip(states, undisturbed, strict=True):
        assert {**state, "warnings": []} == expected
    leftovers = [path for path in (tmp_path / "store").rglob("*/000001-*") if path.is_dir()]
    assert all((path / "COMMIT").exists() for path in leftovers)
    assert committed_steps(settings)[-1] == 3


def test_attempts_that_are_killed_anywhere_in_their_start_take_nothing_from_the_next(
    tmp_path: Path, undisturbed: list[dict[str, Any]]
) -> None:
    settings = ToySettings(tmp_path, keep_last=1)
    run_ranks(toy.die_in_second_save, 2, settings, "after_rank_upload", 0)

    for point in STARTING:
        victim = 1 if point in BEFORE_LOADING else 0
        killed = run_ranks(toy.die_in_start, 2, settings, point, victim)
        assert killed[victim].signal == signal.SIGKILL
        assert killed[1 - victim].cause == "Infrastructure"
        assert committed_steps(settings) == [1]

    states = values_of(run_ranks(toy.save_each, 2, settings, [2, 3]))
    assert [{**state, "warnings": []} for state in states] == undisturbed
    left = [info.key for info in settings.store.list("step-000000002/000001-")]
    assert [key.rpartition("/")[2] for key in left] == ["COMMIT"]


@pytest.mark.parametrize(
    ("point", "victim"),
    [("during_local_write", 1), ("after_local_copy", 0), ("during_rank_upload", 1)],
)
def test_where_saves_are_left_on_the_node_a_kill_loses_none_that_all_ranks_had_written(
    tmp_path: Path, undisturbed: list[dict[str, Any]], point: str, victim: int
) -> None:
    settings = ToySettings(tmp_path, keep_last=1, node="node")
    killed = run_ranks(toy.die_in_second_save, 2, settings, point, victim)
    assert killed[victim].signal == signal.SIGKILL

    manifests = {
        path.name
        for place in ("node", "store")
        for path in (tmp_path / place).glob("step-000000002/*/ranks/*.json")
    }
    assert (f"{victim:05d}.json" in manifests) == (point != "during_local_write")
    resumed = 2 if len(manifests) == 2 else 1
    states = values_of(run_ranks(toy.save_each, 2, settings, list(range(resumed + 1, 4))))

    assert [{**state, "warnings": []} for state in states] == undisturbed
    left = {path.parent.parent.name for path in (tmp_path / "node").glob("step-*/*/ranks")}
    assert "step-000000003" in left
    assert len(left) <= 2


def test_a_save_that_no_store_took_is_gone_on_with_however_often_the_next_start_is_killed(
    tmp_path: Path, undisturbed: list[dict[str, Any]]
) -> None:
    settings = ToySettings(tmp_path, node="node")
    assert values_of(run_ranks(toy.leave_the_second_save, 2, settings)) == [True, True]
    assert committed_steps(settings) == [1]

    for point, victim in (("during_hand_over", 1), ("after_hand_over", 1), ("after_claim", 0)):
        killed = run_ranks(toy.die_in_start, 2, settings, point, victim)
        assert killed[victim].signal == signal.SIGKILL
    elsewhere = ToySettings(tmp_path, node="another")
    states = values_of(run_ranks(toy.save_each, 2, elsewhere, [3]))

    assert states == undisturbed
    assert committed_steps(settings) == [2, 3]


def test_all_of_it_holds_on_an_s3_server_that_ignores_conditional_writes(
    tmp_path: Path, undisturbed: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with rclone_server(tmp_path / "server") as server:
        server.create_bucket("checkpoints")
        storage = server.storage("checkpoints", "job")
        settings = ToySettings(tmp_path, storage=storage, environment=server.environment)
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)

        killed = run_ranks(toy.die_in_second_save, 2, settings, "before_commit", 0)
        assert killed[0].signal == signal.SIGKILL
        values_of(run_ranks(toy.save_each, 2, settings, [3]))
        assert committed_steps(settings) == [2, 3]
        assert len({info.key.split("/")[1] for info in settings.store.list("step-")}) == 2
        keys = [info.key for info in settings.store.list("step-000000003")]
        settings.store.write(next(key for key in keys if key.endswith(OWN_FILE)), b"damaged")
        states = values_of(run_ranks(toy.save_each, 2, settings, [3]))

        assert [{**state, "warnings": []} for state in states] == undisturbed
        assert "the checkpoint of step 3 (generation 2) is not used" in states[0]["warnings"][0]
        assert committed_steps(settings) == [2, 3]


def test_commit_is_written_after_every_manifest(tmp_path: Path) -> None:
    settings = ToySettings(tmp_path)
    values_of(run_ranks(toy.save_each, 2, settings, [1]))

    commit = newest_commit(settings)
    others = [path for path in commit.parent.rglob("*") if path.is_file() and path != commit]
    assert {path.name for path in others} >= {"00000.json", "00001.json"}
    assert all(path.stat().st_mtime_ns <= commit.stat().st_mtime_ns for path in others)


def _flip_a_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:1000])


@pytest.mark.parametrize(
    ("name", "damage", "reason"),
    [
        ("COMMIT", Path.unlink, "it has no COMMIT"),
        ("COMMIT", _truncate, "COMMIT is damaged"),
        (OWN_FILE, Path.unlink, "rank 1: rank-00001/zero_pp_rank_1.* is missing"),
        (OWN_FILE, _truncate, "rank 1: rank-00001/zero_pp_rank_1.* has 1000 bytes instead of"),
        (SHARED_FILE, _flip_a_byte, "rank 0: rank-00000/mp_rank_00.* has another SHA-256"),
        ("rank-00001/rank.json", _flip_a_byte, "rank 1: rank-00001/rank.json has another SHA-256"),
    ],
    ids=["no COMMIT", "COMMIT cut", "file missing", "file cut", "byte flipped", "rank's state"],
)
def test_a_damaged_checkpoint_falls_back_to_the_one_before_and_says_so(
    tmp_path: Path, name: str, damage: Callable[[Path], None], reason: str
) -> None:
    settings = ToySettings(tmp_path)
    values_of(run_ranks(toy.save_each, 2, settings, [1, 2]))
    damage(newest_commit(settings).parent / name)

    states = values_of(run_ranks(toy.restore_only, 2, settings))

    assert [state["step"] for state in states] == [1, 1]
    assert states[0]["warnings"] == states[1]["warnings"]
    (warning,) = states[0]["warnings"]
    assert warning.startswith("the checkpoint of step 2 (generation 1) is not used: ")
    assert states[1]["weights"] == 1.0
    assert re.search(reason, warning)


def causes(results: list[RankResult]) -> list[str]:
    return [result.cause for result in results]


def test_when_commits_exist_and_none_is_sound_nothing_starts_afresh(tmp_path: Path) -> None:
    settings = ToySettings(tmp_path)
    values_of(run_ranks(toy.save_each, 2, settings, [1, 2]))
    for commit in (tmp_path / "store").glob("step-*/*/COMMIT"):
        _flip_a_byte(commit.parent / OWN_FILE)

    results = run_ranks(toy.restore_only, 2, settings)

    assert causes(results) == ["CheckpointUnusable"] * 2
    assert "2 committed checkpoints lie under" in results[0].error
    assert "step 2: rank 1" in results[1].error


def test_a_checkpoint_of_another_run_is_neither_used_nor_deleted(tmp_path: Path) -> None:
    other = ToySettings(tmp_path, lineage="other")
    values_of(run_ranks(toy.save_each, 2, other, [500, 600, 700]))
    own = ToySettings(tmp_path, keep_last=1)

    states = values_of(run_ranks(toy.save_each, 2, own, [100, 200]))

    assert "belongs to a run with another model" in states[0]["warnings"][0]
    assert states[0]["weights"] == 2.0
    assert committed_steps(own) == [200, 600, 700]


def test_a_rank_without_room_fails_that_save_alone(tmp_path: Path) -> None:
    settings = ToySettings(tmp_path, spawned=True)

    values = values_of(run_ranks(toy.fill_the_disk_once, 2, settings))

    for value in values:
        assert value["failure"].startswith("rank 1: no space while writing")
        assert (value["failures"], value["later"], value["left"]) == (1, "", [])
    assert committed_steps(settings) == [1, 3]


def test_an_attempt_that_was_replaced_stops_and_commits_nothing(tmp_path: Path) -> None:
    settings = ToySettings(tmp_path)

    results = run_ranks(toy.save_after_a_newer_attempt, 2, settings)

    assert causes(results) == ["Infrastructure"] * 2
    assert "was replaced by generation 2" in results[1].error
    assert committed_steps(settings) == []


def test_a_state_that_is_not_finite_is_not_committed(tmp_path: Path) -> None:
    settings = ToySettings(tmp_path)

    results = run_ranks(toy.save_a_bad_state, 2, settings)

    assert causes(results) == ["NonFinite"] * 2
    assert "not finite on rank 1" in results[0].error
    assert committed_steps(settings) == []


def test_keeping_one_checkpoint_leaves_exactly_one_after_the_last_step(tmp_path: Path) -> None:
    settings = ToySettings(tmp_path, keep_last=1)
    values_of(run_ranks(toy.save_each, 2, settings, [1, 2]))
    values_of(run_ranks(toy.save_the_last, 2, settings, 3))

    assert committed_steps(settings) == [3]

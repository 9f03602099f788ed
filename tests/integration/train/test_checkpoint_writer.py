"""The writer's process beside training: slow, killed, left behind by the rank that it serves.

About 20 s.
"""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from pretrain_jobs.checkpoint.layout import group_keys
from pretrain_testing import toy_checkpoints as toy
from pretrain_testing.processes import processes_of, wait_for
from pretrain_testing.ranks import run_ranks, values_of
from pretrain_testing.toy_checkpoints import ToySettings

NOT_COMMITTED = (
    ("during_local_write", ""),
    ("", "during_local_write"),
    ("", "after_rank_upload"),
    ("while_waiting_for_ranks", "after_rank_upload"),
    ("after_rank_manifest", ""),
    ("before_commit", ""),
)
COMMITTED = ("after_commit", "after_latest", "during_retention", "after_retention")
"""Points at which writers are killed, each a save of its own; of both ranks where two are."""


@pytest.fixture
def settings(tmp_path: Path) -> ToySettings:
    named = {"HOME": str(tmp_path)}
    return ToySettings(tmp_path, keep_last=1, spawned=True, environment=named)


def committed_steps(settings: ToySettings) -> list[int]:
    listing = group_keys(info.key for info in settings.store.list("step-"))
    return sorted(listed.key.step for listed in listing if listed.committed)


def test_a_writer_that_is_killed_fails_its_save_alone_unless_it_had_committed(
    settings: ToySettings,
) -> None:
    points = [*NOT_COMMITTED, *((point, "") for point in COMMITTED)]

    for told in values_of(run_ranks(toy.kill_writers, 2, settings, points)):
        failures = [failure.partition(": ")[0] for failure in told["failures"]]
        assert failures == [*("rank 0" if own else "rank 1" for own, _ in NOT_COMMITTED), *4 * [""]]
        assert "its writer was ended by SIGKILL" in told["failures"][1]
        assert told["latest"] == len(points) + 1

    assert committed_steps(settings) == [len(points) + 1]


def test_while_a_save_is_being_written_training_goes_on_and_a_further_save_is_left_out(
    settings: ToySettings,
) -> None:
    for told in values_of(run_ranks(toy.train_beside_a_stopped_writer, 2, settings)):
        assert told["ended"] == [False] * 5
        assert told["skipped"] == 1
        assert told["committed"] == 1

    for state in values_of(run_ranks(toy.restore_only, 2, settings)):
        assert (state["step"], state["weights"]) == (1, 1.0)


def test_with_the_rank_its_writer_dies_too(settings: ToySettings) -> None:
    killed = run_ranks(toy.die_in_second_save, 2, settings, "after_copy", 1)

    assert killed[1].signal == signal.SIGKILL
    assert killed[0].cause == "Infrastructure"
    wait_for("the end of the writers", lambda: not processes_of(settings.root))
    assert committed_steps(settings) == [1]

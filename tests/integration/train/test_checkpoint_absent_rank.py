"""A rank that does not come to a save is named, and nothing is committed. About 5 s."""

from __future__ import annotations

from pathlib import Path

from pretrain_testing.absent_ranks import save_without
from pretrain_testing.ranks import start_ranks
from pretrain_testing.toy_checkpoints import ToySettings


def test_the_ranks_that_wait_name_the_one_that_does_not_come(tmp_path: Path) -> None:
    settings = ToySettings(tmp_path)

    gang = start_ranks(save_without, 3, settings, 1)
    waiting = [gang.receivers[0].recv(), gang.receivers[2].recv()]
    gang.kill(1)
    gang.results()

    assert [result.cause for result in waiting] == ["Infrastructure"] * 2
    assert "Ranks 1 failed" in waiting[0].error
    assert not any(info.key.endswith("COMMIT") for info in settings.store.list("step-"))

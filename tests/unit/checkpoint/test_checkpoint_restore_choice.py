"""What a listing of checkpoints comes down to, before any rank reads a state."""

from datetime import UTC, datetime

import pytest
from pretrain_jobs.checkpoint.layout import CheckpointKey, Listed
from pretrain_jobs.checkpoint.manifest import Commit, RankManifest, StoredFile, encode, root_hash
from pretrain_jobs.checkpoint.restore import needed_files, require_world_size, survey_keys
from pretrain_jobs.errors import UserError

FILES = ("mp_rank_00_model_states.pt", "rank.json", "trainer.json", "zero_pp_rank_0.pt")


def commit_at(step: int, *, lineage: str = "own", world_size: int = 2) -> Commit:
    key = CheckpointKey(step, 1, "0" * 32)
    ranks = tuple(
        RankManifest(
            rank=rank,
            step=step,
            generation=1,
            attempt=key.attempt,
            files=tuple(
                StoredFile(name=name, size=1, sha256="0" * 64)
                for name in (FILES if rank == 0 else FILES[1:2] + FILES[3:])
            ),
        )
        for rank in range(world_size)
    )
    return Commit(
        step=step,
        generation=1,
        attempt=key.attempt,
        lineage=lineage,
        world_size=world_size,
        zero_stage=1,
        versions={},
        time=datetime(2026, 1, 1, tzinfo=UTC),
        ranks=ranks,
        root_hash=root_hash(ranks),
    )


def listed(key: CheckpointKey, *, committed: bool = True) -> Listed:
    return Listed(key, (key.commit,) if committed else (key.rank_manifest(0),))


def test_a_survey_tells_own_foreign_damaged_and_unfinished_checkpoints_apart() -> None:
    own, foreign = commit_at(1), commit_at(2, lineage="other")
    damaged, unfinished = CheckpointKey(3, 1, "0" * 32), CheckpointKey(4, 1, "0" * 32)
    contents = {
        own.key.commit: encode(own),
        foreign.key.commit: encode(foreign),
        damaged.commit: b"{",
    }
    listing = [
        listed(unfinished, committed=False),
        listed(damaged),
        listed(foreign.key),
        listed(own.key),
    ]

    survey = survey_keys(listing, contents.__getitem__, lineage="own")

    assert [commit.step for commit in survey.candidates] == [1]
    assert [key.step for key, _ in survey.damaged] == [3]
    assert [key.step for key in survey.foreign] == [2]
    assert [key.step for key in survey.uncommitted] == [4]


def test_a_rank_needs_its_own_files_and_what_rank_0_has_for_all() -> None:
    needed = [(owner, file.name) for owner, file in needed_files(commit_at(1), 1)]

    assert needed == [
        (0, "mp_rank_00_model_states.pt"),
        (0, "trainer.json"),
        (1, "rank.json"),
        (1, "zero_pp_rank_0.pt"),
    ]


def test_a_checkpoint_of_another_number_of_ranks_is_refused_with_what_to_do() -> None:
    with pytest.raises(UserError, match="written by 2 ranks and this job has 4"):
        require_world_size(commit_at(1), 4)

"""What a listing of checkpoints comes down to, before any rank reads a state."""

from datetime import UTC, datetime

from pretrain_jobs.checkpoint.layout import CheckpointKey, Listed
from pretrain_jobs.checkpoint.manifest import Commit, RankManifest, StoredFile, encode, root_hash
from pretrain_jobs.checkpoint.restore import needed_files
from pretrain_jobs.checkpoint.survey import survey_keys

OPTIMIZER = "zero_pp_rank_0_mp_rank_00_optim_states.pt"
FILES = ("mp_rank_00_model_states.pt", "rank.json", "trainer.json", OPTIMIZER)


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
    needed = [(owner, file.name) for owner, file in needed_files(commit_at(1), 1, 2)]

    assert needed == [
        (0, "mp_rank_00_model_states.pt"),
        (0, "trainer.json"),
        (1, "rank.json"),
        (1, OPTIMIZER),
    ]


def test_of_another_number_of_ranks_it_needs_the_model_and_the_parts_that_meet_its_own() -> None:
    commit = commit_at(1, world_size=4)

    def needed(rank: int) -> list[tuple[int, str]]:
        files = needed_files(commit, rank, 2, [{"weight": 80}])
        return [(owner, file.name) for owner, file in files]

    shared = [(0, "mp_rank_00_model_states.pt"), (0, "trainer.json")]
    assert needed(0) == [*shared, (0, OPTIMIZER), (1, OPTIMIZER)]
    assert needed(1) == [*shared, (2, OPTIMIZER), (3, OPTIMIZER)]


def test_without_zero_rank_0_has_all_that_another_number_of_ranks_needs() -> None:
    needed = needed_files(commit_at(1), 3, 4)

    assert [(owner, file.name) for owner, file in needed] == [
        (0, "mp_rank_00_model_states.pt"),
        (0, "trainer.json"),
    ]

"""COMMIT: its content vouches for itself."""

from datetime import UTC, datetime

import pytest
from pretrain_jobs.checkpoint.layout import CheckpointKey
from pretrain_jobs.checkpoint.manifest import (
    Commit,
    RankManifest,
    StoredFile,
    decode_commit,
    encode,
    root_hash,
)
from pretrain_jobs.errors import DataError

KEY = CheckpointKey(step=4, generation=2, attempt="ab" * 16)


def rank_manifest(rank: int, *, sha256: str = "11" * 32, step: int = KEY.step) -> RankManifest:
    files = (StoredFile(name="state.pt", size=10, sha256=sha256),)
    return RankManifest(
        rank=rank, step=step, generation=KEY.generation, attempt=KEY.attempt, files=files
    )


def commit_of(*ranks: RankManifest, **changes: object) -> Commit:
    fields = {
        "step": KEY.step,
        "generation": KEY.generation,
        "attempt": KEY.attempt,
        "lineage": "feed",
        "world_size": len(ranks),
        "zero_stage": 1,
        "versions": {},
        "time": datetime(2026, 1, 1, tzinfo=UTC),
        "ranks": ranks,
        "root_hash": root_hash(ranks),
    }
    return Commit.model_validate(fields | changes)


def test_a_commit_is_read_back() -> None:
    commit = commit_of(rank_manifest(0), rank_manifest(1))

    assert decode_commit(encode(commit), KEY) == commit


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda text: text[: len(text) // 2], "COMMIT is damaged"),
        (lambda text: text.replace(b'"size": 10', b'"size": 11', 1), "the root hash does not fit"),
        (lambda text: text.replace(b'"worldSize": 2', b'"worldSize": 3'), "some ranks are missing"),
        (lambda text: text.replace(b'"formatVersion": 1', b'"formatVersion": 2'), "format 2"),
        (lambda _: b"", "COMMIT is damaged"),
    ],
    ids=["cut short", "another size", "a rank missing", "another format", "empty"],
)
def test_a_damaged_commit_is_refused_with_the_reason(damage: object, reason: str) -> None:
    data = encode(commit_of(rank_manifest(0), rank_manifest(1)))
    assert callable(damage)

    with pytest.raises(DataError, match=reason):
        decode_commit(damage(data), KEY)


def test_a_commit_with_a_manifest_of_another_step_is_refused() -> None:
    with pytest.raises(ValueError, match="another step"):
        commit_of(rank_manifest(0), rank_manifest(1, step=3))


def test_a_commit_under_another_checkpoints_name_is_refused() -> None:
    data = encode(commit_of(rank_manifest(0)))

    with pytest.raises(DataError, match="COMMIT is of step-000000004"):
        decode_commit(data, CheckpointKey(5, KEY.generation, KEY.attempt))


def test_the_root_hash_changes_with_any_file() -> None:
    one = root_hash([rank_manifest(0), rank_manifest(1)])
    other = root_hash([rank_manifest(0), rank_manifest(1, sha256="22" * 32)])

    assert one != other

"""What ranks leave on a volume of their node, and how long it stays there."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretrain_api.reports import LOCAL_CHECKPOINTS_ENV
from pretrain_api.spec.storage import StorageSpec
from pretrain_api.stages import JobRef
from pretrain_jobs.checkpoint.layout import CheckpointKey, group_keys
from pretrain_jobs.checkpoint.local_copy import LocalCopies, local_root
from pretrain_jobs.checkpoint.orders import Outcome, SaveOrder
from pretrain_jobs.checkpoint.writing import RankWriter
from pretrain_jobs.errors import StorageUnavailableError
from pretrain_jobs.storage import ObjectInfo, ObjectStore, open_store
from pretrain_jobs.storage.file import FileStore
from pretrain_testing.logged import logged

ATTEMPTS = ("1" * 32, "2" * 32, "3" * 32)


def key(step: int, generation: int = 1) -> CheckpointKey:
    return CheckpointKey(step, generation, ATTEMPTS[generation - 1])


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(StorageSpec(uri=f"file://{tmp_path}/store"))


@pytest.fixture
def copies(tmp_path: Path) -> LocalCopies:
    return LocalCopies(tmp_path / "node" / "job")


class NoUpload(FileStore):
    """A store that takes nothing today."""

    def upload(self, path: Path, key: str, **_options: object) -> ObjectInfo:
        raise StorageUnavailableError(f"{key} cannot be written from {path} today")


def writer_to(store: ObjectStore) -> RankWriter:
    return RankWriter(store, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))


def save(writer: RankWriter, local: Path | None, one: CheckpointKey, rank: int = 1) -> Outcome:
    order = SaveOrder(
        key=one,
        rank=rank,
        contents={"rank.json": b"%d" % one.step},
        floats=(),
        size=0,
        directory=(local or Path("/nowhere")).parent.parent / "scratch",
        failpoint="",
        local=local,
    )
    return writer.save(order, memoryview(b""), lambda _seconds: False)


def names(directory: Path) -> set[str]:
    return {p.relative_to(directory).as_posix() for p in directory.rglob("*") if p.is_file()}


def test_each_job_has_a_folder_of_its_own_and_none_without_a_volume() -> None:
    job = JobRef(namespace="team", name="zh", uid="5a5a")

    assert local_root({LOCAL_CHECKPOINTS_ENV: "/kept"}, job) == Path("/kept/team/zh/5a5a")
    assert local_root({}, job) is None


def test_what_stays_on_the_node_is_what_was_stored(store: ObjectStore, copies: LocalCopies) -> None:
    outcome = save(writer_to(store), copies.root, key(7))

    assert (outcome.error, outcome.kept) == (None, True)
    stored = {info.key for info in store.list("step-")}
    assert (
        names(copies.root) == stored == {key(7).rank_file(1, "rank.json"), key(7).rank_manifest(1)}
    )
    assert all(copies.store.read(name) == store.read(name) for name in stored)
    assert copies.parts(before=2) == [(key(7), 1)]
    assert copies.parts(before=1) == []


def test_a_save_that_cannot_be_uploaded_is_whole_on_the_node(copies: LocalCopies) -> None:
    outcome = save(writer_to(NoUpload(Path("/nowhere"), "file:///nowhere")), copies.root, key(7))

    assert isinstance(outcome.error, StorageUnavailableError)
    assert outcome.kept
    assert copies.parts(before=2) == [(key(7), 1)]


def test_a_volume_that_cannot_be_written_to_fails_no_save_and_is_told_once(
    store: ObjectStore, tmp_path: Path
) -> None:
    (tmp_path / "node").write_text("a file in the volume's place")
    writer = writer_to(store)

    with logged() as records:
        outcomes = [save(writer, tmp_path / "node" / "job", key(step)) for step in (1, 2)]

    assert [(outcome.error, outcome.kept) for outcome in outcomes] == [(None, False)] * 2
    assert len(list(store.list("step-"))) == 4
    [record] = records
    assert "go to the store but are not left on this node" in record.getMessage()
    assert not (tmp_path / "scratch").exists()


class Vanishing(FileStore):
    """A store whose node loses a file as it is uploaded from the volume."""

    def upload(self, path: Path, key: str, **options: Any) -> ObjectInfo:
        if "node" in path.parts:
            path.unlink()
        return super().upload(path, key, **options)


def test_files_that_the_volume_does_not_give_back_are_uploaded_all_the_same(
    copies: LocalCopies, tmp_path: Path
) -> None:
    store = Vanishing(tmp_path / "store", f"file://{tmp_path}/store")

    with logged() as records:
        outcome = save(writer_to(store), copies.root, key(7))

    assert outcome.error is None
    assert store.read(key(7).rank_file(1, "rank.json")) == b"7"
    assert store.exists(key(7).rank_manifest(1))
    assert len(records) == 1


def test_a_rank_keeps_its_two_newest_saves_and_touches_no_other_ranks(
    store: ObjectStore, copies: LocalCopies
) -> None:
    writer = writer_to(store)
    save(writer, copies.root, key(1), rank=2)
    for step in (1, 2, 3):
        save(writer, copies.root, key(step))

    assert copies.parts(before=2) == [(key(3), 1), (key(2), 1), (key(1), 2)]


def test_half_written_saves_go_before_the_next_and_the_whole_one_stays(
    store: ObjectStore, copies: LocalCopies
) -> None:
    save(writer_to(store), copies.root, key(1))
    for step in (2, 3):
        half = copies.place(key(step), 1) / "rank.json"
        half.parent.mkdir(parents=True)
        half.write_bytes(b"half")

    save(writer_to(store), copies.root, key(4))

    assert {listed.key.step for listed in group_keys(names(copies.root))} == {1, 4}


def test_older_attempts_saves_go_once_this_one_has_its_own_and_a_newer_ones_never(
    store: ObjectStore, copies: LocalCopies
) -> None:
    writer = writer_to(store)
    save(writer, copies.root, key(9, 1), rank=2)
    save(writer, copies.root, key(9, 1))
    save(writer, copies.root, key(5, 3))

    save(writer, copies.root, key(3, 2))
    assert {part[0].generation for part in copies.parts(before=9)} == {1, 2, 3}
    save(writer, copies.root, key(4, 2))

    assert copies.parts(before=9) == [(key(5, 3), 1), (key(4, 2), 1), (key(3, 2), 1)]


def test_a_start_leaves_what_it_resumed_from_and_what_is_newer(
    store: ObjectStore, copies: LocalCopies
) -> None:
    for one, rank in ((key(1), 0), (key(2), 0), (key(2), 7), (key(3), 0), (key(9, 3), 0)):
        manifest = b"{}"
        copies.store.write(one.rank_file(rank, "rank.json"), b"state")
        copies.vouch(one, rank, manifest)

    copies.clean(before=2, kept=key(2))

    left = group_keys(names(copies.root))
    assert [(listed.key, listed.ranks) for listed in left] == [(key(9, 3), (0,)), (key(2), (0, 7))]


def test_a_job_that_has_ended_leaves_nothing_and_other_jobs_all(
    store: ObjectStore, tmp_path: Path
) -> None:
    own, other = (LocalCopies(tmp_path / "node" / "team" / name / "uid") for name in ("a", "b"))
    for one in (own, other):
        save(writer_to(store), one.root, key(1))

    own.remove()

    assert [path.name for path in (tmp_path / "node" / "team").iterdir()] == ["b"]
    assert other.parts(before=2) == [(key(1), 1)]


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("damage", [Path.unlink, _cut])
@pytest.mark.parametrize("name", [key(7).rank_file(1, "rank.json"), key(7).rank_manifest(1)])
def test_a_save_that_lacks_a_part_is_not_whole(
    store: ObjectStore, copies: LocalCopies, name: str, damage: Callable[[Path], None]
) -> None:
    save(writer_to(store), copies.root, key(7))
    damage(copies.root / name)
    assert copies.parts(before=2) == []


saves = st.lists(
    st.tuples(st.integers(1, 3), st.integers(1, 6), st.integers(0, 1)), min_size=1, max_size=12
)


@given(history=saves)
def test_before_a_save_a_rank_has_one_whole_save_at_most_that_is_not_a_newer_attempts(
    history: list[tuple[int, int, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    copies = LocalCopies(tmp_path_factory.mktemp("node"))

    def saved(rank: int) -> set[CheckpointKey]:
        return {one.key for one in group_keys(names(copies.root)) if rank in one.ranks}

    for generation, step, rank in history:
        one = key(step, generation)
        before = saved(rank)
        copies.make_room(one, rank)
        newer = {other for other in before if other.generation > generation}
        rest = before - newer - {one}
        newest = max(rest, key=lambda other: (other.generation, other.step), default=None)
        assert saved(rank) == newer | ({newest} if newest else set())
        manifest = copies.root / one.rank_manifest(rank)
        manifest.parent.mkdir(parents=True, exist_ok=True)
        manifest.write_bytes(b"{}")

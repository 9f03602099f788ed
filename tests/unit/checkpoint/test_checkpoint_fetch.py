"""How the ranks of a node share the download of a checkpoint."""

from collections import Counter
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Event, Lock
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.checkpoint import rounds
from pretrain_jobs.checkpoint.fetch import Fetched, assign, fetch, find_node
from pretrain_jobs.checkpoint.layout import CheckpointKey
from pretrain_jobs.checkpoint.manifest import StoredFile
from pretrain_jobs.storage import ObjectStore, open_store
from pretrain_testing.thread_ranks import ThreadRank, run_threads

T = TypeVar("T")
KEY = CheckpointKey(7, 1, "0" * 32)


def stored(name: str, data: bytes) -> StoredFile:
    return StoredFile(name=name, size=len(data), sha256=sha256(data).hexdigest())


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(StorageSpec(uri=f"file://{tmp_path}/store"))


@given(
    wanted=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 1000)), unique=True),
    members=st.sets(st.integers(0, 9), min_size=1),
)
def test_every_file_is_dealt_to_one_rank_and_its_own_to_each(
    wanted: list[tuple[int, int]], members: set[int]
) -> None:
    files = [
        (owner, StoredFile(name=f"{number}", size=size, sha256=""))
        for number, (owner, size) in enumerate(wanted)
    ]

    dealt = assign(files, sorted(members))

    assert dealt.keys() == members
    assert Counter(owned for share in dealt.values() for owned in share) == Counter(files)
    for owner, file in files:
        assert owner not in members or (owner, file) in dealt[owner]


def test_foreign_files_go_to_the_rank_with_the_fewest_bytes() -> None:
    files = [
        (owner, StoredFile(name="f", size=size, sha256=""))
        for owner, size in ((8, 5), (9, 3), (7, 2))
    ]

    dealt = assign(files, [0, 1])

    assert [[owner for owner, _ in dealt[rank]] for rank in (0, 1)] == [[8], [9, 7]]


def test_ranks_that_see_one_directory_are_a_node(tmp_path: Path) -> None:
    def join(rank: ThreadRank) -> tuple[int, ...]:
        return find_node(rank, tmp_path / f"node-{rank.rank // 2}").members

    assert run_threads(join, 4) == [(0, 1), (0, 1), (2, 3), (2, 3)]


def test_each_rank_tells_what_is_wrong_with_its_own_files(
    store: ObjectStore, tmp_path: Path
) -> None:
    good, cut, changed, missing = (stored(name, b"content") for name in "abcd")
    for file, data in ((good, b"content"), (cut, b"cont"), (changed, b"contenT")):
        store.write(KEY.rank_file(3, file.name), data)

    def fetched(rank: ThreadRank) -> list[str]:
        node = find_node(rank, tmp_path / "node")
        return fetch(store, rank, KEY, node, [(3, (good, cut, changed, missing)[rank.rank])]).doubts

    for told in run_threads(fetched, 4):
        assert told == [
            "",
            "rank-00003/b has 4 bytes instead of 7",
            "rank-00003/c has another SHA-256 than its manifest",
            "rank-00003/d is missing",
        ]
    assert (tmp_path / "node" / "rank-00003" / "a").read_bytes() == b"content"


@dataclass(frozen=True)
class Counting(ThreadRank):
    """Sets an event once its rank has met the others four times."""

    met: list[int]
    event: Event

    def gather(self, value: T) -> list[T]:
        told = super().gather(value)
        self.met.append(self.rank)
        if len(self.met) == 4:
            self.event.set()
        return told


def test_ranks_that_are_done_go_on_meeting_one_that_downloads_for_long(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "ROUND_SECONDS", 0.01)
    released = Event()
    files = [(rank, stored("file", b"content")) for rank in range(2)]
    for owner, file in files:
        store.write(KEY.rank_file(owner, file.name), b"content")

    class Slow:
        """Downloads rank 1's file only once the ranks have met often."""

        def download(self, key: str, path: Path, **options: Any) -> str:
            assert "rank-00001" not in key or released.wait(60)
            return store.download(key, path, **options)

    def fetched(rank: ThreadRank) -> tuple[list[str], int]:
        counting = Counting(rank.rank, rank.meeting, [], released)
        node = find_node(rank, tmp_path / "node")
        slow: Any = Slow()
        told = fetch(slow, counting, KEY, node, files[rank.rank : rank.rank + 1])
        return told.doubts, len(counting.met)

    for told, met in run_threads(fetched, 2):
        assert told == ["", ""]
        assert met > 4


def test_no_more_than_a_few_files_are_downloaded_at_a_time(
    store: ObjectStore, tmp_path: Path
) -> None:
    files = [(0, stored(f"{number}", b"content")) for number in range(12)]
    for owner, file in files:
        store.write(KEY.rank_file(owner, file.name), b"content")
    lock, running, most = Lock(), Counter[str](), [0]
    full = Event()

    class Watched:
        """Holds downloads back until as many run as may."""

        def download(self, key: str, path: Path, **options: Any) -> str:
            with lock:
                running["now"] += 1
                most[0] = max(most[0], running["now"])
                if running["now"] == rounds.TRANSFERS:
                    full.set()
            assert full.wait(60)
            with lock:
                running["now"] -= 1
            return store.download(key, path, **options)

    def fetched(rank: ThreadRank) -> list[str]:
        watched: Any = Watched()
        return fetch(watched, rank, KEY, find_node(rank, tmp_path / "node"), files).doubts

    assert run_threads(fetched, 1) == [[""]]
    assert most == [rounds.TRANSFERS]


def test_a_file_comes_from_the_nodes_own_disk_where_that_has_it_as_it_should_be(
    store: ObjectStore, tmp_path: Path
) -> None:
    local = open_store(StorageSpec(uri=f"file://{tmp_path}/local"))
    files = [(3, stored(name, b"content")) for name in ("here", "damaged", "elsewhere")]
    for owner, file in files[1:]:
        store.write(KEY.rank_file(owner, file.name), b"content")
    local.write(KEY.rank_file(3, "here"), b"content")
    local.write(KEY.rank_file(3, "damaged"), b"contenT")
    node = tmp_path / "node"

    def fetched(rank: ThreadRank) -> Fetched:
        return fetch(store, rank, KEY, find_node(rank, node), files, local=local)

    [told] = run_threads(fetched, 1)

    assert told == Fetched([""], local_bytes=7, stored_bytes=14)
    assert {path.read_bytes() for path in (node / "rank-00003").iterdir()} == {b"content"}

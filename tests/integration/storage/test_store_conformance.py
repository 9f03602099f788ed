"""What every store promises: a directory, SeaweedFS and rclone alike (about 90 s)."""

from __future__ import annotations

import hashlib
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.storage import (
    AlreadyExistsError,
    NotFoundError,
    ObjectStore,
    artifact,
    open_store,
)
from pretrain_testing.s3 import SMALL_PART_BYTES, with_small_parts

MEGABYTE = 1_000_000
ODD_KEYS = ["中文/语料 一.jsonl", "a+b/c&d=e.txt", "100%25.txt", "é/è.txt", "x/~(1)!'.txt"]


def content(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


@pytest.mark.parametrize("size", [0, 1, MEGABYTE])
def test_what_was_written_is_read_back_byte_for_byte(store: ObjectStore, size: int) -> None:
    data = content(size)

    info = store.write("a/object", data)

    assert info.key == "a/object"
    assert info.size == size
    assert store.read("a/object") == data
    assert store.head("a/object") == info
    with store.open("a/object") as stream:
        assert stream.read(10) == data[:10]
        assert stream.read() == data[10:]


@pytest.mark.parametrize("size", [0, MEGABYTE, 12 * MEGABYTE])
def test_a_file_goes_up_and_comes_down_unchanged(
    store: ObjectStore, tmp_path: Path, size: int
) -> None:
    source, target = tmp_path / "source", tmp_path / "deep" / "target"
    source.write_bytes(content(size))
    sent: list[int] = []

    info = store.upload(source, "big/file.bin", progress=sent.append)
    sha256 = store.download("big/file.bin", target)

    assert info.size == size
    assert sum(sent) == size
    assert sha256 == hashlib.sha256(source.read_bytes()).hexdigest()
    assert target.read_bytes() == source.read_bytes()
    assert [path.name for path in target.parent.iterdir()] == ["target"]


@pytest.mark.parametrize("kind", ["weed", "rclone"], indirect=True)
def test_a_file_in_parts_arrives_as_one_object(store: ObjectStore, tmp_path: Path) -> None:
    source, sent = tmp_path / "source", list[int]()
    source.write_bytes(content(12 * MEGABYTE))

    info = with_small_parts(store).upload(source, "big", progress=sent.append)

    assert sorted(sent) == [12 * MEGABYTE - 2 * SMALL_PART_BYTES, *[SMALL_PART_BYTES] * 2]
    assert info.size == 12 * MEGABYTE
    assert store.read("big") == source.read_bytes()


@pytest.mark.parametrize("key", ODD_KEYS)
def test_keys_of_any_script_and_punctuation_are_kept(store: ObjectStore, key: str) -> None:
    store.write(key, key.encode())

    assert store.read(key) == key.encode()
    assert [info.key for info in store.list()] == [key]

    store.delete(key)
    assert not store.exists(key)


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [
        (0, 3, b"012"),
        (4, 3, b"456"),
        (8, 10, b"89"),
        (0, 10, b"0123456789"),
        (10, 1, b""),
        (99, 5, b""),
        (3, 0, b""),
    ],
)
def test_a_range_ends_with_the_object(
    store: ObjectStore, start: int, length: int, expected: bytes
) -> None:
    store.write("digits", b"0123456789")

    assert store.read_range("digits", start, length) == expected


def test_a_range_of_an_empty_object_is_empty(store: ObjectStore) -> None:
    store.write("empty", b"")

    assert store.read_range("empty", 0, 5) == b""


def test_listing_is_in_the_order_of_the_keys_bytes(store: ObjectStore) -> None:
    keys = ["a-b", "a.txt", "a/b", "a/c/d", "a0", "b", "z", "é", "中/文", "😀"]
    for key in reversed(keys):
        store.write(key, key.encode())

    listed = list(store.list())

    assert [info.key for info in listed] == keys
    assert [info.size for info in listed] == [len(key.encode()) for key in keys]
    assert listed == [store.head(key) for key in keys]


@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        ("", ["data/a", "data/b/c", "dataset", "other"]),
        ("data", ["data/a", "data/b/c", "dataset"]),
        ("data/", ["data/a", "data/b/c"]),
        ("data/b", ["data/b/c"]),
        ("data/b/c", ["data/b/c"]),
        ("data/b/c/", []),
        ("nothing", []),
    ],
)
def test_a_prefix_is_the_start_of_a_key_not_a_directory(
    store: ObjectStore, prefix: str, expected: list[str]
) -> None:
    for key in ["data/a", "data/b/c", "dataset", "other"]:
        store.write(key, b"1")

    assert [info.key for info in store.list(prefix)] == expected


@pytest.mark.parametrize("kind", ["file", "weed"], indirect=True)
def test_a_listing_goes_beyond_one_page_of_a_thousand(store: ObjectStore) -> None:
    keys = [f"page/{number:04d}" for number in range(1105)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda key: store.upload(Path("/dev/null"), key), keys))

    assert [info.key for info in store.list("page/")] == keys


def test_a_store_does_not_see_what_lies_beside_its_root(storage: StorageSpec) -> None:
    open_store(storage, "jobs/demo").write("own", b"1")
    open_store(storage, "jobs/demo-2").write("other", b"2")
    open_store(storage, "jobs").write("above", b"3")

    assert [info.key for info in open_store(storage, "jobs/demo").list()] == ["own"]
    assert [info.key for info in open_store(storage).list()] == [
        "jobs/above",
        "jobs/demo-2/other",
        "jobs/demo/own",
    ]


def test_a_missing_object_is_not_found_whatever_is_asked_of_it(
    store: ObjectStore, tmp_path: Path
) -> None:
    store.write("there/object", b"1")

    for key in ["absent", "there", "there/object/below"]:
        assert not store.exists(key)
        for ask in (store.head, store.open, store.read):
            with pytest.raises(NotFoundError):
                ask(key)
        with pytest.raises(NotFoundError):
            store.read_range(key, 0, 1)
        with pytest.raises(NotFoundError):
            store.download(key, tmp_path / "target")
    assert not (tmp_path / "target").exists()
    assert store.read("there/object") == b"1"


def test_deleting_what_is_not_there_succeeds_and_deletes_nothing_else(store: ObjectStore) -> None:
    store.write("there/object", b"1")

    store.delete("absent")
    store.delete("there/object/below")
    store.delete("there/object")
    store.delete("there/object")

    assert list(store.list()) == []


def test_a_second_write_replaces_the_first_and_changes_the_tags(store: ObjectStore) -> None:
    first = store.write("object", b"one")
    first_content = store.content_tag(first)

    second = store.write("object", b"two")

    assert store.read("object") == b"two"
    assert second.etag != first.etag
    assert store.content_tag(second) != first_content
    assert store.content_tag(store.write("object", b"one")) == first_content


def test_a_conditional_write_keeps_an_object_that_is_there(store: ObjectStore) -> None:
    store.write("claim", b"first", if_absent=True)

    for data in (b"second", b"first"):
        with pytest.raises(AlreadyExistsError):
            store.write("claim", data, if_absent=True)

    assert store.read("claim") == b"first"


@pytest.mark.parametrize("kind", ["file", "weed"], indirect=True)
def test_of_sixteen_racing_writers_exactly_one_wins(store: ObjectStore) -> None:
    barrier = Barrier(16)

    def claim(number: int) -> int | None:
        barrier.wait()
        try:
            store.write("claims/gen-1", f"writer {number}".encode(), if_absent=True)
        except AlreadyExistsError:
            return None
        return number

    with ThreadPoolExecutor(16) as pool:
        winners = [number for number in pool.map(claim, range(16)) if number is not None]

    assert len(winners) == 1
    assert store.read("claims/gen-1") == f"writer {winners[0]}".encode()


def test_an_artifact_is_committed_verified_and_fetched(store: ObjectStore, tmp_path: Path) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    (source / "shards").mkdir(parents=True)
    for name in ("config.json", "shards/训练-0.h5"):
        (source / name).write_bytes(content(50_000, seed=len(name)))
    kind = {"kind": "dataset", "fingerprint": "0123456789abcdef"}

    files = artifact.upload_directory(store, source)
    assert not artifact.is_committed(store, **kind)
    artifact.commit(store, **kind, files=files, extra={"dtype": "uint16"})

    manifest = artifact.load(store, **kind)
    assert artifact.is_committed(store, **kind)
    assert manifest is not None
    assert artifact.verify(store, manifest, hashes=True) == []
    artifact.download_artifact(store, manifest, copy)
    for name in ("config.json", "shards/训练-0.h5"):
        assert (copy / name).read_bytes() == (source / name).read_bytes()


def test_a_probe_warns_only_where_conditional_writes_do_not_work(
    store: ObjectStore, kind: str
) -> None:
    warnings = store.probe()

    assert len(warnings) == (1 if kind == "rclone" else 0)
    assert all("If-None-Match" in warning for warning in warnings)
    assert list(store.list()) == []


def test_a_store_works_after_a_trip_to_another_process(store: ObjectStore) -> None:
    store.write("object", b"1")

    travelled = pickle.loads(pickle.dumps(store))  # noqa: S301 - our own bytes

    assert travelled.uri == store.uri
    assert travelled.read("object") == b"1"

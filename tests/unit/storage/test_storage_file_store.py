"""The `file://` store: what the conformance suite cannot ask of every store."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pretrain_jobs.errors import DataError, UserError
from pretrain_jobs.storage.file import FileStore

NAME = st.text(st.sampled_from("ab-./0é中😀 "), min_size=1, max_size=4).filter(
    lambda name: "/" not in name and name not in {".", ".."}
)
KEYS = st.lists(st.lists(NAME, min_size=1, max_size=3).map("/".join), max_size=8)
PREFIX = st.text(st.sampled_from("ab-.0/é中"), max_size=4).filter(
    lambda prefix: set(prefix.split("/")[:-1]).isdisjoint({"", ".", ".."})
)


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(root=tmp_path, uri=tmp_path.as_uri())


def without_parents(keys: list[str]) -> set[str]:
    """The keys that no other key takes for a directory."""
    return {key for key in keys if not any(other.startswith(key + "/") for other in keys)}


@settings(deadline=None, max_examples=50)
@given(keys=KEYS, prefix=PREFIX)
def test_a_listing_is_every_key_with_the_prefix_in_the_order_of_their_bytes(
    keys: list[str], prefix: str
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store = FileStore(root=Path(directory), uri=Path(directory).as_uri())
        chosen = without_parents(keys)
        for key in chosen:
            (store.root / key).parent.mkdir(parents=True, exist_ok=True)
            (store.root / key).write_bytes(b"1")

        listed = [info.key for info in store.list(prefix)]

    expected = [key for key in chosen if key.startswith(prefix)]
    assert listed == sorted(expected, key=str.encode)


@pytest.mark.parametrize("key", ["", "/a", "a//b", "a/", "../a", "a/../b", "./a", "a\0b"])
def test_a_key_that_would_leave_the_root_or_be_ambiguous_is_refused(
    store: FileStore, key: str
) -> None:
    with pytest.raises(UserError, match="cannot be a key"):
        store.write(key, b"1")
    with pytest.raises(UserError, match="cannot be a key"):
        store.read(key)


def test_temporary_files_are_not_objects(store: FileStore) -> None:
    store.write("data/object", b"1")
    (store.root / "data" / ".pretrain-tmp-0").write_bytes(b"half")

    assert [info.key for info in store.list()] == ["data/object"]
    assert store.sweep("data/", older_than_seconds=0) == 1
    assert os.listdir(store.root / "data") == ["object"]  # noqa: PTH208


def test_links_are_followed_and_loops_of_them_end(store: FileStore) -> None:
    store.write("real/object", b"1")
    (store.root / "linked").symlink_to("real")
    (store.root / "real" / "loop").symlink_to("..")
    (store.root / "dangling").symlink_to("nowhere")

    assert [info.key for info in store.list()] == ["linked/object", "real/object"]


def test_a_name_that_is_not_utf8_is_told_rather_than_left_out(store: FileStore) -> None:
    (store.root / os.fsdecode(b"bad-\xff")).write_bytes(b"1")

    with pytest.raises(DataError, match=r"bad-\\xff.* is not UTF-8"):
        list(store.list())


def test_a_directory_that_is_not_there_lists_as_empty(store: FileStore) -> None:
    assert list(store.list("absent/")) == []
    assert list(FileStore(root=store.root / "absent", uri="file:///absent").list()) == []


def test_deleting_the_last_object_of_a_directory_removes_it_but_not_the_root(
    store: FileStore,
) -> None:
    store.write("a/b/c", b"1")
    store.write("a/d", b"2")

    store.delete("a/b/c")
    assert not (store.root / "a" / "b").exists()
    store.delete("a/d")

    assert store.root.is_dir()
    assert list(store.root.iterdir()) == []


def test_the_content_tag_of_a_file_is_the_same_wherever_and_whenever_it_was_written(
    store: FileStore, tmp_path: Path
) -> None:
    first = store.write("a", b"content")
    second = store.write("other/place", b"content")
    changed = store.write("c", b"Content")
    os.utime(tmp_path / "a", (1, 1))

    tags = [store.content_tag(info) for info in (first, second, changed)]

    assert (
        tags[0]
        == tags[1]
        == "sha256:" + ("ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73")
    )
    assert tags[2] != tags[0]
    assert store.head("a").etag != first.etag

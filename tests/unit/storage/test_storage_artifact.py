"""Artifacts: committed by their manifest, verified against it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pretrain_jobs.errors import DataError, StorageUnavailableError
from pretrain_jobs.storage.artifact import (
    FileEntry,
    commit,
    download_artifact,
    is_committed,
    load,
    upload_directory,
    verify,
)
from pretrain_jobs.storage.file import FileStore

KIND = {"kind": "model", "fingerprint": "0123456789abcdef"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    directory = tmp_path / "source"
    (directory / "tokenizer").mkdir(parents=True)
    (directory / "config.json").write_bytes(b"{}")
    (directory / "tokenizer" / "词.txt").write_bytes(b"1")
    (directory / "manifest.json").write_bytes(b"of another place")
    return directory


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(root=tmp_path / "store", uri="file:///store")


def committed(store: FileStore, source: Path) -> None:
    commit(store, **KIND, files=upload_directory(store, source), extra={"dtype": "uint16"})


def test_an_artifact_exists_from_its_commit_on(store: FileStore, source: Path) -> None:
    files = upload_directory(store, source)
    assert load(store, kind="model") is None
    assert not is_committed(store, **KIND)

    commit(store, **KIND, files=files, extra={"dtype": "uint16"})

    assert is_committed(store, **KIND)
    manifest = load(store, **KIND)
    assert manifest is not None
    assert manifest.files == tuple(files)
    assert manifest.extra == {"dtype": "uint16"}
    assert manifest.size == 3
    assert verify(store, manifest, hashes=True) == []


def test_equal_content_has_an_equal_manifest_in_any_order(tmp_path: Path, source: Path) -> None:
    manifests = []
    for name in ("first", "second"):
        store = FileStore(root=tmp_path / name, uri=f"file:///{name}")
        files = upload_directory(store, source)
        files = files if name == "first" else files[::-1]
        extra = {"b": 1, "a": "中"} if name == "first" else {"a": "中", "b": 1}
        commit(store, **KIND, files=files, extra=extra)
        manifests.append(store.read("manifest.json"))

    assert manifests[0] == manifests[1]
    assert json.loads(manifests[0])["formatVersion"] == 1


def test_nothing_is_committed_while_a_file_is_missing_or_cut(
    store: FileStore, source: Path
) -> None:
    files = [*upload_directory(store, source), FileEntry("lost.bin", 5, "0" * 64)]
    store.write("config.json", b"{ }")

    with pytest.raises(StorageUnavailableError) as refused:
        commit(store, **KIND, files=files, extra={})

    assert "config.json should have 2 bytes and has 3" in str(refused.value)
    assert "lost.bin should have 5 bytes and is missing" in str(refused.value)
    assert not store.exists("manifest.json")


def test_a_changed_byte_is_found_by_hashes_and_a_changed_size_without(
    store: FileStore, source: Path
) -> None:
    committed(store, source)
    manifest = load(store, **KIND)
    assert manifest

    store.write("config.json", b"[]")
    assert verify(store, manifest, hashes=False) == []
    assert verify(store, manifest, hashes=True) == [
        "config.json has another SHA-256 than its manifest says"
    ]
    store.write("config.json", b"[0]")
    assert verify(store, manifest, hashes=False) == ["config.json should have 2 bytes and has 3"]
    assert not is_committed(store, **KIND)
    store.delete("config.json")
    assert verify(store, manifest, hashes=True) == [
        "config.json should have 2 bytes and is missing"
    ]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "damaged"),
        (b'{"formatVersion": 1, "kind": "model"', "damaged"),
        (b'{"formatVersion": 1, "kind": "model", "files": []}', "damaged at fingerprint"),
        (
            b'{"formatVersion": 1, "kind": "model", "fingerprint": "f", '
            b'"files": [{"path": "../../etc/passwd", "size": 1, "sha256": "0"}]}',
            "damaged at files.0",
        ),
        (
            b'{"formatVersion": 2, "kind": "model", "fingerprint": "f", "files": []}',
            "is of format 2 where 1 was expected",
        ),
        (
            b'{"formatVersion": 1, "kind": "export", "fingerprint": "f", "files": []}',
            "kind 'export' where 'model' was expected",
        ),
        (
            b'{"formatVersion": 1, "kind": "model", "fingerprint": "f", "files": []}',
            "fingerprint 'f' where '0123456789abcdef' was expected",
        ),
    ],
)
def test_a_manifest_that_is_damaged_or_of_something_else_is_not_taken(
    store: FileStore, data: bytes, words: str
) -> None:
    store.write("manifest.json", data)

    with pytest.raises(DataError, match=words):
        load(store, **KIND)
    assert not is_committed(store, **KIND)


def test_an_artifact_comes_down_as_it_went_up(
    store: FileStore, source: Path, tmp_path: Path
) -> None:
    committed(store, source)
    manifest = load(store, **KIND)
    assert manifest
    received: list[int] = []

    download_artifact(store, manifest, tmp_path / "copy", progress=received.append)

    assert (tmp_path / "copy" / "tokenizer" / "词.txt").read_bytes() == b"1"
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == [
        "config.json",
        "tokenizer",
    ]
    assert sum(received) == manifest.size


def test_a_damaged_file_is_not_handed_over(store: FileStore, source: Path, tmp_path: Path) -> None:
    committed(store, source)
    manifest = load(store, **KIND)
    assert manifest
    store.write("config.json", b"[]")

    with pytest.raises(DataError, match=r"config\.json has another SHA-256"):
        download_artifact(store, manifest, tmp_path / "copy")
    assert not (tmp_path / "copy" / "config.json").exists()

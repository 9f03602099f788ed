"""What storage URIs mean."""

from __future__ import annotations

from pathlib import Path

import pytest
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.errors import UserError
from pretrain_jobs.storage import open_store
from pretrain_jobs.storage.uri import Location, absolute_uri, join_uri, parse_uri


@pytest.mark.parametrize(
    ("uri", "location"),
    [
        ("s3://bucket", Location("s3", "bucket", "")),
        ("s3://bucket/", Location("s3", "bucket", "")),
        ("S3://my.bucket-1/a/b", Location("s3", "my.bucket-1", "a/b")),
        ("s3://bucket/100%25", Location("s3", "bucket", "100%25")),
        ("file:///data/x", Location("file", "", "/data/x")),
        ("file:/data", Location("file", "", "/data")),
        ("file://localhost/data", Location("file", "", "/data")),
        ("file:///a%20b/%E4%B8%AD", Location("file", "", "/a b/中")),
        ("file:///a b/中#1?", Location("file", "", "/a b/中#1?")),
    ],
)
def test_uris_are_parsed(uri: str, location: Location) -> None:
    assert parse_uri(uri) == location


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("gs://bucket/x", "use s3:// or file:///"),
        ("s3:///key", "must name a bucket"),
        ("s3:bucket", "must name a bucket"),
        ("s3://-bucket", "must name a bucket"),
        ("file://host/data", "absolute path"),
        ("file:data", "absolute path"),
        ("file:///a/../b", r"'\.\.'"),
        ("file:///a/%2E%2E/b", r"'\.\.'"),
    ],
)
def test_a_uri_that_cannot_be_meant_is_refused(uri: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        parse_uri(uri)


def test_a_path_of_any_script_survives_the_way_through_a_uri(tmp_path: Path) -> None:
    directory = tmp_path / "中 文 100% #1"

    assert parse_uri(directory.as_uri()).path == str(directory)
    assert parse_uri(join_uri(tmp_path.as_uri(), directory.name)).path == str(directory)


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("corpus/zh.jsonl", "s3://bucket/jobs/corpus/zh.jsonl"),
        ("corpus/", "s3://bucket/jobs/corpus"),
        ("s3://other/x/", "s3://other/x"),
        ("file:///data", "file:///data"),
    ],
)
def test_a_relative_uri_is_taken_under_the_storage(uri: str, expected: str) -> None:
    assert absolute_uri(uri, base="s3://bucket/jobs/") == expected


def test_a_bare_path_is_refused_with_the_uri_to_write() -> None:
    with pytest.raises(UserError, match="write file:///data/corpus"):
        absolute_uri("/data/corpus", base="s3://bucket")


def test_a_store_is_rooted_where_it_was_asked_for(tmp_path: Path) -> None:
    storage = StorageSpec(uri=f"{tmp_path.as_uri()}/")

    open_store(storage, "models/1").write("config.json", b"{}")

    assert open_store(storage).uri == tmp_path.as_uri()
    assert [info.key for info in open_store(storage).list()] == ["models/1/config.json"]


def test_opening_a_store_touches_nothing(tmp_path: Path) -> None:
    open_store(StorageSpec(uri=(tmp_path / "absent").as_uri()))
    open_store(StorageSpec(uri="s3://bucket/x", endpoint_url="http://127.0.0.1:1"))

    assert list(tmp_path.iterdir()) == []

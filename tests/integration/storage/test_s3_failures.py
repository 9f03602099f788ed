"""How the S3 store recovers from a server's faults, on a real one behind a proxy (40 s)."""

from __future__ import annotations

import hashlib
import itertools
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from pretrain_jobs.errors import (
    StorageFullError,
    StorageRefusedError,
    StorageUnavailableError,
)
from pretrain_jobs.storage import AlreadyExistsError, ObjectStore
from pretrain_jobs.storage.s3 import S3Store
from pretrain_jobs.storage.s3_requests import request_counts
from pretrain_testing.s3 import SMALL_PART_BYTES, with_small_parts
from pretrain_testing.s3_faults import (
    Answer,
    FaultyServer,
    Forward,
    Request,
    big_file,
    error,
    lose_answer,
    on,
    times,
)

# What the server answers


def test_no_request_carries_a_checksum_of_the_sdk_and_each_is_signed_with_its_body(
    behind: S3Store, proxy: FaultyServer, tmp_path: Path
) -> None:
    small, big = big_file(tmp_path / "small", 1000), big_file(tmp_path / "big")

    behind.upload(small, "small")
    behind.upload(big, "big")
    behind.write("claim", b"1", if_absent=True)
    behind.download("big", tmp_path / "copy")
    behind.read_range("big", 5, 10)
    list(behind.list())
    behind.sweep()
    behind.delete("small")

    assert {request.method for request in proxy.requests} == {
        "PUT",
        "POST",
        "GET",
        "HEAD",
        "DELETE",
    }
    for request in proxy.requests:
        sdk_made = [
            name
            for name in request.headers
            if name.startswith(("x-amz-checksum", "x-amz-sdk", "x-amz-trailer"))
            or name in {"content-md5", "transfer-encoding", "content-encoding"}
        ]
        assert sdk_made == []
        signed = request.headers["x-amz-content-sha256"]
        assert signed == hashlib.sha256(request.body).hexdigest()
    parts = [request for request in proxy.requests if "partNumber=" in request.path]
    assert sorted(len(part.body) for part in parts) == [1, SMALL_PART_BYTES, SMALL_PART_BYTES]


def test_a_third_of_slow_downs_delays_and_loses_nothing(
    behind: S3Store, proxy: FaultyServer, direct: ObjectStore
) -> None:
    numbers = itertools.count()

    def every_third(_request: Request, _forward: Forward) -> Answer | None:
        return error(503, "SlowDown") if next(numbers) % 3 == 0 else None

    store = with_small_parts(behind, attempts=20)
    proxy.fault = every_third
    retries_before = request_counts().retries

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: store.write(f"{number}", b"1"), range(4)))

    assert [info.key for info in direct.list()] == ["0", "1", "2", "3"]
    counts = request_counts()
    assert counts.retries > retries_before
    assert counts.requests["PutObject", "503"] > 0


def test_a_conditional_write_whose_answer_is_lost_is_known_as_our_own(
    behind: S3Store, proxy: FaultyServer
) -> None:
    proxy.fault = on("PUT", times(1, lose_answer))

    info = behind.write("claim", b"ours", if_absent=True)

    assert info.size == 4
    assert [request.method for request in proxy.requests].count("PUT") == 2


def test_a_conditional_write_that_lost_to_another_after_a_lost_answer_says_so(
    behind: S3Store, proxy: FaultyServer, direct: ObjectStore
) -> None:
    def other_writes_first(_request: Request, _forward: Forward) -> Answer:
        direct.write("claim", b"theirs")
        raise ConnectionError

    proxy.fault = on("PUT", times(1, other_writes_first))

    with pytest.raises(AlreadyExistsError):
        behind.write("claim", b"ours", if_absent=True)
    assert direct.read("claim") == b"theirs"


def test_a_conflict_with_a_concurrent_write_is_asked_again(
    behind: S3Store, proxy: FaultyServer
) -> None:
    proxy.fault = on("PUT", times(2, lambda *_: error(409, "ConditionalRequestConflict")))

    behind.write("claim", b"ours", if_absent=True)

    assert behind.read("claim") == b"ours"


def test_a_race_on_a_server_without_conditions_is_told_by_reading_back(
    behind: S3Store, proxy: FaultyServer, direct: ObjectStore
) -> None:
    def ignore_condition_then_lose(_request: Request, _forward: Forward) -> Answer:
        direct.write("claim", b"theirs")
        return Answer(200, {"ETag": '"0"'})

    proxy.fault = on("PUT", ignore_condition_then_lose)

    with pytest.raises(AlreadyExistsError, match="someone else"):
        behind.write("claim", b"ours", if_absent=True)


def test_an_object_that_the_server_cut_is_noticed(
    behind: S3Store, proxy: FaultyServer, tmp_path: Path
) -> None:
    proxy.fault = on("HEAD", lambda *_: Answer(200, {"Content-Length": "7", "ETag": '"0"'}))

    with pytest.raises(StorageUnavailableError, match="has 7 bytes after 1000 were sent"):
        behind.upload(big_file(tmp_path / "file", 1000), "file")


def test_a_full_server_is_told_as_such(behind: S3Store, proxy: FaultyServer) -> None:
    proxy.fault = on("PUT", lambda *_: error(507, "XMinioStorageFull"))

    with pytest.raises(StorageFullError, match="no space left"):
        behind.write("object", b"1")


# Reading through broken connections


def test_a_download_goes_on_where_its_connection_broke(
    behind: S3Store, proxy: FaultyServer, direct: ObjectStore, tmp_path: Path
) -> None:
    data = big_file(tmp_path / "source").read_bytes()
    direct.upload(tmp_path / "source", "big")
    proxy.fault = on("GET", times(2, lambda request, forward: cut(forward(request), 3_000_000)))

    sha256 = behind.download("big", tmp_path / "copy")

    assert sha256 == hashlib.sha256(data).hexdigest()
    assert len([request for request in proxy.requests if "range" in request.headers]) == 2


def test_a_connection_that_keeps_breaking_leaves_no_file(
    behind: S3Store, proxy: FaultyServer, direct: ObjectStore, tmp_path: Path
) -> None:
    direct.write("object", b"x" * 100_000)
    proxy.fault = on("GET", lambda request, forward: cut(forward(request), 0))

    with pytest.raises(StorageUnavailableError, match="broke off"):
        behind.download("object", tmp_path / "copy" / "file")
    assert list((tmp_path / "copy").iterdir()) == []


def test_an_object_replaced_while_it_is_read_is_not_mixed(
    behind: S3Store, proxy: FaultyServer, direct: ObjectStore
) -> None:
    direct.write("object", b"a" * 100_000)

    def cut_and_replace(request: Request, forward: Forward) -> Answer:
        answer = cut(forward(request), 50_000)
        direct.write("object", b"b" * 100_000)
        return answer

    proxy.fault = on("GET", times(1, cut_and_replace))

    with pytest.raises(StorageUnavailableError, match="replaced"):
        behind.read("object")


def cut(answer: Answer, size: int) -> Answer:
    return replace(answer, cut_to=size)


# Uploads that end half-way


def test_an_upload_that_fails_leaves_neither_object_nor_parts(
    behind: S3Store, proxy: FaultyServer, tmp_path: Path
) -> None:
    proxy.fault = on("PUT", lambda *_: error(403, "AccessDenied"), query="partNumber=3")

    with pytest.raises(StorageRefusedError):
        behind.upload(big_file(tmp_path / "big"), "big")

    assert not behind.exists("big")
    assert behind.sweep(older_than_seconds=0) == 0


def test_a_sweep_aborts_old_unfinished_uploads_under_its_prefix_only(
    behind: S3Store, proxy: FaultyServer, tmp_path: Path
) -> None:
    def refuse(*_: object) -> Answer:
        return error(403, "AccessDenied")

    proxy.fault = lambda request, forward: (
        on("PUT", refuse, query="partNumber=2")(request, forward)
        or on("DELETE", refuse)(request, forward)
    )
    for key in ("old/big", "other/big"):
        with pytest.raises(StorageRefusedError):
            behind.upload(big_file(tmp_path / "big"), key)
    proxy.fault = lambda *_: None

    assert behind.sweep("old/") == 0
    assert behind.sweep("old/", older_than_seconds=0) == 1
    assert behind.sweep("old/", older_than_seconds=0) == 0
    assert behind.sweep(older_than_seconds=0) == 1
    assert list(behind.list()) == []

"""How the S3 store fails and recovers, on a real server behind a proxy (about a minute)."""

from __future__ import annotations

import hashlib
import itertools
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path

import pytest
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.errors import (
    StorageFullError,
    StorageRefusedError,
    StorageUnavailableError,
    UserError,
)
from pretrain_jobs.storage import AlreadyExistsError, ObjectStore, open_store
from pretrain_jobs.storage.s3 import S3Store
from pretrain_jobs.storage.s3_client import renew_clients
from pretrain_jobs.storage.s3_requests import request_counts
from pretrain_testing.s3 import SMALL_PART_BYTES, S3Server, free_port, with_small_parts
from pretrain_testing.s3_faults import (
    Answer,
    FaultyServer,
    Forward,
    Request,
    error,
    faulty,
    lose_answer,
    on,
    times,
)


@pytest.fixture
def proxy(weed: S3Server, weed_storage: StorageSpec) -> Iterator[FaultyServer]:
    with faulty(weed) as running:
        yield running


@pytest.fixture
def behind(proxy: FaultyServer, weed_storage: StorageSpec) -> S3Store:
    """A store behind the proxy, with small parts."""
    return store_at(proxy.server.endpoint_url, weed_storage)


@pytest.fixture
def direct(weed_storage: StorageSpec) -> ObjectStore:
    """The same store without the proxy."""
    return open_store(weed_storage)


def store_at(endpoint: str, storage: StorageSpec, attempts: int = 4) -> S3Store:
    moved = storage.model_copy(update={"endpoint_url": endpoint})
    return with_small_parts(open_store(moved), attempts=attempts)


def big_file(path: Path, size: int = 2 * SMALL_PART_BYTES + 1) -> Path:
    path.write_bytes(random.Random(1).randbytes(size))
    return path


# Who asks


def test_a_wrong_secret_is_refused_and_never_shown(
    direct: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "an-entirely-wrong-secret")
    renew_clients()

    for ask in (direct.exists, direct.read, direct.delete, lambda key: list(direct.list(key))):
        with pytest.raises(StorageRefusedError) as refused:
            ask("object")
        assert "'tests'" in str(refused.value)
        assert "credentials" in str(refused.value)
        assert "an-entirely-wrong-secret" not in repr(refused.value)
        assert "weed-key" not in repr(refused.value)


def test_a_reader_that_writes_is_told_which_permission_it_lacks(
    direct: ObjectStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    direct.write("object", b"1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "reader")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "reader-secret-0000")
    renew_clients()

    assert direct.read("object") == b"1"
    with pytest.raises(StorageRefusedError, match=r"PutObject .*grant s3:PutObject"):
        direct.write("object", b"2")
    with pytest.raises(StorageRefusedError, match=r"ListObjectsV2 .*grant s3:ListBucket"):
        list(direct.list())


def test_no_credentials_at_all_name_the_variables_to_set(
    direct: ObjectStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    renew_clients()

    with pytest.raises(StorageRefusedError, match="set AWS_ACCESS_KEY_ID"):
        direct.read("object")


def test_a_refusal_is_never_taken_for_a_missing_object(
    behind: S3Store, proxy: FaultyServer
) -> None:
    proxy.fault = on("HEAD", lambda *_: Answer(403))

    with pytest.raises(StorageRefusedError, match="s3:ListBucket"):
        behind.exists("checkpoints/LATEST")


def test_expired_credentials_are_read_anew_once(behind: S3Store, proxy: FaultyServer) -> None:
    proxy.fault = on("PUT", times(1, lambda *_: error(400, "ExpiredToken")))
    behind.write("object", b"1")
    assert behind.read("object") == b"1"

    proxy.fault = on("PUT", lambda *_: error(400, "ExpiredToken"))
    with pytest.raises(StorageUnavailableError, match="expired"):
        behind.write("object", b"2")


def test_a_wrong_clock_is_told_with_its_difference(behind: S3Store, proxy: FaultyServer) -> None:
    served = formatdate(time.time() + 1200, usegmt=True)
    proxy.fault = lambda request, _: (
        Answer(403, {"Date": served})
        if request.method == "HEAD"
        else error(403, "RequestTimeTooSkewed", Date=served)
    )

    for ask in (behind.read, behind.head):
        with pytest.raises(StorageUnavailableError, match=r"clock differs .* by -1(199|200|201) s"):
            ask("object")


# Where it asks


@pytest.mark.parametrize("kind", ["weed", "rclone"], indirect=True)
def test_a_missing_bucket_is_named_and_not_taken_for_an_empty_one(storage: StorageSpec) -> None:
    store = open_store(storage, "s3://no-such-bucket/prefix")

    for ask in (store.exists, store.read, store.head, lambda key: list(store.list(key))):
        with pytest.raises(StorageRefusedError, match="no-such-bucket"):
            ask("object")


@pytest.mark.parametrize("kind", ["rclone"], indirect=True)
def test_a_write_into_a_missing_bucket_is_refused(storage: StorageSpec) -> None:
    store = open_store(storage, "s3://no-such-bucket/prefix")

    with pytest.raises(StorageRefusedError, match="no such bucket; create it"):
        store.write("object", b"1")


def test_a_server_that_is_down_is_unavailable_after_bounded_tries(
    weed_storage: StorageSpec,
) -> None:
    store = store_at(f"http://127.0.0.1:{free_port()}", weed_storage, attempts=2)

    with pytest.raises(StorageUnavailableError, match="cannot be reached"):
        store.read("object")


@pytest.mark.parametrize(
    ("storage", "words"),
    [
        (StorageSpec(uri="s3://b-1/x", endpoint_url="not a url"), "endpoint"),
        (StorageSpec(uri="s3://b-1/x", endpoint_url="http://key:secret@host"), "credentialsSecret"),
    ],
)
def test_an_unusable_endpoint_is_the_users_error(storage: StorageSpec, words: str) -> None:
    with pytest.raises(UserError, match=words) as raised:
        open_store(storage).read("object")
    assert "key:secret" not in str(raised.value)


def test_a_missing_certificate_authority_is_told(
    weed: S3Server, weed_storage: StorageSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", "/nowhere/ca.crt")
    renew_clients()
    store = store_at(weed.endpoint_url.replace("http://", "https://"), weed_storage, attempts=1)

    with pytest.raises(StorageRefusedError, match="AWS_CA_BUNDLE"):
        store.read("object")


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

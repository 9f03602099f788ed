"""Who asks an S3 server, and where it is: what is refused says what to put right (20 s)."""

from __future__ import annotations

import time
from email.utils import formatdate
from pathlib import Path

import pytest
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.errors import (
    StorageRefusedError,
    StorageUnavailableError,
    UserError,
)
from pretrain_jobs.storage import ObjectStore, open_store
from pretrain_jobs.storage.s3 import S3Store
from pretrain_jobs.storage.s3_client import renew_clients
from pretrain_testing.s3 import S3Server, free_port
from pretrain_testing.s3_faults import (
    Answer,
    FaultyServer,
    error,
    on,
    store_at,
    times,
)

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
        with pytest.raises(StorageUnavailableError, match="no-such-bucket"):
            ask("object")


@pytest.mark.parametrize("kind", ["rclone"], indirect=True)
def test_a_write_into_a_missing_bucket_is_refused(storage: StorageSpec) -> None:
    store = open_store(storage, "s3://no-such-bucket/prefix")

    with pytest.raises(StorageUnavailableError, match="no such bucket; create it"):
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

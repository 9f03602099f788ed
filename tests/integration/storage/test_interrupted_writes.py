"""Writers that are killed, or whose disk is full, leave nothing that looks like an object
(about 15 s)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.storage import open_store
from pretrain_jobs.storage.base import SWEEP_AGE_SECONDS

KILLED_WRITER = """
import sys, threading
from dataclasses import replace
from pathlib import Path
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.storage import open_store
from pretrain_jobs.storage.s3 import S3Store

store = open_store(StorageSpec.model_validate_json(sys.argv[1]))
if isinstance(store, S3Store):
    bucket, _, prefix = store.uri.removeprefix("s3://").partition("/")
    options = replace(store.options, part_bytes=5 << 20)
    store = S3Store(bucket=bucket, prefix=prefix, uri=store.uri, options=options)

def stall(size):
    print("a part is written", flush=True)
    threading.Event().wait()

store.upload(Path(sys.argv[2]), "big", progress=stall)
"""

WRITER = """
import sys
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.errors import StorageFullError
from pretrain_jobs.storage import open_store

store = open_store(StorageSpec(uri=sys.argv[1]))
store.write("earlier", b"earlier")
try:
    store.write("later", bytes(4_000_000))
except StorageFullError as error:
    print(error)
print([info.key for info in store.list()])
store.write("small", b"fits again")
print(sorted(path.name for path in store.root.iterdir()))
"""

LIMIT = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))"
IN_A_TMPFS = 'mount -t tmpfs -o size=1m small "$1" && shift && exec "$@"'
PRIVATE_MOUNTS = ["unshare", "--mount"] + (["--map-root-user"] if os.geteuid() else [])


def full_disks() -> list[str]:
    """A limit on file sizes stands for a full disk everywhere; a real one where mounts work."""
    try:
        mounts = subprocess.run([*PRIVATE_MOUNTS, "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return ["limit"]
    return ["limit"] if mounts.returncode else ["limit", "tmpfs"]


@pytest.mark.parametrize("kind", ["file", "weed"], indirect=True)
def test_an_upload_killed_half_way_is_invisible_and_swept(
    storage: StorageSpec, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.write_bytes(bytes(11 << 20))
    store = open_store(storage)
    command = [sys.executable, "-c", KILLED_WRITER, storage.model_dump_json(), str(source)]

    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout
        assert writer.stdout.readline() == "a part is written\n"
        age = SWEEP_AGE_SECONDS if storage.uri.startswith("s3:") else 0
        assert store.sweep(older_than_seconds=age) == 0
        writer.send_signal(signal.SIGKILL)

    assert list(store.list()) == []
    assert not store.exists("big")
    assert store.sweep(older_than_seconds=0) == 1
    assert store.sweep(older_than_seconds=0) == 0


@pytest.mark.parametrize("disk", full_disks())
def test_a_full_disk_is_told_and_leaves_no_temporary_file(disk: str, tmp_path: Path) -> None:
    ended = subprocess.run(writer_on(disk, tmp_path), capture_output=True, text=True, check=False)

    assert ended.stderr == ""
    message, listing, directory = ended.stdout.splitlines()
    assert message.startswith(f"no space while writing {tmp_path}/later: ")
    assert listing == "['earlier']"
    assert directory == "['earlier', 'small']"


def writer_on(disk: str, directory: Path) -> list[str]:
    if disk == "limit":
        return [sys.executable, "-c", f"{LIMIT}\n{WRITER}", directory.as_uri()]
    writer = [sys.executable, "-c", WRITER, directory.as_uri()]
    return [*PRIVATE_MOUNTS, "sh", "-c", IN_A_TMPFS, "sh", str(directory), *writer]

"""Local files appear whole or not at all."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest
from pretrain_jobs.errors import (
    StageError,
    StorageFullError,
    StorageRefusedError,
    StorageUnavailableError,
)
from pretrain_jobs.storage.base import AlreadyExistsError, NotFoundError
from pretrain_jobs.storage.local_files import atomic_file, remove_abandoned, translate


def test_a_file_appears_only_when_its_block_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "new" / "directory" / "file"

    with atomic_file(path) as stream:
        stream.write(b"whole")
        assert not path.exists()

    assert path.read_bytes() == b"whole"
    assert [item.name for item in path.parent.iterdir()] == ["file"]


def test_a_block_that_raises_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    with pytest.raises(ZeroDivisionError), atomic_file(path) as stream:
        stream.write(bytes(1 // len(stream.name[:0])))

    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_existing_file_is_kept_when_only_a_new_one_may_be_made(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"first")

    with pytest.raises(AlreadyExistsError), atomic_file(path, if_absent=True) as stream:
        stream.write(b"second")

    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_new_files_follow_the_umask(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "file") as stream:
        stream.write(b"1")

    (tmp_path / "ordinary").write_bytes(b"1")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


def test_a_file_where_a_directory_must_be_is_refused_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"1")

    with pytest.raises(StorageRefusedError, match="file/below"):  # noqa: SIM117
        with atomic_file(tmp_path / "file" / "below" / "deeper"):
            pass


def test_only_temporary_files_that_are_old_and_not_being_written_are_removed(
    tmp_path: Path,
) -> None:
    old, young = tmp_path / ".pretrain-tmp-old", tmp_path / "deep" / ".pretrain-tmp-young"
    young.parent.mkdir()
    for path in (old, young, tmp_path / "object"):
        path.write_bytes(b"1")
    two_hours_ago = time.time() - 7200
    os.utime(old, (two_hours_ago, two_hours_ago))

    assert remove_abandoned(tmp_path, older_than_seconds=3600) == 1

    assert not old.exists()
    assert young.exists()
    with atomic_file(tmp_path / "file") as stream:
        stream.write(b"alive")
        assert remove_abandoned(tmp_path, older_than_seconds=0) == 1
    assert (tmp_path / "file").read_bytes() == b"alive"
    assert (tmp_path / "object").exists()
    assert not young.exists()


def test_sweeping_a_directory_that_is_not_there_removes_nothing(tmp_path: Path) -> None:
    assert remove_abandoned(tmp_path / "absent", older_than_seconds=0) == 0


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.ENOSPC, StorageFullError),
        (errno.EDQUOT, StorageFullError),
        (errno.EFBIG, StorageFullError),
        (errno.EROFS, StorageRefusedError),
        (errno.EACCES, StorageRefusedError),
        (errno.ENOENT, NotFoundError),
        (errno.EIO, StorageUnavailableError),
        (errno.ESTALE, StorageUnavailableError),
    ],
)
def test_each_error_of_the_system_has_its_cause_and_names_the_path(
    number: int, expected: type[StageError]
) -> None:
    error = translate(OSError(number, os.strerror(number)), Path("/data/file"), "writing")

    assert type(error) is expected
    assert "/data/file" in str(error)
    assert "no space" in str(error) or expected is not StorageFullError

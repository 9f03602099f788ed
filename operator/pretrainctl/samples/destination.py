"""Where sample data goes: a directory of this machine, or a store that pretrain_jobs writes to."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pretrainctl.atomic_file import write_if_different
from pretrainctl.errors import InvalidError


def write_files(files: dict[str, bytes], target: str) -> dict[str, bool]:
    """Write files under a directory or URI; says of each whether it was not there already.

    InvalidError tells why the target cannot be written.
    """
    directory = _directory(target)
    if directory is None:
        return _push(files, target)
    try:
        return {
            str(directory / key): write_if_different(directory / key, content)
            for key, content in files.items()
        }
    except OSError as error:
        raise InvalidError(f"{error.filename} cannot be written: {error.strerror}") from None


def _directory(target: str) -> Path | None:
    if "://" not in target:
        return Path(target).expanduser()
    parts = urlsplit(target)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def _push(files: dict[str, bytes], uri: str) -> dict[str, bool]:
    """Only pretrain_jobs knows other stores, so a process of it copies a directory there."""
    with tempfile.TemporaryDirectory() as temporary:
        write_files(files, temporary)
        command = [sys.executable, "-m", "pretrain_jobs", "push", temporary, uri]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        words = done.stderr.strip().rpartition("\n")[2] or f"exit code {done.returncode}"
        raise InvalidError(f"{uri} cannot be written: {words}")
    written = set(done.stdout.splitlines())
    return {f"{uri.rstrip('/')}/{key}": key in written for key in files}

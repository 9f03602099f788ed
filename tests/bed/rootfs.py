"""The base root file system of the bed's images: a minimal Debian with Python, made once.

Users build the product's images on a slim Python image; this machine reaches Debian's packages
instead.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import sys
import time
from pathlib import Path

from bed.commands import run
from bed.errors import BedError
from bed.locks import exclusive
from bed.mounts import unmount_all
from bed.paths import cache_folder

RELEASE = "bookworm"
INCLUDED = ("ca-certificates", "python3")
_EXCLUDED = (
    "./dev/*",
    "./proc/*",
    "./sys/*",
    "./usr/share/doc/*",
    "./usr/share/locale/*",
    "./usr/share/man/*",
    "./var/cache/apt/*",
    "./var/lib/apt/lists/*",
    "./var/log/*",
)
_MIRROR = re.compile(r"^(?:deb |URIs: )\S*?(https?://\S+/debian)/?\s", re.MULTILINE)
_SOURCES = ("/etc/apt/sources.list", "/etc/apt/sources.list.d")


def base_rootfs() -> Path:
    """A tar file with the root file system; takes some minutes the first time."""
    path = cache_folder() / "rootfs" / f"{RELEASE}-{_key()}.tar"
    path.parent.mkdir(parents=True, exist_ok=True)
    with exclusive(path.parent / ".lock"):
        if not path.exists():
            _make(path)
    return path


def _key() -> str:
    return hashlib.sha256(repr((RELEASE, INCLUDED, _EXCLUDED)).encode()).hexdigest()[:12]


def _make(path: Path) -> None:
    print(f"making the base root file system of {RELEASE} (minutes, once)", file=sys.stderr)
    start = time.monotonic()
    folder = path.parent / "root"
    _remove(folder)
    try:
        packages = f"--include={','.join(INCLUDED)}"
        run("debootstrap", "--variant=minbase", packages, RELEASE, folder, _mirror())
        excluded = [f"--exclude={pattern}" for pattern in _EXCLUDED]
        flags = ["--sort=name", "--numeric-owner", "--mtime=@0", *excluded]
        temporary = path.with_suffix(".new")
        run("tar", *flags, "-C", folder, "-cf", temporary, ".")
        temporary.rename(path)
    finally:
        _remove(folder)
    print(f"made it in {time.monotonic() - start:.0f} s", file=sys.stderr)


def _remove(folder: Path) -> None:
    """debootstrap mounts /proc and /sys there, and leaves them mounted when it is killed."""
    unmount_all(folder)
    if folder.exists():
        shutil.rmtree(folder)


def _mirror() -> str:
    """The mirror of Debian that apt is set up with on this machine."""
    for source in map(Path, _SOURCES):
        for file in sorted(source.iterdir()) if source.is_dir() else [source]:
            found = _MIRROR.search(file.read_text()) if file.is_file() else None
            if found:
                return found[1]
    raise BedError(f"no mirror of Debian in {' or '.join(_SOURCES)}")

"""Images for the nodes: imported once into a store in the cache, from which nodes are made."""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path

from bed.binaries import program
from bed.containerd import PAUSE_IMAGE, ctr, root_of, store_containerd
from bed.errors import BedError
from bed.locks import exclusive
from bed.node_roots import reset_node_root
from bed.oci import ImageArchive, read_archive, write_archive
from bed.paths import cache_folder
from bed.processes import marks_of, part_running
from bed.profile import NODES, Profile
from bed.rootfs import base_rootfs

BASE_IMAGE = "localhost/pretrain-bed/base:bed"

_CLEANED = "localhost/pretrain-bed/cleaned:bed"
"""A name that is made and removed only because removing one collects the garbage at once."""


def store_root() -> Path:
    """The store's containerd root."""
    return cache_folder() / "store" / "root"


def own_archives() -> list[ImageArchive]:
    """The images that the bed itself needs."""
    folder = cache_folder() / "archives"
    folder.mkdir(parents=True, exist_ok=True)
    return [_pause_archive(folder), _base_archive(folder)]


def _pause_archive(folder: Path) -> ImageArchive:
    """What holds a pod's namespaces: one static program."""
    binary = program("pause")
    layer = folder / f"{binary.name}.layer.tar"
    with tarfile.open(layer, "w") as tar:
        tar.addfile(_plain_entry(tar, binary), binary.open("rb"))
    return write_archive(
        folder / f"{binary.name}.tar", name=PAUSE_IMAGE, layer=layer, entrypoint=["/pause"]
    )


def _base_archive(folder: Path) -> ImageArchive:
    """A small Debian with Python, for the bed's own tests."""
    layer = base_rootfs()
    path = folder / f"base-{layer.stem}.tar"
    if not path.exists():
        temporary = path.with_suffix(".new")
        write_archive(temporary, name=BASE_IMAGE, layer=layer)
        temporary.rename(path)
    return read_archive(path)


def store_images(archives: Sequence[ImageArchive]) -> None:
    """Import into the store those that are not in it yet."""
    folder = store_root().parent
    folder.mkdir(parents=True, exist_ok=True)
    with exclusive(_store_lock()):
        held = _listed(_store_list())
        new = [image for image in archives if held.get(image.name, {}).get("key") != image.key]
        if new:
            with part_running(folder, store_containerd(store_root(), folder)):
                for image in new:
                    _import("store", image)
                    held[image.name] = {"key": image.key, "path": str(image.path)}
                _collect_garbage()
            _store_list().write_text(json.dumps(held))


def make_node_root(bed: Profile, node: str) -> None:
    """Give a node that is down the images of the store, and nothing else."""
    with exclusive(_store_lock()):
        reset_node_root(root_of(node), store=store_root(), marks=marks_of(bed))
        shutil.copy(_store_list(), _node_list(bed, node))


def renew_nodes(bed: Profile) -> list[str]:
    """Import into the running nodes what the store has got since; the names of those images."""
    renewed = set()
    for node in NODES:
        held = json.loads(_node_list(bed, node).read_text())
        for name, image in _listed(_store_list()).items():
            if held.get(name) != image:
                _import(node, ImageArchive(name, Path(image["path"]), image["key"]))
                held[name] = image
                renewed.add(name)
        _node_list(bed, node).write_text(json.dumps(held))
    return sorted(renewed)


def _import(name: str, archive: ImageArchive) -> None:
    """Import an image, under whose name there may be an older one.

    That one keeps another name meanwhile: containerd gives the name to the new image first and
    unpacks it then, and in between collects the layers that both have as nobody's.
    """
    start = time.monotonic()
    replaced = f"{archive.name}-replaced"
    if archive.name in _images(name):
        ctr(name, "images", "tag", "--force", archive.name, replaced)
    ctr(name, "images", "import", str(archive.path))
    if archive.name not in (images := _images(name)):
        raise BedError(f"{archive.path} holds no image {archive.name}")
    if replaced in images:
        ctr(name, "images", "remove", replaced)
    seconds = time.monotonic() - start
    print(f"  {archive.name} into {name}: {seconds:.1f} s", file=sys.stderr)


def _images(name: str) -> list[str]:
    return ctr(name, "images", "list", "--quiet").split()


def _collect_garbage() -> None:
    """Drop the layers of images that were replaced, before the store is copied."""
    ctr("store", "images", "tag", "--force", PAUSE_IMAGE, _CLEANED)
    ctr("store", "images", "remove", "--sync", _CLEANED)


def _listed(path: Path) -> dict[str, dict[str, str]]:
    """Name of an image to the key and the path of the archive that it came from."""
    return json.loads(path.read_text()) if path.exists() else {}


def _store_list() -> Path:
    return store_root().with_name("images.json")


def _store_lock() -> Path:
    return store_root().with_name(".lock")


def _node_list(bed: Profile, node: str) -> Path:
    return bed.state / f"images-{node}.json"


def _plain_entry(tar: tarfile.TarFile, binary: Path) -> tarfile.TarInfo:
    """The same bytes on every machine and in every year."""
    entry = tar.gettarinfo(str(binary), arcname="pause")
    entry.mtime = entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry

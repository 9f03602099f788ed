"""The folders in which nodes keep their images: copies of the image store by hard links.

Lower layers of an overlay are never written to, so nodes share their images' files on disk; only
the databases are real copies. A node's folder outlives the bed: the next start takes what the last
one's containers left out of it again, which is quicker than to link all files anew.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from bed.commands import run

_SNAPSHOTTER = "io.containerd.snapshotter.v1.overlayfs"
_SHARED = (f"{_SNAPSHOTTER}/snapshots", "io.containerd.content.v1.content/blobs/sha256")
"""Folders of layers, unpacked and as they came. An entry's name is never given to another one."""

_DATABASES = (f"{_SNAPSHOTTER}/metadata.db", "io.containerd.metadata.v1.bolt/meta.db")


def reset_node_root(root: Path, *, store: Path, marks: Mapping[str, str]) -> None:
    """Make a node's folder what the store is; `marks` go to the processes that do it.

    Which entries are links to the store's is noted beside the folder, and only once they are whole.
    """
    wanted = _entries(store)
    kept = _linked(root) & wanted
    _note(root, kept)
    _remove(root / entry for entry in _entries(root) - kept)
    _remove(path for path in root.glob("*") if not _is_shared(path.name))
    for parent in _SHARED:
        missing = sorted(entry for entry in wanted - kept if entry.startswith(f"{parent}/"))
        _link(missing, store=store, target=root / parent, marks=marks)
    for database in _DATABASES:
        copy = root / database
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.unlink(missing_ok=True)
        shutil.copy2(store / database, copy)
    _note(root, wanted)


def _entries(root: Path) -> set[str]:
    found = (path for parent in _SHARED for path in (root / parent).glob("*"))
    return {str(path.relative_to(root)) for path in found}


def _is_shared(name: str) -> bool:
    return any(parent.startswith(f"{name}/") for parent in (*_SHARED, *_DATABASES))


def _link(entries: list[str], *, store: Path, target: Path, marks: Mapping[str, str]) -> None:
    target.mkdir(parents=True, exist_ok=True)
    if entries:
        run("cp", "-al", *(store / entry for entry in entries), target, environment=marks)


def _remove(paths: Iterable[Path]) -> None:
    found = list(paths)
    if found:
        run("rm", "-rf", "--one-file-system", *found)


def _list_of(root: Path) -> Path:
    return root.with_name(f"{root.name}.json")


def _linked(root: Path) -> set[str]:
    path = _list_of(root)
    return set(json.loads(path.read_text())) if path.exists() and root.is_dir() else set()


def _note(root: Path, entries: set[str]) -> None:
    path = _list_of(root)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_text(json.dumps(sorted(entries)))
    temporary.rename(path)

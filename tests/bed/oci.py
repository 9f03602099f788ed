"""Writes image archives in the OCI layout, without any image builder.

Source of the format: https://github.com/opencontainers/image-spec (image-layout.md, manifest.md,
config.md).
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bed.errors import BedError

_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class ImageArchive:
    """An image ready to be imported."""

    name: str
    """With its registry and tag, such as localhost/pretrain-bed/pause:bed."""
    path: Path
    key: str
    """Names the content: another key means that the image has to be imported again."""


def write_archive(
    path: Path, *, name: str, layer: Path, entrypoint: Sequence[str] = ()
) -> ImageArchive:
    """An archive of one uncompressed layer, a tar file."""
    digest, size = _digest_of(layer)
    config = _encoded(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Entrypoint": list(entrypoint), "Env": ["PATH=/usr/bin:/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
    )
    manifest = _encoded(
        {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "config": _descriptor(_CONFIG, config),
            "layers": [{"mediaType": _LAYER, "digest": f"sha256:{digest}", "size": size}],
        }
    )
    described = _descriptor(_MANIFEST, manifest)
    named = described | {"annotations": {"io.containerd.image.name": name}}
    with tarfile.open(path, "w") as archive:
        _add(archive, "oci-layout", _encoded({"imageLayoutVersion": "1.0.0"}))
        _add(archive, "index.json", _encoded({"schemaVersion": 2, "manifests": [named]}))
        _add(archive, _blob(config), config)
        _add(archive, _blob(manifest), manifest)
        archive.add(layer, f"blobs/sha256/{digest}", recursive=False)
    return ImageArchive(name=name, path=path, key=described["digest"])


def read_archive(path: Path) -> ImageArchive:
    """The archive of one image, as image builders write them; BedError when it is none."""
    with tarfile.open(path) as archive:
        index = archive.extractfile("index.json")
        manifests = json.load(index)["manifests"] if index else []
    if len(manifests) != 1:
        raise BedError(f"{path} holds {len(manifests)} images, not one")
    names = manifests[0].get("annotations", {})
    name = names.get("io.containerd.image.name") or names.get("org.opencontainers.image.ref.name")
    if not name:
        raise BedError(f"{path} does not name its image")
    return ImageArchive(name=name, path=path, key=manifests[0]["digest"])


def _encoded(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


def _descriptor(kind: str, content: bytes) -> dict[str, Any]:
    digest = hashlib.sha256(content).hexdigest()
    return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)}


def _blob(content: bytes) -> str:
    return f"blobs/sha256/{hashlib.sha256(content).hexdigest()}"


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def _digest_of(path: Path) -> tuple[str, int]:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest(), path.stat().st_size

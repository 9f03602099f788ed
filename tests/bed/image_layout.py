"""An image as its builder leaves it in a folder, and the archives that nodes import from it.

Source of the format: https://github.com/opencontainers/image-spec (image-layout.md, manifest.md).
"""

from __future__ import annotations

import io
import json
import os
import tarfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bed.errors import BedError
from bed.oci import ImageArchive


@dataclass(frozen=True)
class Layer:
    """One layer: its digest and the size of its tar file in bytes, uncompressed."""

    digest: str
    size: int


@dataclass(frozen=True)
class ImageLayout:
    """A folder in the OCI image layout that holds one image."""

    folder: Path

    @property
    def manifest_digest(self) -> str:
        """Names the image by its content."""
        return str(self._descriptor()["digest"])

    @property
    def config(self) -> dict[str, Any]:
        """What the image says about itself: user, environment, labels, history."""
        return self._blob(self._manifest()["config"]["digest"])

    @property
    def layers(self) -> tuple[Layer, ...]:
        """From the lowest to the highest."""
        return tuple(Layer(layer["digest"], layer["size"]) for layer in self._manifest()["layers"])

    def blob_path(self, digest: str) -> Path:
        """Where the content of that digest lies."""
        return self.folder / "blobs" / digest.replace(":", "/")

    def drop_other_blobs(self) -> None:
        """Remove what belongs to earlier builds."""
        manifest = self._manifest()
        kept = {self.manifest_digest, manifest["config"]["digest"]}
        kept |= {layer.digest for layer in self.layers}
        names = {self.blob_path(digest).name for digest in kept}
        for blob in (self.folder / "blobs" / "sha256").iterdir():
            if blob.name not in names:
                blob.unlink()

    def write_archive(self, path: Path, *, name: str, without: Collection[str]) -> ImageArchive:
        """An archive to import, less the layers of those digests, which the node has."""
        temporary = path.with_suffix(".new")
        named = self._descriptor() | {"annotations": {"io.containerd.image.name": name}}
        digests = [self.manifest_digest, self._manifest()["config"]["digest"]]
        digests += [layer.digest for layer in self.layers if layer.digest not in without]
        with tarfile.open(temporary, "w") as archive:
            _add(archive, "oci-layout", {"imageLayoutVersion": "1.0.0"})
            _add(archive, "index.json", {"schemaVersion": 2, "manifests": [named]})
            for digest in dict.fromkeys(digests):
                blob = self.blob_path(digest)
                archive.add(blob, str(blob.relative_to(self.folder)), recursive=False)
        temporary.rename(path)
        return ImageArchive(name=name, path=path, key=self.manifest_digest)

    def _descriptor(self) -> dict[str, Any]:
        manifests = _read(self.folder / "index.json")["manifests"]
        if len(manifests) != 1:
            raise BedError(f"{self.folder} holds {len(manifests)} images, not one")
        descriptor: dict[str, Any] = manifests[0]
        return descriptor

    def _manifest(self) -> dict[str, Any]:
        return self._blob(self.manifest_digest)

    def _blob(self, digest: str) -> dict[str, Any]:
        return _read(self.blob_path(digest))


def make_hollow(layout: ImageLayout, *, at_least: int) -> None:
    """Give the disk space of large layers back: their files keep their names and sizes alone.

    The builder writes no layer whose file is there, so that a change of code copies none of them.
    """
    for layer in layout.layers:
        if layer.size >= at_least:
            blob = layout.blob_path(layer.digest)
            hollow = blob.with_suffix(".new")
            hollow.touch()
            os.truncate(hollow, layer.size)
            hollow.rename(blob)


def fill_hollow(layout: ImageLayout, *, but: Collection[str]) -> None:
    """Remove the hollow layers, but those of these digests: the builder writes them again."""
    for blob in (layout.folder / "blobs" / "sha256").glob("*"):
        known = blob.stat()
        if known.st_size and not known.st_blocks and f"sha256:{blob.name}" not in but:
            blob.unlink()


def _read(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text())
    return value


def _add(archive: tarfile.TarFile, name: str, value: dict[str, Any]) -> None:
    content = json.dumps(value, sort_keys=True).encode()
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))

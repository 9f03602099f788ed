"""Builds the product's images for the bed: from the same Containerfiles as everywhere.

An image whose sources are as they were costs reading them. One whose code alone changed gets a
small new layer, and its archive holds no layer that the image store has already.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bed.image_builder import Builder, containerfile
from bed.image_layout import ImageLayout, Layer, fill_hollow, make_hollow
from bed.image_store import store_root
from bed.locks import exclusive
from bed.oci import ImageArchive
from bed.paths import ROOT, cache_folder

ARGUMENTS: dict[str, dict[str, str]] = {
    "operator": {},
    "preprocess": {},
    "train": {"ACCELERATOR": "cpu"},
}
"""The images and their build arguments here: no node of the bed has a GPU."""

_SOURCES = (
    "pyproject.toml",
    "uv.lock",
    "README.md",
    "LICENSE",
    "crds/pretrain_api",
    "crds/samples",
    "jobs/pretrain_jobs",
    "operator",
    "images/steps",
    ".dockerignore",
)
_LARGE_BYTES = 50_000_000
"""Layers from here on are dependencies: worth to be left out of archives."""


@dataclass(frozen=True)
class BuiltImage:
    """An image that was built for the bed."""

    image: str
    layout: ImageLayout
    base_layer: str

    @property
    def own_layers(self) -> tuple[Layer, ...]:
        """Its layers over the base, from the lowest to the highest."""
        return tuple(layer for layer in self.layout.layers if layer.digest != self.base_layer)

    @property
    def own_bytes(self) -> int:
        """What it adds to the base, uncompressed."""
        return sum(layer.size for layer in self.own_layers)


def image_name(image: str) -> str:
    """What the chart's values call an image of the bed."""
    return f"localhost/pretrain-operator/{image}:bed"


def build_images(cache: Path, rootfs: Path) -> list[ImageArchive]:
    """Archives of all the images, built anew where their sources changed."""
    builder = Builder(cache=cache, rootfs=rootfs)
    with exclusive(cache / "images" / ".lock"):
        return [_archive(builder, image) for image in ARGUMENTS]


def built_image(image: str) -> BuiltImage:
    """What `build_images` built last."""
    folder = cache_folder() / "images" / image
    return BuiltImage(image, ImageLayout(folder / "layout"), _noted(folder)["base_layer"])


def _archive(builder: Builder, image: str) -> ImageArchive:
    folder = builder.cache / "images" / image
    sources = _sources_key(builder, image)
    path = folder / "archive.tar"
    stored = _stored_layers()
    noted = _noted(folder)
    if noted.get("sources") == sources and path.exists() and stored.issuperset(noted["left_out"]):
        return ImageArchive(name=image_name(image), path=path, key=noted["key"])
    start = time.monotonic()
    archive = _build(builder, image, folder, stored)
    built = BuiltImage(image, ImageLayout(folder / "layout"), builder.base_layer())
    note = {
        "sources": sources,
        "key": archive.key,
        "base_layer": built.base_layer,
        "left_out": [layer.digest for layer in built.layout.layers if layer.digest in stored],
    }
    _note_path(folder).write_text(json.dumps(note))
    _tell(built, start)
    return archive


def _build(builder: Builder, image: str, folder: Path, stored: set[str]) -> ImageArchive:
    layout = ImageLayout(folder / "layout")
    layout.folder.mkdir(parents=True, exist_ok=True)
    name = image_name(image)
    builder.prepare()
    builder.build(image, name=name, arguments={"VERSION": "bed", **ARGUMENTS[image]})
    fill_hollow(layout, but=stored)
    builder.push(name, layout.folder)
    layout.drop_other_blobs()
    archive = layout.write_archive(folder / "archive.tar", name=name, without=stored)
    make_hollow(layout, at_least=_LARGE_BYTES)
    builder.drop_unused()
    return archive


def stored_blobs() -> Path:
    """The folder of layers, by their digests, that were imported into the image store."""
    return store_root() / "io.containerd.content.v1.content" / "blobs" / "sha256"


def _stored_layers() -> set[str]:
    """Digests of large layers that the image store holds; every node is a copy of the store."""
    found = stored_blobs().iterdir() if stored_blobs().is_dir() else ()
    return {f"sha256:{blob.name}" for blob in found if blob.stat().st_size >= _LARGE_BYTES}


def _sources_key(builder: Builder, image: str) -> str:
    digest = hashlib.sha256(f"{builder.key} {ARGUMENTS[image]}".encode())
    for path in [containerfile(image), *(ROOT / source for source in _SOURCES)]:
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(f"{file.relative_to(ROOT)} ".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()


def _noted(folder: Path) -> dict[str, Any]:
    path = _note_path(folder)
    noted: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return noted


def _note_path(folder: Path) -> Path:
    return folder / "built.json"


def _tell(built: BuiltImage, start: float) -> None:
    megabytes = built.own_bytes / 1e6
    seconds = time.monotonic() - start
    print(
        f"  image {built.image:<22}{seconds:6.1f} s, {megabytes:,.0f} MB over the base",
        file=sys.stderr,
        flush=True,
    )

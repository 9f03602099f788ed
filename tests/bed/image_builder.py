"""Runs buildah and skopeo on the product's Containerfiles, with storage of its own in the cache.

This machine reaches no registry of images: the base image and the one that holds uv are made here,
of the bed's base root file system and of the package that PyPI has.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bed.commands import run
from bed.paths import ROOT

STEPS = ROOT / "images" / "steps"
_BASE = "localhost/pretrain-bed/root:bed"
_UV = "localhost/pretrain-bed/uv:bed"
_UV_VERSION = re.compile(r"^ARG UV_IMAGE=\S+:(\S+)$", re.MULTILINE)
_FOR_UV = re.compile(r"(UV_(DEFAULT_INDEX|INDEX\w*|EXTRA_INDEX_URL|HTTP_TIMEOUT|OFFLINE))")
_MANY_IMAGES = 200
_CACHE_IN_BUILD = "/media"
"""A folder that every Debian has and nothing uses; one of its own would stay in the image."""


def containerfile(image: str) -> Path:
    """What an image is built from."""
    return ROOT / "images" / image / "Containerfile"


def uv_version() -> str:
    """The version of uv that the Containerfiles name."""
    found = _UV_VERSION.search(containerfile("operator").read_text())
    if not found:
        raise ValueError(f"no version of uv in {containerfile('operator')}")
    return found[1]


@dataclass(frozen=True)
class Builder:
    """Buildah's layers for one base and one set of steps; other ones start afresh."""

    cache: Path
    rootfs: Path
    """A tar file whose name changes with its content."""

    @property
    def key(self) -> str:
        """Hash of what buildah's own cache does not see: what a step mounts, and the base."""
        digest = hashlib.sha256(f"{self.rootfs.name} {uv_version()}".encode())
        for step in sorted(STEPS.iterdir()):
            digest.update(step.read_bytes())
        return digest.hexdigest()[:12]

    def prepare(self) -> None:
        """Make the images to build on, and drop the layers of earlier bases and steps."""
        if self._has(_BASE) and self._has(_UV):
            return
        for folder in self.cache.glob("buildah-*"):
            if folder != self._storage:
                shutil.rmtree(folder)
        self._from_scratch(_UV, self._uv_program().parent, "COPY uv /uv")
        self._from_scratch(_BASE, self.rootfs.parent, f"ADD {self.rootfs.name} /")

    def build(self, image: str, *, name: str, arguments: dict[str, str]) -> None:
        """Build one of the product's images under a name."""
        given = {"BASE_IMAGE": _BASE, "UV_IMAGE": _UV, **arguments}
        words = [f"--build-arg={key}={value}" for key, value in given.items()]
        uv_cache = run(ROOT / ".venv/bin/uv", "cache", "dir").strip()
        Path(uv_cache).mkdir(parents=True, exist_ok=True)
        with _secrets() as secrets:
            words += [*secrets, f"--volume={uv_cache}:{_CACHE_IN_BUILD}", "--tag", name]
            self._build(*words, "--file", str(containerfile(image)), str(ROOT))

    def push(self, name: str, folder: Path) -> None:
        """Write an image into a folder in the OCI layout, but the layers that are there.

        Buildah would compress the layers, which takes minutes, and all of them each time.
        """
        (folder / "index.json").unlink(missing_ok=True)  # it would list earlier builds as well
        place = f"containers-storage:[overlay@{self._storage}+{self._run_folder}]{name}"
        flags = ["--quiet", "--dest-oci-accept-uncompressed-layers"]
        run("skopeo", "copy", *flags, place, f"oci:{folder}:{name}")

    def drop_unused(self, *, many: int = _MANY_IMAGES) -> None:
        """Remove the steps of earlier builds once they are many; those of current images stay.

        Buildah leaves a container of each image that a step mounts, and a build that was killed
        leaves its own. An image that a container is of cannot be removed.
        """
        self.buildah("rm", "--all")
        if len(self.buildah("images", "--all", "--quiet").split()) > many:
            self.buildah("rmi", "--prune")

    def base_layer(self) -> str:
        """Digest of the base's only layer."""
        template = "{{index .OCIv1.RootFS.DiffIDs 0}}"
        inspected = self.buildah("inspect", "--type", "image", "--format", template, _BASE)
        return inspected.strip()

    def buildah(self, *arguments: str) -> str:
        """Run buildah on this storage."""
        folders = ["--root", str(self._storage), "--runroot", str(self._run_folder)]
        kind = {"BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "overlay"}
        return run("buildah", *folders, *arguments, environment=kind)

    @property
    def _storage(self) -> Path:
        return self.cache / f"buildah-{self.key}"

    @property
    def _run_folder(self) -> Path:
        return Path(f"/run/pretrain-bed-{self.key}")

    def _build(self, *arguments: str) -> None:
        self.buildah("bud", "--quiet", "--layers", "--pull-never", *arguments)

    def _has(self, name: str) -> bool:
        return bool(self.buildah("images", "--quiet", "--filter", f"reference={name}").strip())

    def _from_scratch(self, name: str, context: Path, instruction: str) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".Containerfile") as file:
            file.write(f"FROM scratch\n{instruction}\n")
            file.flush()
            self._build("--tag", name, "--file", file.name, str(context))

    def _uv_program(self) -> Path:
        folder = self.cache / f"uv-{uv_version()}"
        if not (folder / "bin" / "uv").exists():
            package = f"uv=={uv_version()}"
            run(ROOT / ".venv/bin/uv", "pip", "install", "--quiet", "--target", folder, package)
        return folder / "bin" / "uv"


@contextmanager
def _secrets() -> Iterator[list[str]]:
    """How uv reaches this machine's index: known to the build, kept by no layer."""
    lines = {key: value for key, value in os.environ.items() if _FOR_UV.fullmatch(key)}
    lines["UV_CACHE_DIR"] = _CACHE_IN_BUILD
    with tempfile.NamedTemporaryFile("w") as file:
        file.writelines(f"{key}={value!r}\n" for key, value in lines.items())
        file.flush()
        words = [f"--secret=id=uv,src={file.name}"]
        if certificates := os.environ.get("SSL_CERT_FILE"):
            words.append(f"--secret=id=ca,src={certificates}")
        yield words

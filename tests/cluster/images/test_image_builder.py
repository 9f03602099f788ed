"""What building the images leaves in the cache, which stays on a machine for months."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest
from bed.image_builder import Builder

NAME = "localhost/pretrain-bed/example:bed"
BASE = "localhost/pretrain-bed/root:bed"


@pytest.fixture
def builder(tmp_path: Path) -> Builder:
    """With storage of its own, and a base of one file."""
    rootfs = tmp_path / "root" / "rootfs.tar"
    rootfs.parent.mkdir()
    with tarfile.open(rootfs, "w") as tar:
        tar.add(__file__, "example")
    builder = Builder(cache=tmp_path / "cache", rootfs=rootfs)
    builder.prepare()
    return builder


def build(builder: Builder, folder: Path, content: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "file").write_text(content)
    containerfile = folder / "Containerfile"
    containerfile.write_text(f"FROM {BASE}\nCOPY file /file\n")
    builder.buildah("bud", "--quiet", "--layers", "--pull-never", "--tag", NAME, str(folder))


def test_steps_of_earlier_builds_go_though_builds_were_killed(builder: Builder, tmp_path: Path):
    build(builder, tmp_path / "example", "first")
    builder.buildah("from", "--pull-never", NAME)  # what a build that is killed leaves behind
    build(builder, tmp_path / "example", "second")

    builder.drop_unused(many=0)

    assert not builder.buildah("containers", "--quiet")
    assert len(builder.buildah("images", "--all", "--quiet").split()) == 3


def test_containers_of_killed_builds_go_while_images_are_few(builder: Builder):
    builder.buildah("from", "--pull-never", BASE)

    builder.drop_unused()

    assert not builder.buildah("containers", "--quiet")

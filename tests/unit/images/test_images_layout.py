"""An image in a folder and the archives made from it."""

import hashlib
import json
import tarfile
from pathlib import Path

import pytest
from bed.image_layout import ImageLayout, fill_hollow, make_hollow
from bed.oci import read_archive

LARGE = b"dependencies" * 10_000
SMALL = b"code"


def add_blob(folder: Path, content: bytes) -> dict[str, object]:
    digest = hashlib.sha256(content).hexdigest()
    (folder / "blobs" / "sha256" / digest).write_bytes(content)
    return {"digest": f"sha256:{digest}", "size": len(content)}


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@pytest.fixture
def layout(tmp_path: Path) -> ImageLayout:
    folder = tmp_path / "layout"
    (folder / "blobs" / "sha256").mkdir(parents=True)
    config = add_blob(folder, json.dumps({"config": {"User": "65532:65532"}}).encode())
    layers = [add_blob(folder, LARGE), add_blob(folder, SMALL)]
    manifest = add_blob(folder, json.dumps({"config": config, "layers": layers}).encode())
    (folder / "index.json").write_text(json.dumps({"manifests": [manifest]}))
    return ImageLayout(folder)


def names_in(archive: Path) -> set[str]:
    with tarfile.open(archive) as tar:
        return {f"sha256:{Path(name).name}" for name in tar.getnames() if "blobs" in name}


def test_a_layout_tells_what_its_image_consists_of(layout: ImageLayout):
    assert [layer.size for layer in layout.layers] == [len(LARGE), len(SMALL)]
    assert layout.config["config"]["User"] == "65532:65532"


def test_an_archive_names_its_image_and_has_all_its_layers(layout: ImageLayout, tmp_path: Path):
    written = layout.write_archive(tmp_path / "a.tar", name="localhost/x:bed", without=())
    assert read_archive(written.path) == written
    assert {digest_of(LARGE), digest_of(SMALL)} <= names_in(written.path)


def test_an_archive_lacks_the_layers_that_the_node_has(layout: ImageLayout, tmp_path: Path):
    held = {digest_of(LARGE)}
    written = layout.write_archive(tmp_path / "a.tar", name="localhost/x:bed", without=held)
    assert digest_of(LARGE) not in names_in(written.path)
    assert {digest_of(SMALL), layout.manifest_digest} <= names_in(written.path)
    assert written.key == layout.manifest_digest


def test_a_hollow_layer_keeps_its_size_and_takes_no_space(layout: ImageLayout):
    make_hollow(layout, at_least=len(LARGE))
    hollow = layout.blob_path(digest_of(LARGE)).stat()
    assert (hollow.st_size, hollow.st_blocks) == (len(LARGE), 0)
    assert layout.blob_path(digest_of(SMALL)).read_bytes() == SMALL


def test_hollow_layers_are_written_again_unless_the_node_has_them(layout: ImageLayout):
    make_hollow(layout, at_least=len(LARGE))
    fill_hollow(layout, but={digest_of(LARGE)})
    assert layout.blob_path(digest_of(LARGE)).exists()
    fill_hollow(layout, but=())
    assert not layout.blob_path(digest_of(LARGE)).exists()
    assert layout.blob_path(digest_of(SMALL)).exists()


def test_blobs_of_earlier_builds_go(layout: ImageLayout):
    earlier = str(add_blob(layout.folder, b"earlier code")["digest"])
    layout.drop_other_blobs()
    assert not layout.blob_path(earlier).exists()
    assert layout.blob_path(digest_of(SMALL)).exists()

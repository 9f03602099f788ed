"""Image archives in the OCI layout."""

import hashlib
import json
import tarfile
from pathlib import Path

from bed.oci import read_archive, write_archive


def test_every_descriptor_of_an_archive_finds_its_blob(tmp_path: Path):
    layer = tmp_path / "layer.tar"
    with tarfile.open(layer, "w") as tar:
        tar.add(__file__, arcname="pause")

    image = write_archive(tmp_path / "image.tar", name="localhost/x:bed", layer=layer)

    with tarfile.open(image.path) as archive:
        content = {
            entry.name: archive.extractfile(entry).read()  # type: ignore[union-attr]
            for entry in archive.getmembers()
        }
    manifest = _blob(content, json.loads(content["index.json"])["manifests"][0])
    config = _blob(content, json.loads(manifest)["config"])
    for described in json.loads(manifest)["layers"]:
        assert _blob(content, described) == layer.read_bytes()
        assert json.loads(config)["rootfs"]["diff_ids"] == [described["digest"]]


def test_an_archive_names_its_image_and_its_content(tmp_path: Path):
    layer = tmp_path / "layer.tar"
    with tarfile.open(layer, "w") as tar:
        tar.add(__file__, arcname="pause")

    written = write_archive(tmp_path / "image.tar", name="localhost/x:bed", layer=layer)

    assert read_archive(written.path) == written


def _blob(content: dict[str, bytes], described: dict[str, object]) -> bytes:
    algorithm, digest = str(described["digest"]).split(":")
    blob = content[f"blobs/{algorithm}/{digest}"]
    assert hashlib.sha256(blob).hexdigest() == digest
    assert len(blob) == described["size"]
    return blob

"""Nodes' folders, made of the image store by hard links."""

from pathlib import Path

import pytest
from bed.node_roots import reset_node_root

SNAPSHOTS = "io.containerd.snapshotter.v1.overlayfs/snapshots"
LAYERS = "io.containerd.content.v1.content/blobs/sha256"
DATABASES = (
    "io.containerd.snapshotter.v1.overlayfs/metadata.db",
    "io.containerd.metadata.v1.bolt/meta.db",
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    store = tmp_path / "store"
    write(store / SNAPSHOTS / "1" / "fs" / "python", "a layer's file")
    write(store / LAYERS / "0a1b", "a layer")
    for database in DATABASES:
        write(store / database, "the store's")
    return store


@pytest.fixture
def node(tmp_path: Path, store: Path) -> Path:
    """A node's folder after its first start."""
    node = tmp_path / "nodes" / "node-a"
    reset_node_root(node, store=store, marks={})
    return node


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def content_of(root: Path) -> dict[str, str]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): path.read_text() for path in files}


def test_layers_are_the_stores_files_and_databases_are_copies(store: Path, node: Path):
    assert content_of(node) == content_of(store)
    assert (node / SNAPSHOTS / "1/fs/python").samefile(store / SNAPSHOTS / "1/fs/python")
    assert (node / LAYERS / "0a1b").samefile(store / LAYERS / "0a1b")
    for database in DATABASES:
        assert not (node / database).samefile(store / database)


def test_what_containers_left_is_gone_at_the_next_start(store: Path, node: Path):
    write(node / SNAPSHOTS / "2" / "fs" / "tmp" / "x", "a container's file")
    write(node / LAYERS / "ffff", "a layer that the node alone was given")
    write(node / "io.containerd.runtime.v2.task" / "k8s.io" / "c" / "x", "a container")
    for database in DATABASES:
        write(node / database, "the node's")

    reset_node_root(node, store=store, marks={})

    assert content_of(node) == content_of(store)


def test_a_node_gets_what_the_store_got_under_a_number_that_a_container_had(
    store: Path, node: Path
):
    write(node / SNAPSHOTS / "2" / "fs" / "x", "a container's file")
    write(store / SNAPSHOTS / "2" / "fs" / "torch", "a new layer's file")

    reset_node_root(node, store=store, marks={})

    assert content_of(node) == content_of(store)


def test_layers_that_the_store_dropped_go(store: Path, node: Path):
    (store / LAYERS / "0a1b").unlink()

    reset_node_root(node, store=store, marks={})

    assert content_of(node) == content_of(store)


def test_links_that_an_interrupted_start_made_are_made_again(store: Path, tmp_path: Path):
    node = tmp_path / "nodes" / "node-b"
    write(node / SNAPSHOTS / "1" / "fs" / "pyth", "half a copy")

    reset_node_root(node, store=store, marks={})

    assert content_of(node) == content_of(store)

"""`python -m pretrain_jobs pull` and `push`: artifacts out of storage, data into it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.errors import DataError, UserError
from pretrain_jobs.storage import artifact, open_store
from pretrain_jobs.storage.base import ObjectStore
from pretrain_jobs.storage.pull import main as pull_main
from pretrain_jobs.storage.push import main as push_main


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    """A committed export of two files."""
    store = open_store(StorageSpec(uri=(tmp_path / "store").as_uri()))
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "config.json").write_text("{}")
    (source / "deep" / "weights").write_bytes(b"\0\1\2")
    files = artifact.upload_directory(store, source)
    artifact.commit(store, kind="export", fingerprint="f", files=files, extra={})
    return store


def files_under(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_an_artifact_becomes_a_directory(store: ObjectStore, tmp_path: Path) -> None:
    pull_main([store.uri, str(tmp_path / "out")])
    found = files_under(tmp_path / "out")
    assert found.keys() == {"config.json", "deep/weights", "manifest.json"}
    assert found["deep/weights"] == b"\0\1\2"


def test_a_copy_of_another_artifact_is_replaced_as_a_whole(
    store: ObjectStore, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "manifest.json").write_text("another")
    (out / "old").touch()
    pull_main([store.uri, str(out)])
    assert "old" not in files_under(out)


def test_a_directory_with_other_files_is_left_as_it_is(store: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    with pytest.raises(UserError, match="no artifact's"):
        pull_main([store.uri, str(tmp_path / "mine")])
    assert files_under(tmp_path / "mine") == {"thesis.txt": b"precious"}


def test_a_damaged_file_is_never_handed_over(store: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "store" / "deep" / "weights").write_bytes(b"\0\1\3")
    with pytest.raises(DataError, match="SHA-256"):
        pull_main([store.uri, str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()


def test_what_is_not_committed_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no committed export"):
        pull_main([(tmp_path / "nothing").as_uri(), str(tmp_path / "out")])


def test_single_files_may_be_asked_for(store: ObjectStore, tmp_path: Path) -> None:
    pull_main([store.uri, str(tmp_path / "out"), "--only", "config.json"])
    assert files_under(tmp_path / "out") == {"config.json": b"{}"}
    with pytest.raises(DataError, match=r"has no tea\.txt"):
        pull_main([store.uri, str(tmp_path / "out"), "--only", "tea.txt"])


def test_only_files_that_differ_are_pushed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    (data / "corpus").mkdir(parents=True)
    (data / "corpus" / "a").write_text("one")
    (data / "corpus" / "b").write_text("two")
    target = (tmp_path / "target").as_uri()

    push_main([str(data), target])
    assert capsys.readouterr().out == "corpus/a\ncorpus/b\n"

    (data / "corpus" / "b").write_text("too")
    push_main([str(data), target])
    assert capsys.readouterr().out == "corpus/b\n"
    assert files_under(tmp_path / "target")["corpus/b"] == b"too"


def test_pushing_from_nowhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is no directory"):
        push_main([str(tmp_path / "no"), tmp_path.as_uri()])

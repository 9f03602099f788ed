"""Ledgers of pods that are gone: read all the same, with all that was written to them."""

from __future__ import annotations

import shutil
from pathlib import Path

from bed.cluster import Bed
from bed.profile import profile
from pretrain_testing.soak.watching import Watch

FIRST, SECOND = "generation-000001-rank-00000.jsonl", "generation-000002-rank-00000.jsonl"


def volume_of(state: Path, node: str, uid: str) -> Path:
    """A pod's /tmp where a kubelet of the bed keeps it."""
    volume = state / f"kubelet-{node}" / "pods" / uid / "volumes/kubernetes.io~empty-dir/tmp"
    volume.mkdir(parents=True)
    return volume


def test_ledgers_are_kept_whole_when_their_pods_go(tmp_path: Path) -> None:
    state, ledgers = tmp_path / "bed", tmp_path / "ledgers"
    ledgers.mkdir()
    watch = Watch(Bed(profile("full", state)), "soak", 0.0, ledgers)

    for node, name in (("node-a", FIRST), ("node-b", SECOND)):
        volume = volume_of(state, node, name)
        (volume / "progress.json").write_text("{}")
        with (volume / name).open("a") as ledger:
            ledger.write("1\n")
            ledger.flush()
            watch.keep_ledgers()
            ledger.write("2\n")
        shutil.rmtree(volume)
    watch.copy_ledgers()

    assert {path.name: path.read_text() for path in ledgers.iterdir()} == {
        FIRST: "1\n2\n",
        SECOND: "1\n2\n",
    }

"""A checkpoint of one number of ranks restored by another, without DeepSpeed.

DeepSpeed's own tool for merging flat tensors is the judge.
"""

import shutil
from collections import Counter
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.checkpoint import reshard, snapshot
from pretrain_jobs.checkpoint.failpoints import Failpoints
from pretrain_jobs.checkpoint.generations import claim
from pretrain_jobs.checkpoint.orders import Lineage
from pretrain_jobs.checkpoint.partitions import Partitions
from pretrain_jobs.checkpoint.restore import Restoration, restore
from pretrain_jobs.checkpoint.save import Saver
from pretrain_jobs.errors import CheckpointUnusableError
from pretrain_jobs.storage import ObjectStore, open_store
from pretrain_testing.flat_engine import FlatEngine, numbered
from pretrain_testing.thread_ranks import ThreadRank, run_threads
from pretrain_testing.thread_writers import ThreadWriter
from pretrain_testing.whole_states import whole_state

SIZES = [{"embeddings": 101, "layer": 30}, {"bias": 3, "norm": 7}]


class CountingStore:
    """Counts downloads by key."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.downloads: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def download(self, key: str, path: Path, **options: Any) -> str:
        self.downloads[key] += 1
        return self._store.download(key, path, **options)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    return CountingStore(open_store(StorageSpec(uri=f"file://{tmp_path}/store")))


def save(store: Any, directory: Path, *, stage: int, ranks: int, steps: int) -> None:
    """Save steps 1 to `steps`, each another state."""
    generation = claim(store, attempt="0" * 32, lineage="own")

    def run(rank: ThreadRank) -> None:
        for step in range(1, steps + 1):
            state = numbered(SIZES, seed=step)
            saver = Saver(
                store=store,
                group=rank,
                generation=generation,
                lineage=Lineage("own", zero_stage=stage, versions={}),
                engine=FlatEngine(rank.rank, ranks, stage, SIZES, state, step),
                scratch=directory / "saving",
                failpoints=Failpoints(),
                writer=ThreadWriter(store),
            )
            saver.begin(step, trainer={"step": step}, rank_state={})
            assert saver.finish().status
            saver.close(tidily=True)

    run_threads(run, ranks)


def restored(
    store: Any, directory: Path, *, stage: int, ranks: int, nodes: int = 1
) -> tuple[list[Restoration], Path]:
    """Restore on ranks spread over nodes; what each was told, and a directory with their states."""
    after = directory / "after"

    def run(rank: ThreadRank) -> Restoration:
        engine = FlatEngine(rank.rank, ranks, stage, SIZES)
        scratch = directory / f"node-{rank.rank * nodes // ranks}"
        restoration = restore(store, rank, engine, lineage="own", scratch=scratch)
        for name, content in snapshot.capture(engine).items():
            after.mkdir(exist_ok=True)
            torch.save(content, after / name)
        return restoration

    return run_threads(run, ranks), after


@pytest.mark.parametrize(
    ("stage", "before", "after"),
    [(1, 1, 3), (1, 3, 2), (1, 4, 1), (2, 2, 5), (3, 1, 3), (3, 3, 2), (3, 4, 1), (3, 2, 5)],
)
def test_every_weight_and_moment_comes_back_to_the_last_bit(
    store: Any, tmp_path: Path, stage: int, before: int, after: int
) -> None:
    save(store, tmp_path, stage=stage, ranks=before, steps=1)

    restorations, directory = restored(store, tmp_path, stage=stage, ranks=after)

    state = whole_state(directory, stage=stage)
    saved = numbered(SIZES, seed=1)
    for kind, tensors in saved.items():
        for name, tensor in tensors.items():
            assert torch.equal(state.tensors[kind][name], tensor)
    assert set(state.steps) == {1.0}
    assert [group["weight_decay"] for group in state.groups] == [0.0, 0.1]
    for restoration in restorations:
        assert restoration.restored is not None
        assert restoration.restored.trainer == {"step": 1}
        assert restoration.restored.rank_state is None
    assert not list(tmp_path.glob("node-0/restore/*"))


def test_tensors_that_stage_3_cuts_otherwise_on_fewer_ranks_come_together_by_name(
    tmp_path: Path,
) -> None:
    state = numbered(SIZES)
    for rank in range(4):
        engine = FlatEngine(rank, 4, 3, SIZES, state, 1)
        torch.save({"optimizer_state_dict": engine.state_dict()}, tmp_path / f"{rank}.pt")
    saved = reshard.Saved(
        {rank: tmp_path / f"{rank}.pt" for rank in range(4)},
        Partitions(SIZES, stage=3, world_size=4),
    )
    cut = [{"embeddings": 101}, {"layer": 30}, SIZES[1]]

    for rank in range(2):
        engine = FlatEngine(rank, 2, 3, cut, parameter_groups=[[0, 1], [2]])
        own = reshard.reshard(engine, saved, Partitions(cut, stage=3, world_size=2), rank)

        expected = FlatEngine(rank, 2, 3, cut, state, 1, parameter_groups=[[0, 1], [2]])
        assert not list(reshard.differences(own, expected.state_dict()))


def test_a_node_downloads_each_file_once_and_only_what_its_ranks_need(
    store: Any, tmp_path: Path
) -> None:
    save(store, tmp_path, stage=1, ranks=4, steps=1)

    restored(store, tmp_path, stage=1, ranks=6, nodes=2)

    files = Counter(key.split("/", 2)[2] for key in store.downloads.elements())
    states = "zero_pp_rank_{0}_mp_rank_00_optim_states.pt"
    assert files == {
        "rank-00000/mp_rank_00_model_states.pt": 2,
        "rank-00000/trainer.json": 2,
        **{f"rank-0000{rank}/{states.format(rank)}": 1 for rank in (0, 2, 3)},
        f"rank-00001/{states.format(1)}": 2,
    }


def test_the_doubt_of_one_rank_makes_all_fall_back(store: Any, tmp_path: Path) -> None:
    save(store, tmp_path, stage=3, ranks=4, steps=2)
    (damaged,) = (tmp_path / "store").glob("step-000000002/*/rank-00003/*optim_states.pt")
    damaged.write_bytes(damaged.read_bytes()[:-1])

    restorations, _ = restored(store, tmp_path, stage=3, ranks=2, nodes=2)

    for restoration in restorations:
        assert restoration.restored is not None
        assert restoration.restored.commit.step == 1
        (warning,) = restoration.warnings
        assert "step 2 (generation 1) is not used: rank 1: rank-00003/" in warning


def test_deleting_a_doubted_checkpoint_leaves_alone_what_others_fetch_meanwhile(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(store, tmp_path, stage=1, ranks=2, steps=2)
    (damaged,) = (tmp_path / "store").glob("step-000000002/*/rank-00001/*optim_states.pt")
    damaged.unlink()
    doubted, fetched_by_rank_1 = Event(), Event()

    class Telling(CountingStore):
        """Tells what rank 1 has fetched: nothing of step 2, its own file of step 1."""

        def download(self, key: str, path: Path, **options: Any) -> str:
            if key == own_key:
                doubted.set()
            sha256 = super().download(key, path, **options)
            if key.startswith("step-000000001/") and key.endswith(damaged.name):
                fetched_by_rank_1.set()
            return sha256

    def late(path: Path, *, ignore_errors: bool) -> None:
        assert not doubted.is_set() or fetched_by_rank_1.wait(60)
        remove(path, ignore_errors=ignore_errors)

    own_key = damaged.relative_to(tmp_path / "store").as_posix()
    remove = shutil.rmtree
    monkeypatch.setattr("pretrain_jobs.checkpoint.fetch.shutil.rmtree", late)

    restorations, directory = restored(Telling(store), tmp_path, stage=1, ranks=2)

    assert [told.restored is not None and told.restored.commit.step for told in restorations] == [
        1,
        1,
    ]
    assert whole_state(directory, stage=1).steps == [1.0] * 4


def test_flat_tensors_of_another_length_are_not_guessed_at(store: Any, tmp_path: Path) -> None:
    engine = FlatEngine(0, 1, 1, SIZES, numbered(SIZES), 1)
    state = engine.state_dict()
    state["single_partition_of_fp32_groups"][0] = torch.zeros(130)
    torch.save({"optimizer_state_dict": state}, tmp_path / "state.pt")
    layout = Partitions(SIZES, stage=1, world_size=1)
    saved = reshard.Saved({0: tmp_path / "state.pt"}, layout)

    with pytest.raises(CheckpointUnusableError, match="has 130 elements where at least 131 are"):
        reshard.reshard(engine, saved, layout, 0)


def test_parameters_that_are_not_the_models_are_named(tmp_path: Path) -> None:
    engine = FlatEngine(0, 1, 1, SIZES, numbered(SIZES), 1)
    torch.save({"optimizer_state_dict": engine.state_dict()}, tmp_path / "state.pt")
    saved = reshard.Saved({0: tmp_path / "state.pt"}, Partitions(SIZES, stage=1, world_size=1))
    other = Partitions([SIZES[0], {"bias": 3, "scale": 7}], stage=1, world_size=1)

    with pytest.raises(CheckpointUnusableError, match="they differ in norm, scale"):
        reshard.reshard(engine, saved, other, 0)


def share_the_step(base: dict[str, Any]) -> None:
    base["state"][1]["step"] = base["state"][0]["step"]


def take_the_first_groups_settings(base: dict[str, Any]) -> None:
    base["param_groups"][1] |= {"weight_decay": base["param_groups"][0]["weight_decay"]}


def lose_a_moment(base: dict[str, Any]) -> None:
    base["state"][1]["exp_avg_sq"] = torch.zeros_like(base["state"][1]["exp_avg_sq"])


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (share_the_step, "groups share a step"),
        (take_the_first_groups_settings, "hyperparameters"),
        (lose_a_moment, "exp_avg_sq of parameter 1"),
    ],
)
@pytest.mark.parametrize("stage", [1, 3])
def test_what_deepspeed_does_not_take_over_is_noticed(
    tmp_path: Path, stage: int, fault: Any, told: str
) -> None:
    engine = FlatEngine(0, 1, stage, SIZES, numbered(SIZES), 1)
    given, taken = engine.state_dict(), engine.state_dict()
    fault(taken.get("base_optimizer_state") or taken["optimizer_state_dict"])
    engine.optimizer = SimpleNamespace(state_dict=lambda: taken)

    with pytest.raises(CheckpointUnusableError, match=f"did not take over .*: {told}"):
        reshard.load(engine, model={}, state=given, world_size=1, directory=tmp_path / "load")

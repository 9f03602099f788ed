"""The loader: what each rank gets at each step, from any cursor, and how it fails."""

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretrain_api.spec.objective import ClmSpec, MlmSpec, ObjectiveSpec
from pretrain_api.spec.preprocess import PackingSpec
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.dataset.manifest import Split, load_dataset_manifest
from pretrain_jobs.dataset.order import Cursor
from pretrain_jobs.errors import CheckpointUnusableError, DataError, UserError
from pretrain_jobs.objectives.batch import FILLER
from pretrain_jobs.objectives.select import Objective, build_objective
from pretrain_jobs.storage import open_store
from pretrain_jobs.tokenizer.special import SpecialTokens
from pretrain_jobs.train.data import SampleLoader, Share, Step, steps_for_epochs
from pretrain_testing.token_datasets import commit_token_dataset

BERT = SpecialTokens(
    length=100_000, pad=0, unk=1, cls=2, sep=3, mask=4, special=frozenset(range(5))
)
GPT = SpecialTokens(length=100_000, end_of_document=0, eos=0, special=frozenset({0}))
TRAIN = [[[12, 9], [30], [5]], [[16] * 9], [[4]] * 20, [[11, 13], [50]]]
LENGTH = 16


def masked() -> Objective:
    return build_objective(
        ObjectiveSpec(mlm=MlmSpec()), PackingSpec(), tokens=BERT, sequence_length=LENGTH
    )


def causal() -> Objective:
    return build_objective(
        ObjectiveSpec(clm=ClmSpec()), PackingSpec(), tokens=GPT, sequence_length=LENGTH
    )


def open_loader(
    directory: Path, *, objective: Objective | None = None, split: Split = "train", seed: int = 7
) -> SampleLoader:
    store, manifest = commit_token_dataset(
        directory, train=TRAIN, validation=[[[10] * 10], [[9, 5]]]
    )
    return SampleLoader.open(
        store=store,
        manifest=manifest,
        split=split,
        objective=objective or masked(),
        seed=seed,
        cache=directory / "cache",
    )


@pytest.fixture(scope="module")
def loader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SampleLoader]:
    with open_loader(tmp_path_factory.mktemp("training")) as opened:
        yield opened


@pytest.fixture(scope="module")
def validation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SampleLoader]:
    with open_loader(tmp_path_factory.mktemp("validation"), split="validation") as opened:
        yield opened


def take(
    loader: SampleLoader, share: Share, count: int, cursor: Cursor | None = None
) -> list[Step]:
    return list(islice(loader.steps(cursor or loader.start(), share), count))


def alone(global_batch: int = 8, micro_batch: int = 4) -> Share:
    return Share(rank=0, world_size=1, global_batch=global_batch, micro_batch=micro_batch)


def content(steps: list[Step]) -> list[list[list[int]]]:
    return [
        np.concatenate([np.stack([b.input_ids, b.labels], 1) for b in step.batches]).tolist()
        for step in steps
    ]


def test_a_step_has_its_micro_batches_and_the_cursor_after_it(loader):
    steps = take(loader, alone(), 3)

    assert [len(step.batches) for step in steps] == [2, 2, 2]
    assert {batch.input_ids.shape for step in steps for batch in step.batches} == {(4, LENGTH)}
    assert [step.cursor.consumed for step in steps] == [8, 16, 24]
    assert [i for step in steps for b in step.batches for i in b.sample_ids] == [
        i for step in steps for i in step.sample_ids
    ]


def test_each_epoch_has_every_sample_once_and_wraps_without_a_gap(loader):
    samples = loader.samples_per_epoch

    ids = np.concatenate([s.sample_ids for s in take(loader, alone(5, 5), 2 * samples)])

    for epoch in range(10):
        assert sorted(ids[epoch * samples : (epoch + 1) * samples]) == list(range(samples))


@pytest.mark.parametrize(("world", "micro"), [(2, 4), (4, 2), (4, 1), (8, 1)])
def test_ranks_together_get_what_one_rank_gets(loader, world, micro):
    whole = content(take(loader, alone(), 6))

    shares = [Share(rank, world, 8, micro) for rank in range(world)]
    ranks = [content(take(loader, share, 6)) for share in shares]

    assert [list(chain(*of_step)) for of_step in zip(*ranks, strict=True)] == whole


@pytest.mark.parametrize("objective", [masked, causal])
def test_resuming_at_any_step_continues_as_if_never_interrupted(tmp_path, objective):
    with open_loader(tmp_path, objective=objective()) as loader:
        straight = take(loader, alone(), 12)

        for step in range(11):
            stored = straight[step].cursor.to_json()
            resumed = take(loader, alone(), 1, Cursor.from_json(stored))
            assert content(resumed) == content(straight[step + 1 : step + 2])
            assert resumed[0].cursor == straight[step + 1].cursor


def test_a_run_resumed_by_another_number_of_ranks_continues_the_same_order(loader):
    whole = take(loader, alone(), 6)

    resumed = [take(loader, Share(rank, 4, 8, 2), 3, whole[2].cursor) for rank in range(4)]

    assert [
        list(chain(*(step.sample_ids for step in of_step)))
        for of_step in zip(*resumed, strict=True)
    ] == [step.sample_ids.tolist() for step in whole[3:]]


def test_samples_that_cross_shards_are_read_from_both(loader):
    steps = take(loader, alone(8, 8), -(-loader.samples_per_epoch // 8))

    inputs = np.concatenate([b.input_ids for s in steps for b in s.batches])
    labels = np.concatenate([b.labels for s in steps for b in s.batches])
    original = np.where(labels == -100, inputs, labels)
    tokens = sum(sum(document) for shard in TRAIN for document in shard)
    assert set(original[original >= 100]) == set(range(100, 100 + tokens))


def test_masks_change_from_epoch_to_epoch(loader):
    steps = take(loader, alone(1, 1), 2 * loader.samples_per_epoch)

    labels: dict[int, list[list[int]]] = {}
    for step in steps:
        labels.setdefault(int(step.sample_ids[0]), []).append(step.batches[0].labels.tolist())

    assert all(len(pair) == 2 for pair in labels.values())
    assert sum(first != second for first, second in labels.values()) > len(labels) * 0.8


@pytest.mark.parametrize(
    ("part", "value"), [("seed", 8), ("dataset", "f" * 16), ("samplesPerEpoch", 1000)]
)
def test_a_cursor_of_other_data_is_refused(loader, part, value):
    stored = loader.start().to_json() | {part: value}

    with pytest.raises(CheckpointUnusableError, match="cursor"):
        loader.steps(Cursor.from_json(stored), alone())


@given(samples=st.integers(1, 40), world=st.integers(1, 5), micro=st.integers(1, 6))
def test_validation_is_the_same_for_every_number_of_ranks(validation, samples, world, micro):
    batches = [
        list(validation.fixed_batches(samples, rank=rank, world_size=world, micro_batch=micro))
        for rank in range(world)
    ]

    one = list(validation.fixed_batches(samples, rank=0, world_size=1, micro_batch=micro))

    assert len({len(of_rank) for of_rank in batches}) == 1
    assert {b.input_ids.shape for of_rank in batches for b in of_rank} == {(micro, LENGTH)}
    real = [b for turn in zip(*batches, strict=True) for b in turn if (b.sample_ids >= 0).any()]
    assert [b.input_ids.tolist() for b in real] == [b.input_ids.tolist() for b in one]
    assert [b.labels.tolist() for b in real] == [b.labels.tolist() for b in one]
    ids = np.concatenate([b.sample_ids for b in real])
    expected = min(samples, validation.samples_per_epoch)
    assert ids[ids != FILLER].tolist() == list(range(expected))
    fillers = [b for of_rank in batches for b in of_rank if not (b.sample_ids >= 0).any()]
    assert all((b.loss_tokens, b.real_tokens) == (0, 0) for b in fillers)


def test_an_empty_validation_split_yields_nothing_on_every_rank(tmp_path):
    store, manifest = commit_token_dataset(tmp_path, train=TRAIN)

    with SampleLoader.open(
        store=store,
        manifest=manifest,
        split="validation",
        objective=masked(),
        seed=7,
        cache=tmp_path / "cache",
    ) as empty:
        assert empty.samples_per_epoch == 0
        assert list(empty.fixed_batches(10, rank=1, world_size=2, micro_batch=4)) == []


def test_a_training_split_too_short_for_one_sample_is_refused(tmp_path):
    store, manifest = commit_token_dataset(tmp_path, train=[[[9]]])

    with pytest.raises(DataError, match="9 tokens, too few"):
        SampleLoader.open(
            store=store,
            manifest=manifest,
            split="train",
            objective=causal(),
            seed=7,
            cache=tmp_path / "cache",
        )


def test_a_shard_that_is_not_what_the_manifest_says_is_refused(tmp_path):
    store, manifest = commit_token_dataset(tmp_path, train=TRAIN)
    damaged = bytearray(store.read(manifest.shards("train")[1].path))
    damaged[len(damaged) // 2] ^= 1
    store.write(manifest.shards("train")[1].path, bytes(damaged))

    with pytest.raises(DataError, match=r"train-00000-001\.h5 .* SHA-256"):
        SampleLoader.open(
            store=store,
            manifest=manifest,
            split="train",
            objective=masked(),
            seed=7,
            cache=tmp_path / "cache",
        )


def test_a_damaged_local_copy_is_downloaded_anew(tmp_path):
    with open_loader(tmp_path) as first:
        expected = content(take(first, alone(), 2))
    copies = sorted((tmp_path / "cache").rglob("*.h5"))
    copies[0].write_bytes(b"cut")

    store = open_store(StorageSpec(uri=f"file://{tmp_path}/store"))
    manifest = load_dataset_manifest(store)
    assert manifest is not None
    with SampleLoader.open(
        store=store,
        manifest=manifest,
        split="train",
        objective=masked(),
        seed=7,
        cache=tmp_path / "cache",
    ) as again:
        assert content(take(again, alone(), 2)) == expected


def test_a_batch_that_the_ranks_cannot_divide_is_refused_with_what_would_do():
    with pytest.raises(UserError, match="multiple of 12"):
        Share(rank=0, world_size=4, global_batch=32, micro_batch=3)


@pytest.mark.parametrize(
    ("samples", "batch", "epochs", "steps"), [(10, 4, 2.0, 5), (10, 4, 0.1, 1), (5, 8, 1.0, 1)]
)
def test_epochs_are_rounded_up_to_whole_steps(samples, batch, epochs, steps):
    assert steps_for_epochs(samples, batch, epochs) == steps

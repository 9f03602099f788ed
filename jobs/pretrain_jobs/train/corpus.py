"""The dataset as training reads it: its tokenizer, the objective, and a loader for each split."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pretrain_api.stages import TrainStageConfig

from pretrain_jobs.dataset.manifest import DatasetManifest, Split, load_dataset_manifest
from pretrain_jobs.errors import DataError
from pretrain_jobs.objectives.select import Objective, build_objective
from pretrain_jobs.storage import ObjectStore, open_store
from pretrain_jobs.tokenizer.special import SpecialTokens, load_special_tokens
from pretrain_jobs.train.data import SampleLoader

TOKENIZER = "tokenizer/"
"""Where a dataset keeps a copy of its tokenizer."""


@dataclass(frozen=True)
class Corpus:
    """An open dataset. `tokenizer` is a local directory; loaders close with the corpus."""

    tokens: SpecialTokens
    tokenizer: Path
    train: SampleLoader
    validation: SampleLoader
    sequence_length: int
    isolated: bool


@contextmanager
def open_corpus(config: TrainStageConfig, scratch: Path) -> Iterator[Corpus]:
    """Fetch and verify what training needs of the dataset, under a directory shared by a node.

    DataError when there is no committed dataset, or it is damaged or too small.
    """
    store = open_store(config.storage, config.dataset_uri)
    manifest = load_dataset_manifest(store, fingerprint=config.dataset_fingerprint)
    length = config.preprocess.sequence_length
    if manifest is None or length is None:
        raise DataError(f"the dataset under {config.dataset_uri} went away, or has no length")
    tokenizer = _fetch_tokenizer(store, scratch / "tokenizer")
    tokens = load_special_tokens(tokenizer, end_of_document=config.end_of_document)
    objective = build_objective(
        config.objective, config.preprocess.packing, tokens=tokens, sequence_length=length
    )
    with (
        _loader(store, manifest, objective, config, scratch, split="train") as train,
        _loader(store, manifest, objective, config, scratch, split="validation") as validation,
    ):
        yield Corpus(tokens, tokenizer, train, validation, length, objective.isolated)


def _loader(
    store: ObjectStore,
    manifest: DatasetManifest,
    objective: Objective,
    config: TrainStageConfig,
    scratch: Path,
    *,
    split: Split,
) -> SampleLoader:
    return SampleLoader.open(
        store=store,
        manifest=manifest,
        split=split,
        objective=objective,
        seed=config.training.seed,
        cache=scratch / "data",
    )


def _fetch_tokenizer(store: ObjectStore, directory: Path) -> Path:
    for info in store.list(TOKENIZER):
        store.download(info.key, directory / info.key.removeprefix(TOKENIZER))
    return directory

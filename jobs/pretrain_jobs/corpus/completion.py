"""Putting a dataset together once all its slices are there."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pretrain_api.spec.corpus import ValidationSpec
from pretrain_api.stages import PreprocessStageConfig

from pretrain_jobs.corpus.slice_manifest import SliceManifest, load_slice, slice_key
from pretrain_jobs.corpus.slice_output import too_many
from pretrain_jobs.corpus.slices import SlicePlan
from pretrain_jobs.corpus.tokenizer_input import PreparedTokenizer
from pretrain_jobs.dataset.manifest import KIND, SPLITS, DatasetManifest, load_dataset_manifest
from pretrain_jobs.dataset.statistics import CorpusStatistics, total
from pretrain_jobs.errors import DataError, StageError
from pretrain_jobs.storage import ObjectStore, artifact, open_store
from pretrain_jobs.storage.artifact import FileEntry

_log = logging.getLogger(__name__)


def complete_dataset(
    config: PreprocessStageConfig, plan: SlicePlan, tokenizer: PreparedTokenizer
) -> DatasetManifest | None:
    """Write the dataset's manifest if every slice has its own; None while one is missing.

    Raises DataError when all slices together hold no document or too many rejects, and when
    nothing is left to train on or the sources held out for validation give nothing.
    """
    store = open_store(config.storage, config.dataset_uri)
    fingerprint = config.dataset_fingerprint
    if artifact.is_committed(store, kind=KIND, fingerprint=fingerprint):
        return load_dataset_manifest(store, fingerprint=fingerprint)
    slices = _load_slices(store, plan, fingerprint)
    if slices is None:
        return None
    statistics = total(part.statistics for part in slices)
    _check(statistics, config, plan)
    manifest = DatasetManifest(
        fingerprint=fingerprint,
        tokenizer_sha256=tokenizer.sha256,
        dtype=tokenizer.vocabulary.dtype,
        vocab_size=tokenizer.length,
        splits={
            split: tuple(shard for part in slices for shard in part.shards.get(split, ()))
            for split in SPLITS
        },
        statistics=statistics,
    )
    _check_splits(manifest, config.corpus.validation)
    files = [file for part in slices for file in part.files()]
    files += _copy_tokenizer(store, tokenizer)
    artifact.commit(store, kind=KIND, fingerprint=fingerprint, files=files, extra=manifest.extra())
    _log.info("the dataset has %d documents, %d tokens", statistics.documents, statistics.tokens)
    _sweep(store)
    return manifest


def split_warnings(manifest: DatasetManifest, config: PreprocessStageConfig) -> list[str]:
    """What a user should know of how the documents were split: why nothing will be validated."""
    fraction = config.corpus.validation.fraction
    held_out = manifest.documents("validation")
    if fraction and not held_out:
        found = f"(fraction {fraction}) holds out none of {manifest.documents('train')} documents"
    elif held_out and _is_too_short(manifest, config):
        found = (
            f"holds out {manifest.tokens('validation')} tokens, too few for one block of "
            f"{config.preprocess.sequence_length}"
        )
    else:
        return []
    return [
        f"corpus.validation {found}, so there will be no validation loss: raise its fraction, or "
        "give it more text under sources"
    ]


def _is_too_short(manifest: DatasetManifest, config: PreprocessStageConfig) -> bool:
    """Whether the held-out stream, an end after each document, has no whole block with labels."""
    if config.objective.clm is None or config.preprocess.packing.strategy not in {None, "blocks"}:
        return False
    stream = manifest.tokens("validation") + manifest.documents("validation")
    return stream <= (config.preprocess.sequence_length or 0)


def _sweep(store: ObjectStore) -> None:
    """Remove what killed attempts left half-written; a courtesy, so a refusal is only told."""
    try:
        store.sweep()
    except StageError as error:
        _log.warning("leftovers of killed attempts stay: %s", error)


def _load_slices(
    store: ObjectStore, plan: SlicePlan, fingerprint: str
) -> Sequence[SliceManifest] | None:
    """The manifests of all slices, None while one is missing."""
    there = {info.key for info in store.list("slices/")}
    if not there.issuperset(slice_key(part.index) for part in plan.slices):
        return None
    slices = [load_slice(store, part.index, fingerprint) for part in plan.slices]
    found = [part for part in slices if part is not None]
    return found if len(found) == len(slices) else None


def _check(statistics: CorpusStatistics, config: PreprocessStageConfig, plan: SlicePlan) -> None:
    refused = sum(statistics.rejects.values())
    if refused > config.corpus.max_rejects:
        where = f"; see {config.dataset_uri}/rejects/"
        raise DataError(too_many(statistics.rejects, config.corpus.max_rejects, where))
    if not statistics.documents:
        removed = {**statistics.removed, **statistics.rejects}
        causes = ", ".join(f"{count} {cause}" for cause, count in removed.items() if count)
        raise DataError(
            f"the corpus has no document with text in {len(plan.files)} files "
            f"({causes or 'no records at all'}): check corpus.sources, their format and textField"
        )


def _check_splits(manifest: DatasetManifest, validation: ValidationSpec) -> None:
    """Refuse a split that was asked for and is empty."""
    held_out = manifest.documents("validation")
    if not manifest.documents("train"):
        raise DataError(
            f"the training split is empty: all {held_out} documents with text are held out for "
            "validation: add documents to corpus.sources or lower corpus.validation.fraction"
        )
    if validation.sources and not held_out:
        raise DataError(
            "the validation split is empty: corpus.validation.sources have no document with text: "
            "check their format and textField, or leave them out"
        )


def _copy_tokenizer(store: ObjectStore, tokenizer: PreparedTokenizer) -> list[FileEntry]:
    """Upload the tokenizer's files under tokenizer/."""
    directory = tokenizer.directory
    return [
        artifact.upload_file(store, path, key=f"tokenizer/{path.relative_to(directory).as_posix()}")
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    ]

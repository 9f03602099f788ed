"""The preprocessing stage: one slice of the corpus into shards, and at the end the dataset.

One process prepares the slice of its index. Whichever process finds the manifests of all slices
writes the dataset's, so no process waits for another, and running any of them again, at any
time, is harmless. Nothing that is written depends on how many run at once.
"""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path

from pretrain_api.reports import Artifact, StageResult
from pretrain_api.stages import PreprocessStageConfig

from pretrain_jobs.corpus.cleaning import check_supported
from pretrain_jobs.corpus.completion import complete_dataset, split_warnings
from pretrain_jobs.corpus.slice_manifest import SliceManifest, is_sound, load_slice
from pretrain_jobs.corpus.slice_run import prepare_slice
from pretrain_jobs.corpus.slices import PLAN_KEY, Slice, SlicePlan, decode_plan
from pretrain_jobs.corpus.tokenizer_input import fetch_prepared_tokenizer
from pretrain_jobs.dataset.manifest import DatasetManifest
from pretrain_jobs.errors import UserError
from pretrain_jobs.process import INDEX_ENV, load_config
from pretrain_jobs.storage import open_store

_log = logging.getLogger(__name__)


def main(config_path: Path) -> StageResult:
    """Prepare the slice of $JOB_COMPLETION_INDEX, unless it is there and sound.

    Raises UserError for an index or setting that cannot be, DataError for input that cannot be
    used, and the storage's errors.
    """
    config = load_config(PreprocessStageConfig, config_path)
    check_supported(config.corpus.cleaning)
    store = open_store(config.storage, config.dataset_uri)
    plan = decode_plan(store.read(PLAN_KEY))
    part = _slice_of(plan, os.environ.get(INDEX_ENV) or "0")
    with tempfile.TemporaryDirectory(prefix="pretrain-preprocess-") as directory:
        local = Path(directory)
        tokenizer = fetch_prepared_tokenizer(config, local / "tokenizer")
        done = load_slice(store, part.index, config.dataset_fingerprint)
        if done is not None and is_sound(store, done.files()):
            _log.info("slice %d is prepared already", part.index)
        else:
            done = prepare_slice(config, plan, part, tokenizer=tokenizer, directory=local)
        dataset = complete_dataset(config, plan, tokenizer)
    return _result(config, done, dataset)


def _slice_of(plan: SlicePlan, index: str) -> Slice:
    if not index.isdecimal() or int(index) >= len(plan.slices):
        raise UserError(
            f"{INDEX_ENV} is {index!r} and the plan has {len(plan.slices)} slices, from 0: "
            "run one index for each slice"
        )
    return plan.slices[int(index)]


def _result(
    config: PreprocessStageConfig, done: SliceManifest, dataset: DatasetManifest | None
) -> StageResult:
    statistics = done.statistics
    artifact = Artifact(
        stage="preprocess", fingerprint=config.dataset_fingerprint, uri=config.dataset_uri
    )
    told = split_warnings(dataset, config) if dataset else []
    return StageResult(
        artifacts=[artifact] if dataset else [],
        counts={
            "documents": statistics.documents,
            "tokens": statistics.tokens,
            "removed": sum(statistics.removed.values()),
            "rejects": sum(statistics.rejects.values()),
        },
        warnings=[*done.warnings, *told],
    )

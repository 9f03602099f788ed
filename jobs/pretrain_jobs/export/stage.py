"""The export stage: write the Hugging Face directory, prove that it loads, commit it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from pretrain_api.reports import Artifact, StageResult
from pretrain_api.stages import ExportStageConfig

from pretrain_jobs.errors import DataError
from pretrain_jobs.export.card import lineage, model_card
from pretrain_jobs.export.directory import build_directory, model_facts
from pretrain_jobs.export.facts import Facts, gather_facts
from pretrain_jobs.export.verify import check_export
from pretrain_jobs.export.weights import DTYPES
from pretrain_jobs.process import load_config
from pretrain_jobs.progress import ProgressReporter
from pretrain_jobs.storage import ObjectStore, open_store
from pretrain_jobs.storage.artifact import (
    MANIFEST,
    Manifest,
    commit,
    download_artifact,
    is_committed,
    load,
    upload_directory,
)

KIND = "export"
CARD_FILE = "README.md"


def main(config_path: Path) -> StageResult:
    """Run the stage; nothing is committed unless every check passes."""
    config = load_config(ExportStageConfig, config_path)
    store = open_store(config.storage, config.export_uri)
    if not is_committed(store, kind=KIND, fingerprint=config.export_fingerprint):
        with tempfile.TemporaryDirectory(prefix="pretrain-export-") as scratch:
            _export(config, store, Path(scratch))
    manifest = load(store, kind=KIND, fingerprint=config.export_fingerprint)
    return _result(config, manifest)


def _export(config: ExportStageConfig, store: ObjectStore, scratch: Path) -> None:
    progress = ProgressReporter("export", attempt=config.attempt)
    source, target = scratch / "model", scratch / "export"
    progress.update(message="reading the model", force=True)
    _download_model(config, source)
    dtype = DTYPES[config.export.dtype]
    progress.update(message="writing and checking the export", force=True)
    reference = build_directory(
        source, target, dtype, max_shard_bytes=config.export.max_shard_bytes
    )
    check_export(target, reference, dtype=dtype)
    facts = gather_facts(config, source, model_facts(reference, target, config.export.dtype))
    (target / CARD_FILE).write_text(model_card(facts), encoding="utf-8")
    progress.update(message="uploading", force=True)
    _publish(config, store, target, facts)


def _download_model(config: ExportStageConfig, directory: Path) -> None:
    store = open_store(config.storage, config.model_uri)
    manifest = load(store, kind="model", fingerprint=config.model_fingerprint)
    if manifest is None:
        raise DataError(f"{config.model_uri} holds no committed model: training has not ended")
    download_artifact(store, manifest, directory)


def _publish(config: ExportStageConfig, store: ObjectStore, directory: Path, facts: Facts) -> None:
    """Replace an older export: its manifest goes first, and its files that are no longer there.

    DataError when an artifact of another kind lies there.
    """
    old = load(store, kind=KIND)
    store.delete(MANIFEST)
    entries = upload_directory(store, directory)
    extra = {
        "lineage": lineage(facts),
        "dtype": config.export.dtype,
        "parameters": facts.model.parameters,
        "vocabulary": {"rows": facts.model.rows, "tokens": facts.model.tokens},
    }
    commit(store, kind=KIND, fingerprint=config.export_fingerprint, files=entries, extra=extra)
    written = {entry.path for entry in entries}
    for entry in old.files if old else ():
        if entry.path not in written:
            store.delete(entry.path)


def _result(config: ExportStageConfig, manifest: Manifest | None) -> StageResult:
    if manifest is None:
        raise DataError(f"{config.export_uri} lost its {MANIFEST} while the stage ran")
    return StageResult(
        artifacts=[
            Artifact(stage="export", fingerprint=config.export_fingerprint, uri=config.export_uri)
        ],
        counts={"parameters": int(manifest.extra["parameters"]), "bytes": manifest.size},
    )

"""The tokenizer stage: look at all inputs, provide the tokenizer, tell every later fingerprint.

Everything that can be found wrong with the inputs is found here, before the long stages start.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from pretrain_api.fingerprints import tokenizer_fingerprint
from pretrain_api.reports import Artifact, StageResult
from pretrain_api.spec import PretrainJobSpec
from pretrain_api.spec.storage import StorageSpec
from pretrain_api.stages import TokenizerStageConfig

from pretrain_jobs.corpus.cleaning import check_supported
from pretrain_jobs.corpus.slices import PLAN_KEY, encode_plan, plan_slices
from pretrain_jobs.errors import DataError
from pretrain_jobs.evaluate.results import RESULTS_FILE, Results
from pretrain_jobs.process import load_config
from pretrain_jobs.progress import ProgressReporter
from pretrain_jobs.storage import NotFoundError, open_store
from pretrain_jobs.tokenizer.artifact import ReadyTokenizer, ensure_tokenizer
from pretrain_jobs.tokenizer.inputs import Inputs, list_inputs
from pretrain_jobs.tokenizer.resolve import artifact_uri, find_artifacts, fingerprints
from pretrain_jobs.tokenizer.special import SpecialTokens, check_objective, load_special_tokens


def main(config_path: Path) -> StageResult:
    """Run the stage; the result has the artifacts of all five stages and the number of slices."""
    config = load_config(TokenizerStageConfig, config_path)
    spec, storage = config.spec, config.storage
    progress = ProgressReporter("tokenizer", attempt=config.attempt)
    check_supported(spec.corpus.cleaning)
    progress.update(message="listing the sources", force=True)
    inputs = list_inputs(spec, storage)
    own = tokenizer_fingerprint(inputs.tokenizer, spec)
    with tempfile.TemporaryDirectory(prefix="pretrain-tokenizer-") as directory:
        uri = artifact_uri("tokenizer", own, spec=spec, storage=storage)
        ready = ensure_tokenizer(
            open_store(storage, uri),
            fingerprint=own,
            spec=spec,
            storage=storage,
            files=inputs.training_files,
            directory=Path(directory),
            progress=progress,
        )
        tokens = load_special_tokens(
            ready.directory, end_of_document=spec.tokenizer.end_of_document
        )
    check_objective(tokens, spec.objective)
    found = fingerprints(inputs, tokenizer=own, tokenizer_sha256=ready.sha256, spec=spec)
    artifacts = find_artifacts(found, spec=spec, storage=storage)
    return _result(spec, storage, inputs=inputs, ready=ready, tokens=tokens, artifacts=artifacts)


def _result(
    spec: PretrainJobSpec,
    storage: StorageSpec,
    *,
    inputs: Inputs,
    ready: ReadyTokenizer,
    tokens: SpecialTokens,
    artifacts: list[Artifact],
) -> StageResult:
    by_stage = {artifact.stage: artifact for artifact in artifacts}
    slices = _write_plan(spec, storage, inputs=inputs, dataset=by_stage["preprocess"])
    return StageResult(
        artifacts=[
            artifact.model_copy(update={"cached": ready.cached})
            if artifact.stage == "tokenizer"
            else artifact
            for artifact in artifacts
        ],
        slices=slices,
        counts={
            "files": len(inputs.files),
            "bytes": sum(file.size for file in inputs.files),
            "vocabulary": tokens.length,
        },
        metrics=_cached_metrics(storage, by_stage["evaluate"]),
        warnings=[*inputs.warnings, *ready.warnings],
    )


def _write_plan(
    spec: PretrainJobSpec, storage: StorageSpec, *, inputs: Inputs, dataset: Artifact
) -> int:
    """Write the dataset's plan of slices, unless it is there or the dataset is; their number.

    DataError when there is nothing to cut.
    """
    plan = plan_slices(
        inputs.files, slice_bytes=spec.preprocess.slice_bytes, warnings=inputs.warnings
    )
    if not any(part.split == "train" for part in plan.slices):
        raise DataError(
            f"corpus.sources has no text to train on: all of its {len(inputs.training_files)} "
            "files are empty or held out for validation"
        )
    store = open_store(storage, dataset.uri)
    data = encode_plan(plan)
    if not dataset.cached and not _holds(storage, dataset.uri, data):
        store.write(PLAN_KEY, data)
    return len(plan.slices)


def _holds(storage: StorageSpec, uri: str, data: bytes) -> bool:
    try:
        return open_store(storage, uri).read(PLAN_KEY) == data
    except NotFoundError:
        return False


def _cached_metrics(storage: StorageSpec, evaluation: Artifact) -> dict[str, float]:
    """Figures of an evaluation that will not run again."""
    if not evaluation.cached:
        return {}
    data = open_store(storage, evaluation.uri).read(RESULTS_FILE)
    return Results.model_validate(json.loads(data)).flat()

"""The chain of stages: which comes next, and what the tokenizer's report tells of the others."""

from __future__ import annotations

from pretrain_api.reports import STAGES, Artifact, StageName, StageResult
from pretrain_api.spec import PretrainJobSpec
from pretrain_api.status import Phase, StageStatus

from pretrain_operator.children.attempt import StageArtifact
from pretrain_operator.plan.decision import DONE_STATES

PHASES: dict[StageName, Phase] = {
    "tokenizer": Phase.TOKENIZING,
    "preprocess": Phase.PREPROCESSING,
    "train": Phase.TRAINING,
    "evaluate": Phase.EVALUATING,
    "export": Phase.EXPORTING,
}
"""The phase of a job while a stage's pods run."""


def initial_stages(spec: PretrainJobSpec) -> list[StageStatus]:
    """All stages of a job that has not begun; evaluation is skipped when it has no task."""
    return [_initial_stage(spec, name) for name in STAGES]


def current_stage(stages: list[StageStatus]) -> StageStatus | None:
    """The first stage that is not done; None when all are."""
    return next((stage for stage in stages if stage.state not in DONE_STATES), None)


def with_artifacts(stages: list[StageStatus], result: StageResult) -> list[StageStatus]:
    """The stages as the tokenizer's result tells them.

    Status is the memory of fingerprints, URIs and the number of slices, for the children that
    told them may be gone. A stage whose output is committed already is complete without a Job.
    """
    artifacts = {artifact.stage: artifact for artifact in result.artifacts}
    told = [_with_artifact(stage, artifacts.get(stage.name)) for stage in stages]
    return [_with_slices(stage, result.slices) for stage in told]


def known_artifacts(stages: list[StageStatus]) -> dict[StageName, StageArtifact]:
    """Fingerprint and URI of every stage's output, as far as they are known."""
    return {stage.name: StageArtifact(stage.fingerprint, stage.uri) for stage in stages}


def completions(stage: StageStatus, spec: PretrainJobSpec) -> int:
    """Number of pods that must succeed: slices, workers, or one."""
    match stage.name:
        case "preprocess":
            return stage.total
        case "train":
            return spec.workers.replicas
        case _:
            return 1


def _initial_stage(spec: PretrainJobSpec, name: StageName) -> StageStatus:
    skipped = name == "evaluate" and not spec.evaluation.tasks
    return StageStatus(
        name=name,
        state="Skipped" if skipped else "Pending",
        total=spec.workers.replicas if name == "train" else 1,
    )


def _with_artifact(stage: StageStatus, artifact: Artifact | None) -> StageStatus:
    if artifact is None or stage.state == "Skipped":
        return stage
    changes: dict[str, object] = {
        "fingerprint": artifact.fingerprint,
        "uri": artifact.uri,
        "cached": artifact.cached,
    }
    if artifact.cached and stage.state not in DONE_STATES:
        changes |= {"state": "Complete", "message": "The output was committed by an earlier run."}
    return stage.model_copy(update=changes)


def _with_slices(stage: StageStatus, slices: int | None) -> StageStatus:
    if stage.name != "preprocess" or slices is None:
        return stage
    return stage.model_copy(update={"total": slices})

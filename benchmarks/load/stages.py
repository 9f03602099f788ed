"""How KWOK plays the pods of a whole job: each runs at once, ends well, and leaves its report.

Stages are KWOK's own format (kwok.x-k8s.io/v1alpha1, Go templates); their reports are those that
the real stages write.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import bed.kwok
import yaml
from pretrain_api.reports import (
    STAGES,
    Artifact,
    CheckpointStatus,
    StageName,
    StageReport,
    StageResult,
)

SLICES = 2
"""Pods of preprocessing."""

MAX_STEPS = 1000

_INDEX = '{{ index .metadata.labels "batch.kubernetes.io/job-completion-index" }}'
_STAGE = '.metadata.labels["pretrain.dev/stage"]'
_STORAGE = "s3://pretrain/load"


def load_stages(*, run_seconds: float) -> str:
    """Stages, as YAML, of pods that run for so long."""
    shared = yaml.safe_load_all(Path(bed.kwok.STAGES).read_text(encoding="utf-8"))
    played = [stage for stage in shared if stage["metadata"]["name"] != "pod-done"]
    ends = [_end_of(stage, run_seconds=run_seconds) for stage in STAGES]
    return yaml.safe_dump_all([*played, *ends], sort_keys=False)


def report_of(stage: StageName) -> StageReport:
    """What a pod of a stage leaves in its termination message, but for its index."""
    return StageReport(stage=stage, result=_result_of(stage))


def _result_of(stage: StageName) -> StageResult:
    match stage:
        case "tokenizer":
            return StageResult(artifacts=[_artifact(name) for name in STAGES], slices=SLICES)
        case "preprocess":
            return StageResult(counts={"documents": 20_000, "tokens": 5_000_000, "shards": 4})
        case "train":
            return StageResult(
                step=MAX_STEPS, checkpoint=_checkpoint(), metrics={"loss": 2.5, "perplexity": 12.2}
            )
        case "evaluate":
            return StageResult(metrics={"sentiment/accuracy": 0.9, "sentiment/f1": 0.9})
        case "export":
            return StageResult(counts={"files": 6})


def _artifact(stage: StageName) -> Artifact:
    fingerprint = f"{stage:0<16}"
    return Artifact(
        stage=stage, fingerprint=fingerprint, uri=f"{_STORAGE}/{stage}/{fingerprint}", cached=False
    )


def _checkpoint() -> CheckpointStatus:
    return CheckpointStatus(
        step=MAX_STEPS,
        uri=f"{_STORAGE}/checkpoints/job/step-{MAX_STEPS}",
        sha256="0" * 64,
        time=datetime.now(UTC).replace(microsecond=0),
    )


def _end_of(stage: StageName, *, run_seconds: float) -> dict[str, Any]:
    """The stage of KWOK's that ends the pods of one of ours."""
    return {
        "apiVersion": "kwok.x-k8s.io/v1alpha1",
        "kind": "Stage",
        "metadata": {"name": f"{stage}-done"},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
            "selector": {
                "matchExpressions": [
                    {"key": ".metadata.deletionTimestamp", "operator": "DoesNotExist"},
                    {"key": ".status.phase", "operator": "In", "values": ["Running"]},
                    {"key": _STAGE, "operator": "In", "values": [stage]},
                ]
            },
            "delay": {"durationMilliseconds": int(run_seconds * 1000)},
            "next": {"statusTemplate": _ended(report_of(stage))},
        },
    }


def _ended(report: StageReport) -> str:
    """The status of a pod that has ended well; a YAML string in single quotes holds the report."""
    text = report.model_dump_json(by_alias=True).replace("'", "''")
    indexed = text.replace('"index":0', f'"index":{_INDEX}')
    return f"""{{{{ $t := Now }}}}
containerStatuses:
- name: main
  image: {{{{ (index .spec.containers 0).image | Quote }}}}
  ready: false
  started: false
  restartCount: 0
  state:
    terminated:
      exitCode: 0
      reason: Completed
      message: '{indexed}'
      startedAt: {{{{ .status.startTime | Quote }}}}
      finishedAt: {{{{ $t | Quote }}}}
phase: Succeeded
"""

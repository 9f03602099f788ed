"""Fill in what a spec leaves to its preset, its architecture or its other fields.

Pure and idempotent, and it judges nothing: a spec that cannot work comes out as far as it can be
told, and `pretrain_api.validation` says why. "Left out" means not set in the model (or None), so
resolve a spec before it is stored as a full dump, which sets every field.
"""

from __future__ import annotations

from typing import Any, Literal

from pretrain_api.layers import Layer, stack
from pretrain_api.presets import ARCHITECTURES, PRESETS, Architecture, ObjectiveName
from pretrain_api.spec import PretrainJobSpec
from pretrain_api.spec.training import TrainingSpec
from pretrain_api.spec.workers import ResourcesSpec, WorkersSpec

DEFAULT_SEQUENCE_LENGTH = 512
DEFAULT_LEARNING_RATE = 1e-4
DEFAULT_GLOBAL_BATCH_SIZE = 256

DEFAULT_MAX_STEPS = 10_000
"""1.3 G positions at the default batch and length: enough to tell whether a corpus and a size
are right, in hours rather than weeks on one machine; a full run says its own length."""

LARGEST_MICRO_BATCH_SIZE = 32
DEFAULT_CHECKPOINT_STEPS = 500
WARMUP_SHARE = 0.06
EVALUATIONS_PER_RUN = 10


def resolve(spec: PretrainJobSpec) -> PretrainJobSpec:
    """Give the same spec with nothing left to guess but what only the dataset can tell.

    The number of steps under `epochs` or `maxTokens`, and the warm-up and evaluation interval
    that follow from it, are the dataset's to tell: see `with_steps`.
    """
    said = spec.model_dump(mode="json", by_alias=True, exclude_unset=True)
    layered = stack(said, _layers_below(spec))
    derived = _derived(PretrainJobSpec.model_validate(layered))
    return PretrainJobSpec.model_validate(stack(_without_auto(layered), derived))


def with_steps(training: TrainingSpec, max_steps: int) -> TrainingSpec:
    """Give what follows from the number of steps, where it is left out: warm-up, evaluation."""
    full = training.model_dump(mode="json", by_alias=True)
    return TrainingSpec.model_validate(stack(full, _by_steps(max_steps)))


def architecture_of(spec: PretrainJobSpec) -> Architecture | None:
    """Give the architecture that a spec names, itself or through its preset, if it is known."""
    preset = PRESETS.get(spec.model.preset or "")
    name = spec.model.architecture or (preset.architecture if preset else "")
    return ARCHITECTURES.get(name)


def objective_names(spec: PretrainJobSpec) -> list[ObjectiveName]:
    """Give the members of the objective that are set; a valid resolved spec has one."""
    objective = spec.objective
    members: dict[ObjectiveName, object] = {
        "mlm": objective.mlm,
        "clm": objective.clm,
        "spanCorruption": objective.span_corruption,
        "denoising": objective.denoising,
    }
    return [name for name, member in members.items() if member is not None]


def is_accelerator(resource: str) -> bool:
    """Tell whether a Kubernetes resource name stands for a device that torch calls cuda.

    The vendors' own names (nvidia.com/gpu, nvidia.com/mig-1g.5gb, amd.com/gpu) and others'
    names for shares of a GPU (aliyun.com/gpu-mem).
    """
    vendor, _, device = resource.partition("/")
    return bool(device) and (vendor in {"nvidia.com", "amd.com"} or "gpu" in device)


def accelerators(resources: ResourcesSpec) -> dict[str, str]:
    """Give the accelerators that a container asks for: quantity by resource name."""
    asked = {**resources.requests, **resources.limits}
    return {
        name: str(quantity)
        for name, quantity in asked.items()
        if is_accelerator(name) and str(quantity) != "0"
    }


def world_size(workers: WorkersSpec) -> int:
    """Count the ranks of the gang."""
    return workers.replicas * workers.processes_per_worker


def _layers_below(spec: PretrainJobSpec) -> Layer:
    architecture = architecture_of(spec)
    base = architecture.layer if architecture else {}
    preset = PRESETS.get(spec.model.preset or "")
    return stack(_fitted(preset.layer, spec.training), base) if preset else base


def _fitted(preset: Layer, said: TrainingSpec) -> Layer:
    """Leave out a preset's warm-up where the user's run is not longer than it."""
    schedule = preset.get("training", {}).get("schedule", {})
    warmup = schedule.get("warmupSteps", 0)
    if said.max_steps is None or warmup < said.max_steps:
        return preset
    kept = {key: value for key, value in schedule.items() if key != "warmupSteps"}
    return {**preset, "training": {**preset["training"], "schedule": kept}}


def _without_auto(layered: Layer) -> Layer:
    """Leave "auto" out; other than it, no default in the model stands where a value is derived."""
    training, workers = layered.get("training", {}), layered.get("workers", {})
    return {
        **layered,
        "training": {key: v for key, v in training.items() if (key, v) != ("precision", "auto")},
        "workers": {key: v for key, v in workers.items() if (key, v) != ("device", "auto")},
    }


def _derived(spec: PretrainJobSpec) -> dict[str, Any]:
    """Give what follows from the layered spec; whatever it says itself lies over this."""
    architecture = architecture_of(spec)
    return {
        "tokenizer": {"train": {}},
        "objective": {architecture.objective: {}} if architecture else {},
        "preprocess": {
            "sequenceLength": _sequence_length(spec, architecture),
            "packing": {"strategy": _packing_strategy(spec, architecture)},
        },
        "model": {"architecture": architecture.name if architecture else None},
        "training": _derived_training(spec),
        "workers": {"device": _device(spec.workers)},
        "checkpoint": _derived_checkpoint(spec),
    }


def _sequence_length(spec: PretrainJobSpec, architecture: Architecture | None) -> int:
    limit = architecture.longest_sequence(spec.model.config) if architecture else None
    return max(8, min(DEFAULT_SEQUENCE_LENGTH, limit or DEFAULT_SEQUENCE_LENGTH))


def _packing_strategy(spec: PretrainJobSpec, architecture: Architecture | None) -> str:
    if spec.objective.mlm and spec.objective.mlm.next_sentence:
        return "segmentPairs"
    names = objective_names(spec) or ([architecture.objective] if architecture else [])
    return "blocks" if {"clm", "spanCorruption"} & set(names) else "fullSentences"


def _derived_training(spec: PretrainJobSpec) -> dict[str, Any]:
    training = spec.training
    global_batch = training.global_batch_size or DEFAULT_GLOBAL_BATCH_SIZE
    by_data = training.epochs is not None or training.max_tokens is not None
    max_steps = training.max_steps or (None if by_data else DEFAULT_MAX_STEPS)
    derived: dict[str, Any] = {
        "globalBatchSize": global_batch,
        "microBatchSize": _micro_batch_size(global_batch, world_size(spec.workers)),
        "maxSteps": max_steps,
        "optimizer": {"learningRate": DEFAULT_LEARNING_RATE},
        "precision": "bf16" if _device(spec.workers) == "cuda" else "fp32",
    }
    return {**derived, **_by_steps(max_steps)} if max_steps else derived


def _by_steps(max_steps: int) -> dict[str, Any]:
    return {
        "schedule": {"warmupSteps": int(WARMUP_SHARE * max_steps)},
        "evaluation": {"everySteps": max(1, max_steps // EVALUATIONS_PER_RUN)},
    }


def _micro_batch_size(global_batch: int, ranks: int) -> int | None:
    """Give the largest divisor of a rank's share; None when the batch has no equal shares."""
    if global_batch % ranks:
        return None
    share = global_batch // ranks
    sizes = range(min(share, LARGEST_MICRO_BATCH_SIZE), 0, -1)
    return next(size for size in sizes if share % size == 0)


def _derived_checkpoint(spec: PretrainJobSpec) -> dict[str, Any]:
    return {} if spec.checkpoint.every_minutes else {"everySteps": DEFAULT_CHECKPOINT_STEPS}


def _device(workers: WorkersSpec) -> Literal["cpu", "cuda"]:
    if workers.device != "auto":
        return workers.device
    return "cuda" if accelerators(workers.resources) else "cpu"

"""Rules of training and of the workers: batches, steps, precision, memory and devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pretrain_api.problems import Problem
from pretrain_api.resolve import accelerators, architecture_of, world_size
from pretrain_api.spec import PretrainJobSpec

_WHOLE_DEVICES = ("nvidia.com/gpu", "amd.com/gpu")


def batch_is_shared_equally(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse a global batch that ranks and accumulation cannot make up exactly."""
    training, workers = spec.training, spec.workers
    batch, micro = training.global_batch_size or 0, training.micro_batch_size or 1
    unit = world_size(workers) * micro
    if batch % unit == 0:
        return
    factors = f"{workers.replicas} replicas x {workers.processes_per_worker} processes"
    factors += f" x microBatchSize {micro}" if micro > 1 else ""
    below, above = batch // unit * unit, -(-batch // unit) * unit
    nearest = f"{below} and {above}" if below else f"{above}"
    yield Problem(
        ("training", "globalBatchSize"),
        f"{batch} is no multiple of {unit} ({factors}); the nearest are {nearest}",
    )


def length_is_said_once(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse more than one of maxSteps, epochs and maxTokens."""
    training = spec.training
    said = {
        "maxSteps": training.max_steps,
        "epochs": training.epochs,
        "maxTokens": training.max_tokens,
    }
    names = [name for name, value in said.items() if value is not None]
    if len(names) > 1:
        yield Problem(("training",), f"has {' and '.join(names)}; give one of them")


def schedule_reaches_its_peak(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse a warm-up that is not over before training is, and settings nothing reads."""
    training, schedule = spec.training, spec.training.schedule
    warmup, steps = schedule.warmup_steps, training.max_steps
    if warmup is not None and steps is not None and warmup >= steps:
        yield Problem(
            ("training", "schedule", "warmupSteps"),
            f"{warmup} is not below the {steps} steps of training, so the learning rate would "
            "never reach its peak",
        )
    if schedule.decay_steps is not None and schedule.type != "warmupStableDecay":
        yield Problem(
            ("training", "schedule", "decaySteps"),
            f"belongs to the schedule warmupStableDecay, not to {schedule.type}",
        )
    if schedule.type == "constant" and schedule.minimum_ratio not in {0.0, 1.0}:
        yield Problem(
            ("training", "schedule", "minimumRatio"),
            "has no meaning for the constant schedule, which never falls; use linear or cosine",
        )


def precision_fits_the_device(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse fp16 where there is no fp16 training, or where activations overflow it."""
    if spec.training.precision != "fp16":
        return
    path = ("training", "precision")
    architecture = architecture_of(spec)
    if spec.workers.device == "cpu":
        yield Problem(path, "fp16 is not trained on CPUs by DeepSpeed; use fp32 or bf16")
    elif architecture is not None and not architecture.half_range:
        yield Problem(
            path,
            f"fp16 overflows in {architecture.name}, whose activations pass 65,504; use bf16, or "
            "fp32 on devices without it",
        )


def offload_has_its_stage(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse offloading at a ZeRO stage that has nothing to move."""
    stage, offload = spec.training.zero.stage, spec.training.zero.offload
    if offload.optimizer and stage < 2:
        yield Problem(
            ("training", "zero", "offload", "optimizer"),
            f"the optimizer is moved to host memory at stages 2 and 3, not at stage {stage}",
        )
    if offload.parameters and stage != 3:
        yield Problem(
            ("training", "zero", "offload", "parameters"),
            f"parameters are moved to host memory at stage 3, not at stage {stage}",
        )


def attention_runs_on_the_device(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse GPU kernels on a CPU."""
    if spec.model.attention == "flash_attention_2" and spec.workers.device == "cpu":
        yield Problem(
            ("model", "attention"), "flash_attention_2 needs a GPU; use auto, sdpa or eager"
        )


def processes_have_a_device_each(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse more ranks in a pod than it asks for whole devices."""
    asked = accelerators(spec.workers.resources)
    for name in _WHOLE_DEVICES:
        count = asked.get(name, "")
        if count.isdecimal() and int(count) < spec.workers.processes_per_worker:
            yield Problem(
                ("workers", "processesPerWorker"),
                f"{spec.workers.processes_per_worker} processes would share {count} {name}; each "
                "needs a device of its own",
            )


def restart_budgets_are_single(spec: PretrainJobSpec) -> Iterator[Problem]:
    """Refuse two budgets for one cause, and a back-off that starts above its maximum."""
    policy = spec.failure_policy
    counts = Counter(budget.cause for budget in policy.restarts)
    for i, budget in enumerate(policy.restarts):
        if counts[budget.cause] > 1:
            yield Problem(
                ("failurePolicy", "restarts", i, "cause"),
                f"{budget.cause.value} has {counts[budget.cause]} budgets; give one",
            )
    if policy.backoff.initial_seconds > policy.backoff.maximum_seconds:
        yield Problem(
            ("failurePolicy", "backoff", "initialSeconds"),
            f"{policy.backoff.initial_seconds} is above maximumSeconds "
            f"{policy.backoff.maximum_seconds}",
        )


RULES = (
    batch_is_shared_equally,
    length_is_said_once,
    schedule_reaches_its_peak,
    precision_fits_the_device,
    offload_has_its_stage,
    attention_runs_on_the_device,
    processes_have_a_device_each,
    restart_budgets_are_single,
)

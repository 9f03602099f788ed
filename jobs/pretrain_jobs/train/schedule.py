"""The learning rate and the number of steps: pure functions, so nothing of them is ever stored.

Steps count from 1. A resumed run computes the same rate for the same step, whatever happened.
"""

from __future__ import annotations

import math

from pretrain_api.resolve import with_steps
from pretrain_api.spec.training import ScheduleSpec, TrainingSpec

from pretrain_jobs.errors import UserError
from pretrain_jobs.train.data import steps_for_epochs


def learning_rate(step: int, *, peak: float, schedule: ScheduleSpec, max_steps: int) -> float:
    """The rate of one step: a linear warm-up to `peak`, then the schedule's decay.

    Step `warmup_steps` is the first at the peak; the last step of linear and cosine (Loshchilov
    and Hutter, arXiv:1608.03983) has `minimum_ratio` times the peak.
    """
    warmup = schedule.warmup_steps or 0
    if step <= warmup:
        return peak * step / warmup
    progress = (step - warmup) / max(1, max_steps - warmup)
    low = schedule.minimum_ratio
    return peak * (low + (1.0 - low) * _remaining(schedule, progress))


def _remaining(schedule: ScheduleSpec, progress: float) -> float:
    """What is left of the way from the minimum to the peak, from 1 down to 0."""
    if schedule.type == "constant":
        return 1.0
    if schedule.type == "linear":
        return 1.0 - progress
    if schedule.type == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * progress))
    raise UserError(
        f"spec.training.schedule.type is {schedule.type}; this version runs linear, cosine and "
        "constant"
    )


def with_known_steps(
    training: TrainingSpec, *, samples_per_epoch: int, sequence_length: int
) -> TrainingSpec:
    """The training specification with `max_steps`, and what follows from it, filled in.

    Under `epochs` they follow from the dataset's samples, under `max_tokens` from the positions
    of a global batch.
    """
    if training.max_steps is not None:
        return training
    batch = training.global_batch_size or 1
    if training.epochs is not None:
        steps = steps_for_epochs(samples_per_epoch, batch, training.epochs)
    elif training.max_tokens is not None:
        steps = max(1, math.ceil(training.max_tokens / (batch * sequence_length)))
    else:
        raise UserError("spec.training needs one of maxSteps, epochs and maxTokens")
    return with_steps(training.model_copy(update={"max_steps": steps}), steps)

"""One fine-tuning: AdamW, a linear schedule, cross-entropy; then the test's predictions.

Everything random follows from the run's seed, so that a run gives the same figures whatever ran
before it in the process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pretrain_api.spec.evaluation import FineTuningSpec
from torch.nn import functional

from pretrain_jobs.evaluate.encode import Encoded, epoch_batches, pad
from pretrain_jobs.model.parameters import optimizer_groups

GRADIENT_NORM = 1.0
BETAS = (0.9, 0.999)
EPSILON = 1e-8


@dataclass(frozen=True)
class Samples:
    """Encoded texts and the class of each, int64 [n]."""

    encoded: Encoded
    classes: NDArray[np.int64]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each text, int64 [n]."""
        return np.array([len(ids) for ids in self.encoded], dtype=np.int64)

    def at(self, indices: NDArray[np.int64]) -> Samples:
        """The samples at these indices."""
        return Samples(tuple(self.encoded[i] for i in indices), self.classes[indices])


def count_steps(samples: int, tuning: FineTuningSpec) -> int:
    """Optimizer steps of a run."""
    return tuning.epochs * math.ceil(samples / tuning.batch_size)


def learning_rate(step: int, *, steps: int, tuning: FineTuningSpec) -> float:
    """Of the step (from 0): up to the peak over the warm-up, then down towards 0."""
    warmup = round(tuning.warmup_ratio * steps)
    if step < warmup:
        return tuning.learning_rate * (step + 1) / warmup
    return tuning.learning_rate * (steps - step) / max(1, steps - warmup)


def fine_tune(
    model: Any,
    samples: Samples,
    tuning: FineTuningSpec,
    *,
    seed: int,
    padding: int,
    device: torch.device,
    progress: Callable[[], None],
) -> None:
    """Train the classifier in place; `progress` is called after every step."""
    torch.manual_seed(seed)
    model.to(device).train()
    groups = optimizer_groups(model, tuning.weight_decay)
    optimizer = torch.optim.AdamW(groups, lr=tuning.learning_rate, betas=BETAS, eps=EPSILON)
    steps = count_steps(len(samples.encoded), tuning)
    for step, batch in enumerate(_batches(samples, tuning, seed=seed)):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, steps=steps, tuning=tuning)
        classes = torch.from_numpy(batch.classes).to(device)
        loss = functional.cross_entropy(_logits(model, batch, padding, device), classes)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_NORM)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        progress()


def predict(
    model: Any, samples: Samples, *, batch_size: int, padding: int, device: torch.device
) -> NDArray[np.int64]:
    """The most probable class of each sample, int64 [n], in the order of the samples."""
    model.to(device).eval()
    order = np.argsort(samples.lengths, kind="stable")
    predicted = np.empty(len(order), dtype=np.int64)
    with torch.inference_mode():
        for begin in range(0, len(order), batch_size):
            indices = order[begin : begin + batch_size]
            logits = _logits(model, samples.at(indices), padding, device)
            predicted[indices] = logits.argmax(-1).cpu().numpy()
    return predicted


def _batches(samples: Samples, tuning: FineTuningSpec, *, seed: int) -> Iterator[Samples]:
    lengths = samples.lengths
    for epoch in range(tuning.epochs):
        for indices in epoch_batches(lengths, tuning.batch_size, seed=seed, epoch=epoch):
            yield samples.at(indices)


def _logits(model: Any, batch: Samples, padding: int, device: torch.device) -> torch.Tensor:
    """Logits [B, classes]."""
    ids, mask = pad(batch.encoded, padding)
    output = model(
        input_ids=torch.from_numpy(ids).to(device),
        attention_mask=torch.from_numpy(mask).to(device),
    )
    logits: torch.Tensor = output.logits
    return logits

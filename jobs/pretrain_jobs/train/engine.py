"""The engine: one DeepSpeed engine behind the three things that the loop does with it.

Forward gives a summed loss, backward scales it, and a step applies or skips an update and tells
the gradient norm. DeepSpeed's peculiarities by stage and device end here.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from pretrain_api.spec.training import TrainingSpec
from torch import Tensor
from transformers import PreTrainedModel

from pretrain_jobs.checkpoint import snapshot
from pretrain_jobs.errors import UserError
from pretrain_jobs.model.flops import FlopsModel, flops_model
from pretrain_jobs.model.padding import hide_padding
from pretrain_jobs.model.parameters import count_parameters, optimizer_groups
from pretrain_jobs.objectives.batch import Batch
from pretrain_jobs.objectives.tensors import label_tensor, model_inputs
from pretrain_jobs.train.data import Share
from pretrain_jobs.train.deepspeed_config import deepspeed_config
from pretrain_jobs.train.label_rows import LabelRows


@dataclass(frozen=True)
class Update:
    """What an optimizer step did: the norm of the whole gradient, and whether it was applied.

    The norm is before clipping, and infinite or NaN if the step was skipped for that. `rescaled`
    tells that it was skipped for fp16's loss scale, which then is lowered.
    """

    gradient_norm: float
    applied: bool
    rescaled: bool = False


@dataclass(frozen=True)
class BatchLoss:
    """Of one micro-batch: the loss summed over its labels, and how many were predicted right."""

    total: Tensor
    correct: int

    @property
    def value(self) -> float:
        """The summed loss as a number."""
        return float(self.total.detach())


class Engine:
    """A model under DeepSpeed. Every method is a collective."""

    def __init__(
        self,
        engine: Any,
        *,
        rows: LabelRows,
        flops: FlopsModel,
        vocab_size: int,
        clipping: float,
    ) -> None:
        """Use `build_engine`."""
        self.deepspeed = engine
        self.flops = flops
        self._rows = rows
        self._vocab_size = vocab_size
        self._clipping = clipping
        self._stage: int = engine.zero_optimization_stage()
        self._loss_scaled = (
            engine.torch_autocast_enabled() and engine.torch_autocast_dtype() == torch.float16
        )

    @property
    def model(self) -> PreTrainedModel:
        """The model; at ZeRO stage 3 its parameters are partitioned."""
        module: PreTrainedModel = self.deepspeed.module
        return module

    @property
    def learning_rate(self) -> float:
        """The rate that the optimizer itself holds, read back from its parameter groups."""
        return float(self.deepspeed.basic_optimizer.param_groups[0]["lr"])

    def forward(self, batch: Batch, *, count_correct: bool = False) -> BatchLoss:
        """Run a micro-batch; gradients follow if the model trains."""
        device = self.deepspeed.device
        targets = self._rows.choose(label_tensor(batch, device))
        output = self.deepspeed(**model_inputs(batch, self.model.config, device))
        logits = hide_padding(output.logits.float(), self._vocab_size)
        total = torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
        correct = int((logits.argmax(-1) == targets).sum()) if count_correct else 0
        return BatchLoss(total, correct)

    def backward(self, loss: BatchLoss, *, weight: float) -> None:
        """Add `weight` times the loss's gradient to the step's; a NaN weight spoils the step.

        Gradients of micro-batches and ranks are added up, not averaged: DeepSpeed's own division
        by both is undone here, once.
        """
        averaged_over = self.deepspeed.gradient_accumulation_steps() * self.deepspeed.dp_world_size
        self.deepspeed.backward(loss.total * (weight * averaged_over))

    def accumulate(self) -> None:
        """End a micro-batch that is not the step's last."""
        self.deepspeed.step()

    def step(self, learning_rate: float) -> Update:
        """End the step's last micro-batch: clip, then update at this rate unless not finite."""
        for group in self.deepspeed.optimizer.param_groups:
            group["lr"] = learning_rate
        if self._stage == 0:
            return self._plain_step()
        self.deepspeed.step()
        applied = not self.deepspeed.optimizer.overflow
        norm = float(self.deepspeed.get_global_grad_norm())
        return Update(norm, applied, rescaled=not applied and self._loss_scaled)

    def _plain_step(self) -> Update:
        """Without ZeRO nobody looks at the gradient: take its norm, clip and skip here."""
        parameters = list(self.model.parameters())
        norm = torch.nn.utils.clip_grad_norm_(parameters, self._clipping or float("inf"))
        applied = bool(torch.isfinite(norm))
        if not applied:
            for parameter in parameters:
                parameter.grad = None
        self.deepspeed.step()
        return Update(float(norm), applied)

    @contextmanager
    def inference(self) -> Iterator[None]:
        """Without dropout and gradients until the block ends."""
        self.deepspeed.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self.deepspeed.train()


def build_engine(
    build: Callable[[], PreTrainedModel],
    *,
    training: TrainingSpec,
    share: Share,
    device: torch.device,
    vocab_size: int,
) -> Engine:
    """Make the model and put it under DeepSpeed. A collective of the process group.

    Every rank builds the whole model, so that its first weights are the same at every ZeRO stage;
    stage 3 then keeps this rank's part only.

    `vocab_size` is the tokenizer's length; logits beyond it are hidden. UserError for settings
    that this version does not run.
    """
    deepspeed = import_deepspeed(device)
    kind: Literal["cpu", "cuda"] = "cuda" if device.type == "cuda" else "cpu"
    model = build()
    untyped: Any = model
    if training.activation_checkpointing:
        untyped.gradient_checkpointing_enable({"use_reentrant": False})
    untyped.to(device)
    parameters = count_parameters(model)
    rows, flops = LabelRows(model), flops_model(model)
    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=_optimizer(model, training),
        config=deepspeed_config(training, share, device=kind, parameters=parameters),
        dist_init_required=False,
    )
    snapshot.prepare(engine)
    return Engine(
        engine,
        rows=rows,
        flops=flops,
        vocab_size=vocab_size,
        clipping=training.gradient_clipping,
    )


def import_deepspeed(device: torch.device) -> Any:
    """DeepSpeed without what it would compile: its shared-memory kernel, and Muon at import.

    Asking it which kernels it could compile runs a compiler, so on a CPU it is told: none.
    """
    import deepspeed
    from deepspeed.runtime import compiler

    compiler.compile = lambda: compiler.dummy_decorator
    warnings.filterwarnings("ignore", message=".*is deprecated", category=FutureWarning)
    logging.getLogger("DeepSpeed").setLevel(logging.WARNING)
    if device.type == "cpu":
        deepspeed.ops.__compatible_ops__ = {}
    deepspeed.init_distributed("nccl" if device.type == "cuda" else "gloo", verbose=False)
    return deepspeed


def _optimizer(model: PreTrainedModel, training: TrainingSpec) -> Any:
    spec = training.optimizer
    if spec.name != "adamw":
        raise UserError(
            f"spec.training.optimizer.name is {spec.name}; this version trains with adamw"
        )
    settings: dict[str, Any] = {
        "lr": spec.learning_rate,
        "betas": tuple(spec.betas),
        "eps": spec.epsilon,
    }
    groups = optimizer_groups(model, spec.weight_decay)
    return torch.optim.AdamW(groups, fused=True, **settings)

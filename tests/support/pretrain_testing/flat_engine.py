"""An engine with DeepSpeed's flat tensors of ZeRO 1 and 3 and nothing else, for quick tests.

It cuts by the plain definition (pad, then chunk), and saves and loads through the checkpoint
engine under DeepSpeed's names and keys.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from pretrain_jobs.checkpoint import snapshot
from torch import Tensor

KINDS = ("weights", "exp_avg", "exp_avg_sq")
Sizes = list[dict[str, int]]
"""Elements of every parameter, by group."""


def numbered(sizes: Sizes, *, seed: int = 0) -> dict[str, dict[str, Tensor]]:
    """Weights and moments, every element another number."""
    generator = torch.Generator().manual_seed(seed)
    elements = [(name, numel) for group in sizes for name, numel in group.items()]
    return {
        kind: {name: torch.randn(numel, generator=generator) for name, numel in elements}
        for kind in KINDS
    }


@dataclass
class FlatEngine:
    """One rank's part of a state, or zeros where none is given.

    `parameter_groups` are the groups of torch's optimizer: numbers of flat tensors. Stage 3 cuts a
    large one into several tensors; else each has one.
    """

    rank: int
    world_size: int
    stage: int
    sizes: Sizes
    whole: dict[str, dict[str, Tensor]] | None = None
    step: int = 0
    parameter_groups: list[list[int]] | None = None

    def __post_init__(self) -> None:
        self.checkpoint_engine: Any = None
        self.global_rank = self.rank
        snapshot.prepare(self)
        whole = self.whole or {
            kind: {name: torch.zeros(n) for group in self.sizes for name, n in group.items()}
            for kind in KINDS
        }
        self.flat = {
            kind: [self._cut([whole[kind][name] for name in group]) for group in self.sizes]
            for kind in KINDS
        }
        self.optimizer = SimpleNamespace(state_dict=self.state_dict)

    def zero_optimization_stage(self) -> int:
        return self.stage

    def _get_zero_param_shapes(self) -> list[OrderedDict[str, torch.Size]]:
        return [
            OrderedDict((name, torch.Size([numel])) for name, numel in group.items())
            for group in self.sizes
        ]

    def state_dict(self) -> dict[str, Any]:
        ids = range(len(self.sizes))
        state = {
            i: {"step": torch.tensor(float(self.step))}
            | {kind: self.flat[kind][i] for kind in KINDS[1:]}
            for i in ids
        }
        groups = [
            {"params": own, "weight_decay": 0.1 * number}
            for number, own in enumerate(self.parameter_groups or [[i] for i in ids])
        ]
        base = {"state": state if self.step else {}, "param_groups": groups}
        if self.stage == 3:
            return {
                "zero_stage": 3,
                "partition_count": self.world_size,
                "optimizer_state_dict": base,
                "fp32_flat_groups": self.flat["weights"],
            }
        return {
            "zero_stage": self.stage,
            "partition_count": [self.world_size] * len(self.sizes),
            "base_optimizer_state": base,
            "single_partition_of_fp32_groups": [
                flat[: self._real(group)]
                for flat, group in zip(self.flat["weights"], self.sizes, strict=True)
            ],
        }

    def save_checkpoint(self, _directory: str, *, tag: str, save_latest: bool) -> None:
        assert not save_latest
        self.checkpoint_engine.create(None)
        if self.rank == 0 or self.stage == 3:
            model = {
                "module": {},
                "param_shapes": self._get_zero_param_shapes(),
                "dp_world_size": self.world_size,
            }
            self.checkpoint_engine.save(model, f"{tag}/{self._model_file}")
        state = {"optimizer_state_dict": self.state_dict()}
        self.checkpoint_engine.save(state, f"{tag}/{self._optimizer_file}")

    def load_checkpoint(self, directory: str, tag: str) -> None:
        place = Path(directory) / tag
        assert (place / self._model_file).exists()
        model = self.checkpoint_engine.load(str(place / self._model_file))
        assert model["dp_world_size"] == self.world_size
        state = self.checkpoint_engine.load(str(place / self._optimizer_file))
        self._take(state["optimizer_state_dict"])

    def _take(self, state: dict[str, Any]) -> None:
        base = state.get("base_optimizer_state") or state["optimizer_state_dict"]
        weights = state.get("single_partition_of_fp32_groups") or state["fp32_flat_groups"]
        for i, flat in enumerate(weights):
            self.flat["weights"][i][: flat.numel()] = flat
            for kind in KINDS[1:] if base["state"] else ():
                self.flat[kind][i] = base["state"][i][kind]
        if base["state"]:
            self.step = int(base["state"][0]["step"])

    def _cut(self, tensors: list[Tensor]) -> Tensor:
        if self.stage == 3:
            return torch.cat([self._part(tensor, self.world_size) for tensor in tensors])
        return self._part(torch.cat(tensors), 2 * self.world_size)

    def _part(self, tensor: Tensor, alignment: int) -> Tensor:
        padded = torch.cat([tensor, torch.zeros(-tensor.numel() % alignment)])
        return padded.chunk(self.world_size)[self.rank].clone()

    def _real(self, group: dict[str, int]) -> int:
        """Elements of this rank's part of a group that are not padding (stages 1 and 2)."""
        total, part = sum(group.values()), self._cut([torch.zeros(n) for n in group.values()])
        return min(max(total - self.rank * part.numel(), 0), part.numel())

    @property
    def _model_file(self) -> str:
        rank = f"zero_pp_rank_{self.rank}_" if self.stage == 3 else ""
        return f"{rank}mp_rank_00_model_states.pt"

    @property
    def _optimizer_file(self) -> str:
        return f"zero_pp_rank_{self.rank}_mp_rank_00_optim_states.pt"

"""What the ranks' files of one checkpoint hold together, put together by DeepSpeed's own tool.

The tool (`deepspeed.utils.zero_to_fp32`) knows the layouts by itself, so that it judges ours. It
was made for weights; moments lie in the same layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from deepspeed.utils.zero_to_fp32 import (
    _zero2_merge_trainable_params,
    _zero3_merge_trainable_params,
    natural_keys,
)
from torch import Tensor

_MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class WholeState:
    """Weights, moments and steps by parameter, and the hyperparameters of every group."""

    tensors: dict[str, dict[str, Tensor]]
    steps: list[float]
    groups: list[dict[str, Any]]

    def difference(self, other: WholeState) -> str:
        """The first thing that differs, to the last bit; nothing if all is the same."""
        if (self.steps[0], self.groups) != (other.steps[0], other.groups):
            return "step or hyperparameters"
        if self.tensors.keys() != other.tensors.keys():
            return "kinds"
        for kind, own in self.tensors.items():
            theirs = other.tensors[kind]
            if own.keys() != theirs.keys():
                return f"names of {kind}"
            for name in own:
                if not torch.equal(own[name], theirs[name]):
                    return f"{kind} of {name}"
        return ""


def whole_state(directory: Path, *, stage: int) -> WholeState:
    """The state in all ranks' files below a directory."""
    model, *_ = _load(directory, "*model_states.pt")
    if stage == 0:
        return _plain(model)
    ranks = [file["optimizer_state_dict"] for file in _load(directory, "*optim_states.pt")]
    weights = "fp32_flat_groups" if stage == 3 else "single_partition_of_fp32_groups"
    optimizer = "optimizer_state_dict" if stage == 3 else "base_optimizer_state"
    bases = [rank[optimizer] for rank in ranks]
    shapes = model["param_shapes"]
    flat = {"weights": [rank[weights] for rank in ranks]} | {
        moment: [[kept[moment] for kept in base["state"].values()] for base in bases]
        for moment in _MOMENTS
    }
    tensors = {kind: _merge(parts, shapes, stage) for kind, parts in flat.items()}
    tensors["model"] = dict(model["module"]) if stage < 3 else {}
    steps = [float(kept["step"]) for base in bases for kept in base["state"].values()]
    assert len(set(steps)) == 1
    return WholeState(tensors, steps, _groups(bases[0]))


def _plain(model: dict[str, Any]) -> WholeState:
    state = model["optimizer"]["state"]
    tensors = {moment: {str(i): state[i][moment] for i in state} for moment in _MOMENTS}
    steps = [float(kept["step"]) for kept in state.values()]
    return WholeState({"model": model["module"], **tensors}, steps, _groups(model["optimizer"]))


def _merge(parts: list[list[Tensor]], shapes: list[Any], stage: int) -> dict[str, Tensor]:
    merged: dict[str, Any] = {}
    merge = _zero3_merge_trainable_params if stage == 3 else _zero2_merge_trainable_params
    merge(merged, len(parts), parts, [SimpleNamespace(param_shapes=shapes)])
    return {name: tensor.contiguous() for name, tensor in merged.items()}


def _groups(optimizer: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in group.items() if name != "params"}
        for group in optimizer["param_groups"]
    ]


def _load(directory: Path, pattern: str) -> Sequence[Any]:
    paths = sorted(directory.rglob(pattern), key=lambda path: natural_keys(path.name))
    return [torch.load(path, map_location="cpu", weights_only=False) for path in paths]

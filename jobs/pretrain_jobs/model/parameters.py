"""Parameters of a model: how many there are, and which take weight decay.

Biases and the weights of normalisation layers take none. Norms are found by the type of their
module, for their names differ by architecture.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

_NORMS = (nn.LayerNorm, nn.RMSNorm, nn.GroupNorm)


@dataclass(frozen=True)
class ParameterGroups:
    """Names of trainable parameters, in the model's order; a shared one has its first name."""

    decay: tuple[str, ...]
    no_decay: tuple[str, ...]


def split_parameters(model: nn.Module) -> ParameterGroups:
    """Which parameters take weight decay; together they are all that train."""
    of_norms = {
        id(parameter)
        for module in model.modules()
        if is_norm(module)
        for parameter in module.parameters(recurse=False)
    }
    decay: list[str] = []
    no_decay: list[str] = []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            exempt = id(parameter) in of_norms or name.rpartition(".")[2] == "bias"
            (no_decay if exempt else decay).append(name)
    return ParameterGroups(tuple(decay), tuple(no_decay))


def is_norm(module: nn.Module) -> bool:
    """Whether a module is a normalisation layer, torch's or a model's own (`Qwen2RMSNorm`)."""
    return isinstance(module, _NORMS) or type(module).__name__.endswith("Norm")


def optimizer_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Parameter groups for a torch or DeepSpeed optimizer; an empty group is left out."""
    parameters = dict(model.named_parameters())
    groups = split_parameters(model)
    return [
        {"params": [parameters[name] for name in names], "weight_decay": decay}
        for names, decay in ((groups.decay, weight_decay), (groups.no_decay, 0.0))
        if names
    ]


def count_parameters(model: nn.Module) -> int:
    """Values in all parameters, a shared tensor once; also right for ZeRO-3's partitioned ones."""
    return sum(getattr(p, "ds_numel", p.numel()) for p in model.parameters())

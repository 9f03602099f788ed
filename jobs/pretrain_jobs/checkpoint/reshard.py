"""Resharding: a rank's part of a checkpoint that another number of ranks has saved.

The rank's state is put together as DeepSpeed would have written it, element by element from the
saved flat tensors, and goes in through DeepSpeed's ordinary loading. Nothing is converted on disk:
the saved files are mapped, and a rank copies out its own part of fp32 weights and moments. Not for
stage 0, where every rank has everything.

DeepSpeed's own way (`ds_to_universal`) is not taken: it writes the whole state once more as three
files a parameter, and its loader of stage 3 shares one `step` among all parameters and gives every
group the hyperparameters of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from deepspeed.checkpoint.constants import (
    BASE_OPTIMIZER_STATE,
    FP32_FLAT_GROUPS,
    FROZEN_PARAM_FRAGMENTS,
    GROUP_PADDINGS,
    OPTIMIZER_STATE_DICT,
    PARAM_ALIGNMENT_PADDINGS,
    PARAM_SHAPES,
    PARAM_SLICE_MAPPINGS,
    PARTITION_COUNT,
    SINGLE_PARTITION_OF_FP32_GROUPS,
)
from torch import Tensor

from pretrain_jobs.checkpoint import snapshot
from pretrain_jobs.checkpoint.partitions import Partitions, Span
from pretrain_jobs.errors import CheckpointUnusableError

_OF_LAYOUT = (GROUP_PADDINGS, PARAM_ALIGNMENT_PADDINGS, PARAM_SLICE_MAPPINGS, PARTITION_COUNT)
"""Entries of an optimizer's state that tell the layout; all others are the same on every rank."""

Flat = Callable[[int, int], Tensor]
"""The flat tensor of a saved rank and group."""


class Saved:
    """The optimizer states of the saved ranks that this rank needs, mapped from their files."""

    def __init__(self, paths: Mapping[int, Path], partitions: Partitions) -> None:
        """Take each needed rank's file of optimizer states."""
        self.partitions = partitions
        self._states = {
            rank: open_state(path)[OPTIMIZER_STATE_DICT] for rank, path in paths.items()
        }
        self.weights_key, self.optimizer_key = _keys(self.any)

    @property
    def any(self) -> dict[str, Any]:
        """One rank's state, for what is the same on all."""
        state: dict[str, Any] = next(iter(self._states.values()))
        return state

    def weights(self, rank: int, group: int) -> Tensor:
        """A rank's fp32 weights of a group, float32 [n], without padding at stages 1 and 2."""
        tensor: Tensor = self._states[rank][self.weights_key][group]
        return tensor

    def optimizer(self, group: int, rank: int | None = None) -> dict[str, Any]:
        """What the optimizer keeps for a group: moments float32 [n], its step; {} before any."""
        state = self.any if rank is None else self._states[rank]
        base = state[self.optimizer_key]
        kept: dict[str, Any] = base["state"].get(parameter_ids(base)[group], {})
        return kept

    def moments(self, key: str) -> Flat:
        """One of the optimizer's tensors by rank and group."""
        return lambda rank, group: self.optimizer(group, rank)[key]


def reshard(engine: Any, saved: Saved, own: Partitions, rank: int) -> dict[str, Any]:
    """A rank's optimizer state in a fresh engine's layout, as its `state_dict` would be."""
    _require_same_parameters(saved.partitions, own)
    layout = engine.optimizer.state_dict()
    base = layout[saved.optimizer_key]
    groups = saved.any[saved.optimizer_key]["param_groups"]
    return {
        **saved.any,
        **{key: layout[key] for key in _OF_LAYOUT if key in layout},
        saved.weights_key: [
            _gathered(saved, own, rank, number, saved.weights) for number in range(len(own.sizes))
        ],
        saved.optimizer_key: {
            "state": {
                identifier: _optimizer_state(saved, own, rank, number)
                for number, identifier in enumerate(parameter_ids(base))
            },
            "param_groups": [
                {**was, "params": now["params"]}
                for was, now in zip(groups, base["param_groups"], strict=True)
            ],
        },
    }


def load(
    engine: Any, *, model: dict[str, Any], state: dict[str, Any], world_size: int, directory: Path
) -> None:
    """Restore a fresh engine from rank 0's saved model state and a resharded optimizer state.

    A collective. Parameters that do not train keep what they were built with. What DeepSpeed took
    over is compared with what it was given; CheckpointUnusableError if it differs.
    """
    model = {**model, "dp_world_size": world_size, FROZEN_PARAM_FRAGMENTS: None}
    snapshot.load_states(engine, model=model, optimizer=state, directory=directory)
    if difference := next(differences(engine.optimizer.state_dict(), state), ""):
        raise CheckpointUnusableError(
            f"DeepSpeed did not take over the resharded state: {difference}; resume with the "
            "number of ranks that saved the checkpoint"
        )


def open_state(path: Path) -> dict[str, Any]:
    """A saved file whose tensors are mapped, not read; its hash must have been checked."""
    state: dict[str, Any] = torch.load(path, map_location="cpu", mmap=True, weights_only=False)
    return state


def saved_groups(model: Mapping[str, Any]) -> list[dict[str, int]]:
    """Elements of every parameter by group, as a saved model state tells them."""
    return [{name: shape.numel() for name, shape in group.items()} for group in model[PARAM_SHAPES]]


def parameter_ids(base: Mapping[str, Any]) -> list[int]:
    """By flat tensor, the key under which torch's optimizer keeps its state."""
    return [identifier for group in base["param_groups"] for identifier in group["params"]]


def differences(loaded: dict[str, Any], given: dict[str, Any]) -> Iterator[str]:
    """What an optimizer's state has otherwise than it was given, as phrases."""
    weights, optimizer = _keys(given)
    for group, (own, wanted) in enumerate(zip(loaded[weights], given[weights], strict=True)):
        if not torch.equal(own.cpu(), wanted[: own.numel()]):
            yield f"weights of group {group}"
    was, now = given[optimizer], loaded[optimizer]
    if was["param_groups"] != now["param_groups"]:
        yield "hyperparameters"
    addresses = [kept["step"].data_ptr() for kept in now["state"].values() if "step" in kept]
    if len(set(addresses)) != len(addresses):
        yield "groups share a step"
    for identifier, kept in was["state"].items():
        for key, value in kept.items():
            if not _same(now["state"].get(identifier, {}).get(key), value):
                yield f"{key} of parameter {identifier}"


def _keys(state: Mapping[str, Any]) -> tuple[str, str]:
    """Under what an optimizer's state holds its flat weights and torch's state, at its stage."""
    if FP32_FLAT_GROUPS in state:
        return FP32_FLAT_GROUPS, OPTIMIZER_STATE_DICT
    return SINGLE_PARTITION_OF_FP32_GROUPS, BASE_OPTIMIZER_STATE


def _optimizer_state(saved: Saved, own: Partitions, rank: int, number: int) -> dict[str, Any]:
    """Moments gathered for a group; a step of its own, so that no two groups share a tensor."""
    first = own.groups[number][0]
    kept = saved.optimizer(saved.partitions.group(first))
    return {
        key: _gathered(saved, own, rank, number, saved.moments(key))
        if isinstance(value, Tensor) and value.dim()
        else _copy(value)
        for key, value in kept.items()
    }


def _gathered(saved: Saved, own: Partitions, rank: int, number: int, flat: Flat) -> Tensor:
    """A group's flat tensor of this rank, float32 [n], padding zero."""
    result = torch.zeros(own.sizes[number])
    for name in own.groups[number]:
        span = own.span(name, rank)
        if span is None:
            continue
        for owner in saved.partitions.owners(name, span.start, span.stop):
            source = saved.partitions.span(name, owner)
            if source is not None:
                _copy_common(result, span, flat(owner, source.group), source)
    return result


def _copy_common(result: Tensor, wanted: Span, flat: Tensor, source: Span) -> None:
    start, stop = max(wanted.start, source.start), min(wanted.stop, source.stop)
    into, out = wanted.offset - wanted.start, source.offset - source.start
    if source.stop + out > flat.numel():
        raise CheckpointUnusableError(
            f"a flat tensor of the checkpoint has {flat.numel()} elements where at least "
            f"{source.stop + out} are expected; was it saved by another version of DeepSpeed? "
            "Resume with the number of ranks that saved it"
        )
    result[into + start : into + stop] = flat[out + start : out + stop]


def _copy(value: Any) -> Any:
    return value.clone() if isinstance(value, Tensor) else value


def _require_same_parameters(saved: Partitions, own: Partitions) -> None:
    if saved.elements != own.elements:
        names = sorted(dict(saved.elements.items() ^ own.elements.items()))
        raise CheckpointUnusableError(
            f"the checkpoint's parameters are not the model's: they differ in {', '.join(names)}"
        )


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return torch.equal(one.cpu(), other)
    return bool(one == other)

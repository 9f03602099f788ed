"""The state of a DeepSpeed engine as objects by file name, and back from such files.

DeepSpeed decides what its files hold (other tools read them); when, where and whether they are
written is decided here, so its own writing, its `latest` file and its scripts are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from deepspeed.checkpoint.constants import OPTIMIZER_STATE_DICT
from deepspeed.runtime.checkpoint_engine.checkpoint_engine import (
    CheckpointCommitInfo,
    CheckpointEngine,
)

SHARED_FILE = "mp_rank_00_model_states.pt"
"""Rank 0's file that every rank reads, at ZeRO stages 0 to 2."""

MODEL_SUFFIX = "_model_states.pt"
OPTIMIZER_SUFFIX = "_optim_states.pt"
"""How DeepSpeed's names of a rank's files end."""

_TAG = "state"


class _Collector(CheckpointEngine):  # type: ignore[misc]
    """DeepSpeed's checkpoint engine that keeps what it is told to save, and reads plain files.

    Of the files in `given` it hands out the content without reading.
    """

    def __init__(self) -> None:
        super().__init__()
        self.saved: dict[str, Any] = {}
        self.given: Mapping[str, Any] = {}

    def create(self, _info: CheckpointCommitInfo) -> None:
        self.saved = {}

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """Nothing is written, so no directory is needed."""

    def save(self, state_dict: Any, path: str) -> None:
        self.saved[Path(path).name] = state_dict

    def load(self, path: str, map_location: Any = None) -> Any:
        given = self.given.get(Path(path).name)
        return (
            given
            if given is not None
            else torch.load(path, map_location=map_location, weights_only=False)
        )

    def commit(self, _info: CheckpointCommitInfo) -> bool:
        return True


def prepare(engine: Any) -> None:
    """Make an engine's saves go through here; once, after it was built."""
    engine.checkpoint_engine = _Collector()
    engine._copy_recovery_script = _nothing  # noqa: SLF001 - scripts do not belong to a state
    engine._checkpoint_tag_validation = _nothing  # noqa: SLF001 - all ranks use the one tag


def capture(engine: Any) -> dict[str, Any]:
    """The rank's state by file name. A collective; tensors are the live ones, not copies."""
    engine.save_checkpoint(".", tag=_TAG, save_latest=False)
    collector: _Collector = engine.checkpoint_engine
    saved, collector.saved = collector.saved, {}
    return saved


def load(engine: Any, directory: Path) -> None:
    """Restore a fresh engine from a directory with this rank's files. A collective."""
    engine.load_checkpoint(str(directory.parent), tag=directory.name)


def load_states(
    engine: Any, *, model: dict[str, Any], optimizer: dict[str, Any], directory: Path
) -> None:
    """Restore a fresh engine (ZeRO 1 to 3) from states in memory. A collective.

    DeepSpeed looks for files by name before it asks for their content, so it finds empty ones in
    `directory`, which is made.
    """
    rank = engine.global_rank
    own_model = f"zero_pp_rank_{rank}_mp_rank_00{MODEL_SUFFIX}"
    states = {
        own_model if engine.zero_optimization_stage() == 3 else SHARED_FILE: model,
        f"zero_pp_rank_{rank}_mp_rank_00{OPTIMIZER_SUFFIX}": {OPTIMIZER_STATE_DICT: optimizer},
    }
    directory.mkdir(parents=True)
    for name in states:
        (directory / name).touch()
    engine.checkpoint_engine.given = states
    load(engine, directory)
    engine.checkpoint_engine.given = {}


def parameter_groups(engine: Any) -> list[dict[str, int]]:
    """Elements of every trained parameter by name, for each of the engine's flat tensors."""
    shapes = engine._get_zero_param_shapes()  # noqa: SLF001 - what it saves as `param_shapes`
    return [{name: shape.numel() for name, shape in group.items()} for group in shapes]


def _nothing(_argument: str) -> None:
    """Stand in for what DeepSpeed does around a save that is of no use here."""

"""The ledger: which samples each step of each rank consumed, for tests that kill and compare.

It is written only where `PRETRAIN_LEDGER_DIR` is set: one file per rank and generation, a JSON
line per step, each in one write, so that a killed process leaves whole lines.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from pretrain_jobs.train.data import Step

LEDGER_ENV = "PRETRAIN_LEDGER_DIR"
"""Environment variable with the ledger's directory."""


class Ledger:
    """Appends a rank's steps to its file; does nothing without a directory."""

    def __init__(self, directory: Path | None, *, rank: int, generation: int) -> None:
        self._rank = rank
        self._stream: int | None = None
        if directory is not None:
            path = directory / f"generation-{generation:06d}-rank-{rank:05d}.jsonl"
            self._stream = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str], *, rank: int, generation: int
    ) -> Self:
        """The ledger that a test asked for, or one that writes nothing."""
        directory = environment.get(LEDGER_ENV)
        return cls(Path(directory) if directory else None, rank=rank, generation=generation)

    def write(self, number: int, step: Step) -> None:
        """Note the samples of optimizer step `number`."""
        if self._stream is None:
            return
        entry = {
            "step": number,
            "rank": self._rank,
            "samples": step.sample_ids.tolist(),
            "epochs": step.epochs.tolist(),
        }
        os.write(self._stream, json.dumps(entry, separators=(",", ":")).encode() + b"\n")

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None:
            os.close(self._stream)
            self._stream = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

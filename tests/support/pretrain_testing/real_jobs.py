"""The smallest job whose stages are the real ones, for tests of the command with all it starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from pretrain_testing.local import CommandRun
from pretrain_testing.tokenizer_texts import texts

SMALLEST: dict[str, Any] = {
    "corpus": {"sources": [{"uri": "corpus/a.txt"}]},
    "tokenizer": {"train": {"vocabSize": 300}},
    "preprocess": {"sequenceLength": 32},
    "model": {
        "architecture": "bert",
        "config": {
            "hidden_size": 32,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "intermediate_size": 32,
        },
    },
    "training": {"globalBatchSize": 4, "maxSteps": 4, "logging": {"tensorboard": False}},
    "checkpoint": {"everySteps": 2},
    "failurePolicy": {"backoff": {"initialSeconds": 0, "maximumSeconds": 0}},
}

CORPUS = "\n\n".join(texts()).encode()
"""Plain text, its documents parted by blank lines."""


@dataclass(frozen=True)
class RealJob(CommandRun):
    """A job file and its working directory; by default the corpus lies in that one's storage."""

    @property
    def storage(self) -> Path:
        """Where the job's files lie, unless its spec says otherwise."""
        return self.workdir / "storage"

    def write(self, **sections: Any) -> None:
        """Write the manifest: the smallest job with some sections in place of its own."""
        self.write_manifest({**SMALLEST, **sections})

    def write_corpus(self, data: bytes = CORPUS, *, name: str = "a.txt") -> Path:
        """Put a file where the job looks for its corpus."""
        path = self.storage / "corpus" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def write_manifest(self, spec: dict[str, Any]) -> None:
        manifest = {
            "apiVersion": "pretrain.dev/v1alpha1",
            "kind": "PretrainJob",
            "metadata": {"name": "smallest"},
            "spec": spec,
        }
        self.file.write_text(yaml.safe_dump(manifest, sort_keys=False), encoding="utf-8")

"""What the builders need to know of one attempt; a value that the plan or `render` makes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from pretrain_api.job import PretrainJob
from pretrain_api.reports import StageName
from pretrain_api.spec.lifecycle import LocalVolumeSpec
from pretrain_api.spec.storage import StorageSpec
from pretrain_api.timesheet import EarlierAttempts

from pretrain_operator.children.names import child_name
from pretrain_operator.observed import Settings

SHARED_PORTS = range(20_000, 30_000)
"""Ports for pods that share a network: below the kernel's ephemeral ones, above well-known ones."""

SHARED_PROGRESS_PORTS = range(16_000, 20_000)
"""The like for progress and metrics, so that the two never meet."""


@dataclass(frozen=True)
class StageArtifact:
    """Where a stage's output lies, or will lie."""

    fingerprint: str = ""
    uri: str = ""


@dataclass(frozen=True)
class Attempt:
    """One attempt of one stage.

    `job.spec` is resolved, with absolute URIs and its storage set (`children.resolved`).
    `completions` is the number of slices of a preprocess attempt, of workers of a train attempt,
    and 1 elsewhere. No pod is placed on a node of `avoided_nodes`; workers that leave checkpoints
    on their nodes go rather to `last_nodes`. A train attempt is told of `earlier` ones.
    """

    job: PretrainJob
    stage: StageName
    number: int
    completions: int
    artifacts: Mapping[StageName, StageArtifact]
    storage: StorageSpec
    settings: Settings
    avoided_nodes: tuple[str, ...] = ()
    last_nodes: tuple[str, ...] = ()
    earlier: EarlierAttempts | None = None

    @property
    def name(self) -> str:
        """Name of the attempt's Job, ConfigMap and Service."""
        metadata = self.job.metadata
        return child_name(
            job=metadata.name, uid=metadata.uid, stage=self.stage, attempt=self.number
        )

    @property
    def is_gang(self) -> bool:
        """Whether the attempt's pods find each other by name."""
        return self.stage == "train" and self.completions > 1

    @property
    def uses_host_network(self) -> bool:
        """Whether the pods share their nodes' network."""
        return self.stage == "train" and self.job.spec.workers.network.host_network

    @property
    def local_volume(self) -> LocalVolumeSpec | None:
        """Where the pods leave checkpoints for the next attempt; only training's do."""
        return self.job.spec.checkpoint.local_volume if self.stage == "train" else None

    @property
    def rendezvous_port(self) -> int:
        """Rank 0's port: fixed on a pod network, another one for each attempt on a shared one."""
        if self.settings.shared_network or self.uses_host_network:
            return _shared_port(self.job.metadata.uid, self.number, SHARED_PORTS)
        return self.settings.rendezvous_port

    @property
    def progress_port(self) -> int | None:
        """Where a pod serves progress and metrics; None on the local backend, which reads files."""
        if self.settings.shared_network:
            return None
        if self.uses_host_network:
            return _shared_port(self.job.metadata.uid, self.number, SHARED_PROGRESS_PORTS)
        return self.settings.progress_port

    def artifact(self, stage: StageName) -> StageArtifact:
        """The artifact of a stage, empty while nobody knows it."""
        return self.artifacts.get(stage, StageArtifact())


def _shared_port(uid: str, attempt: int, ports: range) -> int:
    digest = hashlib.sha256(f"{uid}/{attempt}".encode()).digest()
    return ports[int.from_bytes(digest[:4], "big") % len(ports)]

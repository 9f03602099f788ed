"""Volumes of a stage's pod and where its container mounts them."""

from __future__ import annotations

from typing import Any

from pretrain_api.spec.lifecycle import LocalVolumeSpec

from pretrain_operator.children.attempt import Attempt

CONFIG_PATH = "/etc/pretrain"
CA_PATH = "/etc/pretrain-ca"
CA_FILE = f"{CA_PATH}/ca.crt"
TEMPORARY_PATH = "/tmp"  # noqa: S108 - a private emptyDir of the pod, the only writable directory
SHARED_MEMORY_PATH = "/dev/shm"  # noqa: S108 - where NCCL and data loaders share memory
LOCAL_CHECKPOINTS = "local-checkpoints"
LOCAL_CHECKPOINTS_PATH = "/pretrain/checkpoints"
OWNED_VOLUMES = frozenset({"config", "tmp", "shm", "ca", LOCAL_CHECKPOINTS})
OWNED_MOUNTS = frozenset(
    {CONFIG_PATH, CA_PATH, TEMPORARY_PATH, SHARED_MEMORY_PATH, LOCAL_CHECKPOINTS_PATH}
)


def pod_volumes(attempt: Attempt) -> list[dict[str, Any]]:
    """`volumes` of the pod."""
    volumes: list[dict[str, Any]] = [
        {"name": "config", "configMap": {"name": attempt.name}},
        {"name": "tmp", "emptyDir": {}},
    ]
    if attempt.stage == "train":
        volumes.append({"name": "shm", "emptyDir": _memory(attempt.job.spec.workers.shared_memory)})
    if attempt.storage.ca_bundle is not None:
        volumes.append({"name": "ca", "configMap": {"name": attempt.storage.ca_bundle}})
    if attempt.local_volume is not None:
        volumes.append({"name": LOCAL_CHECKPOINTS, **_source(attempt.local_volume)})
    return volumes


def volume_mounts(attempt: Attempt) -> list[dict[str, Any]]:
    """`volumeMounts` of the stage's container."""
    mounts: list[dict[str, Any]] = [
        {"name": "config", "mountPath": CONFIG_PATH, "readOnly": True},
        {"name": "tmp", "mountPath": TEMPORARY_PATH},
    ]
    if attempt.stage == "train":
        mounts.append({"name": "shm", "mountPath": SHARED_MEMORY_PATH})
    if attempt.storage.ca_bundle is not None:
        mounts.append({"name": "ca", "mountPath": CA_PATH, "readOnly": True})
    if attempt.local_volume is not None:
        mounts.append({"name": LOCAL_CHECKPOINTS, "mountPath": LOCAL_CHECKPOINTS_PATH})
    return mounts


def _source(volume: LocalVolumeSpec) -> dict[str, Any]:
    """A directory that is missing holds the pod back with an event: the kubelet's would be root's.

    Which of them is given, and that it is one, the spec's rules see to.
    """
    if volume.host_path is not None:
        return {"hostPath": {"path": volume.host_path.path, "type": "Directory"}}
    claim = volume.persistent_volume_claim
    return {"persistentVolumeClaim": {"claimName": claim.claim_name if claim else ""}}


def _memory(size: str) -> dict[str, str]:
    return {"medium": "Memory", "sizeLimit": size}

"""Environment of a stage's container; what the rendezvous owns, no pod template may set."""

from __future__ import annotations

import re
from typing import Any

from pretrain_api.reports import (
    LOCAL_CHECKPOINTS_ENV,
    NODE_ENV,
    PROGRESS_FILE_ENV,
    PROGRESS_PORT_ENV,
    TERMINATION_LOG_ENV,
)
from pretrain_api.spec.storage import StorageSpec

from pretrain_operator.children.attempt import Attempt
from pretrain_operator.children.volumes import (
    CA_FILE,
    LOCAL_CHECKPOINTS_PATH,
    TEMPORARY_PATH,
)

TERMINATION_LOG_PATH = "/dev/termination-log"

EnvVar = dict[str, Any]
OWNED_ENVIRONMENT = re.compile(
    r"PRETRAIN_.*|PET_.*|TORCHELASTIC_.*|MASTER_ADDR|MASTER_PORT|RANK|WORLD_SIZE|LOCAL_RANK"
    r"|LOCAL_WORLD_SIZE|GROUP_RANK|GROUP_WORLD_SIZE|ROLE_RANK|ROLE_WORLD_SIZE|NODE_RANK|NNODES"
    r"|NPROC_PER_NODE|JOB_COMPLETION_INDEX|OMP_NUM_THREADS|TORCH_DISABLE_SHARE_RDZV_TCP_STORE"
)
"""Names that decide who a process is, whom it meets and how its sums are rounded."""

_TRAINING = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
"""A shared rendezvous store would leave a restarted worker with a stale address."""


_NODE: EnvVar = {
    "name": NODE_ENV,
    "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}},
}
"""For the sentence that tells which rank is slow, and where."""

_NCCL: dict[str, dict[str, str]] = {
    "none": {},
    "ethernet": {"NCCL_NET": "Socket"},
    "infiniband": {"NCCL_NET": "IB"},
    "efa": {"NCCL_NET": "AWS Libfabric", "FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1"},
}
"""By profile, from NCCL's list of environment variables and that of the aws-ofi-nccl plugin, which
an image for efa has to hold. A network that is named and not there is an error; left to choose,
NCCL would fall back to a slower one without a word."""


def stage_environment(attempt: Attempt) -> list[EnvVar]:
    """Names and values, and of a worker its node; Kubernetes itself adds the completion index."""
    port = attempt.progress_port
    values = {
        PROGRESS_FILE_ENV: f"{TEMPORARY_PATH}/progress.json",
        **({PROGRESS_PORT_ENV: str(port)} if port else {}),
        TERMINATION_LOG_ENV: TERMINATION_LOG_PATH,
        "PYTHONUNBUFFERED": "1",
        "HOME": TEMPORARY_PATH,
        "TMPDIR": TEMPORARY_PATH,
        "OMP_NUM_THREADS": str(attempt.job.spec.workers.threads_per_process),
        **_storage(attempt.storage),
        **(_training(attempt) if attempt.stage == "train" else {}),
    }
    plain: list[EnvVar] = [{"name": name, "value": value} for name, value in values.items()]
    return [*plain, _NODE] if attempt.stage == "train" else plain


def credentials(storage: StorageSpec) -> list[dict[str, dict[str, str]]]:
    """`envFrom` of the container: credentials reach a pod by reference to a Secret only."""
    if storage.credentials_secret is None:
        return []
    return [{"secretRef": {"name": storage.credentials_secret}}]


def _training(attempt: Attempt) -> dict[str, str]:
    """A pod template may set NCCL's and libfabric's own names otherwise."""
    nccl = _NCCL[attempt.job.spec.workers.network.nccl_profile]
    local = {LOCAL_CHECKPOINTS_ENV: LOCAL_CHECKPOINTS_PATH} if attempt.local_volume else {}
    return {**_TRAINING, **nccl, **local}


def _storage(storage: StorageSpec) -> dict[str, str]:
    region = storage.region
    values = {"AWS_REGION": region, "AWS_DEFAULT_REGION": region} if region else {}
    if storage.ca_bundle is not None:
        values["AWS_CA_BUNDLE"] = CA_FILE
    return values

"""Whether a rank that is to train on CUDA has a device; asked before anything is built on it."""

from __future__ import annotations

import torch
from pretrain_api.resolve import accelerators
from pretrain_api.spec.workers import WorkersSpec

from pretrain_jobs.errors import InfrastructureError, UserError


def require_devices(workers: WorkersSpec, *, local_rank: int) -> None:
    """Do nothing if the rank's device is there, or none is wanted.

    UserError when the image or the spec leaves no chance of one, InfrastructureError when devices
    were asked for and the node has not given them: another node may.
    """
    if workers.device != "cuda":
        return
    if not torch.backends.cuda.is_built():  # type: ignore[no-untyped-call]
        raise UserError(
            f"spec.workers.device is cuda, and this image's torch {torch.__version__} is built "
            "without CUDA: set spec.workers.image to one with it, or spec.workers.device to cpu"
        )
    count = torch.cuda.device_count()
    if count <= local_rank:
        raise _missing(workers, local_rank=local_rank, count=count)


def _missing(
    workers: WorkersSpec, *, local_rank: int, count: int
) -> UserError | InfrastructureError:
    asked = accelerators(workers.resources)
    what = f"this rank needs CUDA device {local_rank}, and {count} are in its pod"
    if not asked:
        return UserError(
            f"{what}: ask for them in spec.workers.resources.limits, such as nvidia.com/gpu: "
            f"{workers.processes_per_worker}, or set spec.workers.device to cpu"
        )
    names = ", ".join(sorted(asked))
    return InfrastructureError(f"{what}, though it asks for {names}: look at the node's driver")

"""`spec.workers`: the gang that trains."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from pretrain_api.base import ApiModel

Quantity = Annotated[str, Field(max_length=32, pattern=r"^[0-9]+(\.[0-9]+)?(m|[kKMGTPE]i?)?$")]
QuantityMap = Annotated[dict[str, Annotated[int, Field(ge=0)] | Quantity], Field(max_length=32)]


class ResourcesSpec(ApiModel):
    """Requests and limits as in core/v1; any accelerator resource name is accepted."""

    requests: QuantityMap = Field({}, description="What a pod is sure to get.")
    limits: QuantityMap = Field({}, description="What a pod gets at most.")


class NetworkSpec(ApiModel):
    """Opt-in access to fast networks."""

    host_network: bool = Field(False, description="Pods use their node's network.")
    rdma_resources: QuantityMap = Field(
        {}, description="RDMA devices of a worker, such as rdma/hca: 1 or vpc.amazonaws.com/efa: 4."
    )
    nccl_profile: Literal["none", "ethernet", "infiniband", "efa"] = Field(
        "none",
        description="The network that NCCL must use; none lets it choose, and fall back.",
    )


class WorkersSpec(ApiModel):
    """`replicas` pods of `processesPerWorker` ranks each."""

    replicas: Annotated[int, Field(ge=1, le=4096)] = Field(
        1, description="Pods. Can be changed (kubectl scale); training goes on with another number."
    )
    processes_per_worker: Annotated[int, Field(ge=1, le=64)] = Field(
        1, description="Ranks of a pod, one for each of its devices."
    )
    threads_per_process: Annotated[int, Field(ge=1, le=256)] = Field(
        1, description="Intra-op threads of a rank; sums depend on it, so it is never guessed."
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto", description="auto: cuda when resources ask for an accelerator, else cpu."
    )
    resources: ResourcesSpec = ResourcesSpec()
    shared_memory: Quantity = Field("1Gi", description="Size of /dev/shm.")
    network: NetworkSpec = NetworkSpec()
    image: Annotated[str, Field(max_length=1024)] | None = Field(
        None, description="Image of the workers; the operator's own when left out."
    )
    pod_template: dict[str, Any] | None = Field(
        None, description="Strategic overrides of the pod (core/v1 PodTemplateSpec)."
    )

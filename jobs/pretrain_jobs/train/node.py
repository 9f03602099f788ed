"""What the launcher gives to the processes of its node: directories, environment, arguments.

Everything is a function of the config and of this node's place in the gang; nothing is started.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pretrain_api.reports import TERMINATION_LOG_ENV
from pretrain_api.stages import TrainStageConfig

from pretrain_jobs.errors import UserError
from pretrain_jobs.process import INDEX_ENV
from pretrain_jobs.train.rendezvous import is_loopback

SCRATCH_ENV = "PRETRAIN_SCRATCH"
"""Environment variable with the node's directory for files that need not survive."""

SHUTDOWN_SECONDS = 3600
"""How long torchrun waits for its workers after SIGTERM. Not its business: the pod's grace ends
sooner, and a preemption save must not be cut short by torchrun's own 30 s."""

MONITOR_SECONDS = 0.2
"""How often torchrun looks after its workers."""


@dataclass(frozen=True)
class Node:
    """One node of the gang: its number, rank 0's address, and its directory."""

    number: int
    master: str
    scratch: Path

    @property
    def reports(self) -> Path:
        """Where each rank leaves its process id and its report."""
        return self.scratch / "ranks"

    @property
    def endings(self) -> Path:
        """Where the agent tells how its workers ended."""
        return self.scratch / "endings.json"


def node_number(environment: Mapping[str, str], replicas: int) -> int:
    """The index of this pod; UserError when it does not fit the gang."""
    text = environment.get(INDEX_ENV, "0")
    if not text.isdecimal() or int(text) >= replicas:
        raise UserError(f"{INDEX_ENV} is {text!r}; expected a number below {replicas} replicas")
    return int(text)


def worker_environment(
    config: TrainStageConfig, node: Node, environment: Mapping[str, str]
) -> dict[str, str]:
    """The environment of torchrun and its workers: what was inherited, and what is ours to set.

    Threads come from the job, never from the machine: sums depend on them.
    """
    threads = str(config.workers.threads_per_process)
    own = {
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
        "TOKENIZERS_PARALLELISM": "false",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        "TRITON_CACHE_DIR": str(node.scratch / "triton"),
        "TORCH_EXTENSIONS_DIR": str(node.scratch / "extensions"),
        "HF_HUB_OFFLINE": "1",
        SCRATCH_ENV: str(node.scratch),
        TERMINATION_LOG_ENV: str(node.reports / "unknown-rank.json"),
    }
    if config.workers.device != "cuda":
        own |= {"DS_ACCELERATOR": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    if is_loopback(node.master):
        own |= {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "lo"}
    return {**environment, **own}


def agent_command(
    config: TrainStageConfig, node: Node, config_path: Path, *, launcher_pid: int
) -> list[str]:
    """The command of the agent: torchrun with a static rendezvous, and the worker's command."""
    rendezvous = config.rendezvous
    torchrun = {
        "--nnodes": config.workers.replicas,
        "--node-rank": node.number,
        "--nproc-per-node": config.workers.processes_per_worker,
        "--rdzv-backend": "static",
        "--rdzv-id": rendezvous.run_id,
        "--rdzv-conf": f"timeout={rendezvous.timeout_seconds}",
        "--master-addr": node.master,
        "--master-port": rendezvous.port,
        "--max-restarts": 0,
        "--monitor-interval": MONITOR_SECONDS,
        "--log-dir": node.scratch / "torchrun",
        "--shutdown-timeout": SHUTDOWN_SECONDS,
    }
    options = [f"{name}={value}" for name, value in torchrun.items()]
    agent = ["-m", "pretrain_jobs.train.agent", str(launcher_pid), str(node.endings)]
    worker = ["-m", "pretrain_jobs", "train-worker", "--config", str(config_path)]
    return [sys.executable, *agent, *options, *worker]

"""What is read off running processes: CPU, memory, and the operator's own count of requests."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from bed import processes
from bed.profile import Profile
from pretrain_testing.operator_process import OperatorProcess

CONTROL_PLANE = (
    "kube-controller-manager",
    "kube-apiserver",
    "etcd",
    "kube-scheduler",
    "kwok",
)
_REQUESTS = "pretrain_operator_api_requests_total"
_BACKGROUND = ("leases", "discovery")
"""Resources asked for whether there are jobs or not."""

_STILL_SECONDS = 0.5
_STILL_SHARE = 0.1


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far, in user and in kernel mode."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def yardstick_ms() -> float:
    """CPU-milliseconds that a loop of a million additions takes here and now.

    The same code costs several times as much on a slow machine, or beside a neighbour on the same
    core; divided by this, figures of two runs can be compared.
    """
    before, total = time.thread_time(), 0
    for number in range(1_000_000):
        total += number
    return 1000 * (time.thread_time() - before)


def peak_megabytes(pid: int) -> float:
    """The most memory that a process ever had resident (VmHWM), in units of 2^20 bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM:"))
    return int(peak.split()[1]) / 1024


def wait_until_still(pid: int, *, limit: float = 30.0) -> None:
    """Let a process finish what it is at: until it uses less than a tenth of a CPU."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        before = cpu_seconds(pid)
        time.sleep(_STILL_SECONDS)
        if cpu_seconds(pid) - before < _STILL_SECONDS * _STILL_SHARE:
            return


@contextmanager
def cpu_of_parts(bed: Profile) -> Iterator[dict[str, float]]:
    """CPU-seconds of each part of the control plane in the block; filled in at its end."""
    pids = {name: processes.running(bed, name) for name in CONTROL_PLANE}
    before = {name: cpu_seconds(pid) for name, pid in pids.items() if pid}
    used: dict[str, float] = {}
    yield used
    used |= {name: cpu_seconds(pid) - before[name] for name, pid in pids.items() if pid}


def requests_by_verb(operator: OperatorProcess) -> dict[str, float]:
    """Requests of an operator for jobs so far: `VERB RESOURCE` to their number.

    Watches are left out, as are the Lease and discovery.
    """
    counts: dict[str, float] = {}
    for sample in operator.samples():
        labels = sample.labels
        if sample.name != _REQUESTS or labels["verb"] == "watch":
            continue
        if labels["resource"] not in _BACKGROUND:
            name = f"{labels['verb']} {labels['resource']}"
            counts[name] = counts.get(name, 0.0) + sample.value
    return dict(sorted(counts.items()))

"""Faults that end a job, after as many attempts as their cause may have, and one that does not."""

from __future__ import annotations

from typing import Any

from pretrain_testing.cluster_signs import applied, evicted, failed, unschedulable
from pretrain_testing.fault import QUICK, SCHEDULER_SECONDS, Fault, budget, preprocess_pod
from pretrain_testing.fault_world import PREPROCESS_IMAGE, broken_python

ONE: dict[str, Any] = {"replicas": 1}

FAILS = (
    Fault(
        "invalid",
        "a spec that cannot work",
        "UserError",
        "Failed at once; no pod is made.",
        applied(),
        r"preprocess.sequenceLength",
        {"preprocess": {"sequenceLength": 100_000}},
        reason="UserError",
    ),
    Fault(
        "configuration",
        "a configuration that only a stage can find wrong",
        "UserError",
        "Failed; not tried again.",
        failed(),
        r"ended with UserError: tokenizer.uri .* has neither tokenizer.json nor vocab.txt",
        {"tokenizer": {"uri": "tokenizers/none"}},
        reason="UserError",
    ),
    Fault(
        "corpus",
        "a corpus that is not there",
        "DataError",
        "Failed; not tried again.",
        failed(),
        r"ended with DataError: .*corpus/none.jsonl",
        {"corpus": {"sources": [{"uri": "corpus/none.jsonl"}]}},
        reason="DataError",
    ),
    Fault(
        "disk",
        "a pod that uses more disk than it may",
        "StorageUnavailable",
        "Failed; not tried again. A pod that is evicted because its node is low on disk is "
        "`Infrastructure`, and tried again.",
        evicted(),
        r"was evicted for using more disk than it may: Usage of EmptyDir volume \"scratch\"",
        preprocess_pod(
            initContainers=[
                {
                    "name": "fill",
                    "image": PREPROCESS_IMAGE,
                    "imagePullPolicy": "Never",
                    "command": [
                        "python",
                        "-c",
                        "open('/scratch/a', 'wb').write(bytes(8 << 20)); import time; "
                        "time.sleep(3600)",
                    ],
                    "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
                }
            ],
            volumes=[{"name": "scratch", "emptyDir": {"sizeLimit": "1Mi"}}],
            terminationGracePeriodSeconds=1,
        ),
        reason="StorageUnavailable",
    ),
    Fault(
        "memory",
        "a rank that reaches the memory limit, below the container's first process",
        "OutOfMemory",
        "Tried again, 3 times; then Failed.",
        failed(),
        r"ended with OutOfMemory: rank 0 was killed \(SIGKILL\) .* memory limit",
        {
            "workers": {
                **ONE,
                "resources": {"limits": {"memory": "1536Mi"}},
                "podTemplate": broken_python("memory"),
            },
            "failurePolicy": budget("OutOfMemory", 0),
        },
        reason="OutOfMemory",
        trains=True,
    ),
    Fault(
        "cuda",
        "CUDA asked for where there is no device",
        "UserError",
        "Failed; not tried again.",
        failed(),
        r"ended with UserError: rank 0: .*CUDA",
        {"workers": {**ONE, "device": "cuda"}},
        reason="UserError",
        trains=True,
    ),
    Fault(
        "gpu",
        "GPUs asked for that no node has",
        "Quota",
        "Waits; Failed after `pendingDeadlineSeconds`, if that is set.",
        unschedulable(),
        r"Rank 0 .*waiting \(Unschedulable\): .*Insufficient nvidia.com/gpu",
        {"workers": {"resources": {"limits": {"nvidia.com/gpu": 1}}}, "pendingDeadlineSeconds": 10},
        reason="PendingDeadlineExceeded",
        seconds=SCHEDULER_SECONDS,
        trains=True,
    ),
    Fault(
        "exits",
        "a worker that always ends with exit code 1",
        "Unknown",
        "Tried again, 3 times; then Failed, with the last lines of the rank that failed first.",
        failed(),
        r"Rank [01] on node .* ended with exit code 1: .*licence .* has expired\s+giving up",
        {
            "workers": {"podTemplate": broken_python("exit")},
            "failurePolicy": budget("Unknown", 1),
        },
        reason="Unknown",
        restarts={"Unknown": 1},
        trains=True,
    ),
    Fault(
        "names",
        "names in DNS that never resolve",
        "Infrastructure",
        "Tried again, 10 times; then Failed.",
        failed(),
        r"rank 0 at .* was not reached within 5 s: the name does not resolve",
        {
            "workers": {
                "podTemplate": {
                    "spec": {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["127.0.0.1"]}}
                }
            },
            "failurePolicy": {
                "rendezvousTimeoutSeconds": 5,
                **budget("Infrastructure", 0),
            },
        },
        reason="Infrastructure",
        trains=True,
    ),
)

HANG_SECONDS = 30
HANG = Fault(
    "hang",
    "a rank that hangs (stopped by SIGSTOP)",
    "Hang",
    "All pods go, and the next attempt resumes from the newest checkpoint; 3 times, then Failed.",
    applied(),
    rf"no training step ended in {HANG_SECONDS} s.*rank 1 is stopped \(SIGSTOP\)",
    {
        "training": {"maxSteps": 20_000, "evaluation": {"everySteps": 20_000}},
        "checkpoint": {"everySteps": 20},
        "failurePolicy": {"hang": {"timeoutSeconds": HANG_SECONDS}, **QUICK},
        "workers": {"podTemplate": {"spec": {"terminationGracePeriodSeconds": 2}}},
    },
    restarts={"Hang": 1},
    seconds=SCHEDULER_SECONDS,
)
"""It trains until a rank of it is stopped; its dataset is that of all jobs that train."""

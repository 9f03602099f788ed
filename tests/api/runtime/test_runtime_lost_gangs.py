"""What a broken gang costs the API server, however many workers it had; about ten seconds."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from bed.cluster import Bed
from pretrain_testing.operator_process import OperatorProcess
from pretrain_testing.played_pods import PlayedJob

WRITES = {"create", "update", "patch", "delete"}
WRITES_A_RESTART = 10
NEVER = "3600"
"""Mere figures are told once a poll, whatever happens; here they are left out."""

Start = Callable[..., OperatorProcess]


def writes(bed: Bed, namespace: str) -> Counter[str]:
    """What the operator has written in a namespace so far, by verb and resource; not its Lease."""
    events = (json.loads(line) for line in bed.audit_log.read_text().splitlines())
    return Counter(
        f"{event['verb']} {resource_of(event)}"
        for event in events
        if event["verb"] in WRITES
        and event["user"]["username"] == f"system:serviceaccount:{namespace}:pretrain-operator"
        and resource_of(event) != "leases"
    )


def resource_of(event: dict[str, Any]) -> str:
    return str(event["objectRef"]["resource"])


@pytest.mark.parametrize(("workers", "lost"), [(2, 1), (32, 30)])
def test_workers_lost_in_one_second_are_one_restart_and_few_writes_whatever_their_number(
    bed: Bed, start_operator: Start, own_job: PlayedJob, workers: int, lost: int
):
    start_operator(PRETRAIN_OPERATOR_POLL_SECONDS=NEVER).wait_until_leading()
    own_job.create(
        workers={"replicas": workers},
        training={"globalBatchSize": workers},
        failurePolicy={"backoff": {"initialSeconds": 0}},
    )
    own_job.train()
    before = writes(bed, own_job.namespace)

    names = [pod["metadata"]["name"] for pod in own_job.pods("train")[:lost]]
    at_once = ("--wait=false", "--ignore-not-found")
    bed.kubectl("delete", "pods", *names, *at_once, f"--namespace={own_job.namespace}")
    new = own_job.pods("train", attempt=1)

    assert len(new) == workers
    made = writes(bed, own_job.namespace) - before
    assert made.total() <= WRITES_A_RESTART, made
    assert sum(own_job.status()["restarts"].values()) == 1

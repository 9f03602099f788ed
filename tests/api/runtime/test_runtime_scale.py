"""One job with a thousand workers: pods of a real Job controller and scheduler, played by KWOK."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

from bed.cluster import Bed
from bed.kwok import NODE_LABEL
from pretrain_testing.operator_process import OperatorProcess
from pretrain_testing.played_pods import PlayedJob
from pretrain_testing.processes import wait_for

Start = Callable[..., OperatorProcess]
WORKERS = 1000
NODES = 4
PATIENCE = "8m"
"""Far more than the Job controller, the scheduler and KWOK take, on a busy machine too."""

STATUS_BYTES = 64 * 1024
WRITES_AN_ATTEMPT = 10
"""Of status, however many pods there are: the gang's, and a few of the job beside it."""

FIRST_CHILD_SECONDS = 30
"""How long a job may wait for its first child while a gang comes into being."""

SMALL = {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"cpu": "10m", "memory": "16Mi"}}
ON_SIMULATED_NODES = {
    "metadata": {"annotations": {"simulated.pretrain.dev/run": "10h"}},
    "spec": {"tolerations": [{"key": NODE_LABEL, "operator": "Exists"}]},
}
"""For workers alone: pods of the other stages get no node, and the test plays them."""


def wait_for_workers(bed: Bed, own_job: PlayedJob) -> None:
    """Wait until every worker is ready, with one watch: looking again and again slows them."""

    def name_of_training() -> str | None:
        names = (child["metadata"]["name"] for child in own_job.objects("jobs"))
        return next((name for name in names if name.endswith("-train-0")), None)

    name = wait_for("the Job of the training", name_of_training)
    ready = f"--for=jsonpath={{.status.ready}}={WORKERS}"
    bed.kubectl("wait", f"job/{name}", ready, f"-n={own_job.namespace}", f"--timeout={PATIENCE}")


def status_writes(operator: OperatorProcess) -> float:
    return operator.metric("pretrain_operator_api_requests_total", resource="pretrainjobs/status")


def seconds_to_first_child(job: PlayedJob) -> float:
    """From a job's creation to that of its first child, by the API server's clock."""
    began, children = job.raw(), job.objects("jobs")
    first = min(map(created_at, children))
    return (first - created_at(began)).total_seconds()


def created_at(raw: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(raw["metadata"]["creationTimestamp"])


def test_a_gang_of_a_thousand_costs_no_more_writes_than_one_of_two_and_keeps_nobody_waiting(
    bed: Bed, start_operator: Start, own_job: PlayedJob, simulate_nodes: Callable[[int], None]
):
    simulate_nodes(NODES)
    operator = start_operator(PRETRAIN_OPERATOR_POLL_SECONDS="3600")
    operator.wait_until_leading().wait_until_ready()
    own_job.create(
        workers={"replicas": WORKERS, "resources": SMALL, "podTemplate": ON_SIMULATED_NODES},
        training={"globalBatchSize": WORKERS},
    )
    own_job.succeed("tokenizer")
    own_job.succeed("preprocess")

    before = status_writes(operator)
    beside = PlayedJob(own_job.api, own_job.namespace, name="beside").create()
    wait_for_workers(bed, own_job)
    status = own_job.wait_for_phase("Training")
    assert status["workers"] == {**status["workers"], "ready": WORKERS, "desired": WORKERS}
    assert len(json.dumps(status)) < STATUS_BYTES
    assert status_writes(operator) - before <= WRITES_AN_ATTEMPT
    assert seconds_to_first_child(beside) <= FIRST_CHILD_SECONDS

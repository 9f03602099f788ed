"""What the API server refuses becomes a sentence in status, and never a loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bed.cluster import Bed
from pretrain_testing.operator_process import OperatorProcess
from pretrain_testing.played_pods import PlayedJob
from pretrain_testing.processes import wait_for

Start = Callable[..., OperatorProcess]
UNLIMITED_GPU = {
    "spec": {
        "containers": [{"name": "main", "resources": {"requests": {"nvidia.com/gpu": "1"}}}],
    }
}
AS_ROOT = {"spec": {"securityContext": {"runAsUser": 0, "runAsNonRoot": False}}}


def wait_for_condition(job: PlayedJob, name: str, **fields: Any) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        condition = job.condition(name)
        return condition if fields.items() <= condition.items() else None

    return wait_for(f"{name} with {fields}", look)


def test_a_child_that_is_refused_leaves_nothing_behind_and_an_edit_mends_it(
    operator: OperatorProcess, job: PlayedJob
):
    job.create(preprocess={"podTemplate": UNLIMITED_GPU})
    refused = wait_for_condition(job, "Accepted", status="False", reason="AdmissionDenied")
    assert "spec.template.spec.containers[0].resources" in refused["message"]
    assert refused["observedGeneration"] == 1
    wait_for("the end of the ConfigMap", lambda: job.objects("configmaps") == [])
    before = operator.requests()
    operator.wait_for_resyncs()
    assert operator.requests() == before

    uid = job.raw()["metadata"]["uid"]
    job.edit(preprocess={"podTemplate": None})
    wait_for_condition(job, "Accepted", status="True", observedGeneration=2)
    assert job.pods("tokenizer", attempt=1)
    assert job.raw()["metadata"]["uid"] == uid


def test_pods_that_pod_security_refuses_are_told_with_the_rule(
    operator: OperatorProcess, job: PlayedJob
):
    job.create(preprocess={"podTemplate": AS_ROOT})
    refused = wait_for_condition(job, "Accepted", status="False", reason="AdmissionDenied")
    assert "runAsNonRoot" in refused["message"]


def test_a_quota_is_quoted_once_and_waited_for(
    start_operator: Start, own_job: PlayedJob, bed: Bed, namespace: str
):
    start_operator().wait_until_leading()
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    quota = {"metadata": {"name": "small"}, "spec": {"hard": {"pods": "0"}}}
    bed.api.create(path, quota)
    wait_for("the quota", lambda: "used" in bed.api.get(f"{path}/small").get("status", {}))
    own_job.create()

    def quoted() -> bool:
        sentence = str(own_job.status().get("blockedBy"))
        return "small" in sentence and "pods" in sentence

    wait_for("the quota's name in status", quoted)
    warnings = [e["reason"] for e in own_job.events() if e["type"] == "Warning"]
    assert len(warnings) <= 1
    bed.api.request("PATCH", f"{path}/small", {"spec": {"hard": {"pods": "10"}}})
    own_job.run("tokenizer")
    own_job.wait_for_phase("Tokenizing")

"""The operator has the rights that it uses, and no other: the audit log against its rules."""

from __future__ import annotations

from itertools import product
from typing import Any

from bed.chart import NAMESPACE as OPERATOR_NAMESPACE
from bed.chart import RELEASE
from bed.cluster import Bed
from pretrain_testing.cluster_jobs import ClusterJobs
from pretrain_testing.cluster_storage import Prefix
from pretrain_testing.completed_job import CompletedJob, operator_requests
from pretrain_testing.processes import wait_for
from pretrain_testing.small_jobs import training_job

Right = tuple[str, str, str]
"""API group, resource with its subresource, verb."""

DELETE_JOB: Right = ("pretrain.dev", "pretrainjobs", "delete")
"""What a time to live needs: the last right that the test below has the operator use."""


def granted(bed: Bed) -> set[Right]:
    """Every right of the operator's service account."""
    cluster = bed.kubectl_json("get", "clusterrole", RELEASE)
    own = bed.kubectl_json("get", "roles", "--namespace", OPERATOR_NAMESPACE)["items"]
    rules = [rule for role in (cluster, *own) for rule in role["rules"]]
    return {
        right
        for rule in rules
        for right in product(rule["apiGroups"], rule["resources"], rule["verbs"])
    }


def given_at(bed: Bed) -> str:
    """When it got them: an operator whose chart is uninstalled asks once more, as it ends."""
    return str(bed.kubectl_json("get", "clusterrole", RELEASE)["metadata"]["creationTimestamp"])


def used(bed: Bed) -> set[Right]:
    """Every right that a request of the operator's needed; one that applies may also create."""
    requests = [e for e in operator_requests(bed) if "objectRef" in e]
    rights = {right_of(event, event["verb"]) for event in requests}
    created = (e for e in requests if e["verb"] == "patch" and answer(e) == 201)
    return rights | {right_of(event, "create") for event in created}


def right_of(event: dict[str, Any], verb: str) -> Right:
    ref = event["objectRef"]
    parts = [ref["resource"], *([ref["subresource"]] if ref.get("subresource") else [])]
    return ref.get("apiGroup", ""), "/".join(parts), verb


def answer(event: dict[str, Any]) -> int:
    return int(event["responseStatus"]["code"])


def is_unauthorized(event: dict[str, Any]) -> bool:
    """Whether the operator had no right; a namespace that ends refuses for another reason."""
    decision = event.get("annotations", {}).get("authorization.k8s.io/decision")
    return decision == "forbid" or answer(event) == 401


def test_every_right_is_used_and_every_request_is_allowed(
    bed: Bed, completed: CompletedJob, jobs: ClusterJobs, prefix: Prefix
) -> None:
    given_up = training_job(name="given-up")
    jobs.apply({**given_up, "spec": {**given_up["spec"], "storage": prefix.storage}})
    jobs.wait_for("given-up", "its first stage", lambda s: s.get("phase") == "Tokenizing")
    jobs.patch_spec("given-up", suspend=True)
    jobs.wait_until_gone("jobs,configmaps,pods", "given-up")

    spec = {**given_up["spec"], "storage": prefix.storage, "ttlSecondsAfterFinished": 0}
    model = {**spec["model"], "architecture": "t5"}
    jobs.apply({**given_up, "metadata": {"name": "refused"}, "spec": {**spec, "model": model}})
    jobs.kubectl("-n", jobs.namespace, "wait", "--for=delete", "ptj/refused", "--timeout=120s")

    wait_for("the deletion in the audit log", lambda: DELETE_JOB in used(bed))
    assert used(bed) == granted(bed)
    since = given_at(bed)
    requests = [e for e in operator_requests(bed) if e["requestReceivedTimestamp"] >= since]
    assert not [event for event in requests if is_unauthorized(event)]

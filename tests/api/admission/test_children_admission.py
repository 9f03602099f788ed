"""A real API server takes our children, and its refusals mean what the plan reads into them."""

from typing import Any

import pytest
from bed.cluster import Bed
from pretrain_api.reports import STAGES, Cause, StageName
from pretrain_operator.plan.admission import cause_of_refusal
from pretrain_testing.applied_children import Answer, Applier, children, pod_of
from pretrain_testing.processes import wait_for


def template(**main: Any) -> dict[str, Any]:
    """Workers whose pod template sets something of the stage's container."""
    return {
        "workers": {
            "replicas": 2,
            "podTemplate": {"spec": {"containers": [{"name": "main", **main}]}},
        }
    }


def limit(bed: Bed, namespace: str, hard: dict[str, str]) -> None:
    """A quota, once it is in force."""
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few"},
        "spec": {"hard": hard},
    }
    bed.api.create(path, quota)
    wait_for("the quota", lambda: "used" in bed.api.get(f"{path}/few").get("status", {}) or None)


@pytest.mark.parametrize("stage", STAGES)
def test_children_of_every_stage_are_taken_and_so_are_their_pods_where_rules_are_strict(
    stage: StageName, bed: Bed, namespace: str
) -> None:
    applier = Applier(bed)
    made = children(namespace, stage)

    answers = [applier.apply(manifest, dry_run=True) for manifest in made]
    pod = applier.apply(pod_of(made[-1]), dry_run=True)

    assert answers == [Answer(201, "")] * len(made)
    assert pod == Answer(201, "")


@pytest.mark.parametrize("stage", STAGES)
def test_every_container_has_the_requests_and_limits_that_a_quota_demands(
    stage: StageName, bed: Bed, namespace: str
) -> None:
    hard = {f"{kind}.{name}": "1000" for kind in ("requests", "limits") for name in ("cpu",)}
    limit(bed, namespace, {**hard, "requests.memory": "9Ti", "limits.memory": "9Ti"})
    side = {"containers": [{"name": "side", "image": "side:1"}],
            "initContainers": [{"name": "fetch", "image": "fetch:1"}]}  # fmt: skip
    workers = {"replicas": 2, "podTemplate": {"spec": side}}

    made = children(namespace, stage, workers=workers, preprocess={"podTemplate": {"spec": side}})
    pod = pod_of(made[-1])

    assert Applier(bed).apply(pod, dry_run=True) == Answer(201, "")


@pytest.mark.parametrize(
    ("main", "told"),
    [
        (
            {"resources": {"requests": {"nvidia.com/gpu": 1}}},
            "spec.template.spec.containers[0].resources.limits",
        ),
        ({"resources": {"requests": {"cpu": "many"}}}, "quantities must match"),
        ({"imagePullPolicyy": "Always"}, ".imagePullPolicyy: field not declared in schema"),
        ({"env": [{"name": "A", "value": 3}]}, '.env[name="A"].value: expected string'),
        (
            {"volumeMounts": [{"name": "none", "mountPath": "/a"}]},
            "volumeMounts[3].name: Not found",
        ),
    ],
)
def test_a_template_that_is_no_pod_is_a_mistake_in_the_spec_and_told_with_its_path(
    main: dict[str, Any], told: str, bed: Bed, namespace: str
) -> None:
    job = children(namespace, **template(**main))[-1]

    answer = Applier(bed).apply(job)

    assert not answer.taken
    assert told in answer.message
    assert cause_of_refusal(answer.message, code=answer.code) is Cause.ADMISSION_DENIED


@pytest.mark.parametrize(
    ("kind", "resource"), [("Service", "services"), ("Job", "count/jobs.batch")]
)
def test_a_child_over_the_quota_waits_for_room(
    kind: str, resource: str, bed: Bed, namespace: str
) -> None:
    limit(bed, namespace, {resource: "0"})
    (manifest,) = (m for m in children(namespace) if m["kind"] == kind)

    answer = Applier(bed).apply(manifest)

    assert answer.code == 403
    assert f"exceeded quota: few, requested: {resource}=1, used: {resource}=0" in answer.message
    assert cause_of_refusal(answer.message, code=answer.code) is Cause.QUOTA


def test_an_operator_without_rights_is_no_mistake_in_the_spec(bed: Bed, namespace: str) -> None:
    nobody = Applier(bed, user="system:serviceaccount:nowhere:nobody")

    answer = nobody.apply(children(namespace)[-1])

    assert answer.code == 403
    assert cause_of_refusal(answer.message, code=answer.code) is Cause.INFRASTRUCTURE


def test_a_namespace_that_is_being_deleted_is_no_mistake_in_the_spec(
    bed: Bed, namespace: str
) -> None:
    path = f"/api/v1/namespaces/{namespace}"
    config_map = children(namespace)[-2]
    config_map["metadata"]["finalizers"] = ["pretrain.dev/held-by-a-test"]
    assert Applier(bed).apply(config_map).taken
    bed.api.request("DELETE", path)

    answer = Applier(bed).apply(children(namespace)[-1])

    held = f"{path}/configmaps/{config_map['metadata']['name']}"
    bed.api.request("PATCH", held, {"metadata": {"finalizers": []}})
    assert "because it is being terminated" in answer.message
    assert cause_of_refusal(answer.message, code=answer.code) is Cause.INFRASTRUCTURE


def test_pods_that_break_the_namespaces_rules_are_told_by_the_job_controller_alone(
    bed: Bed, namespace: str
) -> None:
    root = {"spec": {"securityContext": {"runAsUser": 0}}}
    job = children(namespace, workers={"replicas": 2, "podTemplate": root})[-1]
    assert Applier(bed).apply(job).taken

    event = Applier(bed).failed_create(job)

    assert event.message.startswith('forbidden: violates PodSecurity "restricted:latest"')
    assert "runAsUser=0" in event.message
    assert cause_of_refusal(event.message) is Cause.ADMISSION_DENIED


def test_pods_over_the_quota_are_told_by_quota_asked_used_and_limit(
    bed: Bed, namespace: str
) -> None:
    limit(bed, namespace, {"requests.cpu": "1"})
    job = children(namespace, workers={"replicas": 2, "threadsPerProcess": 4})[-1]
    assert Applier(bed).apply(job).taken

    event = Applier(bed).failed_create(job)

    assert event.message == (
        "forbidden: exceeded quota: few, requested: requests.cpu=4, used: requests.cpu=0, "
        "limited: requests.cpu=1"
    )
    assert cause_of_refusal(event.message) is Cause.QUOTA


def test_a_service_account_that_is_not_there_yet_is_waited_for(bed: Bed, namespace: str) -> None:
    storage = {"uri": "s3://models/zh", "serviceAccountName": "trainer"}
    job = children(namespace, storage=storage)[-1]
    assert Applier(bed).apply(job).taken

    event = Applier(bed).failed_create(job)

    assert 'serviceaccount "trainer" not found' in event.message
    assert cause_of_refusal(event.message) is Cause.INFRASTRUCTURE

"""Pods and Jobs: resources, security, templates of users, and the rules of retrying."""

from typing import Any

import pytest
from pretrain_api.problems import render_path
from pretrain_api.spec.workers import ResourcesSpec
from pretrain_operator.children import render
from pretrain_operator.children.pod_template import merge_template
from pretrain_operator.children.resources import with_defaults
from pretrain_operator.children.template_rules import template_problems
from pretrain_operator.children.volumes import (
    LOCAL_CHECKPOINTS,
    LOCAL_CHECKPOINTS_PATH,
    SHARED_MEMORY_PATH,
    TEMPORARY_PATH,
)
from pretrain_operator.observed import Manifest, Settings
from pretrain_testing.plan_simulator import make_job

DEFAULT = ResourcesSpec(
    requests={"cpu": "500m", "memory": "1Gi"}, limits={"cpu": "2", "memory": "4Gi"}
)

NCCL_NET_BY_HAND = {"name": "NCCL_NET", "value": "a plugin's"}


def environment_of(pod: Manifest) -> dict[str, str]:
    """Environment of the container that runs the stage."""
    return {entry["name"]: entry.get("value", "") for entry in pod["containers"][0]["env"]}


def jobs_of(**spec: Any) -> dict[str, Manifest]:
    """The rendered Jobs by stage."""
    manifests = render(make_job(**spec), Settings())
    return {
        manifest["metadata"]["labels"]["pretrain.dev/stage"]: manifest["spec"]
        for manifest in manifests
        if manifest["kind"] == "Job"
    }


def pods_of(**spec: Any) -> dict[str, Any]:
    """The rendered pod specs by stage."""
    return {stage: job["template"]["spec"] for stage, job in jobs_of(**spec).items()}


def problem_paths(template: dict[str, Any]) -> list[str]:
    spec = make_job(workers={"replicas": 2, "podTemplate": template}).spec
    return [render_path(problem.path) for problem in template_problems(spec)]


def test_every_container_has_requests_and_limits() -> None:
    sidecar = {"name": "logs", "image": "logs:1", "restartPolicy": "Always"}
    template = {"spec": {"initContainers": [sidecar], "containers": [{"name": "b", "image": "b"}]}}
    pods = pods_of(workers={"replicas": 2, "podTemplate": template})

    for pod in pods.values():
        for container in (*pod["containers"], *pod.get("initContainers", [])):
            for side in ("requests", "limits"):
                assert {"cpu", "memory"} <= container["resources"][side].keys()


def test_a_worker_asks_for_its_rdma_devices_and_no_other_pod_does() -> None:
    network = {"rdmaResources": {"vpc.amazonaws.com/efa": 4}}
    pods = pods_of(workers={"replicas": 2, "network": network})

    asking = {
        stage: pod["containers"][0]["resources"]
        for stage, pod in pods.items()
        if "vpc.amazonaws.com/efa" in pod["containers"][0]["resources"]["limits"]
    }
    assert list(asking) == ["train"]
    assert asking["train"]["limits"]["vpc.amazonaws.com/efa"] == "4"
    assert asking["train"]["requests"]["vpc.amazonaws.com/efa"] == "4"
    assert {"cpu", "memory"} <= asking["train"]["limits"].keys()


@pytest.mark.parametrize(
    ("profile", "network"),
    [("none", None), ("ethernet", "Socket"), ("infiniband", "IB"), ("efa", "AWS Libfabric")],
)
def test_a_profile_names_the_network_of_nccl_unless_the_template_does(
    profile: str, network: str | None
) -> None:
    template = {"spec": {"containers": [{"name": "main", "env": [NCCL_NET_BY_HAND]}]}}
    workers = {"replicas": 2, "network": {"ncclProfile": profile}}

    assert environment_of(pods_of(workers=workers)["train"]).get("NCCL_NET") == network
    assert "NCCL_NET" not in environment_of(pods_of(workers=workers)["evaluate"])
    by_hand = pods_of(workers={**workers, "podTemplate": template})["train"]
    assert environment_of(by_hand)["NCCL_NET"] == NCCL_NET_BY_HAND["value"]


@pytest.mark.parametrize(
    ("volume", "source"),
    [
        ({"hostPath": {"path": "/kept"}}, {"hostPath": {"path": "/kept", "type": "Directory"}}),
        (
            {"persistentVolumeClaim": {"claimName": "kept"}},
            {"persistentVolumeClaim": {"claimName": "kept"}},
        ),
    ],
    ids=["node", "claim"],
)
def test_workers_alone_mount_the_volume_on_which_checkpoints_are_left(
    volume: dict[str, Any], source: dict[str, Any]
) -> None:
    pods = pods_of(checkpoint={"localVolume": volume})

    mounting = {stage for stage, pod in pods.items() if volume_of(pod, LOCAL_CHECKPOINTS)}
    assert mounting == {"train"}
    assert volume_of(pods["train"], LOCAL_CHECKPOINTS) == {"name": LOCAL_CHECKPOINTS, **source}
    mounts = {m["name"]: m["mountPath"] for m in pods["train"]["containers"][0]["volumeMounts"]}
    place = environment_of(pods["train"])["PRETRAIN_LOCAL_CHECKPOINTS"]
    assert mounts[LOCAL_CHECKPOINTS] == place == LOCAL_CHECKPOINTS_PATH
    assert "PRETRAIN_LOCAL_CHECKPOINTS" not in environment_of(pods_of()["train"])


def volume_of(pod: Manifest, name: str) -> dict[str, Any]:
    """A pod's volume of a name, empty if there is none."""
    return next((volume for volume in pod["volumes"] if volume["name"] == name), {})


def test_every_pod_is_restricted() -> None:
    for pod in pods_of().values():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert context["readOnlyRootFilesystem"] is True


def test_no_pod_gets_a_mesh_proxy() -> None:
    for job in jobs_of().values():
        assert job["template"]["metadata"]["labels"]["sidecar.istio.io/inject"] == "false"


def test_no_child_outlives_its_job() -> None:
    for manifest in render(make_job(), Settings()):
        assert manifest["metadata"]["ownerReferences"][0]["controller"] is True
        assert "finalizers" not in manifest["metadata"]


@pytest.mark.parametrize(
    ("wanted", "requests", "limits"),
    [
        ({}, {"cpu": "500m", "memory": "1Gi"}, {"cpu": "2", "memory": "4Gi"}),
        (
            {"requests": {"memory": "64Gi"}},
            {"cpu": "500m", "memory": "64Gi"},
            {"cpu": "2", "memory": "64Gi"},
        ),
        (
            {"limits": {"nvidia.com/gpu": 8}},
            {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "8"},
            {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "8"},
        ),
        (
            {"requests": {"cpu": 1}, "limits": {"cpu": 4}},
            {"cpu": "1", "memory": "1Gi"},
            {"cpu": "4", "memory": "4Gi"},
        ),
    ],
)
def test_a_default_never_contradicts_what_is_asked_for(
    wanted: dict[str, Any], requests: dict[str, str], limits: dict[str, str]
) -> None:
    resources = with_defaults(ResourcesSpec.model_validate(wanted), DEFAULT)

    assert resources == {"requests": requests, "limits": limits}


def test_shared_memory_is_a_memory_volume_of_the_trainers_alone() -> None:
    pods = pods_of(workers={"replicas": 2, "sharedMemory": "3Gi"})

    volumes = {stage: {v["name"]: v for v in pod["volumes"]} for stage, pod in pods.items()}
    assert volumes["train"]["shm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "3Gi"}
    assert "shm" not in volumes["preprocess"]


def test_threads_follow_the_job_and_not_the_machine() -> None:
    pods = pods_of(workers={"replicas": 2, "threadsPerProcess": 3})

    for pod in pods.values():
        assert {"name": "OMP_NUM_THREADS", "value": "3"} in pod["containers"][0]["env"]


def test_a_gang_fails_as_a_whole_and_a_slice_is_tried_again() -> None:
    jobs = jobs_of()

    assert jobs["train"]["backoffLimit"] == 0
    assert jobs["preprocess"]["backoffLimitPerIndex"] == 2
    rules = jobs["preprocess"]["podFailurePolicy"]["rules"]
    assert rules[0]["action"] == "FailJob"
    assert rules[0]["onExitCodes"]["values"] == [64, 65, 74]
    assert rules[1]["action"] == "Ignore"


def test_no_child_has_a_time_to_live_or_a_deadline_of_its_own() -> None:
    jobs = jobs_of(activeDeadlineSeconds=60, ttlSecondsAfterFinished=60)

    for job in jobs.values():
        assert not {"ttlSecondsAfterFinished", "activeDeadlineSeconds"} & job.keys()


def test_no_name_of_a_cluster_domain_is_in_any_child() -> None:
    assert "cluster.local" not in str(render(make_job(), Settings()))


def test_a_template_merges_by_name_and_adds_what_is_new() -> None:
    template = {
        "metadata": {"labels": {"team": "nlp"}},
        "spec": {
            "tolerations": [{"key": "gpu"}],
            "containers": [
                {"name": "main", "env": [{"name": "HOME", "value": "/cache"}]},
                {"name": "logs", "image": "logs:1"},
            ],
            "terminationGracePeriodSeconds": 600,
        },
    }
    job = jobs_of(
        workers={"replicas": 2, "podTemplate": template},
        scheduling={"tolerations": [{"key": "batch"}]},
    )["train"]
    pod = job["template"]["spec"]

    assert job["template"]["metadata"]["labels"]["team"] == "nlp"
    assert pod["tolerations"] == [{"key": "batch"}, {"key": "gpu"}]
    assert [container["name"] for container in pod["containers"]] == ["main", "logs"]
    env = {variable["name"]: variable.get("value") for variable in pod["containers"][0]["env"]}
    assert env["HOME"] == "/cache"
    assert env["TMPDIR"] == TEMPORARY_PATH
    assert pod["containers"][0]["command"][:3] == ["python", "-m", "pretrain_jobs"]
    assert pod["terminationGracePeriodSeconds"] == 600


def test_merging_changes_neither_side() -> None:
    ours = {"spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "1"}]}]}}
    theirs = {"spec": {"containers": [{"name": "main", "env": [{"name": "A", "value": "2"}]}]}}

    merged = merge_template(ours, theirs)

    assert merged["spec"]["containers"][0]["env"] == [{"name": "A", "value": "2"}]
    assert ours["spec"]["containers"][0]["env"] == [{"name": "A", "value": "1"}]


def test_the_workers_template_is_not_for_other_stages() -> None:
    pods = pods_of(
        workers={"replicas": 2, "podTemplate": {"spec": {"schedulerName": "own"}}},
        preprocess={"podTemplate": {"spec": {"runtimeClassName": "gvisor"}}},
    )

    assert [stage for stage, pod in pods.items() if "schedulerName" in pod] == ["train"]
    assert [stage for stage, pod in pods.items() if "runtimeClassName" in pod] == [
        "tokenizer",
        "preprocess",
    ]


ROOT = "spec.workers.podTemplate"
CONTAINER = f"{ROOT}.spec.containers[0]"


@pytest.mark.parametrize(
    ("template", "path"),
    [
        ({"spec": {"restartPolicy": "OnFailure"}}, f"{ROOT}.spec.restartPolicy"),
        ({"spec": {"subdomain": "x"}}, f"{ROOT}.spec.subdomain"),
        ({"spec": {"hostNetwork": True}}, f"{ROOT}.spec.hostNetwork"),
        ({"spec": {"volumes": [{"name": "shm"}]}}, f"{ROOT}.spec.volumes[0].name"),
        ({"spec": {"volumes": [{}]}}, f"{ROOT}.spec.volumes[0]"),
        ({"spec": {"containers": "main"}}, f"{ROOT}.spec.containers"),
        (
            {"spec": {"terminationGracePeriodSeconds": "1h"}},
            f"{ROOT}.spec.terminationGracePeriodSeconds",
        ),
        ({"spec": []}, f"{ROOT}.spec"),
        ({"spec": None}, f"{ROOT}.spec"),
        ({"kind": "Pod"}, f"{ROOT}.kind"),
        ({"metadata": {"name": "x"}}, f"{ROOT}.metadata.name"),
        (
            {"metadata": {"labels": {"pretrain.dev/job": "x"}}},
            f"{ROOT}.metadata.labels.pretrain.dev/job",
        ),
        ({"metadata": {"labels": None}}, f"{ROOT}.metadata.labels"),
        ({"metadata": {"labels": 5}}, f"{ROOT}.metadata.labels"),
        ({"metadata": {"annotations": {"a": 1}}}, f"{ROOT}.metadata.annotations.a"),
        ({"spec": {"volumes": [{"name": ["a"]}]}}, f"{ROOT}.spec.volumes[0]"),
        ({"spec": {"containers": [{"name": {"a": 1}}]}}, f"{ROOT}.spec.containers[0]"),
        (
            {"spec": {"containers": [{"name": "side", "env": [1]}]}},
            f"{ROOT}.spec.containers[0].env[0]",
        ),
        (
            {"spec": {"initContainers": [{"name": "first", "ports": [{"a": 1}]}]}},
            f"{ROOT}.spec.initContainers[0].ports[0]",
        ),
    ],
)
def test_a_template_may_not_set_what_the_operator_owns(template: dict[str, Any], path: str) -> None:
    assert problem_paths(template) == [path]


@pytest.mark.parametrize(
    ("container", "path"),
    [
        ({"command": ["sh"]}, f"{CONTAINER}.command"),
        ({"args": ["x"]}, f"{CONTAINER}.args"),
        ({"env": [{"name": "MASTER_ADDR", "value": "x"}]}, f"{CONTAINER}.env[0].name"),
        ({"env": [{"name": "PET_MAX_RESTARTS", "value": "3"}]}, f"{CONTAINER}.env[0].name"),
        ({"env": [{"name": "PRETRAIN_PROGRESS_FILE", "value": "x"}]}, f"{CONTAINER}.env[0].name"),
        ({"env": {"A": "1"}}, f"{CONTAINER}.env"),
        (
            {"volumeMounts": [{"name": "a", "mountPath": f"{SHARED_MEMORY_PATH}/"}]},
            f"{CONTAINER}.volumeMounts[0].mountPath",
        ),
        (
            {"volumeMounts": [{"name": "a", "mountPath": "/etc"}]},
            f"{CONTAINER}.volumeMounts[0].mountPath",
        ),
        (
            {"volumeMounts": [{"name": "a", "mountPath": "/"}]},
            f"{CONTAINER}.volumeMounts[0].mountPath",
        ),
        (
            {"ports": [{"name": "metrics", "containerPort": 80}]},
            f"{CONTAINER}.ports[0].name",
        ),
        ({"terminationMessagePath": "/x"}, f"{CONTAINER}.terminationMessagePath"),
    ],
)
def test_a_template_may_not_set_what_the_stage_owns(container: dict[str, Any], path: str) -> None:
    template = {"spec": {"containers": [{"name": "main", **container}]}}

    assert problem_paths(template) == [path]


@pytest.mark.parametrize("grace", [-1, True, "60"])
def test_a_grace_period_is_a_number_of_seconds(grace: object) -> None:
    template = {"spec": {"terminationGracePeriodSeconds": grace}}

    assert problem_paths(template) == [f"{ROOT}.spec.terminationGracePeriodSeconds"]


def test_a_volume_may_lie_within_the_stage_s_own_temporary_directory() -> None:
    mount = {"name": "cache", "mountPath": f"{TEMPORARY_PATH}/cache"}

    assert (
        problem_paths({"spec": {"containers": [{"name": "main", "volumeMounts": [mount]}]}}) == []
    )


def test_a_container_beside_the_stage_may_have_any_environment() -> None:
    container = {"name": "logs", "command": ["sh"], "env": [{"name": "RANK", "value": "0"}]}

    assert problem_paths({"spec": {"containers": [container]}}) == []


def test_a_harmless_template_is_accepted() -> None:
    template = {
        "metadata": {"annotations": {"a": "b"}},
        "spec": {
            "containers": [{"name": "main", "env": [{"name": "NCCL_DEBUG", "value": "INFO"}]}]
        },
    }

    assert problem_paths(template) == []

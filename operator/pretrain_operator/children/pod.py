"""The pod template of a stage's Job, before and after the user's own template is merged in."""

from __future__ import annotations

from typing import Any

from pretrain_api.reports import StageName
from pretrain_api.spec import PretrainJobSpec

from pretrain_operator.children.attempt import Attempt
from pretrain_operator.children.environment import (
    TERMINATION_LOG_PATH,
    credentials,
    stage_environment,
)
from pretrain_operator.children.metadata import labels_of
from pretrain_operator.children.names import CONTAINER
from pretrain_operator.children.placement import away_from, back_to, pod_placement
from pretrain_operator.children.pod_template import GRACE_FIELD, merge_template
from pretrain_operator.children.resources import container_resources
from pretrain_operator.children.security import container_security, pod_security
from pretrain_operator.children.service import RENDEZVOUS_PORT_NAME
from pretrain_operator.children.volumes import CONFIG_PATH, pod_volumes, volume_mounts

CONFIG_FILE = f"{CONFIG_PATH}/config.json"
GRACE_SECONDS: dict[StageName, int] = {"train": 120}
"""Time between SIGTERM and SIGKILL; that of training covers a last checkpoint."""

DEFAULT_GRACE_SECONDS = 30

METRICS_PORT_NAME = "metrics"
"""Name of the port at which a stage serves its progress and its metrics."""

_HOST_NETWORK = {"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"}
"""On the host's network, cluster DNS must be asked for."""


def build_pod_template(attempt: Attempt) -> dict[str, Any]:
    """PodTemplateSpec of the attempt's Job."""
    template = {
        "metadata": {"labels": _labels(attempt)},
        "spec": _pod_spec(attempt),
    }
    merged = merge_template(template, _user_template(attempt.job.spec, attempt.stage))
    spec = merged["spec"]
    affinity = _with_known_nodes(attempt, spec.get("affinity") or {})
    return {**merged, "spec": {**spec, "affinity": affinity}} if affinity else merged


def grace_seconds(spec: PretrainJobSpec, stage: StageName) -> int:
    """Seconds that the pods of a stage get between SIGTERM and SIGKILL."""
    pod = _user_template(spec, stage).get("spec", {})
    return int(pod.get(GRACE_FIELD, GRACE_SECONDS.get(stage, DEFAULT_GRACE_SECONDS)))


def _labels(attempt: Attempt) -> dict[str, str]:
    """A mesh's proxy would outlive the stage and stand between the ranks."""
    return {**labels_of(attempt), "sidecar.istio.io/inject": "false"}


def _with_known_nodes(attempt: Attempt, affinity: dict[str, Any]) -> dict[str, Any]:
    """An affinity with what was learnt of nodes from earlier attempts."""
    kept_out = attempt.avoided_nodes
    returning = [node for node in attempt.last_nodes if node not in kept_out]
    if attempt.local_volume is not None and returning:
        affinity = back_to(returning, affinity)
    return away_from(kept_out, affinity) if kept_out else affinity


def _user_template(spec: PretrainJobSpec, stage: StageName) -> dict[str, Any]:
    match stage:
        case "tokenizer" | "preprocess":
            return spec.preprocess.pod_template or {}
        case "train":
            return spec.workers.pod_template or {}
        case _:
            return {}


def _pod_spec(attempt: Attempt) -> dict[str, Any]:
    account = attempt.storage.service_account_name
    return {
        "restartPolicy": "Never",
        GRACE_FIELD: grace_seconds(attempt.job.spec, attempt.stage),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        **({"serviceAccountName": account} if account else {}),
        **({"subdomain": attempt.name} if attempt.is_gang else {}),
        **(_HOST_NETWORK if attempt.uses_host_network else {}),
        "securityContext": pod_security(),
        **pod_placement(attempt),
        "containers": [_container(attempt)],
        "volumes": pod_volumes(attempt),
    }


def _container(attempt: Attempt) -> dict[str, Any]:
    settings = attempt.settings
    optional = {"envFrom": credentials(attempt.storage), "ports": _ports(attempt)}
    return {
        "name": CONTAINER,
        "image": _image(attempt),
        "imagePullPolicy": settings.image_pull_policy,
        "command": _command(attempt),
        "env": stage_environment(attempt),
        **{name: value for name, value in optional.items() if value},
        "resources": container_resources(attempt),
        "volumeMounts": volume_mounts(attempt),
        "terminationMessagePath": TERMINATION_LOG_PATH,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": container_security(),
    }


def _command(attempt: Attempt) -> list[str]:
    return [
        attempt.settings.python,
        "-m",
        "pretrain_jobs",
        attempt.stage,
        "--config",
        CONFIG_FILE,
    ]


def _image(attempt: Attempt) -> str:
    if attempt.stage in {"tokenizer", "preprocess"}:
        return attempt.settings.preprocess_image
    return attempt.job.spec.workers.image or attempt.settings.train_image


def _ports(attempt: Attempt) -> list[dict[str, Any]]:
    ports = {
        METRICS_PORT_NAME: attempt.progress_port,
        RENDEZVOUS_PORT_NAME: attempt.rendezvous_port if attempt.is_gang else None,
    }
    return [
        {"name": name, "containerPort": port, "protocol": "TCP"}
        for name, port in ports.items()
        if port
    ]

"""What a user's pod template may not set: whatever the rendezvous, retries and reports stand on.

Only the parts that merging reads are looked at; the API server judges the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from pretrain_api.problems import Path, Problem
from pretrain_api.spec import PretrainJobSpec

from pretrain_operator.children.environment import OWNED_ENVIRONMENT
from pretrain_operator.children.names import CONTAINER
from pretrain_operator.children.pod import METRICS_PORT_NAME
from pretrain_operator.children.pod_template import CONTAINER_LISTS, GRACE_FIELD, REPLACED_BY
from pretrain_operator.children.service import RENDEZVOUS_PORT_NAME
from pretrain_operator.children.volumes import OWNED_MOUNTS, OWNED_VOLUMES

OWNED_POD_FIELDS = {
    "restartPolicy": "is always Never: a lost worker ends the attempt, and the next one resumes",
    "hostname": "is owned by the rendezvous; leave it out",
    "subdomain": "is owned by the rendezvous; leave it out",
    "setHostnameAsFQDN": "is owned by the rendezvous; leave it out",
    "hostNetwork": "is set by spec.workers.network.hostNetwork",
    "activeDeadlineSeconds": "is set by spec.activeDeadlineSeconds",
}
OWNED_CONTAINER_FIELDS = {
    "command": "is owned by the stage; leave it out",
    "args": "is owned by the stage; leave it out",
    "terminationMessagePath": "is owned by the stage's report; leave it out",
    "terminationMessagePolicy": "is owned by the stage's report; leave it out",
    "restartPolicy": "is always that of the pod, Never",
}
OWNED_LABELS = ("pretrain.dev/", "batch.kubernetes.io/", "app.kubernetes.io/", "kueue.x-k8s.io/")
OWNED_PORTS = (METRICS_PORT_NAME, RENDEZVOUS_PORT_NAME)
POD_LISTS = (*CONTAINER_LISTS, "volumes", "imagePullSecrets", "hostAliases")
CONTAINER_FIELDS = ("env", "volumeMounts", "ports")


def template_problems(spec: PretrainJobSpec) -> list[Problem]:
    """What the pod templates of a spec may not set, each with its path."""
    return [
        problem.under(*path)
        for path, template in _templates(spec).items()
        for problem in _template_problems(template)
    ]


def added_containers(spec: PretrainJobSpec) -> list[Problem]:
    """The containers that templates add to ours: right, unless ours was meant to be changed."""
    return [
        Problem(
            (*path, "spec", "containers", index, "name"),
            f"{container['name']} is added beside the stage's own container, which is called "
            f"{CONTAINER}, and needs an image and an end of its own; call it {CONTAINER} to change "
            "the stage's",
        )
        for path, template in _templates(spec).items()
        for index, container in _entries(template.get("spec", {}), "containers")
        if container["name"] != CONTAINER
    ]


def _templates(spec: PretrainJobSpec) -> dict[Path, dict[str, Any]]:
    return {
        ("spec", "preprocess", "podTemplate"): spec.preprocess.pod_template or {},
        ("spec", "workers", "podTemplate"): spec.workers.pod_template or {},
    }


def _template_problems(template: dict[str, Any]) -> Iterator[Problem]:
    yield from _unknown_fields(template, known=("metadata", "spec"))
    for name, rules in (("metadata", _metadata_problems), ("spec", _pod_problems)):
        part = template.get(name, {})
        if isinstance(part, dict):
            yield from (problem.under(name) for problem in rules(part))
        else:
            yield Problem((name,), "must be an object")


def _metadata_problems(metadata: dict[str, Any]) -> Iterator[Problem]:
    yield from _unknown_fields(metadata, known=("labels", "annotations"))
    for field in ("labels", "annotations"):
        yield from _not_strings(metadata, field)
    labels = metadata.get("labels")
    for name in labels if isinstance(labels, dict) else ():
        if str(name).startswith(OWNED_LABELS):
            yield Problem(("labels", name), "is a label of the operator's own; leave it out")


def _pod_problems(pod: dict[str, Any]) -> Iterator[Problem]:
    yield from _owned_fields(pod, OWNED_POD_FIELDS)
    grace = pod.get(GRACE_FIELD, 0)
    if isinstance(grace, bool) or not isinstance(grace, int) or grace < 0:
        yield Problem((GRACE_FIELD,), "must be a whole number of seconds, 0 or more")
    for name in POD_LISTS:
        yield from _malformed_entries(pod, name)
    for index, volume in _entries(pod, "volumes"):
        if str(volume.get("name")) in OWNED_VOLUMES:
            yield Problem(("volumes", index, "name"), "is a volume of the stage's own; rename it")
    for field in CONTAINER_LISTS:
        for index, container in _entries(pod, field):
            found = _container_problems(container, is_ours=container.get("name") == CONTAINER)
            yield from (problem.under(field, index) for problem in found)


def _container_problems(container: dict[str, Any], *, is_ours: bool) -> Iterator[Problem]:
    """Every container's lists must be such that they can be merged; ours has its own rules too."""
    for name in CONTAINER_FIELDS:
        yield from _malformed_entries(container, name)
    if is_ours:
        yield from _stage_container_problems(container)


def _stage_container_problems(container: dict[str, Any]) -> Iterator[Problem]:
    yield from _owned_fields(container, OWNED_CONTAINER_FIELDS)
    for index, variable in _entries(container, "env"):
        if OWNED_ENVIRONMENT.fullmatch(str(variable.get("name"))):
            message = f"{variable['name']} is owned by the rendezvous; leave it out"
            yield Problem(("env", index, "name"), message)
    for index, mount in _entries(container, "volumeMounts"):
        if _hides_ours(str(mount.get("mountPath"))):
            message = "holds a directory of the stage's own; mount it elsewhere"
            yield Problem(("volumeMounts", index, "mountPath"), message)
    for index, port in _entries(container, "ports"):
        if port.get("name") in OWNED_PORTS:
            message = "is the name of a port of the stage's own; choose another"
            yield Problem(("ports", index, "name"), message)


def _hides_ours(mount_path: str) -> bool:
    """Whether a mount would lie at or over what the stage reads and writes."""
    path = PurePosixPath("/", mount_path)
    return any(PurePosixPath(owned).is_relative_to(path) for owned in OWNED_MOUNTS)


def _owned_fields(value: dict[str, Any], owned: dict[str, str]) -> Iterator[Problem]:
    for name, reason in owned.items():
        if name in value:
            yield Problem((name,), reason)


def _unknown_fields(value: dict[str, Any], *, known: tuple[str, str]) -> Iterator[Problem]:
    for name in value:
        if name not in known:
            yield Problem((name,), f"cannot be set here; expected {' or '.join(known)}")


def _not_strings(value: dict[str, Any], name: str) -> Iterator[Problem]:
    """What Kubernetes would not take as a map of strings, or would take for no map at all."""
    strings = value.get(name, {})
    if not isinstance(strings, dict):
        yield Problem((name,), "must be an object of strings; leave it out to set none")
        return
    for key, entry in strings.items():
        if not isinstance(entry, str):
            yield Problem((name, key), "must be a string: put it into quotation marks")


def _malformed_entries(value: dict[str, Any], name: str) -> Iterator[Problem]:
    entries = value.get(name, [])
    if not isinstance(entries, list):
        yield Problem((name,), "must be a list")
        return
    key = REPLACED_BY.get(name, "name")
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get(key), str | int):
            yield Problem((name, index), f"must be an object with the field {key}")


def _entries(value: dict[str, Any], name: str) -> list[tuple[int, dict[str, Any]]]:
    entries = value.get(name, [])
    if not isinstance(entries, list):
        return []
    return [(i, entry) for i, entry in enumerate(entries) if isinstance(entry, dict)]

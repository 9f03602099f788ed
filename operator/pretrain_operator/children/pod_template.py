"""Merging a user's pod template into ours, by rules that can be told in advance.

Objects merge field by field and the user's value wins. Containers merge by name: `main` runs the
stage, any other name adds a container. Named entries (environment, volumes, mounts, ports) replace
ours of the same name; tolerations, envFrom and topologySpreadConstraints are added to ours; every
other list replaces ours. What may not be set is the business of `children.template_rules`.
"""

from __future__ import annotations

from typing import Any

from pretrain_operator.children.resources import SIDE_CONTAINER, with_defaults
from pretrain_operator.children.security import container_security

GRACE_FIELD = "terminationGracePeriodSeconds"
CONTAINER_LISTS = ("containers", "initContainers")
REPLACED_BY = {
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "ports": "containerPort",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
}
"""Lists whose entries replace ours by this key (the merge keys of core/v1)."""

APPENDED = frozenset({"tolerations", "envFrom", "topologySpreadConstraints"})


def merge_template(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """A new PodTemplateSpec; `theirs` has no problems (`children.template_rules`)."""
    merged = _merge_objects(ours, theirs)
    containers = {
        name: [_completed(entry) for entry in merged["spec"][name]]
        for name in CONTAINER_LISTS
        if name in merged["spec"]
    }
    return {**merged, "spec": {**merged["spec"], **containers}}


def _merge_objects(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    added = {name: value for name, value in theirs.items() if name not in ours}
    merged = {
        name: _merge(name, value, theirs[name]) if name in theirs else value
        for name, value in ours.items()
    }
    return {**merged, **added}


def _merge(name: str, ours: Any, theirs: Any) -> Any:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return _merge_objects(ours, theirs)
    if isinstance(ours, list) and isinstance(theirs, list):
        return _merge_lists(name, ours, theirs)
    return theirs


def _merge_lists(name: str, ours: list[Any], theirs: list[Any]) -> list[Any]:
    if name in CONTAINER_LISTS:
        return _merge_containers(ours, theirs)
    if name in REPLACED_BY:
        return _replace_by(REPLACED_BY[name], ours, theirs)
    return [*ours, *theirs] if name in APPENDED else theirs


def _merge_containers(ours: list[Any], theirs: list[Any]) -> list[Any]:
    merged = {entry["name"]: entry for entry in ours}
    for entry in theirs:
        merged[entry["name"]] = _merge_objects(merged.get(entry["name"], {}), entry)
    return list(merged.values())


def _replace_by(key: str, ours: list[Any], theirs: list[Any]) -> list[Any]:
    replaced = [entry[key] for entry in theirs]
    return [*(entry for entry in ours if entry[key] not in replaced), *theirs]


def _completed(container: dict[str, Any]) -> dict[str, Any]:
    """What a strict namespace demands of every container, the user's own ones too."""
    completed = dict(container)
    completed.setdefault("resources", with_defaults(SIDE_CONTAINER, SIDE_CONTAINER))
    completed.setdefault("securityContext", container_security())
    return completed

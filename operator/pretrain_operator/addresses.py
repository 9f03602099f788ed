"""Where objects lie in the Kubernetes API: paths from kinds and names, and back. No requests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pretrain_api.base import API_VERSION, KIND, PLURAL
from yarl import URL

Verb = Literal["get", "list", "watch", "create", "update", "patch", "delete"]
"""What RBAC calls a request."""

OTHER = "discovery"
"""Stands for every request that is about no resource."""

_VERBS: dict[str, Verb] = {
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}


@dataclass(frozen=True)
class Resource:
    """A kind of object: its API version and its name in paths."""

    api_version: str
    kind: str
    plural: str

    def path(self, namespace: str | None, name: str = "", *, subresource: str = "") -> str:
        """Path of an object, or of a collection; no namespace means all of them."""
        root = "api" if "/" not in self.api_version else "apis"
        scope = f"/namespaces/{namespace}" if namespace is not None else ""
        parts = f"/{root}/{self.api_version}{scope}/{self.plural}"
        return "/".join(part for part in (parts, name, subresource) if part)


PRETRAIN_JOBS = Resource(API_VERSION, KIND, PLURAL)
JOBS = Resource("batch/v1", "Job", "jobs")
SERVICES = Resource("v1", "Service", "services")
CONFIG_MAPS = Resource("v1", "ConfigMap", "configmaps")
PODS = Resource("v1", "Pod", "pods")
EVENTS = Resource("v1", "Event", "events")
LEASES = Resource("coordination.k8s.io/v1", "Lease", "leases")

CHILDREN = {resource.kind: resource for resource in (JOBS, SERVICES, CONFIG_MAPS)}
"""The kinds of children that are applied and deleted."""


def what_is_asked(method: str, url: URL) -> tuple[str, str]:
    """The verb and the resource of a request, as RBAC and an audit log call them."""
    parts = url.path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    if not rest:
        return "get", OTHER
    resource = "/".join((rest[0], *rest[2:]))
    if method in _VERBS:
        return _VERBS[method], resource
    if len(rest) > 1:
        return "get", resource
    return ("watch" if "watch" in url.query else "list"), resource

"""Children in a real API server, applied the way the operator does it, and what it answers."""

from __future__ import annotations

import http.client
import json
import ssl
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from bed.cluster import Bed
from pretrain_api.reports import StageName
from pretrain_operator.children.names import STAGE_LABEL
from pretrain_operator.children.render import render
from pretrain_operator.observe import FailedCreate
from pretrain_operator.observed import Manifest, Settings

from pretrain_testing.plan_simulator import make_job
from pretrain_testing.processes import wait_for

SECONDS = 60.0
_PATHS = {
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "Service": "/api/v1/namespaces/{}/services",
    "ConfigMap": "/api/v1/namespaces/{}/configmaps",
    "Pod": "/api/v1/namespaces/{}/pods",
}


def children(namespace: str, stage: StageName = "train", **spec: Any) -> list[Manifest]:
    """The children of a stage of a job; nobody owns them, so they stay."""
    found = [m for m in render(make_job(**spec), Settings()) if _stage(m) == stage]
    for manifest in found:
        manifest["metadata"]["namespace"] = namespace
        manifest["metadata"].pop("ownerReferences")
    return found


def pod_of(job: Manifest) -> Manifest:
    """A pod as the Job controller would create it, but for its name."""
    template = job["spec"]["template"]
    metadata = {
        "name": "pod",
        "namespace": job["metadata"]["namespace"],
        "labels": template["metadata"]["labels"],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


@dataclass(frozen=True)
class Answer:
    """The API server's answer; `message` is empty when it took the object."""

    code: int
    message: str

    @property
    def taken(self) -> bool:
        """Whether the object was taken."""
        return self.code < HTTPStatus.BAD_REQUEST


@dataclass(frozen=True)
class Applier:
    """Applies manifests by server-side apply; `user` is whom to be, the administrator else."""

    bed: Bed
    user: str = ""

    def apply(self, manifest: Manifest, *, dry_run: bool = False) -> Answer:
        """Apply one manifest, or only ask what would come of it."""
        metadata = manifest["metadata"]
        path = f"{_PATHS[manifest['kind']].format(metadata['namespace'])}/{metadata['name']}"
        query = "fieldManager=pretrain-operator&force=true" + ("&dryRun=All" if dry_run else "")
        headers = {"Content-Type": "application/apply-patch+yaml"}
        if self.user:
            headers["Impersonate-User"] = self.user
        connection = self._connect()
        try:
            connection.request("PATCH", f"{path}?{query}", json.dumps(manifest), headers)
            answer = connection.getresponse()
            body = json.loads(answer.read())
        finally:
            connection.close()
        taken = answer.status < HTTPStatus.BAD_REQUEST
        return Answer(answer.status, "" if taken else str(body.get("message", "")))

    def failed_create(self, job: Manifest) -> FailedCreate:
        """What the Job controller says of a Job whose pods it cannot create."""
        metadata = job["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/events"
        query = "?fieldSelector=reason=FailedCreate,involvedObject.kind=Job"

        def look() -> FailedCreate | None:
            events = map(FailedCreate.of, self.bed.api.get(path + query)["items"])
            return next((e for e in events if e and e.child == metadata["name"]), None)

        return wait_for("the Job controller's event", look)

    def _connect(self) -> http.client.HTTPSConnection:
        profile = self.bed.profile
        context = ssl.create_default_context(cafile=profile.pki / "ca.crt")
        context.load_cert_chain(profile.pki / "admin.crt", profile.pki / "admin.key")
        return http.client.HTTPSConnection(
            profile.address, profile.api_port, timeout=SECONDS, context=context
        )


def _stage(manifest: Manifest) -> str:
    return str(manifest["metadata"]["labels"][STAGE_LABEL])

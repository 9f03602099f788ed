"""PretrainJobs in an API server, and the CRD that makes it know them.

Answers are what the server itself says: a refusal comes back as its text.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from kubernetes.client import (  # type: ignore[import-untyped]
    ApiClient,
    ApiextensionsV1Api,
    CustomObjectsApi,
)
from kubernetes.client.exceptions import ApiException  # type: ignore[import-untyped]

from pretrain_testing.processes import wait_for

ROOT = Path(__file__).parents[3]
CRD_FILE = ROOT / "crds" / "pretrainjobs.yaml"
SAMPLES = sorted((ROOT / "crds" / "samples").glob("*.yaml"))
GROUP = "pretrain.dev"
VERSION = "v1alpha1"
PLURAL = "pretrainjobs"

Document = dict[str, Any]


class NotTakenError(Exception):
    """The API server's no, with its text."""


@dataclass(frozen=True)
class StoredJobs:
    """The PretrainJobs of one namespace; fields that the CRD does not know are refused.

    `group` is another one where a test needs a CRD for itself.
    """

    client: ApiClient
    namespace: str
    group: str = GROUP

    def try_out(self, document: Document) -> Document:
        """What the server would store, as by --dry-run=server; NotTakenError otherwise."""
        return self._asked("create", body=self._own(document), dry_run="All")

    def create(self, document: Document) -> Document:
        """Store a job; what was stored."""
        return self._asked("create", body=self._own(document))

    def replace(self, document: Document, *, dry_run: bool = False) -> Document:
        """Put a document in place of the stored one of the same name."""
        stored = self.read(document["metadata"]["name"])
        metadata = {**stored["metadata"], **document["metadata"]}
        return self._asked(
            "replace",
            name=metadata["name"],
            body={**self._own(document), "metadata": metadata},
            **({"dry_run": "All"} if dry_run else {}),
        )

    def replace_status(self, name: str, status: Document) -> Document:
        """Store a status."""
        return self._asked(
            "replace", "_status", name=name, body={**self.read(name), "status": status}
        )

    def scale(self, name: str) -> Document:
        """The scale subresource."""
        return self._asked("get", "_scale", name=name)

    def set_scale(self, name: str, replicas: int) -> Document:
        """Ask for a number of replicas through the scale subresource."""
        body = {**self.scale(name), "spec": {"replicas": replicas}}
        return self._asked("replace", "_scale", name=name, body=body)

    def read(self, name: str) -> Document:
        """The stored job."""
        return self._asked("get", name=name)

    def delete_all(self) -> None:
        """Delete every job of the namespace."""
        CustomObjectsApi(self.client).delete_collection_namespaced_custom_object(
            self.group, VERSION, self.namespace, PLURAL
        )

    def _own(self, document: Document) -> Document:
        return {**document, "apiVersion": f"{self.group}/{VERSION}"}

    def _asked(self, verb: str, part: str = "", **arguments: Any) -> Document:
        call = getattr(CustomObjectsApi(self.client), f"{verb}_namespaced_custom_object{part}")
        strict = {"field_validation": "Strict"} if verb in {"create", "replace"} else {}
        try:
            answer: Document = call(
                self.group, VERSION, self.namespace, PLURAL, **strict, **arguments
            )
        except ApiException as error:
            raise NotTakenError(json.loads(error.body)["message"]) from None
        return answer


def crd_document(
    *, group: str = GROUP, change: Callable[[Document], None] | None = None
) -> Document:
    """The CRD as it is in the repository, changed as a test wants it."""
    document: Document = yaml.safe_load(CRD_FILE.read_text(encoding="utf-8"))
    document["metadata"]["name"] = f"{PLURAL}.{group}"
    document["spec"]["group"] = group
    if group != GROUP:
        document["spec"]["names"].pop("shortNames")
        document["spec"]["names"].pop("categories")
    if change is not None:
        change(document)
    return document


def wait_until_served(client: ApiClient, *, group: str = GROUP) -> None:
    """Return once the server takes objects of the CRD."""
    api = ApiextensionsV1Api(client)

    def established() -> bool:
        crd = api.read_custom_resource_definition(f"{PLURAL}.{group}")
        conditions = (crd.status.conditions if crd.status else None) or []
        return any(c.type == "Established" and c.status == "True" for c in conditions)

    wait_for(f"the CRD of {group}", established)


def remove_crd(client: ApiClient, *, group: str) -> None:
    """Delete a CRD with all its objects."""
    ApiextensionsV1Api(client).delete_custom_resource_definition(f"{PLURAL}.{group}")


def sample(path: Path) -> Document:
    """A sample of the repository."""
    document: Document = yaml.safe_load(path.read_text(encoding="utf-8"))
    return document

"""Namespaces of tests: Pod Security *restricted* is enforced, and storage is within reach."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from bed.api_client import ApiClient
from bed.errors import BedError
from bed.s3 import ADMIN

STORAGE_SECRET = "storage"
"""Secret with the keys of the bed's object storage."""

_ACCOUNT_SECONDS = 60.0


@contextmanager
def passing_namespace(client: ApiClient, beginning: str) -> Iterator[str]:
    """A namespace of a new name that begins so; it goes in the end, with all that is in it."""
    name = f"{beginning}-{secrets.token_hex(3)}"
    create_namespace(client, name)
    yield name
    delete_namespace(client, name)


def create_namespace(client: ApiClient, name: str) -> None:
    """A namespace in which pods can be created at once, made or made so."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    client.create("/api/v1/namespaces", _object("Namespace", name))
    client.request("PATCH", f"/api/v1/namespaces/{name}", {"metadata": {"labels": labels}})
    secret = _object("Secret", STORAGE_SECRET) | {"stringData": ADMIN.environment}
    client.create(f"/api/v1/namespaces/{name}/secrets", secret)
    wait_for_account(client, name)


def delete_namespace(client: ApiClient, name: str) -> None:
    """Have it go with all that is in it, without waiting for that."""
    client.request("DELETE", f"/api/v1/namespaces/{name}")


def _object(kind: str, name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}}


def wait_for_account(client: ApiClient, namespace: str) -> None:
    """Wait until the controllers have made its service account: no pod is taken before."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"
    deadline = time.monotonic() + _ACCOUNT_SECONDS
    while not client.exists(path):
        if time.monotonic() > deadline:
            raise BedError(f"no service account in {namespace} after {_ACCOUNT_SECONDS:g} s")
        time.sleep(0.02)

"""`python -m pretrain_operator.installation_check`: whether an installed operator is at work.

The chart's `helm test` runs it in a pod beside the operator, with the operator's image and service
account: the API serves PretrainJobs in every watched namespace, and a live operator holds the
Lease. It waits a while for both and writes nothing. The operator itself does not use this module.
"""

from __future__ import annotations

import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pretrain_api.base import API_VERSION

Get = Callable[[str], dict[str, Any]]
"""Answers a path of the API with its JSON; raises NotInstalledError with what the server said."""

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
WAIT_SECONDS = 60
"""A Lease of an operator that was killed runs out within this, and another one takes it."""

_PAUSE_SECONDS = 2
_ANSWER_SECONDS = 10


class NotInstalledError(Exception):
    """Something that an installed operator has is not there; the message says what."""


def main(
    environment: Mapping[str, str] = os.environ,
    *,
    service_account: Path = SERVICE_ACCOUNT,
    wait_seconds: float = WAIT_SECONDS,
) -> int:
    """Check until all is well or the time is up; the exit code is 0 or 1."""
    get = api(environment, service_account)
    deadline = time.monotonic() + wait_seconds
    while True:
        try:
            sys.stdout.write("\n".join([*check(get, environment), ""]))
        except NotInstalledError as problem:
            if time.monotonic() >= deadline:
                sys.stderr.write(f"not installed: {problem}\n")
                return 1
            time.sleep(_PAUSE_SECONDS)
        else:
            return 0


def check(get: Get, environment: Mapping[str, str]) -> list[str]:
    """Say what is well, one line each; raise NotInstalledError at the first thing that is not."""
    namespaces = [name for name in environment["PRETRAIN_OPERATOR_NAMESPACES"].split(",") if name]
    lines = []
    for path in jobs_paths(namespaces):
        get(f"{path}?limit=1")
        lines.append(f"served: {path}")
    lease = environment["PRETRAIN_OPERATOR_LEASE_NAME"]
    namespace = environment["PRETRAIN_OPERATOR_POD_NAMESPACE"]
    found = get(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{lease}")
    return [*lines, f"Lease {namespace}/{lease} is held by {holder(found, now=datetime.now(UTC))}"]


def jobs_paths(namespaces: list[str]) -> list[str]:
    """Where PretrainJobs are listed: per namespace, or for all with one path."""
    if not namespaces:
        return [f"/apis/{API_VERSION}/pretrainjobs"]
    return [f"/apis/{API_VERSION}/namespaces/{name}/pretrainjobs" for name in namespaces]


def holder(lease: Mapping[str, Any], *, now: datetime) -> str:
    """Name the live holder of a Lease (coordination.k8s.io/v1); raise if there is none."""
    spec = lease.get("spec") or {}
    identity, renewed = spec.get("holderIdentity"), spec.get("renewTime")
    if not identity or not renewed:
        raise NotInstalledError("no operator holds the Lease: look at the operator's log")
    age = (now - datetime.fromisoformat(renewed)).total_seconds()
    if age > spec["leaseDurationSeconds"]:
        raise NotInstalledError(
            f"{identity} holds the Lease but renewed it {age:.0f} s ago, "
            f"and it lasts {spec['leaseDurationSeconds']} s: look at the operator's log"
        )
    return str(identity)


def api(environment: Mapping[str, str], service_account: Path) -> Get:
    """Ask the API server as the pod's service account."""
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment["KUBERNETES_SERVICE_PORT"]
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    tls = ssl.create_default_context(cafile=service_account / "ca.crt")
    token = (service_account / "token").read_text()

    def get(path: str) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310 - the scheme is fixed above
            server + path, headers={"Authorization": f"Bearer {token}"}
        )
        try:
            with opener.open(request, timeout=_ANSWER_SECONDS) as answer:
                found: dict[str, Any] = json.load(answer)
        except urllib.error.HTTPError as error:
            raise NotInstalledError(f"{path}: {error.code} {_message(error)}") from error
        except OSError as error:
            raise NotInstalledError(f"{server} does not answer: {error}") from error
        return found

    # No proxy is asked for an address inside the cluster.
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls)
    )
    return get


def _message(error: urllib.error.HTTPError) -> str:
    """What the API server's Status says, or the plain reason where the body is none."""
    try:
        return str(json.load(error)["message"])
    except (ValueError, KeyError, TypeError):
        return error.reason


if __name__ == "__main__":
    sys.exit(main())

"""The way to an API server, with a user's own credentials, and what its refusals mean.

The one module here that imports the Kubernetes client. Only GET requests are made.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, NoReturn

import urllib3
import yaml
from kubernetes.client import ApiClient, Configuration  # type: ignore[import-untyped]
from kubernetes.client.exceptions import ApiException  # type: ignore[import-untyped]
from kubernetes.config import (  # type: ignore[import-untyped]
    ConfigException,
    list_kube_config_contexts,
    load_incluster_config,
    load_kube_config,
)

from pretrainctl.errors import DeniedError, InvalidError, NotFoundError, UnreachableError

DEFAULT_NAMESPACE = "default"
KUBECONFIG_ENV = "KUBECONFIG"
KUBECONFIG_FILE = "~/.kube/config"
POD_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

CONNECT_SECONDS = 10.0
READ_SECONDS = 60.0
IDLE_SECONDS = 120.0
"""Without a byte of a log that is followed until its connection is taken for dead."""

OPEN_CONNECTIONS = 64
"""At once, at most; each log that is followed holds one."""

MESSAGE_LIMIT = 500
"""Characters of an answer that is no Status of the API that an error repeats."""

Query = Mapping[str, str | int]
Answer = dict[str, Any]


class MissingError(NotFoundError):
    """The API server has no such object, or (`is_kind`) no such kind of objects."""

    def __init__(self, message: str, *, is_kind: bool) -> None:
        super().__init__(message)
        self.is_kind = is_kind


class CutError(UnreachableError):
    """An answer that had begun came to no end, or nothing came for too long."""


@dataclass
class Cluster:
    """One API server, asked as one user; `namespace` is the one that the kubeconfig names."""

    client: ApiClient
    server: str
    namespace: str = DEFAULT_NAMESPACE
    asked_at: datetime | None = None
    """The server's own time at its last answer: ages on another machine's clock are no ages."""

    def get(self, path: str, query: Query | None = None) -> Answer:
        """The decoded object or list at a path."""
        response = self._request(path, query, read_seconds=READ_SECONDS)
        answer: Answer = json.loads(response.data)
        return answer

    def lines(self, path: str, query: Query | None = None) -> Iterator[str]:
        """Lines of text at a path as they come, each with its end, which the last one may lack.

        One that is followed may take for ever; CutError when nothing comes for IDLE_SECONDS.
        """
        idle_seconds = IDLE_SECONDS if "follow" in (query or {}) else None
        response = self._request(path, query, read_seconds=idle_seconds)
        rest = b""
        try:
            for chunk in response.stream(amt=None):
                *whole, rest = (rest + chunk).split(b"\n")
                yield from (line.decode(errors="replace") + "\n" for line in whole)
        except urllib3.exceptions.HTTPError as error:
            raise CutError(f"{self.server} stopped answering: {error}") from None
        finally:
            response.release_conn()
        if rest:
            yield rest.decode(errors="replace")

    def _request(
        self, path: str, query: Query | None, *, read_seconds: float | None
    ) -> urllib3.BaseHTTPResponse:
        try:
            response: urllib3.BaseHTTPResponse = self.client.call_api(
                path,
                "GET",
                query_params=list((query or {}).items()),
                auth_settings=["BearerToken"],
                _preload_content=False,
                _request_timeout=(CONNECT_SECONDS, read_seconds),
            )
        except ApiException as error:
            self._refused(error, path)
        except urllib3.exceptions.HTTPError as error:
            is_slow = isinstance(error, urllib3.exceptions.ReadTimeoutError)
            raise (CutError if is_slow else UnreachableError)(
                f"{self.server} does not answer: {_plainly(error)}; is this the right cluster "
                "(--kubeconfig, --context), and is it up?"
            ) from None
        self.asked_at = _moment(response.headers.get("Date"))
        return response

    def _refused(self, error: ApiException, path: str) -> NoReturn:
        status = _status(error.body)
        words = str(status.get("message") or error.body or error.reason or "").split()
        message = " ".join(words)[:MESSAGE_LIMIT]
        match error.status:
            case 401:
                raise DeniedError(
                    f"{self.server} does not accept these credentials: log in again, or name "
                    "others by --kubeconfig or --context"
                ) from None
            case 403:
                raise DeniedError(_right_that_is_missing(message)) from None
            case 404:
                raise MissingError(message, is_kind=not status.get("details")) from None
            case 0 | None:
                raise UnreachableError(f"{self.server} does not answer: {message}") from None
            case _:
                text = f"{self.server} answers {error.status} to GET {path}: {message}"
                raise UnreachableError(text) from None


def open_cluster(kubeconfig: str | None, context: str | None) -> Cluster:
    """From a kubeconfig that was named, else $KUBECONFIG or ~/.kube/config, else as a pod.

    InvalidError tells why none of them can be used.
    """
    configuration = Configuration()
    file = kubeconfig or os.environ.get(KUBECONFIG_ENV) or KUBECONFIG_FILE
    try:
        if kubeconfig is None and context is None and _is_pod(file):
            load_incluster_config(client_configuration=configuration)
            namespace = POD_NAMESPACE_FILE.read_text(encoding="utf-8").strip()
        else:
            namespace = _namespace_of(file, context)
            load_kube_config(file, context=context, client_configuration=configuration)
    except (ConfigException, OSError, ValueError, TypeError, yaml.YAMLError) as error:
        raise InvalidError(
            f"no access to a cluster by {file}: {str(error).rstrip('.')}; name a kubeconfig by "
            f"--kubeconfig or ${KUBECONFIG_ENV}, and a context of it by --context"
        ) from None
    configuration.retries = False
    configuration.connection_pool_maxsize = OPEN_CONNECTIONS
    server = str(configuration.host).rstrip("/")
    return Cluster(ApiClient(configuration), server, namespace or DEFAULT_NAMESPACE)


def _is_pod(file: str) -> bool:
    """Whether there is no kubeconfig, but a service account."""
    files = (Path(part).expanduser() for part in file.split(os.pathsep))
    return POD_NAMESPACE_FILE.exists() and not any(part.exists() for part in files)


def _namespace_of(file: str, context: str | None) -> str:
    """The namespace of a context, empty when it names none."""
    contexts, current = list_kube_config_contexts(file)
    if context is not None:
        named = next((item for item in contexts if item["name"] == context), None)
        if named is None:
            names = ", ".join(item["name"] for item in contexts)
            raise ValueError(f"it has no context {context!r}; it has {names}")
        current = named
    return str(current["context"].get("namespace") or "")


def _status(body: str | bytes | None) -> Answer:
    """The Status (meta/v1) in a refusal; empty when the answer is something else."""
    try:
        status = json.loads(body or b"")
    except ValueError:
        return {}
    return status if isinstance(status, dict) else {}


def _right_that_is_missing(message: str) -> str:
    """`jobs is forbidden: User "x" cannot list ...` in its second half, and whom to ask."""
    who = message.partition("is forbidden: ")[2] or message
    return (
        f"not allowed: {who}. The role that Kubernetes calls view is enough, bound in this "
        "namespace; ask whoever runs the cluster for it"
    )


def _plainly(error: urllib3.exceptions.HTTPError) -> str:
    """The words of a connection's failure, without the names of classes before them."""
    return str(error).rpartition(": ")[2] or type(error).__name__


def _moment(date: str | None) -> datetime | None:
    return parsedate_to_datetime(date).astimezone(UTC) if date else None

"""The one module that sends requests to the API server, but for kopf's own watches.

Manifests are plain dicts. Answers are parsed only where they are needed. Every write is checked
against the lease first: a replica that is no leader any more writes nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import aiohttp
import orjson

from pretrain_operator.addresses import CHILDREN, EVENTS, LEASES, PRETRAIN_JOBS, Resource
from pretrain_operator.errors import ApiError, ApiUnreachableError
from pretrain_operator.observed import ChildRef, Manifest

FIELD_MANAGER = "pretrain-operator"
REQUEST_SECONDS = 30.0
PAGE_SIZE = 500
"""Objects a page of a list."""

WATCH_SECONDS = 300
"""When the server ends a watch."""

WATCH_LIMIT_SECONDS = 330
"""When we end a watch that the server did not."""

INACTIVITY_SECONDS = 70
"""Silence that ends a watch: the server sends a bookmark every minute."""

_APPLY = "application/apply-patch+yaml"
_MERGE = "application/merge-patch+json"
_JSON = "application/json"
_METADATA_LIST = f"{_JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_METADATA = f"{_JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_MANAGED = {"fieldManager": FIELD_MANAGER}


class Cluster:
    """The API server, as the operator uses it.

    Every method raises ApiError for an answer with an error, and ApiUnreachableError for none.
    `may_write` raises LeaseLostError while another replica may lead.
    """

    def __init__(
        self, session: aiohttp.ClientSession, server: str, *, may_write: Callable[[], None]
    ) -> None:
        self._session = session
        self._server = server
        self._may_write = may_write

    async def apply(self, manifest: Manifest) -> Manifest:
        """Make a child as the manifest says, and answer it as it is stored."""
        metadata = manifest["metadata"]
        resource = CHILDREN[manifest["kind"]]
        path = resource.path(metadata["namespace"], metadata["name"])
        return await self._write(
            "PATCH", path, body=manifest, kind=_APPLY, query={**_MANAGED, "force": "true"}
        )

    async def delete(self, child: ChildRef, *, namespace: str, uid: str) -> None:
        """Delete a child and, in the background, what it owns; gone already is as good."""
        await self._delete(CHILDREN[child.kind], namespace, child.name, uid)

    async def delete_job(self, *, namespace: str, name: str, uid: str) -> None:
        """Delete a PretrainJob; the garbage collector deletes its children."""
        await self._delete(PRETRAIN_JOBS, namespace, name, uid)

    async def patch_status(
        self, *, namespace: str, name: str, version: str, status: Mapping[str, Any]
    ) -> Manifest:
        """Merge into a PretrainJob's status, unless it has changed since `version`."""
        path = PRETRAIN_JOBS.path(namespace, name, subresource="status")
        body = {"metadata": {"resourceVersion": version}, "status": status}
        return await self._write("PATCH", path, body=body, kind=_MERGE, query=_MANAGED)

    async def post_event(self, event: Manifest) -> None:
        """Create an Event."""
        path = EVENTS.path(event["metadata"]["namespace"])
        await self._write("POST", path, body=event, kind=_JSON, query=_MANAGED)

    async def list(
        self,
        resource: Resource,
        namespace: str | None,
        *,
        selector: Mapping[str, str],
        metadata_only: bool = False,
    ) -> AsyncIterator[tuple[list[Manifest], str]]:
        """All objects in pages, each with the resourceVersion of the whole list."""
        query = {**selector, "limit": str(PAGE_SIZE)}
        path = resource.path(namespace)
        while True:
            page = await self._send(
                "GET", path, query=query, accept=_METADATA_LIST if metadata_only else _JSON
            )
            metadata = page["metadata"]
            yield page["items"] or [], metadata["resourceVersion"]
            if not metadata.get("continue"):
                return
            query = {**query, "continue": metadata["continue"]}

    async def watch(
        self,
        resource: Resource,
        namespace: str | None,
        *,
        version: str,
        selector: Mapping[str, str],
        metadata_only: bool = False,
    ) -> AsyncIterator[Manifest]:
        """Watch events from a resourceVersion on, until the server ends the watch."""
        query = {
            **selector,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(WATCH_SECONDS),
        }
        request = f"watch {resource.plural}"
        timeout = aiohttp.ClientTimeout(total=WATCH_LIMIT_SECONDS, sock_read=INACTIVITY_SECONDS)
        try:
            async with self._session.get(
                self._server + resource.path(namespace),
                params=query,
                headers={"Accept": _METADATA if metadata_only else _JSON},
                timeout=timeout,
            ) as response:
                if response.status >= 400:
                    raise await _error(request, response)
                async for line in _lines(response.content):
                    yield orjson.loads(line)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _unreachable(request, error) from error

    async def serves(self, resource: Resource) -> bool:
        """Whether the API server knows a custom resource, its definition being installed."""
        try:
            answer = await self._send("GET", f"/apis/{resource.api_version}")
        except ApiError as error:
            if error.is_missing:
                return False
            raise
        return any(entry["name"] == resource.plural for entry in answer["resources"])

    async def read_lease(self, namespace: str, name: str, *, seconds: float) -> Manifest | None:
        """A Lease; None when there is none."""
        try:
            return await self._send("GET", LEASES.path(namespace, name), seconds=seconds)
        except ApiError as error:
            if error.is_missing:
                return None
            raise

    async def write_lease(self, lease: Manifest, *, seconds: float) -> Manifest:
        """Create a Lease, or replace it when it has a resourceVersion; the one unchecked write."""
        metadata = lease["metadata"]
        exists = "resourceVersion" in metadata
        return await self._send(
            "PUT" if exists else "POST",
            LEASES.path(metadata["namespace"], metadata["name"] if exists else ""),
            body=lease,
            query=_MANAGED,
            seconds=seconds,
        )

    async def _delete(self, resource: Resource, namespace: str, name: str, uid: str) -> None:
        body = {"propagationPolicy": "Background", "preconditions": {"uid": uid}}
        try:
            await self._write("DELETE", resource.path(namespace, name), body=body, kind=_JSON)
        except ApiError as error:
            if not (error.is_missing or error.is_conflict):
                raise

    async def _write(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any],
        kind: str,
        query: Mapping[str, str] | None = None,
    ) -> Manifest:
        self._may_write()
        return await self._send(method, path, body=body, kind=kind, query=query)

    async def _send(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        kind: str = _JSON,
        accept: str = _JSON,
        query: Mapping[str, str] | None = None,
        seconds: float = REQUEST_SECONDS,
    ) -> Manifest:
        request = f"{method} {path}"
        try:
            async with self._session.request(
                method,
                self._server + path,
                data=None if body is None else orjson.dumps(body),
                params=query,
                headers={"Accept": accept, "Content-Type": kind},
                timeout=aiohttp.ClientTimeout(total=seconds),
            ) as response:
                if response.status >= 400:
                    raise await _error(request, response)
                answer: Manifest = orjson.loads(await response.read())
                return answer
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _unreachable(request, error) from error


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Lines of any length, which the reader's own iteration would not allow."""
    rest = b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line


async def _error(request: str, response: aiohttp.ClientResponse) -> ApiError:
    raw = await response.read()
    try:
        status = orjson.loads(raw)
    except orjson.JSONDecodeError:
        status = {"message": raw.decode(errors="replace")[:1000]}
    return ApiError(request, code=response.status, status=status if status else {})


def _unreachable(request: str, error: Exception) -> ApiUnreachableError:
    return ApiUnreachableError(f"{request}: no answer: {str(error) or type(error).__name__}")

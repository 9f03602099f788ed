"""Plain requests to the bed's API server, for the bed itself.

Tests use kubectl or the Kubernetes client; neither is started here for one GET.
"""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from contextlib import suppress
from typing import Any

from bed.errors import BedError
from bed.profile import Profile

_SECONDS = 60.0
_ENDED = (
    http.client.RemoteDisconnected,
    ConnectionError,
    ssl.SSLEOFError,
    ssl.SSLZeroReturnError,
)
"""What a request meets on a connection that the server has ended meanwhile."""


class RefusedError(BedError):
    """The API server answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class ApiClient:
    """Requests as the administrator; each thread keeps its connection."""

    def __init__(self, bed: Profile) -> None:
        self._address = (bed.address, bed.api_port)
        self._kept = threading.local()
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.load_verify_locations(bed.pki / "ca.crt")
        self._context.load_cert_chain(bed.pki / "admin.crt", bed.pki / "admin.key")

    def get(self, path: str) -> Any:
        """The object or list at a path, decoded."""
        return self.request("GET", path)

    def exists(self, path: str) -> bool:
        """Whether there is something at a path."""
        try:
            self.get(path)
        except RefusedError as refused:
            if refused.code != http.HTTPStatus.NOT_FOUND:
                raise
            return False
        return True

    def create(self, path: str, manifest: dict[str, Any]) -> Any:
        """Post a manifest; one that exists already is left as it is."""
        try:
            return self.request("POST", path, manifest)
        except RefusedError as refused:
            if refused.code != http.HTTPStatus.CONFLICT:
                raise
            return None

    def request(self, verb: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """The decoded answer; RefusedError for a status of 400 and more, OSError without one."""
        kind = "application/merge-patch+json" if verb == "PATCH" else "application/json"
        content = None if body is None else json.dumps(body)
        answer, text = self._send(verb, path, content, {"Content-Type": kind})
        if answer.status >= http.HTTPStatus.BAD_REQUEST:
            raise RefusedError(answer.status, f"{verb} {path}: {answer.status} {text[:2000]}")
        return json.loads(text) if text.startswith(("{", "[")) else text

    def _send(self, *request: Any) -> tuple[http.client.HTTPResponse, str]:
        """Send it over the kept connection, or a new one when there is none that lives."""
        kept: http.client.HTTPSConnection | None = getattr(self._kept, "connection", None)
        if kept is not None:
            with suppress(*_ENDED):
                return self._ask(kept, request)
        host, port = self._address
        return self._ask(
            http.client.HTTPSConnection(host, port, timeout=_SECONDS, context=self._context),
            request,
        )

    def _ask(
        self, connection: http.client.HTTPSConnection, request: tuple[Any, ...]
    ) -> tuple[http.client.HTTPResponse, str]:
        self._kept.connection = None
        try:
            connection.request(*request)
            answer = connection.getresponse()
            text = answer.read().decode()
        except BaseException:
            connection.close()
            raise
        self._kept.connection = connection
        return answer, text

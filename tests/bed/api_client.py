"""Plain requests to the bed's API server, for the bed itself.

Tests use kubectl or the Kubernetes client; neither is started here for one GET.
"""

from __future__ import annotations

import http.client
import json
import ssl
from typing import Any

from bed.errors import BedError
from bed.profile import Profile

_SECONDS = 60.0


class RefusedError(BedError):
    """The API server answered with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class ApiClient:
    """Requests as the administrator, one connection each."""

    def __init__(self, bed: Profile) -> None:
        self._address = (bed.address, bed.api_port)
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
        host, port = self._address
        connection = http.client.HTTPSConnection(
            host, port, timeout=_SECONDS, context=self._context
        )
        try:
            kind = "application/merge-patch+json" if verb == "PATCH" else "application/json"
            content = None if body is None else json.dumps(body)
            connection.request(verb, path, content, {"Content-Type": kind})
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status >= http.HTTPStatus.BAD_REQUEST:
            raise RefusedError(answer.status, f"{verb} {path}: {answer.status} {text[:2000]}")
        return json.loads(text) if text.startswith(("{", "[")) else text

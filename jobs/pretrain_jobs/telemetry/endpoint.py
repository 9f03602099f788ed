"""The HTTP endpoint of a stage: GET /progress and GET /metrics, in threads beside the work.

Whatever goes wrong here is logged once, and the stage goes on.
"""

from __future__ import annotations

import logging
import socket
import socketserver
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

PATIENCE_SECONDS = 5.0
"""How long a client may take over its request, or over taking the answer."""

_log = logging.getLogger(__name__)


@contextmanager
def endpoint(
    port: int, *, progress: Callable[[], bytes | None], registry: CollectorRegistry
) -> Iterator[None]:
    """Answer on all addresses of the machine until the block ends; OSError if it cannot listen.

    `progress` gives the JSON to show, None before there is any.
    """
    server = _Server(port, progress=progress, registry=registry)
    Thread(target=server.serve_forever, name="telemetry", daemon=True).start()
    try:
        yield
    finally:
        server.stop()


class _Server(ThreadingHTTPServer):
    """Listens on IPv6 and IPv4 at once where the machine has both."""

    daemon_threads = True

    def __init__(
        self, port: int, *, progress: Callable[[], bytes | None], registry: CollectorRegistry
    ) -> None:
        self.progress = progress
        self.registry = registry
        self._warned = False
        dual = socket.has_dualstack_ipv6()
        self.address_family = socket.AF_INET6 if dual else socket.AF_INET
        super().__init__(("::" if dual else "0.0.0.0", port), _Handler)  # noqa: S104 - scraped from other nodes

    def server_bind(self) -> None:
        """Bind, without the parent's question to DNS for this machine's name."""
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "", self.server_address[1]

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002
        """Log the first error; a client that went away is none."""
        error = sys.exception()
        if self._warned or isinstance(error, OSError):
            return
        self._warned = True
        _log.warning("/metrics cannot be answered", exc_info=error)

    def stop(self) -> None:
        """Stop at once: a closed socket wakes the thread from its wait."""
        self.socket.shutdown(socket.SHUT_RDWR)
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = PATIENCE_SECONDS

    def do_GET(self) -> None:
        """Answer one request."""
        match urlsplit(self.path).path:
            case "/progress":
                self._answer(self.server.progress(), "application/json")
            case "/metrics":
                encode, kind = choose_encoder(self.headers.get("Accept", ""))
                self._answer(encode(self.server.registry), kind)
            case _:
                self.send_error(HTTPStatus.NOT_FOUND, explain="/progress and /metrics are here")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the parent's name
        """Requests are not worth a line each."""

    def _answer(self, body: bytes | None, kind: str) -> None:
        self.send_response(HTTPStatus.NO_CONTENT if body is None else HTTPStatus.OK)
        if body is not None:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if body is not None:
            self.wfile.write(body)

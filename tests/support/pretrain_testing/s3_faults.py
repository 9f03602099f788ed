"""A proxy before a real S3 server that records every request and fails the ones it is told to.

Requests pass with their headers as they are, so signatures hold; what the server answers is
passed on unless a fault says otherwise.
"""

from __future__ import annotations

import http.client
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.storage import open_store
from pretrain_jobs.storage.s3 import S3Store

from pretrain_testing.s3 import SMALL_PART_BYTES, S3Server, with_small_parts


@dataclass(frozen=True)
class Request:
    """A request as it came in; header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    """An answer to give; `cut_to` breaks the connection after so many bytes of the body."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut_to: int | None = None


Forward = Callable[[Request], Answer]
Fault = Callable[[Request, Forward], Answer | None]
"""Answers a request itself, with the upstream at hand; None lets it pass. A fault that raises
ConnectionError breaks the connection without an answer."""


@dataclass
class FaultyServer:
    """The proxy: an S3 server by its own right, its record, and the fault in force."""

    server: S3Server
    fault: Fault
    requests: list[Request] = field(default_factory=list)


@contextmanager
def faulty(upstream: S3Server, fault: Fault | None = None) -> Iterator[FaultyServer]:
    """Run a proxy before `upstream`; its `fault` may be replaced at any time."""
    state = FaultyServer(upstream, fault or pass_on)
    handler = type("Handler", (_Handler,), {"state": state, "upstream": upstream})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as listener:
        state.server = replace(upstream, endpoint_url=f"http://127.0.0.1:{listener.server_port}")
        thread = threading.Thread(target=listener.serve_forever, daemon=True)
        thread.start()
        try:
            yield state
        finally:
            listener.shutdown()
            thread.join()


def pass_on(_request: Request, _forward: Forward) -> None:
    """No fault at all."""


def error(status: int, code: str, **headers: str) -> Answer:
    """An S3 error answer."""
    body = f"<Error><Code>{code}</Code><Message>told to fail</Message></Error>".encode()
    return Answer(status, {"Content-Type": "application/xml", **headers}, body)


def times(count: int, fault: Fault) -> Fault:
    """The fault, for the first `count` requests that reach it; goes inside `on`."""
    left = threading.BoundedSemaphore(count)

    def limited(request: Request, forward: Forward) -> Answer | None:
        return fault(request, forward) if left.acquire(blocking=False) else None

    return limited


def on(method: str, fault: Fault, *, query: str = "") -> Fault:
    """The fault, for requests of one method whose path and query contain `query`."""

    def chosen(request: Request, forward: Forward) -> Answer | None:
        matches = request.method == method and query in request.path
        return fault(request, forward) if matches else None

    return chosen


def first_of(*faults: Fault) -> Fault:
    """The first of some faults that does not let a request pass."""

    def chosen(request: Request, forward: Forward) -> Answer | None:
        answers = (fault(request, forward) for fault in faults)
        return next((answer for answer in answers if answer is not None), None)

    return chosen


def lose_answer(request: Request, forward: Forward) -> Answer:
    """Let the server do its work, then break the connection instead of answering."""
    forward(request)
    raise ConnectionError


class _Handler(BaseHTTPRequestHandler):
    """One connection; `state` and `upstream` are set on a subclass."""

    protocol_version = "HTTP/1.1"
    state: FaultyServer
    upstream: S3Server

    def handle_one_request(self) -> None:
        self.raw_requestline = self.rfile.readline(65537)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        self._serve()

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, self._body(length))
        self.state.requests.append(request)
        try:
            answer = self.state.fault(request, self._forward) or self._forward(request)
        except ConnectionError:
            self.close_connection = True
            return
        self._answer(answer)

    def _body(self, length: int) -> bytes:
        return self.rfile.read(length)

    def _forward(self, request: Request) -> Answer:
        address = self.upstream.endpoint_url.removeprefix("http://")
        connection = http.client.HTTPConnection(address, timeout=60)
        try:
            connection.putrequest(
                request.method, request.path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in request.headers.items():
                if name not in {"expect", "connection"}:
                    connection.putheader(name, value)
            connection.endheaders(request.body)
            response = connection.getresponse()
            headers = {name.title(): value for name, value in response.getheaders()}
            return Answer(response.status, headers, response.read())
        finally:
            connection.close()

    def _answer(self, answer: Answer) -> None:
        headers = {"Date": self.date_time_string(), **answer.headers}
        headers.pop("Transfer-Encoding", None)
        headers.pop("Connection", None)
        if self.command != "HEAD":
            headers["Content-Length"] = str(len(answer.body))
        self.send_response_only(answer.status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body[: answer.cut_to])
        if answer.cut_to is not None:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Keep the tests' output quiet."""


def store_at(endpoint: str, storage: StorageSpec, attempts: int = 4) -> S3Store:
    """The store of a job at another endpoint, such as a proxy's, with small parts."""
    moved = storage.model_copy(update={"endpoint_url": endpoint})
    return with_small_parts(open_store(moved), attempts=attempts)


def big_file(path: Path, size: int = 2 * SMALL_PART_BYTES + 1) -> Path:
    """A file of seeded bytes, by default of three small parts."""
    path.write_bytes(random.Random(1).randbytes(size))
    return path

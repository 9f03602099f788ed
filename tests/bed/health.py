"""Whether something answers: the health checks of the bed's parts."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

_SECONDS = 5.0


def answers(url: str) -> Callable[[], bool]:
    """Whether a GET gets a status below 400, from whichever certificate."""
    return lambda: _get(url)


def accepts(path: Path) -> Callable[[], bool]:
    """Whether a connection to a Unix socket is taken."""
    return lambda: _connect(socket.AF_UNIX, str(path))


def listens(address: str, port: int) -> Callable[[], bool]:
    """Whether a connection to a port is taken."""
    return lambda: _connect(socket.AF_INET, (address, port))


def _get(url: str) -> bool:
    parts = urlsplit(url)
    address = (parts.hostname or "", parts.port)
    connection = (
        http.client.HTTPSConnection(*address, timeout=_SECONDS, context=_ANY_CERTIFICATE)
        if parts.scheme == "https"
        else http.client.HTTPConnection(*address, timeout=_SECONDS)
    )
    try:
        connection.request("GET", parts.path)
        return connection.getresponse().status < http.HTTPStatus.BAD_REQUEST
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _any_certificate() -> ssl.SSLContext:
    """Controllers make certificates of their own at start; only their health is asked for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


_ANY_CERTIFICATE = _any_certificate()


def _connect(family: socket.AddressFamily, address: str | tuple[str, int]) -> bool:
    with socket.socket(family) as probe:
        probe.settimeout(_SECONDS)
        try:
            probe.connect(address)
        except OSError:
            return False
        return True

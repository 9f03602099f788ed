"""Finding rank 0: where its name points to, and whether its port answers yet.

Pods start in any order, and a headless Service publishes a name some time after its pod exists.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import socket
import time
from collections.abc import Callable, Mapping

from pretrain_api.stages import RendezvousConfig

from pretrain_jobs.errors import InfrastructureError, UserError

HOST_ALIASES_ENV = "PRETRAIN_HOST_ALIASES"
"""Environment variable with a JSON object from DNS names to addresses, for runs without DNS."""

POLL_SECONDS = 0.25
CONNECT_SECONDS = 2.0
LOG_SECONDS = 10.0
_log = logging.getLogger(__name__)


def master_address(rendezvous: RendezvousConfig, environment: Mapping[str, str]) -> str:
    """The host to give to torchrun: the alias of rank 0's name if there is one."""
    aliases = environment.get(HOST_ALIASES_ENV)
    if not aliases:
        return rendezvous.host
    try:
        return str(dict(json.loads(aliases)).get(rendezvous.host, rendezvous.host))
    except (ValueError, TypeError) as error:
        raise UserError(
            f"{HOST_ALIASES_ENV} is {aliases!r}; expected a JSON object from names to addresses"
        ) from error


def wait_for_master(
    host: str,
    port: int,
    *,
    timeout_seconds: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Return once rank 0 answers; InfrastructureError that names it after the timeout.

    What is awaited is logged at first and then every LOG_SECONDS.
    """
    began = told = clock()
    while trouble := _trouble(host, port):
        if clock() >= began + timeout_seconds:
            raise unreached(host, port, timeout_seconds, trouble)
        if clock() >= told:
            _log.info("waiting for rank 0 at %s:%d: %s", host, port, trouble)
            told = clock() + LOG_SECONDS
        sleep(POLL_SECONDS)


def unreached(host: str, port: int, timeout_seconds: float, trouble: str) -> InfrastructureError:
    """What a node tells that waited in vain for rank 0, and rank 0 that nobody could find."""
    return InfrastructureError(
        f"rank 0 at {host}:{port} was not reached within {timeout_seconds:g} s: {trouble}. "
        "Look at the pod of index 0: is it running, and is its name published?"
    )


def name_trouble(host: str) -> str:
    """Why a name leads nowhere right now, or nothing."""
    try:
        socket.getaddrinfo(host, None)
    except socket.gaierror as error:
        return _unresolved(error)
    return ""


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own; gloo must then listen there too."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _trouble(host: str, port: int) -> str:
    """Why rank 0 cannot be reached right now, or nothing."""
    try:
        with socket.create_connection((host, port), timeout=CONNECT_SECONDS):
            return ""
    except socket.gaierror as error:
        return _unresolved(error)
    except OSError as error:
        return f"the port does not answer ({error.strerror or error})"


def _unresolved(error: socket.gaierror) -> str:
    return f"the name does not resolve ({error.strerror})"

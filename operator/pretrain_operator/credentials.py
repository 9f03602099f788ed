"""Where the API server is and who we are there: the one module with the Kubernetes client.

The client loads a service account or a kubeconfig, and renews tokens. The sessions made here are
plain aiohttp ones: the client's own requests cost more than all the rest of a reconcile.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass

import aiohttp
from kubernetes.aio import config as loader  # type: ignore[import-untyped]
from kubernetes.aio.client import Configuration  # type: ignore[import-untyped]

from pretrain_operator.addresses import what_is_asked
from pretrain_operator.errors import CredentialsError

USER_AGENT = "pretrain-operator"
NO_ANSWER = 0
"""Stands for the code of a request that got no answer."""

OnAnswer = Callable[[str, str, int], None]
"""Told of every answered request: its verb, resource and HTTP code."""

_IDENTIFIER = "BearerToken"
"""Under which the client keeps what goes into the Authorization header."""

_OPEN_CONNECTIONS = 0
"""Of a session, at most; 0 is no limit, as every watch holds one."""


@dataclass(frozen=True)
class Access:
    """The way to one API server, as somebody."""

    server: str
    configuration: Configuration
    tls: ssl.SSLContext | bool

    def open_session(self, on_answer: OnAnswer) -> aiohttp.ClientSession:
        """A session for absolute URLs of the server; its requests carry a fresh token."""

        async def send(
            request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
        ) -> aiohttp.ClientResponse:
            verb, resource = what_is_asked(request.method, request.url)
            token = await self.configuration.get_api_key_with_prefix(_IDENTIFIER)
            if token:
                request.headers["Authorization"] = token
            try:
                response = await handler(request)
            except (aiohttp.ClientError, TimeoutError):
                on_answer(verb, resource, NO_ANSWER)
                raise
            on_answer(verb, resource, response.status)
            return response

        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=_OPEN_CONNECTIONS, ssl=self.tls),
            headers={"User-Agent": USER_AGENT},
            middlewares=(send,),
        )


async def load_access(kubeconfig: str | None) -> Access:
    """From a kubeconfig that was named, else the pod's service account, else $KUBECONFIG.

    Raises CredentialsError when none of them can be used.
    """
    configuration = Configuration()
    try:
        if kubeconfig is not None:
            await loader.load_kube_config(kubeconfig, client_configuration=configuration)
        else:
            await _load_surroundings(configuration)
        tls = _tls(configuration)
    except (loader.ConfigException, OSError, ValueError) as error:
        raise CredentialsError(
            f"no access to an API server: {error}; run in a pod with a service account, or set "
            "PRETRAIN_KUBECONFIG or KUBECONFIG"
        ) from error
    return Access(server=str(configuration.host).rstrip("/"), configuration=configuration, tls=tls)


async def _load_surroundings(configuration: Configuration) -> None:
    try:
        loader.load_incluster_config(client_configuration=configuration)
    except loader.ConfigException:
        await loader.load_kube_config(client_configuration=configuration)


def _tls(configuration: Configuration) -> ssl.SSLContext | bool:
    if not str(configuration.host).startswith("https:"):
        return True
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    if configuration.cert_file:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context

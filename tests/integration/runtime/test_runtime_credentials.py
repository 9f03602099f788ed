"""Who we are to the API server: the pod's service account, a kubeconfig, or nobody."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import certifi
import pytest
from aiohttp import web
from kubernetes.aio.config import incluster_config  # type: ignore[import-untyped]
from pretrain_operator.credentials import load_access
from pretrain_operator.errors import CredentialsError

TOKEN = "token-of-the-pod"


@pytest.fixture
def pod(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A container with a service account; the folder of its token."""
    (tmp_path / "token").write_text(TOKEN, encoding="utf-8")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", certifi.where())
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    return tmp_path


def test_requests_from_a_pod_carry_its_token_and_are_counted(pod: Path):
    async def scenario() -> tuple[list[str | None], list[tuple[str, str, int]]]:
        seen: list[str | None] = []

        async def answer(request: web.Request) -> web.StreamResponse:
            seen.append(request.headers.get("Authorization"))
            return web.json_response({})

        app = web.Application()
        app.router.add_get("/api/v1/pods", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        counted: list[tuple[str, str, int]] = []
        access = replace(await load_access(None), server=url, tls=True)
        session = access.open_session(lambda *what: counted.append(what))
        async with session, session.get(f"{url}/api/v1/pods?watch=true"):
            pass
        await runner.cleanup()
        return seen, counted

    seen, counted = asyncio.run(scenario())
    assert [header.split() for header in seen if header] == [["bearer", TOKEN]]
    assert counted == [("watch", "pods", 200)]


def test_the_server_is_the_one_of_the_pods_environment(pod: Path):
    assert asyncio.run(load_access(None)).server == "https://10.96.0.1:443"


def test_without_any_credentials_the_message_says_what_to_set(tmp_path: Path):
    with pytest.raises(CredentialsError, match="PRETRAIN_KUBECONFIG"):
        asyncio.run(load_access(str(tmp_path / "missing")))

"""What the operator serves and asks over HTTP, with real servers on loopback: a second in all."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import aiohttp
from aiohttp import web
from pretrain_api.reports import StageProgress, StageReport, StageResult, TrainingStatus
from pretrain_operator.health import Answers, Heart, serving
from pretrain_operator.observe import PodFacts
from pretrain_operator.progress import ProgressPoller
from pretrain_operator.tables import Table
from pretrain_testing.raw_children import raw_pod, terminated

KEY = ("team-a", "roberta-zh")
NOW = datetime(2026, 1, 1, tzinfo=UTC)
Handler = Callable[[web.Request], Coroutine[Any, Any, web.StreamResponse]]


@asynccontextmanager
async def pod_serving(handler: Handler) -> AsyncIterator[int]:
    app = web.Application()
    app.router.add_get("/progress", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


class Polled:
    """A poller, the pods that it knows, and what it does."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.woken: list[tuple[str, str]] = []
        self.outcomes: list[str] = []
        self.version = 0
        self.pods: Table[PodFacts] = Table(read=self._read, changed=lambda _: None)
        self.poller = ProgressPoller(
            session=session,
            pods=self.pods,
            began_at=lambda *_: 0,
            wake=self.woken.append,
            on_poll=self.outcomes.append,
            clock=lambda: NOW,
        )

    def put(self, port: int, index: int = 0, **changes: Any) -> None:
        raw = raw_pod(index, podIP="127.0.0.1", **changes)
        raw["spec"]["containers"][0]["ports"][1]["containerPort"] = port
        self.version += 1
        raw["metadata"] |= {"uid": f"uid-{index}", "resourceVersion": str(self.version)}
        self.pods.put(raw)

    def _read(self, raw: dict[str, Any]) -> tuple[tuple[str, str], PodFacts] | None:
        facts = PodFacts.of(raw)
        return None if facts is None else (facts.key, facts)


def uid() -> str:
    facts = PodFacts.of(raw_pod())
    assert facts is not None
    return facts.job_uid


def progress(step: int) -> web.Response:
    training = TrainingStatus(step=step, max_steps=10)
    return web.Response(body=StageProgress(stage="train", training=training).model_dump_json())


def polling(handler: Handler, script: Callable[[Polled, int], Coroutine[Any, Any, None]]) -> None:
    async def scenario() -> None:
        async with aiohttp.ClientSession() as session, pod_serving(handler) as port:
            await script(Polled(session), port)

    asyncio.run(scenario())


def test_a_new_answer_wakes_the_job_and_the_same_one_does_not():
    async def handler(_: web.Request) -> web.StreamResponse:
        return progress(3)

    async def script(polled: Polled, port: int) -> None:
        polled.put(port)
        await polled.poller.poll()
        await polled.poller.poll()
        followed = polled.poller.of(uid())
        assert followed.progress[0].training is not None
        assert followed.progress[0].training.step == 3
        assert polled.woken == [KEY]
        assert polled.outcomes == ["ok", "ok"]

    polling(handler, script)


def test_what_a_pod_told_last_is_kept_after_its_end_and_goes_with_it():
    async def handler(_: web.Request) -> web.StreamResponse:
        return progress(3)

    async def script(polled: Polled, port: int) -> None:
        polled.put(port)
        await polled.poller.poll()
        report = StageReport(stage="train", result=StageResult(warnings=["much"]))
        ended = terminated(0, message=report.model_dump_json())
        polled.put(port, phase="Succeeded", state=ended)
        await polled.poller.poll()
        assert len(polled.poller.of(uid()).progress) == 1
        polled.poller.forget(uid())
        assert polled.poller.of(uid()).progress == ()

    polling(handler, script)


def test_whatever_a_pod_answers_nothing_breaks():
    answers = [
        web.Response(status=204),
        web.Response(status=500),
        web.Response(text="<html>"),
        web.Response(body=b"x" * 1_000_000),
        web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"}),
    ]

    async def handler(_: web.Request) -> web.StreamResponse:
        return answers.pop(0)

    async def script(polled: Polled, port: int) -> None:
        polled.put(port)
        for _ in range(5):
            await polled.poller.poll()
        assert polled.outcomes == ["empty", "invalid", "invalid", "invalid", "invalid"]
        assert polled.poller.of(uid()).progress == ()
        assert polled.woken == []

    polling(handler, script)


def test_a_pod_that_cannot_be_reached_is_counted_and_nothing_more():
    async def handler(_: web.Request) -> web.StreamResponse:
        return progress(3)

    async def script(polled: Polled, port: int) -> None:
        polled.put(port)
        await polled.poller.poll()
        polled.put(1)
        await polled.poller.poll()
        assert polled.outcomes == ["ok", "unreachable"]
        assert len(polled.poller.of(uid()).progress) == 1

    polling(handler, script)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def test_probes_say_what_is_wrong_and_metrics_are_served():
    async def scenario() -> None:
        seconds = 0.0
        heart = Heart(seconds=lambda: seconds, limit=60)
        problems = ["pods are not listed yet"]
        answers = Answers(
            liveness=heart.problem,
            readiness=lambda: problems[0] if problems else "",
            metrics=lambda: b"pretrain_operator_is_leader 1.0\n",
        )
        port = free_port()
        async with serving(answers, port=port), aiohttp.ClientSession() as session:

            async def ask(path: str) -> tuple[int, str]:
                async with session.get(f"http://127.0.0.1:{port}{path}") as response:
                    return response.status, (await response.text()).strip()

            assert await ask("/readyz") == (503, "pods are not listed yet")
            assert await ask("/healthz") == (200, "ok")
            assert await ask("/metrics") == (200, "pretrain_operator_is_leader 1.0")
            problems.clear()
            seconds = 61.0
            assert await ask("/readyz") == (200, "ok")
            assert await ask("/healthz") == (503, "nothing was finished for 61 s")

    asyncio.run(scenario())

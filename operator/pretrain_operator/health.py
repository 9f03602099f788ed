"""What the operator's pod answers over HTTP: is it alive, is it ready, and its metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

from pretrain_operator.metrics import CONTENT_TYPE

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Problem = Callable[[], str]
"""Says what is wrong, in a sentence; nothing when all is well."""


@dataclass
class Heart:
    """Beats with every piece of work that is finished; silence means that the process is stuck."""

    seconds: Callable[[], float]
    limit: float
    """Seconds of silence that a healthy process never has."""

    _beaten_at: float = field(init=False)

    def __post_init__(self) -> None:
        self.beat()

    def beat(self) -> None:
        """Something was finished."""
        self._beaten_at = self.seconds()

    def problem(self) -> str:
        """What is wrong with the process, if anything is."""
        silence = self.seconds() - self._beaten_at
        return "" if silence <= self.limit else f"nothing was finished for {silence:.0f} s"


@dataclass(frozen=True)
class Answers:
    """What is told at each path."""

    liveness: Problem
    readiness: Problem
    metrics: Callable[[], bytes]


@asynccontextmanager
async def serving(answers: Answers, *, port: int) -> AsyncIterator[None]:
    """Serve `/healthz`, `/readyz` and `/metrics` on all addresses, of IPv4 and IPv6 alike."""
    app = web.Application()
    app.router.add_get("/healthz", _probe(answers.liveness))
    app.router.add_get("/readyz", _probe(answers.readiness))
    app.router.add_get("/metrics", _scrape(answers.metrics))
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, None, port)
        await site.start()
        yield
    finally:
        await runner.cleanup()


def _probe(problem: Problem) -> Handler:
    async def answer(_: web.Request) -> web.StreamResponse:
        wrong = problem()
        return web.Response(text=f"{wrong or 'ok'}\n", status=503 if wrong else 200)

    return answer


def _scrape(metrics: Callable[[], bytes]) -> Handler:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(body=metrics(), headers={"Content-Type": CONTENT_TYPE})

    return answer

"""Ending in the middle of something because the process was asked to stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Do something, and give it up once `stop` is set; whether it was done."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            return False
        working.result()
        return True
    finally:
        working.cancel()
        stopping.cancel()


def signal_catcher(stop: asyncio.Event) -> Callable[[], None]:
    """A function that has SIGTERM and SIGINT set `stop`, also if somebody caught them since."""
    loop = asyncio.get_running_loop()

    def catch() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)

    return catch

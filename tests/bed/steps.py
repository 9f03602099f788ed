"""Runs steps side by side, each once those it needs are done, and tells how long each took."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """Something to do once the steps named in `after` are done."""

    name: str
    action: Callable[[], object]
    after: tuple[str, ...] = ()


def run_steps(steps: Sequence[Step]) -> None:
    """Run all; the first failure is raised once the steps that were running have ended."""
    waiting = {step.name: step for step in steps}
    running: dict[Future[float], Step] = {}
    done: set[str] = set()
    with ThreadPoolExecutor(max_workers=len(steps)) as pool:
        while waiting or running:
            for step in [step for step in waiting.values() if done.issuperset(step.after)]:
                running[pool.submit(_timed, step)] = waiting.pop(step.name)
            if not running:
                raise ValueError(f"steps wait for what is none: {sorted(waiting)}")
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                step = running.pop(future)
                _tell(step.name, future.result())
                done.add(step.name)


def _timed(step: Step) -> float:
    start = time.monotonic()
    step.action()
    return time.monotonic() - start


def _tell(name: str, seconds: float) -> None:
    print(f"  {name:<28}{seconds:6.1f} s", file=sys.stderr, flush=True)

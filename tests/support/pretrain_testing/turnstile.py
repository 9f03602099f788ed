"""Actors that take turns: real code in threads, of which one runs, from gate to gate.

Whoever drives the turnstile decides which actor passes its gate next, so that an interleaving is a
list of choices and can be repeated. A doomed actor dies at its gate as a killed process would: its
next request is never made, and no handler of ordinary exceptions sees it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

PATIENCE_SECONDS = 60.0


class Killed(BaseException):
    """The end of an actor that was doomed."""


@dataclass(eq=False)
class Actor:
    """One thread of a process; `group` names the process that it dies with."""

    name: str
    group: str
    thread: threading.Thread | None = None
    ready: Callable[[], bool] | None = None
    doomed: bool = False
    ended: bool = False
    error: BaseException | None = None
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


class Turnstile:
    """Starts actors and lets them pass, one at a time."""

    def __init__(self) -> None:
        self.actors: list[Actor] = []
        self._here = threading.local()
        self._back = threading.Semaphore(0)

    def spawn(self, name: str, group: str, function: Callable[[], None]) -> Actor:
        """Make an actor that waits at its first gate."""
        actor = Actor(name, group)

        def run() -> None:
            self._here.actor = actor
            try:
                self._await_turn(actor)
                function()
            except BaseException as error:  # noqa: BLE001 - told to whoever asks
                actor.error = error
            actor.ended = True
            self._back.release()

        actor.thread = threading.Thread(target=run, name=name, daemon=True)
        self.actors.append(actor)
        actor.thread.start()
        return actor

    def gate(self, ready: Callable[[], bool] | None = None) -> None:
        """Wait for this actor's turn, which does not come before `ready()`; Killed if doomed."""
        actor: Actor = self._here.actor
        actor.ready = ready
        self._back.release()
        self._await_turn(actor)
        actor.ready = None

    def waiting(self) -> list[Actor]:
        """The actors that could pass now."""
        return [a for a in self._alive() if a.doomed or a.ready is None or a.ready()]

    def groups(self) -> list[str]:
        """The processes that live."""
        return list(dict.fromkeys(actor.group for actor in self._alive() if not actor.doomed))

    def let_pass(self, actor: Actor) -> None:
        """Run an actor from its gate to the next, or to its end."""
        actor.turn.release()
        if not self._back.acquire(timeout=PATIENCE_SECONDS):
            raise TimeoutError(f"{actor.name} reached no gate")

    def kill(self, group: str) -> None:
        """Doom a process: each of its actors dies at its gate."""
        for actor in self._alive():
            if actor.group == group:
                actor.doomed = True
        for actor in [a for a in self._alive() if a.doomed]:
            self.let_pass(actor)

    def _alive(self) -> Iterator[Actor]:
        return (actor for actor in list(self.actors) if not actor.ended)

    def _await_turn(self, actor: Actor) -> None:
        if not actor.turn.acquire(timeout=PATIENCE_SECONDS):
            raise TimeoutError(f"{actor.name} was forgotten")
        if actor.doomed:
            raise Killed

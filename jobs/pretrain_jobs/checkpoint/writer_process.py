"""A rank's writer as training sees it: a process that is asked, and whose death is an answer."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Protocol

from pretrain_api.spec.storage import StorageSpec

from pretrain_jobs.checkpoint.buffers import HostBuffer
from pretrain_jobs.checkpoint.layout import CheckpointKey
from pretrain_jobs.checkpoint.orders import GiveUp, LookUpOrder, Order, Outcome, SaveOrder
from pretrain_jobs.errors import InfrastructureError

CLOSING_SECONDS = 60.0
"""How long a writer that was told to end may still tidy up."""

_log = logging.getLogger(__name__)


class Writer(Protocol):
    """What carries out orders, one after the other, beside training.

    It reads snapshots from `buffer`, which is free again once a save's outcome was told.
    """

    buffer: HostBuffer

    def start(self) -> None:
        """Be ready for an order; from the main thread."""

    def submit(self, order: Order) -> None:
        """Give an order; from any thread, while no save is under way."""

    def outcome(self, seconds: float) -> Outcome | None:
        """How the save ended, waiting so long at most; None while it goes on."""

    def give_up(self, key: CheckpointKey) -> None:
        """Have a save wait for no other rank."""

    def end(self) -> None:
        """End a save under way, however stuck it is; its outcome tells of that."""

    def close(self, *, tidily: bool) -> None:
        """End it; `tidily` after what it was told, else at once."""


class WriterProcess:
    """A writer in a process of its own, started at the first save and again when it died.

    It is spawned, never forked: threads of torch and gloo do not survive a fork. It has the
    credentials from the environment that it inherits.
    """

    def __init__(self, storage: StorageSpec, uri: str | None = None) -> None:
        """Write to the store that these open (`open_store`)."""
        self.buffer = HostBuffer()
        self._store = (storage, uri)
        self._running: tuple[subprocess.Popen[bytes], Connection] | None = None
        self._order: Order | None = None

    def start(self) -> None:
        """See Writer."""
        if self._running is not None and self._running[0].poll() is None:
            return
        self._forget()
        own, theirs = Pipe()
        with theirs:
            passed = (theirs.fileno(), self.buffer.descriptor)
            module = ("-m", "pretrain_jobs.checkpoint.writer")
            process = subprocess.Popen(
                [sys.executable, *module, *map(str, passed), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                pass_fds=passed,
            )
        own.send(self._store)
        self._running = process, own

    def submit(self, order: Order) -> None:
        """See Writer. One that has died says so when it is asked for the outcome."""
        if self._running is None:
            raise RuntimeError("a writer is started before it is given an order")
        self._order = order
        with suppress(ConnectionError):
            self._running[1].send(order)

    def outcome(self, seconds: float) -> Outcome | None:
        """See Writer."""
        if self._running is None:
            return None
        process, connection = self._running
        try:
            if not connection.poll(seconds):
                return None
            outcome: Outcome = connection.recv()
        except (EOFError, ConnectionError):
            return self._died(process.wait())
        return outcome

    def give_up(self, key: CheckpointKey) -> None:
        """See Writer."""
        if self._running is not None:
            with suppress(ConnectionError):
                self._running[1].send(GiveUp(key))

    def end(self) -> None:
        """See Writer. A process that the kernel holds ends once it is let go."""
        if self._running is not None:
            self._running[0].kill()

    def close(self, *, tidily: bool) -> None:
        """See Writer; once more does nothing."""
        if self._running is not None and tidily:
            process, connection = self._running
            connection.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(CLOSING_SECONDS)
        self._forget()
        self.buffer.close()

    def _died(self, code: int) -> Outcome | None:
        """What a death means: rank 0's may have committed before, so another one looks."""
        self._forget()
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        _log.warning("the writer of checkpoints was ended by %s", how)
        order = self._order
        if isinstance(order, SaveOrder) and order.commission is not None:
            self.start()
            self.submit(LookUpOrder(order.key))
            return None
        return Outcome(error=InfrastructureError(f"its writer was ended by {how}"))

    def _forget(self) -> None:
        if self._running is None:
            return
        process, connection = self._running
        connection.close()
        process.kill()
        process.wait()
        self._running = None

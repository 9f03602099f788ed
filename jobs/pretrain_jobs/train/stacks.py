"""Where the ranks of a node stand when they do not move: their stacks, and their state in /proc.

A rank writes its stack at SIGUSR1 from a handler in C (faulthandler), which also runs while Python
itself is stuck. Only a rank that the kernel does not run cannot answer.
"""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

SIGNAL = signal.SIGUSR1
PATIENCE_SECONDS = 20.0
_POLL_SECONDS = 0.05
_WRITTEN_SECONDS = 1.0
"""Without a change for so long, a stack is whole: it is written in many small pieces."""

_FRAMES = 3
"""Frames of a stack that fit into a sentence, from the innermost on."""

_FRAME = re.compile(r'  File "(?P<path>[^"]+)", line (?P<line>\d+) in (?P<function>.+)')
_ROOTS = re.compile(r"^.*/(?:site-packages|lib/python3\.\d+|jobs)/")
_STATES = {
    "T": "is stopped (SIGSTOP)",
    "t": "is held by a debugger",
    "D": "waits in the kernel (state D: a disk, a network file system or a device)",
    "Z": "has ended and was not noticed",
}


@dataclass(frozen=True)
class Standing:
    """One rank that does not move: its state's letter in /proc (`?` if it is gone), its stack."""

    rank: int
    state: str
    stack: str

    @property
    def answers(self) -> bool:
        """Whether the rank could still write its stack."""
        return bool(self.stack)

    def __str__(self) -> str:
        if self.state in _STATES:
            return f"rank {self.rank} {_STATES[self.state]}"
        frames = frames_of(self.stack)
        if not frames:
            return f"rank {self.rank} (state {self.state}) does not answer"
        return f"rank {self.rank} is in {' < '.join(frames)}"


@contextmanager
def told_at_signal(path: Path) -> Iterator[None]:
    """Within the block, every thread's stack is written to `path` at SIGUSR1."""
    with path.open("w") as file:
        faulthandler.register(SIGNAL, file=file, all_threads=True)
        try:
            yield
        finally:
            faulthandler.unregister(SIGNAL)


def standings(processes: Mapping[int, int], paths: Mapping[int, Path]) -> list[Standing]:
    """Ask ranks (number to process id) where they stand; each has the file of its stack in `paths`.

    Takes PATIENCE_SECONDS at most.
    """
    states = {rank: _state(pid) for rank, pid in processes.items()}
    asked = [rank for rank, state in states.items() if state not in {"T", "t", "Z", "?"}]
    for rank in asked:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(processes[rank], SIGNAL)
    stacks = _await(paths, asked=asked)
    return [Standing(rank, states[rank], stacks.get(rank, "")) for rank in sorted(processes)]


def frames_of(stack: str) -> list[str]:
    """The innermost frames of the thread that answered, and the first of ours among the rest."""
    found = [match for line in _thread(stack) if (match := _FRAME.match(line))]
    frames = [
        f"{_ROOTS.sub('', match['path'])}:{match['line']} {match['function']}" for match in found
    ]
    ours = [frame for frame in frames[_FRAMES:] if frame.startswith("pretrain_jobs/")]
    return [*frames[:_FRAMES], *ours[:1]]


def _thread(stack: str) -> list[str]:
    """The lines of the thread that took the signal, which is the main one."""
    blocks = [block.splitlines() for block in stack.split("\n\n") if block.strip()]
    own = [block for block in blocks if block[0].startswith("Current thread")]
    return (own or blocks or [[]])[-1]


def _await(paths: Mapping[int, Path], *, asked: list[int]) -> dict[int, str]:
    """What the asked ranks have written once none writes on, or the time is over."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    texts, changed_at = dict.fromkeys(asked, ""), time.monotonic()
    while time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        before, texts = texts, {rank: _read(paths[rank]) for rank in asked}
        if texts != before:
            changed_at = time.monotonic()
        elif all(texts.values()) and time.monotonic() - changed_at >= _WRITTEN_SECONDS:
            break
    return texts


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _state(pid: int) -> str:
    """The state's letter of proc_pid_stat(5)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return "?"

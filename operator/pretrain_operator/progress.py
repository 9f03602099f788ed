"""How far running stages are: asked of their pods, every few seconds; nothing is decided here.

A pod that does not answer has not failed. The last answers are kept as long as their pods are
known, and are lost with this process: the next round has them again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Literal

import aiohttp
from pretrain_api.reports import StageName, StageProgress
from pydantic import ValidationError

from pretrain_operator.observe import JobKey, PodFacts
from pretrain_operator.tables import Table

PODS_A_JOB = 32
"""Pods of one job that are asked in a round, those with the lowest indexes."""

ASKED_AT_ONCE = 64
ANSWER_SECONDS = 3.0
ANSWER_LIMIT = 65_536
"""Bytes of an answer."""

MESSAGE_LIMIT = 1024
"""Characters of a stage's own words."""

Outcome = Literal["ok", "empty", "unreachable", "invalid"]
_Place = tuple[StageName, int, int]
"""Stage, attempt and index."""

_Told = tuple[PodFacts, StageProgress | None]
"""A pod that was asked, and its answer."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Followed:
    """What is known of a job's progress, as `Observed` has it."""

    progress: tuple[StageProgress, ...] = ()
    stepped_at: datetime | None = None


@dataclass(frozen=True)
class StepClock:
    """When the current training attempt last made a step."""

    attempt: int = -1
    step: int | None = None
    stepped_at: datetime | None = None

    def after(self, *, attempt: int, step: int | None, began_at: int, now: datetime) -> StepClock:
        """The clock after a poll; `step` is None when rank 0 told none (`step_of`).

        It runs from the first answer that shows a step beyond the one the attempt began at, and
        anew from the first answer after a silence.
        """
        if step is None:
            return StepClock(attempt)
        if attempt != self.attempt or self.step is None:
            return StepClock(attempt, step, now if step > began_at else None)
        return StepClock(attempt, step, self.stepped_at if step == self.step else now)


@dataclass
class _Job:
    answers: dict[_Place, StageProgress] = field(default_factory=dict)
    clock: StepClock = StepClock()


class ProgressPoller:
    """Asks the running pods of all jobs, and wakes the jobs that have something new.

    `began_at` tells the step at which a job's training attempt began.
    """

    def __init__(
        self,
        *,
        session: aiohttp.ClientSession,
        pods: Table[PodFacts],
        began_at: Callable[[JobKey, int], int],
        wake: Callable[[JobKey], None],
        on_poll: Callable[[Outcome], None],
        clock: Callable[[], datetime],
    ) -> None:
        self._session = session
        self._pods = pods
        self._began_at = began_at
        self._wake = wake
        self._on_poll = on_poll
        self._clock = clock
        self._jobs: dict[str, _Job] = {}
        self._slots = asyncio.Semaphore(ASKED_AT_ONCE)

    def of(self, uid: str) -> Followed:
        """What the pods of the job with a uid told last."""
        job = self._jobs.get(uid)
        if job is None:
            return Followed()
        return Followed(tuple(job.answers.values()), job.clock.stepped_at)

    def forget(self, uid: str) -> None:
        """Drop what is known of a job that is gone."""
        self._jobs.pop(uid, None)

    async def poll(self) -> None:
        """Ask every running pod once."""
        groups = [(key, self._pods.of(key)) for key in self._pods.groups]
        asked = [facts for _, pods in groups for facts in pods_to_ask(pods)]
        told: dict[str, list[_Told]] = {}
        for facts, answer in zip(asked, await asyncio.gather(*map(self._ask, asked)), strict=True):
            told.setdefault(facts.job_uid, []).append((facts, answer))
        for key, pods in groups:
            for uid in {facts.job_uid for facts in pods}:
                mine = [facts for facts in pods if facts.job_uid == uid]
                if self._note(key, uid, mine, told.get(uid, [])):
                    self._wake(key)

    def _note(
        self,
        key: JobKey,
        uid: str,
        pods: Iterable[PodFacts],
        told: list[_Told],
    ) -> bool:
        """Take over a round's answers; whether anything has changed."""
        if not told and uid not in self._jobs:
            return False
        job = self._jobs.setdefault(uid, _Job())
        before = (job.answers, job.clock.stepped_at)
        there = {_place(facts) for facts in pods if not _is_done_slice(facts)}
        kept = {place: answer for place, answer in job.answers.items() if place in there}
        job.answers = kept | {_place(facts): answer for facts, answer in told if answer}
        for facts, answer in told:
            if facts.stage == "train":
                job.clock = self._after_poll(key, job.clock, facts.attempt, answer)
        return before != (job.answers, job.clock.stepped_at)

    def _after_poll(
        self, key: JobKey, clock: StepClock, attempt: int, answer: StageProgress | None
    ) -> StepClock:
        return clock.after(
            attempt=attempt,
            step=step_of(answer),
            began_at=self._began_at(key, attempt),
            now=self._clock(),
        )

    async def _ask(self, facts: PodFacts) -> StageProgress | None:
        async with self._slots:
            outcome, answer = await self._fetch(facts)
        self._on_poll(outcome)
        return answer

    async def _fetch(self, facts: PodFacts) -> tuple[Outcome, StageProgress | None]:
        timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
        try:
            async with self._session.get(
                progress_url(facts), timeout=timeout, allow_redirects=False
            ) as response:
                if response.status == HTTPStatus.NO_CONTENT:
                    return "empty", None
                if response.status != HTTPStatus.OK:
                    return "invalid", None
                raw = await _read(response.content)
        except (aiohttp.ClientError, TimeoutError, OSError):
            return "unreachable", None
        answer = read_answer(raw, facts)
        return ("ok" if answer else "invalid"), answer


async def _read(content: aiohttp.StreamReader) -> bytes:
    """An answer, cut where it is too long to be one."""
    raw = b""
    async for chunk in content.iter_any():
        raw += chunk
        if len(raw) > ANSWER_LIMIT:
            break
    return raw


def pods_to_ask(pods: Iterable[PodFacts]) -> Iterator[PodFacts]:
    """The pods that serve progress: those with index 0, and every running slice."""
    running = (
        facts
        for facts in pods
        if facts.pod.phase == "Running" and not facts.pod.deleting and facts.ip
    )
    serving = [
        facts
        for facts in running
        if facts.progress_port and (facts.stage == "preprocess" or facts.pod.index == 0)
    ]
    yield from sorted(serving, key=lambda facts: facts.pod.index)[:PODS_A_JOB]


def step_of(answer: StageProgress | None) -> int | None:
    """The step that training is at; None without an answer, and while it does something else.

    Its own words say what: an evaluation, or the writing of the model, has no steps to be late.
    """
    if answer is None or answer.training is None or answer.message:
        return None
    return answer.training.step


def progress_url(facts: PodFacts) -> str:
    """Where a pod tells its progress; IPv6 addresses stand in brackets."""
    host = f"[{facts.ip}]" if ":" in facts.ip else facts.ip
    return f"http://{host}:{facts.progress_port}/progress"


def read_answer(raw: bytes, facts: PodFacts) -> StageProgress | None:
    """A pod's answer; None when it is no progress, or that of another attempt or index."""
    try:
        answer = StageProgress.model_validate_json(raw)
    except ValidationError:
        return None
    if (answer.stage, answer.attempt, answer.index) != _place(facts):
        return None
    return answer.model_copy(update={"message": answer.message[:MESSAGE_LIMIT]})


def _place(facts: PodFacts) -> _Place:
    return facts.stage, facts.attempt, facts.pod.index


def _is_done_slice(facts: PodFacts) -> bool:
    """A slice that is done counts as done; what it last told would count it twice."""
    return facts.stage == "preprocess" and facts.pod.phase == "Succeeded"

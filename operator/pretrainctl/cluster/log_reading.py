"""Logs of pods as they are read from the API server, several of them side by side."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from pretrain_operator.children.names import CONTAINER
from pretrain_operator.known_job import KnownJob
from pretrain_operator.observe import PodFacts

from pretrainctl.cluster.access import (
    OPEN_CONNECTIONS,
    Cluster,
    MissingError,
)
from pretrainctl.cluster.findings import ranks_per_pod, words_of_ended_attempt
from pretrainctl.cluster.log_choice import Choice, Wanted, choose, stage_to_show
from pretrainctl.cluster.log_resuming import GrowingLog
from pretrainctl.cluster.pod_lines import state_of
from pretrainctl.cluster.reading import read_events, read_job, read_pod, read_pods
from pretrainctl.errors import CommandError, InvalidError

POLL_SECONDS = 2.0
"""Between two looks for a pod that is waited for."""

Print = Callable[[str], None]


@dataclass(frozen=True)
class LogReader:
    """Prints logs of one job; `tail` is the number of last lines, None for all.

    `note` is told what is no log, `sleep` waits between two looks.
    """

    cluster: Cluster
    namespace: str
    name: str
    wanted: Wanted
    tail: int | None
    print: Print
    note: Print
    sleep: Callable[[float], None] = time.sleep

    def look(self, *, must_exist: bool = True) -> tuple[KnownJob, Choice]:
        """The job, and the pods that are wanted of those that there are now."""
        known = read_job(self.cluster, self.namespace, self.name)
        status, ranks = known.readable_status, ranks_per_pod(known)
        pods = read_pods(self.cluster, known, stage_to_show(status, self.wanted).name)
        choice = choose(status, pods, self.wanted, ranks_per_pod=ranks, must_exist=must_exist)
        return known, choice

    def show(self, choice: Choice) -> bool:
        """Print logs one after the other; whether there was any."""
        shown = [self._show(fact, choice) for fact in choice.pods]
        return any(shown)

    def last_words(self, choice: Choice) -> str:
        """What is kept of an attempt whose pods are gone: by status, or by the event of its end.

        Status tells of the job as it is; of an attempt that was asked for, the event comes first.
        """
        if choice.last_words and self.wanted.attempt is None:
            return choice.last_words
        known = read_job(self.cluster, self.namespace, self.name)
        events = read_events(self.cluster, known)
        words = words_of_ended_attempt(events, stage=choice.stage, attempt=choice.attempt)
        return words or choice.last_words

    def follow(self, choice: Choice) -> bool:
        """Print logs side by side as they grow, until all their pods have ended.

        Their threads end with the process, so that Ctrl-C waits for none of them. Whether somebody
        reads on.
        """
        if len(choice.pods) > OPEN_CONNECTIONS:
            raise InvalidError(
                f"{len(choice.pods)} logs are more than can be followed at once "
                f"({OPEN_CONNECTIONS}); choose one by --index"
            )
        left = threading.Event()
        threads = [
            threading.Thread(target=self._follow, args=(fact, choice, left), daemon=True)
            for fact in choice.pods
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return not left.is_set()

    def _show(self, fact: PodFacts, choice: Choice) -> bool:
        if not has_begun(fact):
            reason = state_of(fact.pod)
            self.note(f"{choice.name_of(fact)} has no log: its pod {fact.pod.name} is {reason}")
            return False
        try:
            self._print(fact, choice)
        except CommandError as error:
            self.note(_without_log(fact, choice, error))
        else:
            return True
        return False

    def _follow(self, fact: PodFacts, choice: Choice, left: threading.Event) -> None:
        """Wait until the pod has begun: before, it has no log, or an empty one."""
        now: PodFacts | None = fact
        try:
            while now is not None and not has_begun(now):
                self.sleep(POLL_SECONDS)
                now = read_pod(self.cluster, self.namespace, fact.pod.name)
            for line in self._growing(fact, choice).lines():
                self.print(f"{_prefix(fact, choice)}{line}")
        except CommandError as error:
            self.note(_without_log(fact, choice, error))
        except BrokenPipeError:
            left.set()

    def _growing(self, fact: PodFacts, choice: Choice) -> GrowingLog:
        return GrowingLog(
            cluster=self.cluster,
            path=self._path(fact),
            container=CONTAINER,
            tail=self.tail,
            look=lambda: read_pod(self.cluster, self.namespace, fact.pod.name),
            note=lambda reason: self.note(f"{choice.name_of(fact)}: {reason}"),
            sleep=lambda: self.sleep(POLL_SECONDS),
        )

    def _print(self, fact: PodFacts, choice: Choice) -> None:
        query: dict[str, str | int] = {"container": CONTAINER}
        if self.tail is not None:
            query["tailLines"] = self.tail
        for line in self.cluster.lines(self._path(fact), query):
            self.print(_prefix(fact, choice) + line.removesuffix("\n"))

    def _path(self, fact: PodFacts) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods/{fact.pod.name}/log"


def has_begun(fact: PodFacts) -> bool:
    """Whether a stage's container has begun, so that there is a log."""
    return fact.pod.started_at is not None


def _prefix(fact: PodFacts, choice: Choice) -> str:
    """Whose a line is, where there are several pods."""
    return f"{choice.name_of(fact)} | " if len(choice.pods) > 1 else ""


def _without_log(fact: PodFacts, choice: Choice, error: CommandError) -> str:
    if isinstance(error, MissingError):
        return f"{choice.name_of(fact)} has no log any more: its pod {fact.pod.name} is gone"
    return f"{choice.name_of(fact)} on node {fact.pod.node or '(none)'} gives no log: {error}"

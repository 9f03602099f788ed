"""Logs that are followed from one attempt into the next, until nothing more is to come.

Which pods are shown of those that there are is decided in `log_choice`, how they are read in
`log_reading`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pretrain_api.reports import StageName
from pretrain_api.status import TERMINAL_PHASES, Phase
from pretrain_operator.known_job import KnownJob
from pretrain_operator.observe import PodFacts
from pretrain_operator.plan.decision import DONE_STATES

from pretrainctl.cluster.access import OPEN_CONNECTIONS
from pretrainctl.cluster.log_choice import Choice, Wanted, stage_to_show
from pretrainctl.cluster.log_reading import POLL_SECONDS, LogReader, has_begun
from pretrainctl.cluster.pod_lines import state_of


@dataclass(frozen=True)
class Followed:
    """Pods whose logs were followed to their ends, by name; the attempt of the last ones."""

    names: frozenset[str] = frozenset()
    last: tuple[StageName, int] | None = None

    def with_pods(self, choice: Choice) -> Followed:
        """These, too."""
        names = {fact.pod.name for fact in choice.pods}
        return Followed(self.names | names, (choice.stage, choice.attempt))

    def is_of(self, choice: Choice) -> bool:
        """Whether a choice is of the attempt that was followed last."""
        return (choice.stage, choice.attempt) == self.last

    def rest_of(self, choice: Choice, wanted: Wanted) -> Choice:
        """What is new in a choice.

        Of the same attempt these are slices, which take turns, and whatever there is where all pods
        are wanted; another rank of a gang that ends is not what was asked for.
        """
        pods = [fact for fact in choice.pods if fact.pod.name not in self.names]
        if self.is_of(choice) and not wanted.all_pods:
            pods = [fact for fact in pods if _is_running_slice(fact)]
        return replace(choice, pods=tuple(pods if self.last is None else pods[:OPEN_CONNECTIONS]))


def follow(reader: LogReader) -> Choice | None:
    """Print the logs that are wanted as they grow, and those of the attempts that follow.

    It ends with the job, or with the stage or attempt that was asked for. The last choice when
    nothing could be followed, None when something was.
    """
    followed = Followed()
    known, choice = wait(reader, followed)
    while choice.pods:
        if not reader.follow(choice):
            return None
        followed, reader = followed.with_pods(choice), replace(reader, tail=None)
        reader.note(f"attempt {choice.attempt} of {choice.stage} prints no more")
        if reader.wanted.attempt is not None:
            return None
        known, choice = wait(reader, followed)
    if followed.last is None:
        return choice
    if known.readable_status.phase is Phase.FAILED:
        reader.note(f"the job has failed: {known.readable_status.blocked_by}")
    return None


def wait(reader: LogReader, followed: Followed) -> tuple[KnownJob, Choice]:
    """Look until another wanted pod has begun, or none will; tell what is waited for."""
    told = ""
    while True:
        known, choice = reader.look(must_exist=followed.last is None)
        rest = followed.rest_of(choice, reader.wanted)
        if is_over(known, reader.wanted, followed) or any(map(has_begun, rest.pods)):
            return known, rest
        reason = _reason(known, rest, followed)
        if reason not in ("", told):
            reader.note(f"waiting for the log: {reason}")
            told = reason
        reader.sleep(POLL_SECONDS)


def is_over(known: KnownJob, wanted: Wanted, followed: Followed) -> bool:
    """Whether no further pod of what is wanted will begin."""
    status = known.readable_status
    if status.phase in TERMINAL_PHASES:
        return True
    if wanted.stage is None or followed.last is None:
        return False
    return stage_to_show(status, wanted).state in DONE_STATES


def _is_running_slice(fact: PodFacts) -> bool:
    return fact.stage == "preprocess" and fact.pod.phase == "Running"


def _reason(known: KnownJob, choice: Choice, followed: Followed) -> str:
    """Empty while it is not known yet what follows the attempt that has ended."""
    blocked = known.readable_status.blocked_by
    if blocked:
        return blocked
    waits = [f"{fact.pod.name} is {state_of(fact.pod)}" for fact in choice.pods]
    if not waits and followed.is_of(choice):
        return ""
    return waits[0] if waits else f"attempt {choice.attempt} of {choice.stage} has no pod yet"

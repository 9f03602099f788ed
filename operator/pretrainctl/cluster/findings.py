"""What was found of a job in a cluster: values that text is made of, without any request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from pretrain_api.errors import InvalidObjectError
from pretrain_api.reports import StageName
from pretrain_api.spec import PretrainJobSpec
from pretrain_api.spec.lifecycle import FailurePolicySpec
from pretrain_api.status import TERMINAL_PHASES, PretrainJobStatus, StageStatus
from pretrain_operator.known_job import KnownJob
from pretrain_operator.observe import PodFacts
from pretrain_operator.observed import Manifest
from pretrain_operator.plan.conditions import find_condition
from pretrain_operator.plan.stages import current_stage

SILENT_LEASES = 3
"""Lease durations without a renewal after which nobody is taken to lead."""


@dataclass(frozen=True)
class Pulse:
    """The Lease by which operators tell that one of them leads."""

    namespace: str
    name: str
    holder: str
    renewed_at: datetime | None
    seconds: int

    def beats(self, now: datetime) -> bool:
        """Whether somebody holds it and renews it."""
        if not self.holder or self.renewed_at is None:
            return False
        return now - self.renewed_at < timedelta(seconds=self.seconds * SILENT_LEASES)


@dataclass(frozen=True)
class SeenEvent:
    """Events that say the same about one object, told once; `about` is empty for the job itself."""

    about: str
    type: str
    reason: str
    message: str
    count: int
    at: datetime | None


@dataclass(frozen=True)
class Findings:
    """A job, and what there is of it in the cluster.

    `pods` are those of its current stage, of every attempt that still has some. `pulses` is None
    where Leases may not be read. `unread` has a sentence for whatever may not be read. `now` is
    the API server's time.
    """

    known: KnownJob
    now: datetime
    pods: tuple[PodFacts, ...] = ()
    events: tuple[SeenEvent, ...] = ()
    pulses: tuple[Pulse, ...] | None = None
    unread: tuple[str, ...] = ()

    @property
    def namespace(self) -> str:
        """The job's."""
        return self.known.key[0]

    @property
    def name(self) -> str:
        """The job's."""
        return self.known.key[1]

    @property
    def metadata(self) -> Manifest:
        """The job's, as it is stored."""
        metadata: Manifest = self.known.raw["metadata"]
        return metadata

    @cached_property
    def status(self) -> PretrainJobStatus:
        """The job's, as far as this version can read it."""
        return self.known.readable_status

    @property
    def created_at(self) -> datetime:
        """When the job was created."""
        return datetime.fromisoformat(self.metadata["creationTimestamp"])

    @property
    def has_ended(self) -> bool:
        """Whether the job's phase will never change again."""
        return self.status.phase in TERMINAL_PHASES

    @property
    def was_seen(self) -> bool:
        """Whether an operator has ever looked at the job."""
        return bool(self.status.observed_generation)

    @property
    def is_led(self) -> bool | None:
        """Whether an operator leads somewhere in the cluster; None where that may not be read."""
        if self.pulses is None:
            return None
        return any(pulse.beats(self.now) for pulse in self.pulses)

    @cached_property
    def stage(self) -> StageStatus | None:
        """The first stage that is not done."""
        return current_stage(self.status.stages)

    @property
    def ranks_per_pod(self) -> int:
        """Processes of a worker."""
        return ranks_per_pod(self.known)

    @cached_property
    def spec(self) -> PretrainJobSpec | None:
        """The job's; None where this version cannot read it."""
        try:
            return self.known.job.spec
        except InvalidObjectError:
            return None

    @property
    def failure_policy(self) -> FailurePolicySpec:
        """The job's; the built-in one for a spec that this version cannot read."""
        return FailurePolicySpec() if self.spec is None else self.spec.failure_policy


def last_words(status: PretrainJobStatus, stage: StageStatus) -> str:
    """Why the last attempt of a stage ended; empty once another one runs, or none has ended.

    While a stage runs its message is what it says of its progress; of a complete one, warnings.
    """
    running = find_condition(status, "Running")
    runs = stage.state == "Running" and running is not None and running.status == "True"
    return "" if runs or stage.state == "Complete" else stage.message


def words_of_ended_attempt(events: Sequence[SeenEvent], *, stage: StageName, attempt: int) -> str:
    """What the event about an attempt's end says, as long as the cluster keeps it."""
    ended = f"Attempt {attempt} of {stage} ended with "
    found = [event.message for event in events if event.message.startswith(ended)]
    return found[-1] if found else ""


def refused_edit(findings: Findings) -> str:
    """What is wrong with a spec that was edited; empty for one that is run, or a job's first."""
    accepted = find_condition(findings.status, "Accepted")
    if accepted is None or accepted.status != "False" or accepted.reason != "Invalid":
        return ""
    return "" if findings.has_ended else accepted.message


def ranks_per_pod(known: KnownJob) -> int:
    """Processes of a worker, also of a spec that this version cannot read."""
    workers = (known.raw.get("spec") or {}).get("workers") or {}
    return int(workers.get("processesPerWorker") or 1)

"""What the Job controller does next for one Indexed Job: a pure function of its pods.

The subset of batch/v1 that child Jobs use, with Kubernetes' rules and reasons: completions,
parallelism, backoffLimit, backoffLimitPerIndex, maxFailedIndexes, activeDeadlineSeconds, and
podFailurePolicy by exit code and disruption. The back-off is shorter, as no scheduler and no
image registry are to be spared here, and `suspend`, which a queue lifts, is not looked at.
Source: https://kubernetes.io/docs/concepts/workloads/controllers/job/
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

Action = Literal["FailJob", "FailIndex", "Ignore", "Count"]

DEFAULT_BACKOFF_LIMIT = 6
NO_LIMIT = 2**31 - 1
BACKOFF_INITIAL_SECONDS = 1.0
BACKOFF_MAXIMUM_SECONDS = 60.0


@dataclass(frozen=True)
class Try:
    """One pod: the index it works on and, once it has ended, how.

    `exit_code` is 128 + n for a process that signal n ended.
    """

    index: int
    exit_code: int | None = None
    finished_at: datetime | None = None
    disrupted: bool = False

    @property
    def active(self) -> bool:
        """Whether the pod still runs."""
        return self.finished_at is None

    @property
    def succeeded(self) -> bool:
        """Whether the pod ended well."""
        return self.finished_at is not None and self.exit_code == 0


@dataclass(frozen=True)
class JobRules:
    """The part of a Job's spec that decides on its pods."""

    completions: int
    parallelism: int
    backoff_limit: int = DEFAULT_BACKOFF_LIMIT
    backoff_limit_per_index: int | None = None
    max_failed_indexes: int = NO_LIMIT
    active_deadline_seconds: float | None = None
    failure_rules: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> JobRules:
        """From the `spec` of a Job manifest, with Kubernetes' defaults."""
        per_index = spec.get("backoffLimitPerIndex")
        default_limit = DEFAULT_BACKOFF_LIMIT if per_index is None else NO_LIMIT
        return cls(
            completions=spec.get("completions", 1),
            parallelism=spec.get("parallelism", 1),
            backoff_limit=spec.get("backoffLimit", default_limit),
            backoff_limit_per_index=per_index,
            max_failed_indexes=spec.get("maxFailedIndexes", NO_LIMIT),
            active_deadline_seconds=spec.get("activeDeadlineSeconds"),
            failure_rules=tuple(spec.get("podFailurePolicy", {}).get("rules", ())),
        )


@dataclass(frozen=True)
class Verdict:
    """What is to be done: indexes to start now, or the end of the Job with its reason.

    `wake_at` is when time alone will allow more.
    """

    start: tuple[int, ...] = ()
    ends: Literal["SuccessCriteriaMet", "FailureTarget"] | None = None
    reason: str = ""
    message: str = ""
    wake_at: datetime | None = None


def decide(
    rules: JobRules, tries: Sequence[Try], *, now: datetime, started_at: datetime
) -> Verdict:
    """What the Job controller does, given all pods that the Job has had."""
    succeeded = {entry.index for entry in tries if entry.succeeded}
    if len(succeeded) >= rules.completions:
        return Verdict(ends="SuccessCriteriaMet", reason="CompletionsReached")
    return _failure(rules, tries, now, started_at) or _start_more(rules, tries, now, started_at)


def _failure(
    rules: JobRules, tries: Sequence[Try], now: datetime, started_at: datetime
) -> Verdict | None:
    for entry in _failed(tries):
        if action_for(rules, entry) == "FailJob":
            message = f"index {entry.index} failed with exit code {entry.exit_code}"
            return Verdict(ends="FailureTarget", reason="PodFailurePolicy", message=message)
    deadline = _deadline(rules, started_at)
    if deadline is not None and now >= deadline:
        message = f"the Job was active for longer than {rules.active_deadline_seconds} s"
        return Verdict(ends="FailureTarget", reason="DeadlineExceeded", message=message)
    failures = sum(action_for(rules, entry) == "Count" for entry in _failed(tries))
    if failures > rules.backoff_limit:
        message = f"{failures} pods failed, {rules.backoff_limit} retries are allowed"
        return Verdict(ends="FailureTarget", reason="BackoffLimitExceeded", message=message)
    return _failed_indexes_verdict(rules, tries)


def _failed_indexes_verdict(rules: JobRules, tries: Sequence[Try]) -> Verdict | None:
    failed = _failed_indexes(rules, tries)
    indexes = ", ".join(map(str, sorted(failed)))
    if len(failed) > rules.max_failed_indexes:
        message = f"index {indexes} failed for good"
        return Verdict(ends="FailureTarget", reason="MaxFailedIndexesExceeded", message=message)
    succeeded = {entry.index for entry in tries if entry.succeeded}
    if failed and len(succeeded | failed) >= rules.completions:
        message = f"index {indexes} failed for good"
        return Verdict(ends="FailureTarget", reason="FailedIndexes", message=message)
    return None


def _start_more(
    rules: JobRules, tries: Sequence[Try], now: datetime, started_at: datetime
) -> Verdict:
    active = {entry.index for entry in tries if entry.active}
    done = {entry.index for entry in tries if entry.succeeded} | _failed_indexes(rules, tries)
    free = max(0, rules.parallelism - len(active))
    start: list[int] = []
    waits = [_deadline(rules, started_at)]
    for index in sorted(set(range(rules.completions)) - active - done):
        ready_at = _ready_at(rules, tries, index)
        if ready_at is not None and ready_at > now:
            waits.append(ready_at)
        elif len(start) < free:
            start.append(index)
    wake_at = min((wait for wait in waits if wait is not None), default=None)
    return Verdict(start=tuple(start), wake_at=wake_at)


def action_for(rules: JobRules, entry: Try) -> Action:
    """The action of the first rule that matches a failed pod; Count if none does."""
    for rule in rules.failure_rules:
        if _matches(rule, entry):
            action: Action = rule["action"]
            return action
    return "Count"


def _matches(rule: Mapping[str, Any], entry: Try) -> bool:
    conditions = rule.get("onPodConditions", ())
    if any(condition.get("type") == "DisruptionTarget" for condition in conditions):
        return entry.disrupted
    codes = rule.get("onExitCodes")
    if codes is None:
        return False
    wanted: bool = codes["operator"] == "In"
    return (entry.exit_code in codes["values"]) == wanted


def _failed(tries: Iterable[Try]) -> list[Try]:
    return [entry for entry in tries if not entry.active and not entry.succeeded]


def _failed_indexes(rules: JobRules, tries: Sequence[Try]) -> set[int]:
    if rules.backoff_limit_per_index is None:
        return set()
    counts: dict[int, int] = {}
    failed = set()
    for entry in _failed(tries):
        action = action_for(rules, entry)
        counts[entry.index] = counts.get(entry.index, 0) + (action == "Count")
        if action == "FailIndex" or counts[entry.index] > rules.backoff_limit_per_index:
            failed.add(entry.index)
    return failed


def _ready_at(rules: JobRules, tries: Sequence[Try], index: int) -> datetime | None:
    """When an index may be tried again: 1 s, 2 s, 4 s, ... after its last counted failure."""
    per_index = rules.backoff_limit_per_index is not None
    ends = [
        entry.finished_at
        for entry in _failed(tries)
        if action_for(rules, entry) == "Count" and (not per_index or entry.index == index)
    ]
    times = [end for end in ends if end is not None]
    if not times:
        return None
    delay = min(BACKOFF_INITIAL_SECONDS * 2.0 ** (len(times) - 1), BACKOFF_MAXIMUM_SECONDS)
    return max(times) + timedelta(seconds=delay)


def _deadline(rules: JobRules, started_at: datetime) -> datetime | None:
    if rules.active_deadline_seconds is None:
        return None
    return started_at + timedelta(seconds=rules.active_deadline_seconds)

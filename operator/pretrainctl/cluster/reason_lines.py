"""Why a job does not run: its phase, what it waits for, what to do, who looks after it; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from pretrain_api.status import Phase
from pretrain_operator.plan.conditions import find_condition

from pretrainctl.cluster.advice import advice
from pretrainctl.cluster.figures import age, moment
from pretrainctl.cluster.findings import Findings, Pulse, refused_edit
from pretrainctl.local.figures import duration

PATIENCE = timedelta(seconds=30)
"""How long a new job may wait for an operator before that is worth a word."""

_START = re.compile(
    r"Attempt \d+ of \w+ starts at (?P<at>\S+) at the latest: (?P<reason>.*)", re.DOTALL
)
"""The plan's sentence of an attempt that has to wait."""

Lines = Iterator[str]


def phase_lines(findings: Findings) -> Lines:
    """Phase, since when, and what is about to change it."""
    status, stage = findings.status, findings.stage
    since = phase_since(findings)
    where = "" if stage is None else f" ({stage.name}, attempt {stage.attempt})"
    yield f"{status.phase.value}{where} since {moment(since)}, {age(since, findings.now)} ago"
    if findings.known.is_deleting:
        yield "It is being deleted."
    if findings.was_seen and status.observed_generation < findings.known.generation:
        yield "The newest edit of its spec has not been looked at yet."


def phase_since(findings: Findings) -> datetime:
    """When the phase began, as well as status tells it."""
    status, stage = findings.status, findings.stage
    if findings.has_ended and status.completion_time is not None:
        return status.completion_time
    is_suspended = status.phase is Phase.SUSPENDED
    condition = find_condition(status, "Suspended" if is_suspended else "Running")
    if condition is None:
        return findings.created_at
    since = condition.last_transition_time
    runs = condition.status == "True" and not is_suspended
    began = stage.start_time if stage is not None and runs else None
    return max(since, began) if began else since


def why_lines(findings: Findings) -> Lines:
    """What the job waits for or died of."""
    status = findings.status
    if findings.known.is_foreign:
        manager = findings.known.raw["spec"]["managedBy"]
        yield f"Another controller runs it, as spec.managedBy says: {manager}."
    elif not findings.was_seen:
        waited = age(findings.created_at, findings.now)
        yield f"No operator has looked at this job, which was made {waited} ago."
    edit = refused_edit(findings)
    if edit and edit not in status.blocked_by:
        yield f"The edited spec cannot be run: {edit}"
    yield from _waits(findings)


def advice_lines(findings: Findings) -> Lines:
    """What to do about it."""
    text = advice(findings)
    yield from [text] if text else []


def operator_lines(findings: Findings) -> Lines:
    """Whether an operator is there, as far as this user may know, when that matters."""
    if findings.has_ended or findings.known.is_foreign or findings.pulses is None:
        return
    if not findings.pulses:
        if not findings.was_seen:
            yield "No Lease of an operator is in this cluster: none may ever have been installed."
        return
    if findings.is_led:
        yield from _deaf(findings)
        return
    for pulse in findings.pulses:
        yield f"No operator leads: {_silence(pulse, findings)}"
    if findings.was_seen:
        yield "What is told here may be out of date. Pods that run go on without it."


def _waits(findings: Findings) -> Lines:
    """What is waited for; when the next attempt starts is told once, and by how long that is."""
    stage, blocked_by = findings.stage, findings.status.blocked_by
    if stage is None or findings.has_ended or findings.status.phase is Phase.SUSPENDED:
        yield from [blocked_by] if blocked_by else []
        return
    due, name = stage.retry_time, f"Attempt {stage.attempt} of {stage.name}"
    start = _START.fullmatch(blocked_by)
    if start is not None and due is not None and due > findings.now:
        yield start["reason"]
    elif start is not None:
        when = _when(datetime.fromisoformat(start["at"]), findings)
        yield f"{name} starts {when} at the latest: {start['reason']}"
        return
    elif blocked_by:
        yield blocked_by
    if due is not None and (due > findings.now or not blocked_by):
        yield f"{name} may start {_when(due, findings)}."


def _deaf(findings: Findings) -> Lines:
    if findings.was_seen or findings.now - findings.created_at < PATIENCE:
        return
    pulse = next(pulse for pulse in findings.pulses or () if pulse.beats(findings.now))
    yield (
        f"An operator leads in namespace {pulse.namespace} ({pulse.holder}): it does not watch "
        f"this namespace, or its log tells what keeps it from looking."
    )


def _silence(pulse: Pulse, findings: Findings) -> str:
    lease = f"the Lease {pulse.namespace}/{pulse.name}"
    if not pulse.holder or pulse.renewed_at is None:
        return f"{lease} has no holder."
    return f"{lease} was last renewed {age(pulse.renewed_at, findings.now)} ago by {pulse.holder}."


def _when(at: datetime, findings: Findings) -> str:
    left = (at - findings.now).total_seconds()
    return f"in {duration(left)}, at {at:%H:%M:%SZ}" if left > 0 else "now"

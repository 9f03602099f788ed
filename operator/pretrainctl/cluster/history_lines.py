"""What has happened to a job: restarts, nodes, where time went, conditions and events; pure."""

from __future__ import annotations

from collections.abc import Iterator

from pretrain_api.reports import Cause
from pretrain_operator.plan.budgets import limit_of

from pretrainctl.cluster.figures import age, moment
from pretrainctl.cluster.findings import Findings, SeenEvent, last_words
from pretrainctl.local.figures import duration

SHOWN_EVENTS = 8
LONGEST_SPANS = 5

Lines = Iterator[str]


def restart_lines(findings: Findings) -> Lines:
    """Restarts by cause, each with what its budget leaves."""
    status, policy = findings.status, findings.failure_policy
    for name, count in status.restarts.items():
        limit = limit_of(Cause(name), policy) if name in set(Cause) else None
        yield (
            f"{name} {count} of {limit}" if limit is not None else f"{name} {count}, without limit"
        )
    if status.no_progress_attempts:
        most = policy.no_progress_restarts
        yield f"{status.no_progress_attempts} of {most} in a row without a newer checkpoint"
    words = _words_of_last_attempt(findings)
    if words and words not in status.blocked_by:
        yield f"last: {words}"


def _words_of_last_attempt(findings: Findings) -> str:
    """Empty without a restart, and once a pod of the current attempt has told its progress."""
    stage = findings.stage
    if stage is None or not findings.status.restarts:
        return ""
    current = [fact for fact in findings.pods if fact.attempt == stage.attempt]
    begun = any(fact.pod.started_at is not None for fact in current)
    return "" if begun else last_words(findings.status, stage)


def node_lines(findings: Findings) -> Lines:
    """Nodes that ended attempts, and which of them are kept out."""
    for node in findings.status.suspect_nodes:
        until = node.kept_out_until
        fate = "not kept out"
        if until is not None and until > findings.now:
            fate = f"kept out until {moment(until)}"
        times = "once" if node.failures == 1 else f"{node.failures} times"
        yield f"{node.name} ended an attempt {times}, {fate}: {node.message}".rstrip(": ")


def goodput_lines(findings: Findings) -> Lines:
    """The useful share of time, and what took most of it."""
    goodput = findings.status.goodput
    if goodput is None or not goodput.seconds:
        return
    spans = sorted(goodput.seconds.items(), key=lambda item: -item[1])[:LONGEST_SPANS]
    told = ", ".join(_span(name, seconds) for name, seconds in spans if seconds >= 1)
    share = "" if goodput.ratio is None else f"{goodput.ratio:.0%} of the time trained; "
    yield f"{share}{told}"


def _span(category: str, seconds: float) -> str:
    return f"{category.replace('_', ' ')} {duration(seconds)}"


def condition_lines(findings: Findings) -> Lines:
    """What holds, what does not, and why."""
    for wanted in ("True", "False", "Unknown"):
        found = [c for c in findings.status.conditions if c.status == wanted]
        if found:
            yield f"{wanted}: " + ", ".join(f"{c.type} ({c.reason})" for c in found)


def event_lines(findings: Findings) -> Lines:
    """The newest events, the last one last; of children only warnings."""
    events = [event for event in findings.events if not event.about or event.type == "Warning"]
    if len(events) > SHOWN_EVENTS:
        yield f"({len(events) - SHOWN_EVENTS} earlier left out)"
    for event in events[-SHOWN_EVENTS:]:
        yield _event_line(event, findings)


def _event_line(event: SeenEvent, findings: Findings) -> str:
    times = f" (x{event.count})" if event.count > 1 else ""
    about = f"{event.about}: " if event.about else ""
    message = " ".join(event.message.split())
    mark = "!" if event.type == "Warning" else " "
    return f"{mark} {age(event.at, findings.now)} ago  {event.reason}{times}: {about}{message}"

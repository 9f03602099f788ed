"""A job in one screen of text: first why it does not run, then how far it is; pure.

`paragraphs` gives titles with their lines, `layout` puts them under each other, `as_data` is the
same for programs. What is not known is left out.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pretrain_api.base import KIND

from pretrainctl.cluster import history_lines, reason_lines, stage_lines
from pretrainctl.cluster.advice import advice
from pretrainctl.cluster.findings import Findings
from pretrainctl.cluster.pod_lines import pod_lines, state_of

TITLE_WIDTH = 12
NARROWEST = 40

PARTS: dict[str, Callable[[Findings], Iterator[str]]] = {
    "Phase": reason_lines.phase_lines,
    "Why": reason_lines.why_lines,
    "What to do": reason_lines.advice_lines,
    "Operator": reason_lines.operator_lines,
    "Stages": stage_lines.stage_lines,
    "Training": stage_lines.training_lines,
    "Checkpoint": stage_lines.checkpoint_lines,
    "Results": stage_lines.result_lines,
    "Restarts": history_lines.restart_lines,
    "Nodes": history_lines.node_lines,
    "Goodput": history_lines.goodput_lines,
    "Pods": pod_lines,
    "Conditions": history_lines.condition_lines,
    "Events": history_lines.event_lines,
    "Not shown": lambda findings: iter(findings.unread),
}


@dataclass(frozen=True)
class Paragraph:
    """Lines under a title."""

    title: str
    lines: tuple[str, ...]


def paragraphs(findings: Findings) -> Iterator[Paragraph]:
    """All that there is to tell, the reason for waiting first."""
    yield Paragraph(KIND, (f"{findings.namespace}/{findings.name}",))
    for title, lines in PARTS.items():
        told = tuple(lines(findings))
        if told:
            yield Paragraph(title, told)


def layout(told: Iterable[Paragraph], *, width: int | None) -> str:
    """Titles on the left; lines wrapped to a width, or left as they are without one."""
    lines: list[str] = []
    for paragraph in told:
        for number, line in enumerate(paragraph.lines):
            title = "" if number else paragraph.title
            lines += _wrapped(f"{title:{TITLE_WIDTH}}", line, width)
    return "\n".join(lines)


def as_data(findings: Findings) -> dict[str, Any]:
    """The same as JSON values; `status` is as it is stored."""
    return {
        "namespace": findings.namespace,
        "name": findings.name,
        "phase": findings.status.phase.value,
        "since": _text(reason_lines.phase_since(findings)),
        "why": list(reason_lines.why_lines(findings)),
        "whatToDo": advice(findings),
        "operatorHasLooked": findings.was_seen,
        "operatorLeads": findings.is_led,
        "pods": [_pod(fact.pod.name, fact.attempt, fact.pod) for fact in findings.pods],
        "events": [
            {
                "about": event.about,
                "type": event.type,
                "reason": event.reason,
                "message": event.message,
                "count": event.count,
                "time": _text(event.at),
            }
            for event in findings.events
        ],
        "notShown": list(findings.unread),
        "status": findings.known.stored,
    }


def _pod(name: str, attempt: int, pod: Any) -> dict[str, Any]:
    return {
        "name": name,
        "attempt": attempt,
        "index": pod.index,
        "phase": pod.phase,
        "node": pod.node,
        "reason": pod.reason,
        "state": state_of(pod),
    }


def _text(at: datetime | None) -> str | None:
    return at.isoformat().replace("+00:00", "Z") if at else None


def _wrapped(title: str, line: str, width: int | None) -> list[str]:
    if width is None:
        return [f"{title}{line}"]
    return textwrap.wrap(
        line,
        width=max(width, NARROWEST),
        initial_indent=title,
        subsequent_indent=" " * (TITLE_WIDTH + 2),
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )

"""Nodes that keep ending a job's attempts: new attempts avoid them, while others have room.

A guess costs little: a node is let in again when its time is over, or when the scheduler finds no
place without it. What ends attempts through a fault of the job's own says nothing about a node.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from pretrain_api.reports import Cause
from pretrain_api.spec.lifecycle import QuarantineSpec
from pretrain_api.status import PretrainJobStatus, StageStatus, SuspectNode

from pretrain_operator.observed import ObservedJob
from pretrain_operator.plan.blocked import UNSCHEDULABLE
from pretrain_operator.plan.decision import Draft, Turn, instant
from pretrain_operator.plan.pod_failures import Failure, Weight

REMEMBERED = 64
"""Nodes in status; the one that was not seen for longest is forgotten first."""

SENTENCE_LIMIT = 1024
PATIENCE = timedelta(minutes=5)
"""How long an attempt may find no place before the nodes that it avoids are let in again.

Long enough for an autoscaler to bring up a node.
"""


def kept_out(status: PretrainJobStatus, now: datetime) -> tuple[str, ...]:
    """Names of the nodes that an attempt which starts now avoids."""
    return tuple(node.name for node in status.suspect_nodes if _is_kept_out(node, now))


def with_suspect_node(
    draft: Draft, stage: StageStatus, failure: Failure, *, policy: QuarantineSpec, now: datetime
) -> Draft:
    """Count a failure of training against the node that it happened on."""
    if stage.name != "train" or not policy.failures or not _is_of_node(failure):
        return draft
    known = {node.name: node for node in draft.status.suspect_nodes}
    failures = known[failure.node].failures + 1 if failure.node in known else 1
    until = now + timedelta(seconds=policy.duration_seconds)
    node = SuspectNode(
        name=failure.node,
        failures=failures,
        kept_out_until=until if failures >= policy.failures else None,
        message=failure.sentence[:SENTENCE_LIMIT],
    )
    others = [other for name, other in known.items() if name != node.name]
    draft = draft.with_status(suspect_nodes=[*others, node][-REMEMBERED:])
    if node.kept_out_until is None:
        return draft
    text = f"Node {node.name} has ended {failures} attempts and is kept out until {instant(until)}."
    return draft.with_event("Warning", "NodeKeptOut", text)


def with_room(turn: Turn, draft: Draft, stage: StageStatus, job: ObservedJob) -> Draft:
    """Let nodes in again that an attempt avoids, if it finds no place without them.

    Affinities of a pod cannot be changed, so another attempt takes its place; no budget is used.
    """
    avoided = [node for node in draft.status.suspect_nodes if _is_kept_out(node, job.created_at)]
    if draft.waits_for != UNSCHEDULABLE or not avoided or stage.name != "train":
        return draft
    names = ", ".join(node.name for node in avoided)
    due = min(job.created_at + PATIENCE, *_ends(avoided))
    if turn.now < due:
        hint = f"Kept out for failures of this job, until {instant(due)}: {names}."
        return replace(draft, blocked_by=f"{draft.blocked_by} {hint}").waking_at(due)
    nodes = [
        node.model_copy(update={"kept_out_until": None}) if node in avoided else node
        for node in draft.status.suspect_nodes
    ]
    text = f"No other node has room for attempt {stage.attempt} of train; let in again: {names}."
    return (
        draft.with_status(suspect_nodes=nodes)
        .with_event("Normal", "NodesLetIn", text)
        .with_next_attempt(stage, message=text, retry_time=turn.now)
    )


def _is_of_node(failure: Failure) -> bool:
    """Whether a failure is one that a node may be the reason of.

    A pod that was told to stop is a consequence, wherever it ran.
    """
    return (
        bool(failure.node)
        and failure.cause is Cause.INFRASTRUCTURE
        and failure.weight is not Weight.CONSEQUENCE
    )


def _is_kept_out(node: SuspectNode, now: datetime) -> bool:
    return node.kept_out_until is not None and node.kept_out_until > now


def _ends(nodes: Iterable[SuspectNode]) -> list[datetime]:
    return [node.kept_out_until for node in nodes if node.kept_out_until is not None]

"""The pods of the current attempt, those in trouble first; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pretrain_operator.observe import PodFacts
from pretrain_operator.observed import ObservedPod
from pretrain_operator.plan.pod_failures import pod_name

from pretrainctl.cluster.findings import Findings

SHOWN_PODS = 10
ORDER = {"Failed": 0, "Pending": 1, "Running": 2, "Succeeded": 3}
MESSAGE_LIMIT = 300


def pod_lines(findings: Findings) -> Iterator[str]:
    """A line for each pod of the current attempt, and one for all that are left out."""
    stage = findings.stage
    if stage is None:
        return
    current = [fact for fact in findings.pods if fact.attempt == stage.attempt]
    ordered = sorted(current, key=lambda fact: (_trouble(fact.pod), fact.pod.index))
    names = [pod_name(f.pod.index, f.stage, findings.ranks_per_pod) for f in ordered[:SHOWN_PODS]]
    width = max(map(len, names), default=0)
    for fact, name in zip(ordered, names, strict=False):
        yield f"{name:{width}}  {fact.pod.node or '(no node)':10}  {state_of(fact.pod)}"
    yield from _rest(ordered[SHOWN_PODS:])
    others = len(findings.pods) - len(current)
    if others:
        yield f"{others} of other attempts {'is' if others == 1 else 'are'} still there"


def state_of(pod: ObservedPod) -> str:
    """What a pod does, in its own and the cluster's words."""
    ends = pod.deleting and pod.phase in {"Pending", "Running"}
    parts: list[str] = ["Ending" if ends else pod.phase]
    if pod.exit_code:
        parts.append(f"exit code {pod.exit_code}")
    if pod.reason:
        parts.append(pod.reason)
    if pod.init is not None and pod.phase == "Pending":
        parts.append(f"init container {pod.init.name} runs")
    message = " ".join(_message(pod).split())[:MESSAGE_LIMIT]
    return f"{', '.join(parts)}: {message}" if message else ", ".join(parts)


def _message(pod: ObservedPod) -> str:
    report = pod.report
    if report is None or report.cause is None:
        return pod.message
    return f"{report.cause.value}: {report.message}"


def _trouble(pod: ObservedPod) -> int:
    return 0 if pod.deleting else ORDER[pod.phase]


def _rest(facts: Sequence[PodFacts]) -> Iterator[str]:
    counts = Counter(fact.pod.phase for fact in facts)
    if counts:
        told = ", ".join(f"{count} {phase}" for phase, count in counts.items())
        yield f"and {told}"

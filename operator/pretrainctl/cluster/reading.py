"""Reading a job, and what there is of it, from an API server: few requests, some of them optional.

Only the job itself is needed; whatever else may not be read is noted and left out, so that a user
with the role *view* in one namespace gets all but the operator's Lease.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from difflib import get_close_matches
from urllib.parse import quote

from pretrain_api.base import GROUP, KIND, PLURAL, VERSION
from pretrain_api.reports import StageName
from pretrain_operator.children.names import JOB_UID_LABEL, STAGE_LABEL, child_name
from pretrain_operator.known_job import KnownJob
from pretrain_operator.observe import PodFacts

from pretrainctl.cluster.access import Answer, Cluster, MissingError, Query
from pretrainctl.cluster.events import told_once
from pretrainctl.cluster.findings import Findings, Pulse, SeenEvent
from pretrainctl.errors import DeniedError, NotFoundError, UnreachableError

API = f"/apis/{GROUP}/{VERSION}"
LEASES = "/apis/coordination.k8s.io/v1/leases"
LEASE_NAME = "pretrain-operator"
"""What the chart calls it unless a release has another name."""

TROUBLED_PODS = 5
"""Pods that do not run, whose own events are read."""

LISTED_NAMES = 8


def read_job(cluster: Cluster, namespace: str, name: str) -> KnownJob:
    """The job; NotFoundError tells which name, namespace or installation was meant, perhaps."""
    try:
        return KnownJob.of(cluster.get(_job_path(namespace, name)))
    except MissingError as error:
        if error.is_kind:
            raise _not_installed(cluster) from None
        raise NotFoundError(_hint(cluster, namespace, name)) from None
    except DeniedError:
        if _lacks_kind(cluster):
            raise _not_installed(cluster) from None
        raise


def read_pods(cluster: Cluster, known: KnownJob, stage: StageName) -> tuple[PodFacts, ...]:
    """Pods of a stage, of every attempt that has some left, the oldest attempt first."""
    labels = f"{JOB_UID_LABEL}={known.uid},{STAGE_LABEL}={stage}"
    path = f"/api/v1/namespaces/{known.key[0]}/pods"
    items = cluster.get(path, {"labelSelector": labels})["items"]
    facts = [fact for fact in map(PodFacts.of, items) if fact is not None]
    return tuple(sorted(facts, key=lambda fact: (fact.attempt, fact.pod.index, fact.created_at)))


def read_pod(cluster: Cluster, namespace: str, name: str) -> PodFacts | None:
    """One pod; None when it is no pod of ours."""
    return PodFacts.of(cluster.get(f"/api/v1/namespaces/{namespace}/pods/{name}"))


def read_events(cluster: Cluster, known: KnownJob) -> tuple[SeenEvent, ...]:
    """Events about the job itself; none where they may not be read."""
    path = f"/api/v1/namespaces/{known.key[0]}/events"
    try:
        items = cluster.get(path, {"fieldSelector": f"involvedObject.uid={known.uid}"})["items"]
    except (DeniedError, UnreachableError):
        return ()
    return told_once(items, job_uid=known.uid)


def read_findings(cluster: Cluster, namespace: str, name: str) -> Findings:
    """All that `describe` tells of."""
    known = read_job(cluster, namespace, name)
    findings = Findings(known, now=cluster.asked_at or datetime.now(UTC))
    optional = _Optional(cluster)
    stage = findings.stage
    if stage is not None:
        pods = optional.pods(known, stage.name)
        findings = replace(findings, pods=pods)
    events = optional.events(findings)
    pulses = None if findings.has_ended else optional.pulses()
    return replace(findings, events=events, pulses=pulses, unread=tuple(optional.unread))


@dataclass
class _Optional:
    """Requests that may be refused; `unread` tells of those."""

    cluster: Cluster
    unread: list[str] = field(default_factory=list)

    def pods(self, known: KnownJob, stage: StageName) -> tuple[PodFacts, ...]:
        """Pods of a stage."""
        try:
            return read_pods(self.cluster, known, stage)
        except (DeniedError, UnreachableError) as error:
            self.unread.append(f"pods: {error}")
            return ()

    def events(self, findings: Findings) -> tuple[SeenEvent, ...]:
        """Events about the job, its current child Job, and pods that do not run."""
        items: list[Answer] = []
        try:
            for query in _event_queries(findings):
                path = f"/api/v1/namespaces/{findings.namespace}/events"
                items += self.cluster.get(path, {"fieldSelector": query})["items"]
        except (DeniedError, UnreachableError) as error:
            self.unread.append(f"events: {error}")
        return told_once(items, job_uid=findings.known.uid)

    def pulses(self) -> tuple[Pulse, ...] | None:
        """The Leases of operators; most users may not read them, so that is not told."""
        query: Query = {"fieldSelector": f"metadata.name={LEASE_NAME}"}
        try:
            items = self.cluster.get(LEASES, query)["items"]
        except (DeniedError, UnreachableError):
            return None
        return tuple(_pulse(item) for item in items)


def _event_queries(findings: Findings) -> Iterator[str]:
    yield f"involvedObject.uid={findings.known.uid}"
    stage = findings.stage
    if stage is None or findings.has_ended:
        return
    child = child_name(
        job=findings.name, uid=findings.known.uid, stage=stage.name, attempt=stage.attempt
    )
    yield f"involvedObject.kind=Job,involvedObject.name={child}"
    current = (fact.pod for fact in findings.pods if fact.attempt == stage.attempt)
    troubled = [pod for pod in current if pod.phase in {"Pending", "Failed"}]
    for pod in troubled[:TROUBLED_PODS]:
        yield f"involvedObject.kind=Pod,involvedObject.name={pod.name}"


def _pulse(lease: Answer) -> Pulse:
    spec = lease.get("spec") or {}
    renewed = spec.get("renewTime")
    return Pulse(
        namespace=lease["metadata"]["namespace"],
        name=lease["metadata"]["name"],
        holder=str(spec.get("holderIdentity") or ""),
        renewed_at=datetime.fromisoformat(renewed) if renewed else None,
        seconds=int(spec.get("leaseDurationSeconds") or 0),
    )


def _job_path(namespace: str, name: str) -> str:
    return f"{API}/namespaces/{quote(namespace, safe='')}/{PLURAL}/{quote(name, safe='')}"


def _not_installed(cluster: Cluster) -> NotFoundError:
    return NotFoundError(
        f"{cluster.server} knows no {KIND}s: pretrain-operator is not installed there; "
        "docs/install.md tells how, or name another cluster by --context"
    )


def _lacks_kind(cluster: Cluster) -> bool:
    """Whether the CRD is missing; everybody who may log in may ask that."""
    try:
        cluster.get(API)
    except MissingError:
        return True
    except (DeniedError, UnreachableError):
        return False
    return False


def _hint(cluster: Cluster, namespace: str, name: str) -> str:
    """Which jobs there are, and where one of that name is."""
    text = f"there is no {KIND} {name} in namespace {namespace}"
    here = _names(cluster, f"{API}/namespaces/{quote(namespace, safe='')}/{PLURAL}")
    names = sorted(job for _, job in here)
    close = get_close_matches(name, names, n=1)
    if close:
        return f"{text}; did you mean {close[0]}?"
    elsewhere = sorted(at for at, job in _names(cluster, f"{API}/{PLURAL}") if job == name)
    if elsewhere:
        return f"{text}; there is one in {_some(elsewhere)}: add -n {elsewhere[0]}"
    return f"{text}; there are {_some(names)}" if names else f"{text}, and no other there"


def _names(cluster: Cluster, path: str) -> list[tuple[str, str]]:
    """Namespaces and names of jobs; none where they may not be listed."""
    try:
        items = cluster.get(path)["items"]
    except (DeniedError, UnreachableError, NotFoundError):
        return []
    return [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in items]


def _some(names: Iterable[str]) -> str:
    names = list(names)
    more = len(names) - LISTED_NAMES
    return ", ".join(names[:LISTED_NAMES]) + (f" and {more} more" if more > 0 else "")

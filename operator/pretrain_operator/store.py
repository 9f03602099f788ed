"""Everything that the operator knows of the cluster, in memory; who told it is not known here."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pretrain_api.reports import STAGES

from pretrain_operator.changes import Weight, weight_of_child_job, weight_of_job, weight_of_pod
from pretrain_operator.known_job import KnownJob
from pretrain_operator.observe import (
    Children,
    FailedCreate,
    JobKey,
    PodFacts,
    key_of,
)
from pretrain_operator.observe import uid_of as owner_uid_of
from pretrain_operator.observed import ChildKind, ChildRef, Manifest, Refusal
from pretrain_operator.tables import Table, uid_of

_OUR_CHILD = re.compile(rf"-[0-9a-f]{{5}}-(?:{'|'.join(STAGES)})-\d+$")
"""How names of child Jobs end (`children.names`); events carry no labels."""

_UNREAD_METADATA = frozenset({"managedFields", "resourceVersion"})
_UNREAD_SPEC = frozenset({"template"})
_UNREAD_STATUS = frozenset(
    {"startTime", "active", "ready", "terminating", "uncountedTerminatedPods"}
)
"""Of a child Job: its beginning, and what changes with every pod, as pods tell it themselves."""


@dataclass(frozen=True, slots=True)
class Owned:
    """A child of which only the name matters."""

    name: str
    uid: str
    job_uid: str


class Store:
    """PretrainJobs, and their children by the key of their PretrainJob.

    `job_changed` and `children_changed` are told the key of every job of which something changed;
    `children_moved`, where it is given, that of one whose children only went their usual way.
    """

    def __init__(
        self,
        *,
        job_changed: Callable[[JobKey], None],
        children_changed: Callable[[JobKey], None],
        children_moved: Callable[[JobKey], None] | None = None,
    ) -> None:
        self._children_changed = children_changed
        self._commits: dict[JobKey, PodFacts] = {}
        moved = children_moved or children_changed
        self.jobs: Table[KnownJob] = Table(
            read=_read_job,
            changed=job_changed,
            weigh=weight_of_job,
            gone=self._forget_commit,
        )
        self.child_jobs: Table[Manifest] = Table(
            read=_read_child_job,
            changed=children_changed,
            weigh=weight_of_child_job,
            changed_little=moved,
        )
        self.pods: Table[PodFacts] = Table(
            read=_read_pod,
            changed=children_changed,
            weigh=weight_of_pod,
            changed_little=moved,
            gone=self._keep_commit,
        )
        self.services = _table_of_owned(children_changed)
        self.config_maps = _table_of_owned(children_changed)
        self.failed_creates: Table[FailedCreate] = Table(
            read=_read_failed_create, changed=self._failed_create_changed
        )

    def job(self, key: JobKey) -> KnownJob | None:
        """The PretrainJob of that name: the newest, should a deleted one still be listed."""
        return max(self.jobs.of(key), key=lambda known: int(known.version), default=None)

    def children_of(self, known: KnownJob, refusals: tuple[Refusal, ...]) -> Children:
        """All children of a PretrainJob."""
        jobs = self.child_jobs.of(known.key)
        names = [(known.key[0], str(raw["metadata"]["name"])) for raw in jobs]
        return Children(
            jobs=jobs,
            pods=self.pods.of(known.key),
            services=_names(self.services, known),
            config_maps=_names(self.config_maps, known),
            gone_pods=tuple(p for p in [self._commits.get(known.key)] if p is not None),
            failed_creates=tuple(e for name in names for e in self.failed_creates.of(name)),
            refusals=refusals,
        )

    def put_own_write(self, raw: Manifest) -> None:
        """Take over a child as our write of it was answered; that wakes nobody."""
        self._table(raw["kind"]).put(raw, quietly=True)

    def uid_of_child(self, key: JobKey, child: ChildRef) -> str | None:
        """The uid of a child; None when it is gone already."""
        if child.kind == "Job":
            found = (uid_of(j) for j in self.child_jobs.of(key) if _name(j) == child.name)
        else:
            table = self.services if child.kind == "Service" else self.config_maps
            found = (owned.uid for owned in table.of(key) if owned.name == child.name)
        return next(found, None)

    def note_deleted(self, kind: ChildKind, uid: str) -> None:
        """Forget a child that was deleted."""
        self._table(kind).note_deleted(uid)

    def _table(self, kind: str) -> Table[Manifest] | Table[Owned]:
        match kind:
            case "Job":
                return self.child_jobs
            case "Service":
                return self.services
            case _:
                return self.config_maps

    def _keep_commit(self, key: JobKey, facts: PodFacts) -> None:
        """A pod that ends is gone in a moment, and what it told may not have been looked at."""
        known, before = self.job(key), self._commits.get(key)
        if facts.commit is None or known is None or known.uid != facts.job_uid:
            return
        if before is None or before.job_uid != known.uid or before.attempt <= facts.attempt:
            self._commits[key] = facts

    def _forget_commit(self, key: JobKey, _: KnownJob) -> None:
        self._commits.pop(key, None)

    def _failed_create_changed(self, child: tuple[str, str]) -> None:
        namespace, name = child
        for key in self.child_jobs.groups:
            if key[0] == namespace and any(_name(job) == name for job in self.child_jobs.of(key)):
                self._children_changed(key)


def _table_of_owned(changed: Callable[[JobKey], None]) -> Table[Owned]:
    return Table(read=_read_owned, changed=changed, weigh=_is_there, changed_little=_tell_nobody)


def _is_there(_before: Owned | None, _owned: Owned) -> Weight:
    """That a child exists is known by whoever made it."""
    return Weight.NONE


def _tell_nobody(_: JobKey) -> None:
    """That such a child is gone is known by whoever deleted it, and nothing waits for it."""


def _read_job(raw: Manifest) -> tuple[JobKey, KnownJob]:
    known = KnownJob.of(raw)
    return known.key, known


def _read_child_job(raw: Manifest) -> tuple[JobKey, Manifest] | None:
    """Without what nobody reads: the pod template, which is larger than the rest, and counts."""
    key = key_of(raw)
    if key is None:
        return None
    return key, {
        "metadata": _without(raw["metadata"], _UNREAD_METADATA),
        "spec": _without(raw["spec"], _UNREAD_SPEC),
        "status": _without(raw.get("status") or {}, _UNREAD_STATUS),
    }


def _without(raw: Manifest, names: frozenset[str]) -> Manifest:
    return {name: value for name, value in raw.items() if name not in names}


def _read_pod(raw: Manifest) -> tuple[JobKey, PodFacts] | None:
    facts = PodFacts.of(raw)
    return None if facts is None else (facts.key, facts)


def _read_owned(raw: Manifest) -> tuple[JobKey, Owned] | None:
    key = key_of(raw)
    if key is None:
        return None
    return key, Owned(name=_name(raw), uid=uid_of(raw), job_uid=owner_uid_of(raw))


def _read_failed_create(raw: Manifest) -> tuple[tuple[str, str], FailedCreate] | None:
    event = FailedCreate.of(raw)
    if event is None or not _OUR_CHILD.search(event.child):
        return None
    return (event.namespace, event.child), event


def _names(table: Table[Owned], known: KnownJob) -> tuple[str, ...]:
    return tuple(owned.name for owned in table.of(known.key) if owned.job_uid == known.uid)


def _name(raw: Manifest) -> str:
    return str(raw["metadata"]["name"])

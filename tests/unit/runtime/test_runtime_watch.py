"""List and watch: whatever is interrupted, the table holds what the cluster holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, cast

from pretrain_operator.addresses import PODS, PRETRAIN_JOBS
from pretrain_operator.audit import Audit
from pretrain_operator.cluster import Cluster
from pretrain_operator.errors import ApiError, ApiUnreachableError
from pretrain_operator.store import Store
from pretrain_operator.tables import Table
from pretrain_operator.watch import OUR_CHILDREN, Watch
from pretrain_testing.virtual_time import run_in_virtual_time

Raw = dict[str, Any]


def thing(uid: str, version: int) -> Raw:
    return {"metadata": {"uid": uid, "resourceVersion": str(version), "namespace": "team"}}


def event(type_: str, uid: str, version: int) -> Raw:
    return {"type": type_, "object": thing(uid, version)}


EXPIRED = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}
Answer = list[Raw] | Exception


@dataclass
class Scripted:
    """An API server that answers lists and watches from a script, then is silent."""

    lists: list[Answer]
    watches: list[list[Raw | Exception]] = field(default_factory=list)
    watched_from: list[str] = field(default_factory=list)

    async def list(self, *_: Any, **__: Any) -> AsyncIterator[tuple[list[Raw], str]]:
        answer = self.lists.pop(0)
        if isinstance(answer, Exception):
            raise answer
        yield answer[:1], "10"
        yield answer[1:], "10"

    async def watch(self, *_: Any, version: str, **__: Any) -> AsyncIterator[Raw]:
        self.watched_from.append(version)
        if not self.watches:
            await asyncio.Event().wait()
        for told in self.watches.pop(0):
            if isinstance(told, Exception):
                raise told
            yield told


def uids_after(server: Scripted) -> set[str]:
    """What a table holds once a server has no more to say."""
    table: Table[str] = Table(
        read=lambda raw: (("team", "all"), str(raw["metadata"]["uid"])), changed=lambda _: None
    )
    watch = Watch(cast("Cluster", server), table, PODS, None, OUR_CHILDREN)

    async def scenario() -> None:
        running = asyncio.create_task(watch.run())
        await watch.listed.wait()
        await asyncio.sleep(300)
        running.cancel()

    run_in_virtual_time(scenario())
    return set(table.of(("team", "all")))


def test_what_is_listed_and_watched_is_known():
    server = Scripted(
        lists=[[thing("a", 1), thing("b", 2)]],
        watches=[[event("ADDED", "c", 11), event("DELETED", "a", 12)]],
    )
    assert uids_after(server) == {"b", "c"}


def test_a_watch_that_breaks_goes_on_from_where_it_was():
    server = Scripted(
        lists=[[thing("a", 1)]],
        watches=[
            [event("ADDED", "b", 11), ApiUnreachableError("reset")],
            [event("BOOKMARK", "", 20)],
            [],
        ],
    )
    assert uids_after(server) == {"a", "b"}
    assert server.watched_from == ["10", "11", "20", "20"]


def test_a_version_that_is_too_old_means_a_new_list_which_tells_what_is_gone():
    server = Scripted(
        lists=[[thing("a", 1), thing("b", 2)], [thing("b", 2), thing("c", 15)]],
        watches=[[EXPIRED]],
    )
    assert uids_after(server) == {"b", "c"}


def test_a_list_that_fails_is_tried_again():
    refused = ApiError("list", code=403, status={"message": "no rights yet"})
    server = Scripted(lists=[refused, ApiUnreachableError("down"), [thing("a", 1)]])
    assert uids_after(server) == {"a"}


def stored_job(version: int) -> Raw:
    metadata = {"name": "roberta-zh", "namespace": "team-a", "uid": "uid-of-job"}
    return {"metadata": {**metadata, "resourceVersion": str(version)}, "spec": {}}


def audited(heard: list[tuple[str, str, int]], there: list[Raw]) -> Store:
    """A store with one PretrainJob, after an audit that has heard of some answers."""
    store = Store(job_changed=lambda _: None, children_changed=lambda _: None)
    store.jobs.put(stored_job(5))
    server = Scripted(lists=[there])
    audit = Audit(cast("Cluster", server), store, (None,))
    audit.note("list", PRETRAIN_JOBS.plural, 200)
    assert audit.has_heard_all
    for verb, resource, code in heard:
        audit.note(verb, resource, code)
    run_in_virtual_time(audit.run())
    return store


def test_a_second_list_of_kopfs_shows_what_was_deleted_meanwhile():
    assert len(audited([("list", "pretrainjobs", 200)], there=[]).jobs) == 0
    assert len(audited([("list", "pretrainjobs", 200)], there=[stored_job(5)]).jobs) == 1


def test_without_one_nobody_asks():
    heard = [("watch", "pretrainjobs", 200), ("list", "pretrainjobs", 500)]
    assert len(audited(heard, there=[]).jobs) == 1

"""The election: one leader, a quick successor, and no write by one who may have lost."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest
from pretrain_operator.cluster import Cluster
from pretrain_operator.errors import ApiError, ApiUnreachableError, LeaseLostError
from pretrain_operator.leader import Fence, Leader, renewed
from pretrain_operator.observed import Manifest
from pretrain_testing.virtual_time import now, run_in_virtual_time

SECONDS = 15
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class OneLease:
    """An API server that knows one Lease; `down` makes it silent."""

    lease: Manifest | None = None
    down: bool = False
    writes: list[str] = field(default_factory=list)

    async def read_lease(self, *_: str, **__: float) -> Manifest | None:
        self._answer()
        return self.lease

    async def write_lease(self, lease: Manifest, **_: float) -> Manifest:
        self._answer()
        current = self.lease["metadata"]["resourceVersion"] if self.lease else None
        if lease["metadata"].get("resourceVersion") != current:
            raise ApiError("PUT", code=409, status={"message": "modified"})
        self.writes.append(lease["spec"]["holderIdentity"])
        version = str(len(self.writes))
        self.lease = {**lease, "metadata": {**lease["metadata"], "resourceVersion": version}}
        return self.lease

    def _answer(self) -> None:
        if self.down:
            raise ApiUnreachableError("no answer")

    @property
    def holder(self) -> str:
        assert self.lease is not None
        return str(self.lease["spec"]["holderIdentity"])


def replica(server: OneLease, identity: str) -> Leader:
    return Leader(
        cluster=cast("Cluster", server),
        namespace="operators",
        name="pretrain-operator",
        identity=identity,
        fence=Fence(seconds=SECONDS, monotonic=now),
        on_look=lambda: None,
        clock=lambda: EPOCH + timedelta(seconds=now()),
    )


def run(scenario: Any) -> Any:
    return run_in_virtual_time(scenario)


def test_the_first_replica_leads_at_once():
    async def scenario() -> None:
        server = OneLease()
        leader = replica(server, "a")
        with pytest.raises(LeaseLostError):
            leader.fence.check()
        await leader.acquire()
        leader.fence.check()
        assert (now(), server.holder) == (0, "a")

    run(scenario())


def test_a_second_replica_waits_as_long_as_the_first_one_renews():
    async def scenario() -> None:
        server = OneLease()
        first, second = replica(server, "a"), replica(server, "b")
        await first.acquire()
        keeping = asyncio.create_task(first.keep())
        waiting = asyncio.create_task(second.acquire())
        await asyncio.sleep(600)
        assert not waiting.done()
        assert set(server.writes) == {"a"}
        keeping.cancel()
        waiting.cancel()

    run(scenario())


def test_a_silent_leader_is_followed_within_a_lease_and_a_look_and_has_stopped_before():
    async def scenario() -> None:
        server = OneLease()
        first, second = replica(server, "a"), replica(server, "b")
        await first.acquire()
        waiting = asyncio.create_task(second.acquire())
        await asyncio.sleep(SECONDS * 0.7)
        assert not first.fence.is_open
        assert not second.fence.is_open
        await waiting
        assert SECONDS <= now() <= SECONDS + 2 * second.pause
        assert server.holder == "b"

    run(scenario())


def test_a_leader_that_ends_is_followed_at_the_next_look():
    async def scenario() -> None:
        server = OneLease()
        first, second = replica(server, "a"), replica(server, "b")
        await first.acquire()
        waiting = asyncio.create_task(second.acquire())
        await asyncio.sleep(7)
        await first.release()
        with pytest.raises(LeaseLostError):
            first.fence.check()
        await waiting
        assert now() <= 7 + second.pause

    run(scenario())


def test_a_leader_bears_an_outage_that_is_shorter_than_its_trust():
    async def scenario() -> None:
        server = OneLease()
        leader = replica(server, "a")
        await leader.acquire()
        keeping = asyncio.create_task(leader.keep())
        server.down = True
        await asyncio.sleep(SECONDS * 0.5)
        server.down = False
        await asyncio.sleep(600)
        assert not keeping.done()
        keeping.cancel()

    run(scenario())


def test_a_renewal_that_failed_is_tried_again_long_before_the_next_one_is_due():
    async def scenario() -> None:
        server = OneLease()
        leader = replica(server, "a")
        await leader.acquire()
        keeping = asyncio.create_task(leader.keep())
        server.down = True
        await asyncio.sleep(leader.pause + 0.1)
        server.down = False
        await asyncio.sleep(leader.pause / 2)
        assert server.writes == ["a", "a"]
        keeping.cancel()

    run(scenario())


def test_a_leader_ends_when_the_server_is_silent_for_too_long():
    async def scenario() -> None:
        server = OneLease()
        leader = replica(server, "a")
        await leader.acquire()
        server.down = True
        with pytest.raises(LeaseLostError):
            await leader.keep()
        assert now() < SECONDS

    run(scenario())


def test_a_leader_that_was_frozen_ends_before_it_writes_again():
    async def scenario() -> None:
        server = OneLease()
        frozen = Leader(
            cluster=cast("Cluster", server),
            namespace="operators",
            name="pretrain-operator",
            identity="a",
            fence=Fence(seconds=SECONDS, monotonic=lambda: now() + asleep),
            on_look=lambda: None,
            clock=lambda: EPOCH,
        )
        asleep = 0
        await frozen.acquire()
        keeping = asyncio.create_task(frozen.keep())
        await asyncio.sleep(1)
        asleep = 60
        with pytest.raises(LeaseLostError):
            frozen.fence.check()
        with pytest.raises(LeaseLostError):
            await keeping
        assert server.writes == ["a"]

    run(scenario())


def test_a_leader_whose_lease_another_one_took_ends():
    async def scenario() -> None:
        server = OneLease()
        leader = replica(server, "a")
        await leader.acquire()
        assert server.lease is not None
        taken = renewed(
            server.lease, namespace="x", name="y", holder="b", seconds=SECONDS, now=EPOCH
        )
        await server.write_lease(taken, seconds=1)
        with pytest.raises(LeaseLostError, match="held by b"):
            await leader.keep()

    run(scenario())


def test_a_lease_that_somebody_deleted_or_labelled_is_renewed_nevertheless():
    async def scenario() -> None:
        server = OneLease()
        leader = replica(server, "a")
        await leader.acquire()
        keeping = asyncio.create_task(leader.keep())
        server.lease = None
        await asyncio.sleep(60)
        assert server.lease is not None
        assert server.holder == "a"
        server.lease = {**server.lease, "metadata": {"resourceVersion": "77", "labels": {}}}
        await asyncio.sleep(60)
        assert not keeping.done()
        keeping.cancel()

    run(scenario())


def test_a_takeover_is_counted_and_a_renewal_is_not():
    first = renewed(None, namespace="n", name="l", holder="a", seconds=15, now=EPOCH)
    again = renewed(first, namespace="n", name="l", holder="a", seconds=15, now=EPOCH)
    taken = renewed(again, namespace="n", name="l", holder="b", seconds=15, now=EPOCH)
    assert [lease["spec"]["leaseTransitions"] for lease in (first, again, taken)] == [0, 0, 1]

"""Which replica works: the one that holds the Lease, as client-go's leader election has it.

A lease is judged by the time since it was last seen to change, so clocks need not agree. Its
holder stops writing well before another one may take it: `check` stands before every write.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pretrain_operator.cluster import Cluster
from pretrain_operator.errors import ApiError, ApiUnreachableError, LeaseLostError
from pretrain_operator.observed import Manifest

RENEWALS = 5
"""Renewals, or looks of a waiting replica, within one lease."""

RETRIES = 5
"""Tries after a renewal that failed, within the time between two renewals."""

TRUSTED_SHARE = 2 / 3
"""Of a lease: how long after its last renewal the holder still trusts it."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Sighting:
    """What was last seen of the Lease, and when that was first seen, in monotonic seconds."""

    spec: dict[str, Any] = field(default_factory=dict)
    since: float = 0.0

    def after(self, spec: dict[str, Any], *, now: float) -> Sighting:
        """The sighting after another look."""
        return self if spec == self.spec else Sighting(spec, now)

    def is_free(self, *, now: float) -> bool:
        """Whether nobody holds it, or its holder has been silent for as long as it lasts."""
        if not self.spec.get("holderIdentity"):
            return True
        return now - self.since >= float(self.spec.get("leaseDurationSeconds") or 0)


@dataclass
class Fence:
    """Stands before every write: open only while the lease can be trusted."""

    seconds: int
    """How long a lease lasts."""

    monotonic: Callable[[], float]
    _renewed_at: float = field(default=float("-inf"), init=False)

    @property
    def is_open(self) -> bool:
        """Whether no other replica can lead at this moment."""
        return self.monotonic() - self._renewed_at < self.seconds * TRUSTED_SHARE

    def check(self) -> None:
        """Raise LeaseLostError unless it is open."""
        if not self.is_open:
            raise LeaseLostError(
                f"the lease was not renewed within {self.seconds * TRUSTED_SHARE:g} s: another "
                "replica may lead now"
            )

    def open(self, *, since: float) -> None:
        """The lease was renewed, by a request that began at a moment of the monotonic clock."""
        self._renewed_at = since

    def close(self) -> None:
        """The lease is not ours any more."""
        self._renewed_at = float("-inf")


@dataclass
class Leader:
    """One replica's part in the election.

    `identity` is another one for every process, for a restarted pod keeps its name. `on_look` is
    called at every look of a replica that waits.
    """

    cluster: Cluster
    namespace: str
    name: str
    identity: str
    fence: Fence
    on_look: Callable[[], None]
    clock: Callable[[], datetime]
    seen_at: float = field(default=float("-inf"), init=False)
    """When the Lease was last read or renewed, in monotonic seconds."""

    _lease: Manifest | None = field(default=None, init=False)
    _sighting: Sighting = field(default_factory=Sighting, init=False)

    @property
    def pause(self) -> float:
        """Seconds between two looks at the Lease."""
        return self.fence.seconds / RENEWALS

    async def acquire(self) -> None:
        """Wait until this replica holds the Lease."""
        _log.info("waiting for the Lease %s/%s as %s", self.namespace, self.name, self.identity)
        while not await self._try_to_acquire():
            self.on_look()
            await asyncio.sleep(self.pause)
        _log.info("leading")

    async def keep(self) -> None:
        """Renew the Lease for ever; raises LeaseLostError once it is lost."""
        pause = self.pause
        while True:
            await asyncio.sleep(pause)
            self.fence.check()
            pause = self.pause if await self._renew() else self.pause / RETRIES
            self.fence.check()

    async def release(self) -> None:
        """Let another replica take over at once; for the end of this one, so nothing is raised."""
        if not self.fence.is_open:
            return
        self.fence.close()
        try:
            await self._write(holder="", seconds=1)
        except (ApiError, ApiUnreachableError) as error:
            _log.warning("the Lease is not released and will run out: %s", error)
        else:
            _log.info("the Lease is released")

    async def _try_to_acquire(self) -> bool:
        try:
            lease = await self.cluster.read_lease(self.namespace, self.name, seconds=self.pause)
            now = self.fence.monotonic()
            self.seen_at = now
            self._lease = lease
            self._sighting = self._sighting.after((lease or {}).get("spec") or {}, now=now)
            if not self._sighting.is_free(now=now):
                return False
            await self._write(holder=self.identity, seconds=self.fence.seconds)
        except ApiError as error:
            if not error.is_conflict:
                _log.warning("the Lease cannot be taken: %s", error)
            return False
        except ApiUnreachableError as error:
            _log.warning("the Lease cannot be taken: %s", error)
            return False
        self.fence.open(since=now)
        return True

    async def _renew(self) -> bool:
        """Try to renew it; an error is borne as long as the lease can be trusted."""
        now = self.fence.monotonic()
        try:
            await self._write(holder=self.identity, seconds=self.fence.seconds)
        except ApiError as error:
            _log.warning("the Lease is not renewed: %s", error)
            if error.is_conflict or error.is_missing:
                await self._look_again()
        except ApiUnreachableError as error:
            _log.warning("the Lease is not renewed: %s", error)
        else:
            self.seen_at = now
            self.fence.open(since=now)
            return True
        return False

    async def _look_again(self) -> None:
        """Somebody wrote or deleted the Lease: only its holder may go on, if it has one."""
        try:
            lease = await self.cluster.read_lease(self.namespace, self.name, seconds=self.pause)
        except (ApiError, ApiUnreachableError) as error:
            _log.warning("the Lease cannot be read: %s", error)
            return
        holder = ((lease or {}).get("spec") or {}).get("holderIdentity")
        if lease is not None and holder != self.identity:
            self.fence.close()
            raise LeaseLostError(f"the Lease {self.namespace}/{self.name} is held by {holder}")
        self._lease = lease

    async def _write(self, *, holder: str, seconds: int) -> None:
        lease = renewed(
            self._lease,
            namespace=self.namespace,
            name=self.name,
            holder=holder,
            seconds=seconds,
            now=self.clock(),
        )
        self._lease = await self.cluster.write_lease(lease, seconds=self.pause)


def renewed(
    lease: Manifest | None, *, namespace: str, name: str, holder: str, seconds: int, now: datetime
) -> Manifest:
    """The Lease (coordination.k8s.io/v1) as its holder writes it."""
    before = (lease or {}).get("spec") or {}
    same = before.get("holderIdentity") == holder
    moment = f"{now:%Y-%m-%dT%H:%M:%S.%f}Z"
    transitions = int(before.get("leaseTransitions") or 0)
    taken_over = lease is not None and bool(holder) and not same
    metadata = (lease or {}).get("metadata") or {"namespace": namespace, "name": name}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {k: v for k, v in metadata.items() if k != "managedFields"},
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": seconds,
            "acquireTime": before.get("acquireTime") if same else moment,
            "renewTime": moment,
            "leaseTransitions": transitions + taken_over,
        },
    }

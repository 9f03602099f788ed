"""kopf's part: it watches PretrainJobs, and nothing else.

Its one handler only notes what it is told; what follows is the reconciler's. There are no handlers
of creations, updates or deletions, no timers and no daemons: they would add finalizers, and keep
their state in annotations of the user's objects. Nor is there an index, which would cost another
call of a handler for every event.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import kopf

from pretrain_operator.addresses import PRETRAIN_JOBS
from pretrain_operator.cluster import (
    INACTIVITY_SECONDS,
    PAGE_SIZE,
    WATCH_LIMIT_SECONDS,
    WATCH_SECONDS,
)
from pretrain_operator.observed import Manifest
from pretrain_operator.store import Store

Login = Callable[[], Awaitable[kopf.AiohttpSession]]
"""Makes kopf's own session; called again when the server does not accept it any more."""

IDLE_SECONDS = 1.0
"""How long kopf keeps a task for an object that nothing happens to."""

_PRETRAIN_JOBS = (*PRETRAIN_JOBS.api_version.split("/"), PRETRAIN_JOBS.plural)


def build_registry(store: Store, *, login: Login) -> kopf.OperatorRegistry:
    """All handlers: `store` has a job from the moment on in which kopf hears of it."""
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    async def sign_in(**_: Any) -> kopf.AiohttpSession:
        return await login()

    @kopf.on.event(*_PRETRAIN_JOBS, registry=registry)
    async def note_job(event: kopf.RawEvent, **_: Any) -> None:
        note(event, store)

    return registry


def note(event: kopf.RawEvent, store: Store) -> None:
    """Take over a job that was listed (its event has no type), has come or changed, or is gone."""
    raw: Manifest = dict(event["object"])
    if event["type"] == "DELETED":
        store.jobs.remove(raw)
    else:
        store.jobs.put(raw)


def build_settings() -> kopf.OperatorSettings:
    """Make settings for kopf: watches that end in time, and nothing that writes to the cluster."""
    settings = kopf.OperatorSettings()
    settings.watching.server_timeout = WATCH_SECONDS
    settings.watching.client_timeout = WATCH_LIMIT_SECONDS
    settings.watching.inactivity_timeout = INACTIVITY_SECONDS
    settings.watching.chunk_size = PAGE_SIZE
    settings.queueing.idle_timeout = IDLE_SECONDS
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.peering.standalone = True
    settings.persistence.diffbase_storage = NoDiffBase()
    settings.persistence.progress_storage = NoProgress()
    return settings


class NoDiffBase(kopf.DiffBaseStorage):
    """Keeps nothing of objects; handlers of events compare nothing."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        """No object has anything worth comparing."""
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> kopf.BodyEssence | None:
        """Nothing was kept."""
        return None

    def store(self, **_: Any) -> None:
        """Keep nothing."""


class NoProgress(kopf.ProgressStorage):
    """Keeps no state of handlers; those of events have none."""

    def fetch(self, **_: Any) -> None:
        """Nothing was kept."""

    def store(self, **_: Any) -> None:
        """Keep nothing."""

    def purge(self, **_: Any) -> None:
        """There is nothing to drop."""

    def touch(self, **_: Any) -> None:
        """Leave the object alone."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """Nothing of ours is in it."""
        return essence

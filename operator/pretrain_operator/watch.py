"""Our own list-and-watch: it fills one table with the objects of one kind, for ever.

Children come by thousands and cost too much through kopf. Nothing is decided here; an error never
ends it: the watch goes on from where it was, or starts anew from a list when that is too old.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pretrain_operator.addresses import CONFIG_MAPS, EVENTS, JOBS, PODS, SERVICES, Resource
from pretrain_operator.children.names import MANAGER
from pretrain_operator.cluster import Cluster
from pretrain_operator.errors import ApiError, ApiUnreachableError
from pretrain_operator.observed import Manifest
from pretrain_operator.store import Store
from pretrain_operator.tables import Table, uid_of

FIRST_PAUSE_SECONDS = 0.1
LAST_PAUSE_SECONDS = 30.0
OUR_CHILDREN = {"labelSelector": f"app.kubernetes.io/managed-by={MANAGER}"}
PODS_NOT_CREATED = {"fieldSelector": "reason=FailedCreate,involvedObject.kind=Job"}
"""Events carry no labels of ours."""

_log = logging.getLogger(__name__)


@dataclass
class Watch:
    """The list-and-watch of a kind in a namespace (None: in all of them)."""

    cluster: Cluster
    table: Table[Any]
    resource: Resource
    namespace: str | None
    selector: Mapping[str, str]
    metadata_only: bool = False
    listed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the table holds all that there is."""

    async def run(self) -> None:
        """Keep the table as the cluster is, until cancelled."""
        version: str | None = None
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                if version is None:
                    version = await self._list()
                async for event in self._watch(version):
                    version = self._take(event)
                    pause = FIRST_PAUSE_SECONDS
            except ApiUnreachableError as error:
                _log.debug("watch of %s: %s", self.resource.plural, error)
            except ApiError as error:
                version = None
                if not error.is_gone:
                    _log.warning("watch of %s: %s", self.resource.plural, error)
            await asyncio.sleep(pause)
            pause = min(pause * 2, LAST_PAUSE_SECONDS)

    async def _list(self) -> str:
        known = self.table.known(self.namespace)
        uids: list[str] = []
        version = ""
        async for page, listed_at in self.cluster.list(
            self.resource,
            self.namespace,
            selector=self.selector,
            metadata_only=self.metadata_only,
        ):
            version = listed_at
            for raw in page:
                uids.append(uid_of(raw))
                self.table.put(raw)
        self.table.forget_missing(known, uids)
        self.listed.set()
        return version

    def _watch(self, version: str) -> AsyncIterator[Manifest]:
        return self.cluster.watch(
            self.resource,
            self.namespace,
            version=version,
            selector=self.selector,
            metadata_only=self.metadata_only,
        )

    def _take(self, event: Manifest) -> str:
        """Take over one event; the resourceVersion to go on from."""
        raw = event["object"]
        match event["type"]:
            case "ERROR":
                raise ApiError("watch", code=int(raw.get("code", 500)), status=raw)
            case "DELETED":
                self.table.remove(raw)
            case "ADDED" | "MODIFIED":
                self.table.put(raw)
        return str(raw["metadata"]["resourceVersion"])


def watches_of_children(
    cluster: Cluster, store: Store, namespaces: tuple[str | None, ...]
) -> list[Watch]:
    """All watches of our own: everything but PretrainJobs, which are kopf's."""
    return [
        watch
        for namespace in namespaces
        for watch in (
            Watch(cluster, store.child_jobs, JOBS, namespace, OUR_CHILDREN),
            Watch(cluster, store.pods, PODS, namespace, OUR_CHILDREN),
            Watch(cluster, store.services, SERVICES, namespace, OUR_CHILDREN, metadata_only=True),
            Watch(
                cluster, store.config_maps, CONFIG_MAPS, namespace, OUR_CHILDREN, metadata_only=True
            ),
            Watch(cluster, store.failed_creates, EVENTS, namespace, PODS_NOT_CREATED),
        )
    ]

"""Finding what is gone after kopf had to list anew: its lists never say what is not there any more.

That happens when a watch was interrupted for longer than the API server remembers. Our own
watches (`watch`) need no such help.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from pretrain_operator.addresses import JOBS, PRETRAIN_JOBS, Resource
from pretrain_operator.cluster import Cluster
from pretrain_operator.errors import ApiError, ApiUnreachableError
from pretrain_operator.store import Store
from pretrain_operator.tables import Table, uid_of
from pretrain_operator.watch import OUR_CHILDREN

_log = logging.getLogger(__name__)


@dataclass
class Audit:
    """Compares what is known with what there is, once kopf has listed again."""

    cluster: Cluster
    store: Store
    namespaces: tuple[str | None, ...]
    _answered: set[str] = field(default_factory=set, init=False)
    _due: set[str] = field(default_factory=set, init=False)

    @property
    def has_heard_all(self) -> bool:
        """Whether both kinds of objects have been listed."""
        return self._answered >= {PRETRAIN_JOBS.plural, JOBS.plural}

    def note(self, verb: str, resource: str, code: int) -> None:
        """Hear of an answer to a request of kopf's."""
        if verb == "list" and code == HTTPStatus.OK:
            self._answered.add(resource)
            self._due.add(resource)

    def begin(self) -> None:
        """The first lists hide nothing; every later one may."""
        self._due.clear()

    async def run(self) -> None:
        """Forget what is gone; what the API server does not answer is asked again next time."""
        due, self._due = self._due, set()
        if PRETRAIN_JOBS.plural in due:
            await self._compare(PRETRAIN_JOBS, self.store.jobs, {})
        if JOBS.plural in due:
            await self._compare(JOBS, self.store.child_jobs, OUR_CHILDREN)

    async def _compare(
        self, resource: Resource, table: Table[Any], selector: dict[str, str]
    ) -> None:
        for namespace in self.namespaces:
            known = table.known(namespace)
            pages = self.cluster.list(resource, namespace, selector=selector, metadata_only=True)
            try:
                listed = [uid_of(raw) async for page, _ in pages for raw in page]
            except (ApiError, ApiUnreachableError) as error:
                _log.warning("%s are not compared: %s", resource.plural, error)
                self._due.add(resource.plural)
            else:
                table.forget_missing(known, listed)

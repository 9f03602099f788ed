"""Finding what is gone after kopf had to list anew: its lists never say what is not there any more.

That happens when a watch was interrupted for longer than the API server remembers. Our own
watches (`watch`) need no such help.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from http import HTTPStatus

from pretrain_operator.addresses import PRETRAIN_JOBS
from pretrain_operator.cluster import Cluster
from pretrain_operator.errors import ApiError, ApiUnreachableError
from pretrain_operator.store import Store
from pretrain_operator.tables import uid_of

_log = logging.getLogger(__name__)


@dataclass
class Audit:
    """Compares what is known with what there is, once kopf has listed again."""

    cluster: Cluster
    store: Store
    namespaces: tuple[str | None, ...]
    _answered: bool = field(default=False, init=False)
    _due: bool = field(default=False, init=False)

    @property
    def has_heard_all(self) -> bool:
        """Whether PretrainJobs have been listed."""
        return self._answered

    def note(self, verb: str, resource: str, code: int) -> None:
        """Hear of an answer to a request of kopf's. The first list hides nothing, others may."""
        if (verb, resource, code) == ("list", PRETRAIN_JOBS.plural, HTTPStatus.OK):
            self._due = self._due or self._answered
            self._answered = True

    async def run(self) -> None:
        """Forget what is gone; what the API server does not answer is asked again next time."""
        due, self._due = self._due, False
        if due:
            await self._compare()

    async def _compare(self) -> None:
        table = self.store.jobs
        for namespace in self.namespaces:
            known = table.known(namespace)
            pages = self.cluster.list(PRETRAIN_JOBS, namespace, selector={}, metadata_only=True)
            try:
                listed = [uid_of(raw) async for page, _ in pages for raw in page]
            except (ApiError, ApiUnreachableError) as error:
                _log.warning("PretrainJobs are not compared: %s", error)
                self._due = True
            else:
                table.forget_missing(known, listed)

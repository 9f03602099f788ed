"""Applying an attempt's children: in their order, up to the first that the API server refuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast

from pretrain_api.reports import StageName

from pretrain_operator.children.names import ATTEMPT_LABEL, STAGE_LABEL
from pretrain_operator.cluster import Cluster
from pretrain_operator.errors import ApiError
from pretrain_operator.observe import forget, remember
from pretrain_operator.observed import ChildKind, Manifest, Refusal
from pretrain_operator.store import Store

_IMMUTABLE = "immutable"
"""In the text that refuses a change of a Job that exists (batch/v1 validation)."""


@dataclass(frozen=True)
class Applied:
    """What came of it: the refusals to remember, and whether the last one was just made.

    `unseen` says that a child exists that no watch has told of yet.
    """

    refusals: tuple[Refusal, ...]
    refused: bool = False
    unseen: bool = False


@dataclass(frozen=True)
class Applier:
    """Applies the children of one job, made from a generation of its spec."""

    cluster: Cluster
    store: Store
    generation: int
    now: datetime

    async def apply(self, manifests: Sequence[Manifest], refusals: tuple[Refusal, ...]) -> Applied:
        """Apply children in turn; raises ApiError for what is neither taken nor refused."""
        unseen = False
        for manifest in manifests:
            stage, attempt, kind = _child(manifest)
            try:
                self.store.put_own_write(await self.cluster.apply(manifest))
            except ApiError as error:
                if _exists(error):
                    unseen = True
                elif error.is_refusal and not error.namespace_ends:
                    refusal = self._refusal(manifest, error)
                    return Applied(remember(refusals, refusal), refused=True)
                else:
                    raise
            refusals = forget(refusals, stage=stage, attempt=attempt, kind=kind)
        return Applied(refusals, unseen=unseen)

    def _refusal(self, manifest: Manifest, error: ApiError) -> Refusal:
        stage, attempt, kind = _child(manifest)
        return Refusal(
            stage=stage,
            attempt=attempt,
            kind=kind,
            code=error.code,
            message=error.message,
            generation=self.generation,
            at=self.now,
        )


def _child(manifest: Manifest) -> tuple[StageName, int, ChildKind]:
    labels = manifest["metadata"]["labels"]
    kind = cast("ChildKind", manifest["kind"])
    return cast("StageName", labels[STAGE_LABEL]), int(labels[ATTEMPT_LABEL]), kind


def _exists(error: ApiError) -> bool:
    """A child that exists is never changed, so whatever it was made from is as good."""
    return error.is_conflict or (error.is_refusal and _IMMUTABLE in error.message)

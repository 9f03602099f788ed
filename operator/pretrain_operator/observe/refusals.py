"""The executor's memory of children that the API server refused; a value, replaced each time."""

from __future__ import annotations

from dataclasses import replace

from pretrain_api.reports import StageName

from pretrain_operator.observed import ChildKind, Refusal

Refusals = tuple[Refusal, ...]


def remember(refusals: Refusals, new: Refusal) -> Refusals:
    """Add a refusal; one of the same child, made from the same spec, counts on."""
    before = [r for r in refusals if _child(r) == _child(new) and r.generation == new.generation]
    counted = replace(new, count=before[-1].count + 1) if before else new
    return (*(r for r in refusals if _child(r) != _child(new)), counted)


def forget(refusals: Refusals, *, stage: StageName, attempt: int, kind: ChildKind) -> Refusals:
    """Drop the refusal of a child that was taken after all."""
    return tuple(r for r in refusals if _child(r) != (stage, attempt, kind))


def _child(refusal: Refusal) -> tuple[StageName, int, ChildKind]:
    return refusal.stage, refusal.attempt, refusal.kind

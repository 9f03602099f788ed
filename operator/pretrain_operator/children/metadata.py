"""Metadata of children: name, labels and the owner reference that ends them with their job."""

from __future__ import annotations

from typing import Any

from pretrain_api.base import API_VERSION, KIND
from pretrain_api.job import PretrainJob

from pretrain_operator.children.attempt import Attempt
from pretrain_operator.children.names import attempt_labels


def child_metadata(attempt: Attempt) -> dict[str, Any]:
    """ObjectMeta of each child of an attempt."""
    return {
        "name": attempt.name,
        "namespace": attempt.job.metadata.namespace,
        "labels": labels_of(attempt),
        "ownerReferences": [owner_reference(attempt.job)],
    }


def labels_of(attempt: Attempt) -> dict[str, str]:
    """The installation's own labels, overridden by those that the children need."""
    return {
        **attempt.settings.labels,
        **attempt_labels(attempt.job, stage=attempt.stage, attempt=attempt.number),
    }


def owner_reference(job: PretrainJob) -> dict[str, Any]:
    """The garbage collector deletes a child once this owner is gone, with no operator running.

    A child does not block its owner's deletion: to say so takes a right to change the owner's
    finalizers on clusters that enforce it (admission OwnerReferencesPermissionEnforcement).
    """
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "name": job.metadata.name,
        "uid": job.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }

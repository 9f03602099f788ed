"""The CRD in the bed's API server: the shared one, and one that a test has for itself."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from bed.cluster import Bed
from bed.namespaces import passing_namespace
from pretrain_testing.stored_jobs import StoredJobs, remove_crd


@pytest.fixture(scope="session")
def shared_namespace(bed: Bed) -> Iterator[str]:
    """One for all tests here: they start no pods, and leave no job behind."""
    with passing_namespace(bed.api, "crd") as name:
        yield name


@pytest.fixture
def jobs(crd: None, kubernetes_client: Any, shared_namespace: str) -> Iterator[StoredJobs]:
    """The PretrainJobs of a namespace, which is empty before and after."""
    jobs = StoredJobs(kubernetes_client, shared_namespace)
    yield jobs
    jobs.delete_all()


@pytest.fixture
def own_group(bed: Bed, kubernetes_client: Any) -> Iterator[str]:
    """A group of the test's own, for CRDs that nobody else may see; deleted afterwards."""
    group = f"t{secrets.token_hex(4)}.pretrain.dev"
    yield group
    remove_crd(kubernetes_client, group=group)

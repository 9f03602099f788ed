"""The CRD in the bed's API server: the shared one, and one that a test has for itself."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from bed.cluster import Bed
from bed.namespaces import create_namespace, delete_namespace
from pretrain_testing.stored_jobs import CRD_FILE, StoredJobs, remove_crd, wait_until_served


@pytest.fixture(scope="session")
def crd(bed: Bed, kubernetes_client: Any) -> None:
    """The CRD, applied as it is now; other levels' tests may have applied it before."""
    bed.kubectl("apply", "--server-side", "--force-conflicts", f"--filename={CRD_FILE}")
    wait_until_served(kubernetes_client)


@pytest.fixture(scope="session")
def shared_namespace(bed: Bed) -> Iterator[str]:
    """One for all tests here: they start no pods, and leave no job behind."""
    name = f"crd-{secrets.token_hex(3)}"
    create_namespace(bed.api, name)
    yield name
    delete_namespace(bed.api, name)


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

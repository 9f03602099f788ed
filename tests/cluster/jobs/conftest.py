"""PretrainJobs of a test's own namespace, with their data in object storage."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from bed.cluster import Bed
from pretrain_testing.cluster_jobs import ClusterJobs
from pretrain_testing.cluster_storage import Prefix
from pretrain_testing.completed_job import CompletedJob, completed_job
from pretrain_testing.small_jobs import small_data, training_job


@pytest.fixture
def prefix(namespace: str) -> Prefix:
    """Storage of this test alone, with the data in it."""
    prefix = Prefix(namespace)
    prefix.upload_data()
    return prefix


@pytest.fixture(scope="session")
def shared_prefix(bed: Bed) -> Prefix:
    """Storage of all jobs that are disturbed, with the data in it."""
    prefix = Prefix("disturbed")
    prefix.upload_data()
    return prefix


@pytest.fixture
def jobs(bed: Bed, namespace: str) -> ClusterJobs:
    """PretrainJobs of this test's namespace."""
    return ClusterJobs(bed.kubectl, namespace)


@pytest.fixture(scope="session")
def undisturbed_weights(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The weights of the job when it runs on this machine, without a cluster, in two processes."""
    workdir = tmp_path_factory.mktemp("undisturbed")
    for key, content in small_data():
        path = workdir / "storage" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    manifest = workdir / "job.yaml"
    manifest.write_text(yaml.safe_dump(training_job(name="quickstart")), encoding="utf-8")
    command = [sys.executable, "-m", "pretrainctl", "local", manifest, "--workdir", workdir]
    run = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return Path(workdir / "export/model.safetensors").read_bytes()


@pytest.fixture(scope="session")
def completed(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CompletedJob]:
    """The small quickstart, run on two nodes with its evaluation."""
    with completed_job(bed, tmp_path_factory.mktemp("watch") / "rows") as completed:
        yield completed

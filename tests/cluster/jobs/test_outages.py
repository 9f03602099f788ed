"""What befalls the control plane and the storage while a job trains goes unnoticed by it.

About seven minutes, most of it outages that last. One job trains through all of them, slowed down
so that it does not end before, and completes in the last but one.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from bed.chart import CHART, RELEASE, VALUES, forget_chart, helm
from bed.cluster import Bed
from bed.namespaces import create_namespace, delete_namespace
from bed.paths import ROOT
from pretrain_testing.bed_operator import BedOperator, let_pass
from pretrain_testing.cluster_jobs import ClusterJobs, Manifest, stage_of
from pretrain_testing.cluster_storage import Prefix
from pretrain_testing.disturbed_job import BRISK, SLOW, DisturbedJob

NAMESPACE = "outages"
SEED = 20
DELETIONS = 10
OUTAGE_SECONDS, STORAGE_OUTAGE_SECONDS = 60, 30
WORKERS = 2
STARTED = ("tokenizer", "train")
OURS = "jobs,services,configmaps"
CHILDREN = f"pods,{OURS}"


@pytest.fixture(scope="module")
def jobs(bed: Bed) -> Iterator[ClusterJobs]:
    """PretrainJobs of this module."""
    create_namespace(bed.api, NAMESPACE)
    yield ClusterJobs(bed.kubectl, NAMESPACE, bed.api)
    delete_namespace(bed.api, NAMESPACE)


@pytest.fixture(scope="module")
def operator(bed: Bed) -> BedOperator:
    """The bed's operator."""
    return BedOperator(bed)


@pytest.fixture(scope="module")
def job(jobs: ClusterJobs, shared_prefix: Prefix) -> DisturbedJob:
    """The job that trains through all outages."""
    job = DisturbedJob(jobs, shared_prefix, "steady")
    job.start()
    job.wait_for_training()
    return job


@pytest.fixture
def unnoticed(job: DisturbedJob) -> Iterator[None]:
    """What happens in between costs no worker and no restart, and training goes on afterwards."""
    before = job.uids()
    yield
    step = job.status["training"]["step"]
    job.jobs.wait_for(job.name, "another step", lambda s: s["training"]["step"] > step)
    assert job.uids() == before
    assert not job.status.get("restarts")


def now() -> datetime:
    return datetime.now(UTC)


def has_learnt_nothing(status: Manifest) -> bool:
    """Whether a status tells of no worker, and of nothing that workers do."""
    told = [status.get(name) for name in ("training", "checkpoint", "restarts", "exportUri")]
    return not any(told) and not (status.get("workers") or {}).get("ready")


def test_a_job_that_follows_another_of_its_name_at_once_sees_nothing_of_it(
    job: DisturbedJob,
) -> None:
    old = job.uids()

    job.replace()
    seen = job.uids()
    assert seen & old
    while not seen - old:
        assert has_learnt_nothing(job.status)
        seen = job.uids()


def test_an_operator_deleted_ten_times_goes_unnoticed(
    job: DisturbedJob, operator: BedOperator
) -> None:
    choice = random.Random(SEED)
    for _ in range(DELETIONS):
        leader = operator.wait_for_leader()
        job.wait_for_changes(choice.randrange(3))
        operator.delete(*choice.choice([[leader], operator.pods()]))

    status = job.wait_for_training()
    assert not status.get("restarts")
    assert [len(job.jobs.children("jobs", job.name, stage)) for stage in STARTED] == [1, 1]
    assert len(job.uids()) == WORKERS


def test_a_leader_that_is_stopped_for_a_minute_is_replaced_and_writes_nothing_afterwards(
    job: DisturbedJob, operator: BedOperator, unnoticed: None
) -> None:
    operator.wait_until_ready()
    leader = operator.wait_for_leader()
    with operator.frozen(leader):
        stopped_at = now()
        operator.wait_for_leader(other_than=leader["metadata"]["name"])
        job.wait_for_changes(1)
        let_pass(OUTAGE_SECONDS - (now() - stopped_at).total_seconds())
    job.wait_for_changes(1)
    operator.wait_until_ready()
    assert not operator.writes_of(leader, since=stopped_at)


def test_a_restarted_api_server_goes_unnoticed(
    bed: Bed, job: DisturbedJob, operator: BedOperator, unnoticed: None
) -> None:
    bed.stop("kube-apiserver")
    bed.start("kube-apiserver")
    operator.wait_for_leader()
    job.wait_for_changes(1)


def test_storage_that_goes_away_in_a_save_costs_no_attempt(
    bed: Bed, job: DisturbedJob, unnoticed: None
) -> None:
    """It trains on meanwhile, so it is slowed down lest it comes to its end."""
    job.limit(BRISK)
    job.wait_for_a_save()
    job.limit(SLOW)
    try:
        bed.stop("seaweedfs")
        let_pass(STORAGE_OUTAGE_SECONDS)
    finally:
        bed.start("seaweedfs")
    committed = (job.status.get("checkpoint") or {}).get("step", 0)
    job.limit(BRISK)
    job.jobs.wait_for(job.name, "a later commit", lambda s: s["checkpoint"]["step"] > committed)
    job.limit(SLOW)


def test_an_upgrade_of_the_chart_and_its_rollback_go_unnoticed(
    bed: Bed, unnoticed: None, tmp_path: Path
) -> None:
    releases = (previous_chart(tmp_path), CHART)
    revisions = [upgrade(bed, chart, release=str(number)) for number, chart in enumerate(releases)]
    helm(bed.profile, "rollback", RELEASE, str(revisions[0]), "--wait", "--timeout=5m")


def test_a_minute_without_the_chart_costs_nothing_and_leaves_jobs_deletable(
    bed: Bed, job: DisturbedJob, jobs: ClusterJobs, shared_prefix: Prefix
) -> None:
    other = DisturbedJob(jobs, shared_prefix, "other")
    other.start()
    jobs.wait_for("other", "its first stage", lambda s: s.get("phase") == "Tokenizing")
    pods = job.uids()

    with uninstalled(bed):
        begun_at = now()
        for child in [jobs.get("other"), *jobs.children(OURS, "other")]:
            assert not child["metadata"].get("finalizers"), child["metadata"]["name"]
        jobs.delete("other")
        jobs.wait_until_gone(CHILDREN, "other")
        job.limit(None)
        jobs.wait_for_child_condition("Complete", job.name, "train")
        for worker in job.workers():
            jobs.delete_child("pod", worker)
        let_pass(OUTAGE_SECONDS - (now() - begun_at).total_seconds())
    assert job.status["phase"] != "Complete"

    jobs.wait_for_condition(job.name, "Complete")
    assert not job.uids() - pods


def test_the_job_ends_with_the_weights_of_one_left_alone(
    job: DisturbedJob, undisturbed_weights: bytes
) -> None:
    status = job.status
    assert not status.get("restarts")
    assert stage_of(status, "train")["attempt"] == 0
    assert job.prefix.weights(status["exportUri"]) == undisturbed_weights


@contextmanager
def uninstalled(bed: Bed) -> Iterator[None]:
    """Have no chart for a while, and with it no operator and no rights for one."""
    helm(bed.profile, "uninstall", RELEASE)
    try:
        yield
    finally:
        upgrade(bed, CHART)


def upgrade(bed: Bed, chart: Path, *, release: str = "") -> int:
    """Install a chart, with new pods for a release that is told; its revision."""
    forget_chart(bed.profile)
    annotations = ("--set-string", f"podAnnotations.release={release}") if release else ()
    flags = ("--install", f"--values={VALUES}", "--reset-values", *annotations)
    helm(bed.profile, "upgrade", RELEASE, str(chart), *flags)
    history = json.loads(helm(bed.profile, "history", RELEASE, "--output=json"))
    return int(history[-1]["revision"])


def previous_chart(folder: Path) -> Path:
    """The chart of the commit before; where history is cut off, this one under another version."""
    path = CHART.relative_to(ROOT)
    archive = subprocess.run(
        ["git", "archive", "HEAD~1", str(path)], cwd=ROOT, capture_output=True, check=False
    )
    if archive.returncode:
        shutil.copytree(CHART, folder / path)
        file = folder / path / "Chart.yaml"
        file.write_text(re.sub(r"(?m)^version: .*$", "version: 0.0.1", file.read_text()))
    else:
        subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)
    return folder / path

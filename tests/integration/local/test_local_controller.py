"""The controller runs Indexed Jobs of shell commands as processes, by a clock of the test's own.

A few seconds.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pretrain_operator.observed import ChildRef, ObservedJob
from pretrain_testing.processes import processes_of, wait_for
from pretrainctl.local.controller import Controller
from pretrainctl.local.wakeups import Wakeups
from pretrainctl.local.workdir import WorkDir, open_workdir

REPORT = {"stage": "preprocess", "index": 0, "attempt": 0, "message": "done"}


class Cluster:
    """A controller, the clock that it reads, and the wakeups that tell of ended pods."""

    def __init__(self, workdir: WorkDir) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.wakeups = Wakeups()
        numbers = count()
        self.controller = Controller(
            workdir,
            caller={"PATH": "/usr/bin:/bin"},
            clock=lambda: self.now,
            token=lambda: str(next(numbers)),
            on_exit=self.wakeups.pod_ended,
        )

    def create(self, script: str, **spec: Any) -> None:
        container = {"name": "main", "command": ["sh", "-c", script]}
        grace = spec.pop("grace", 30)
        self.controller.apply(
            {
                "kind": "Job",
                "metadata": {
                    "name": "job",
                    "labels": {"pretrain.dev/stage": "preprocess", "pretrain.dev/attempt": "0"},
                },
                "spec": {
                    "template": {
                        "spec": {"containers": [container], "terminationGracePeriodSeconds": grace}
                    },
                    **spec,
                },
            }
        )
        self.controller.sync()

    @property
    def job(self) -> ObservedJob:
        (job,) = self.controller.jobs.values()
        return job.observed()

    def settle(self, pods: int) -> ObservedJob:
        """Let a number of pods end."""
        while pods:
            for ended in self.wakeups.wait(30):
                self.controller.finish(ended)
                pods -= 1
        self.controller.sync()
        return self.job


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with open_workdir(tmp_path) as workdir:
        cluster = Cluster(workdir)
        yield cluster
        cluster.controller.kill()
        wait_for("the end of all processes", lambda: not processes_of(tmp_path))


def test_a_pod_that_ends_well_completes_its_job_with_its_report(cluster: Cluster) -> None:
    cluster.create(f"echo '{json.dumps(REPORT)}' > $PRETRAIN_TERMINATION_LOG")
    job = cluster.settle(pods=1)
    assert job.condition == "Complete"
    assert (job.succeeded, job.failed, job.active) == (1, 0, 0)
    (pod,) = job.pods
    assert pod.phase == "Succeeded"
    assert pod.report is not None
    assert pod.report.message == "done"


def test_what_others_could_mend_is_final_where_the_environment_stays_the_same(
    cluster: Cluster,
) -> None:
    denied = {**REPORT, "cause": "StorageUnavailable", "retryable": False, "mendable": True}
    cluster.create(f"echo '{json.dumps(denied)}' > $PRETRAIN_TERMINATION_LOG; exit 69")
    (pod,) = cluster.settle(pods=1).pods
    assert pod.report is not None
    assert (pod.report.retryable, pod.report.mendable) == (False, False)


def test_a_pod_without_a_report_tells_its_last_lines(cluster: Cluster) -> None:
    cluster.create("echo first; echo last >&2; exit 3", backoffLimit=0)
    job = cluster.settle(pods=1)
    assert job.condition == "Failed"
    assert (job.pods[0].exit_code, job.pods[0].message) == (3, "first\nlast")


def test_a_pod_that_a_signal_ended_has_its_number_and_the_shells_exit_code(
    cluster: Cluster,
) -> None:
    cluster.create("kill -9 $$$$", backoffLimit=0)  # $$ is a dollar sign in a manifest
    (pod,) = cluster.settle(pods=1).pods
    assert (pod.phase, pod.signal, pod.exit_code) == ("Failed", signal.SIGKILL, 137)


def test_indexes_follow_each_other_within_the_parallelism(cluster: Cluster) -> None:
    cluster.create("exit 0", completions=3, parallelism=2)
    assert [pod.index for pod in cluster.job.pods] == [0, 1]
    cluster.settle(pods=2)
    job = cluster.settle(pods=1)
    assert [pod.index for pod in job.pods] == [0, 1, 2]
    assert job.condition == "Complete"


def test_a_failed_index_waits_for_its_back_off(cluster: Cluster) -> None:
    cluster.create("exit 1", backoffLimitPerIndex=1)
    assert len(cluster.settle(pods=1).pods) == 1
    cluster.now += timedelta(seconds=1)
    cluster.controller.sync()
    assert len(cluster.job.pods) == 2


def test_a_job_that_fails_ends_its_other_pods_first(cluster: Cluster) -> None:
    cluster.create(
        'test $JOB_COMPLETION_INDEX = 0 && exit 1; trap "exit 0" TERM; while :; do sleep 0.1; done',
        completions=2,
        parallelism=2,
        backoffLimit=0,
    )
    assert cluster.settle(pods=1).condition == "FailureTarget"
    assert cluster.settle(pods=1).condition == "Failed"


def test_a_deleted_job_goes_once_its_pods_have_ended_within_their_grace(
    cluster: Cluster,
) -> None:
    cluster.create("trap '' TERM; echo ready; while :; do sleep 0.1; done", grace=10)
    (pod,) = cluster.controller.active_pods
    wait_for("the trap", lambda: "ready" in pod.log.read_text())

    cluster.controller.delete(ChildRef("Job", "job"))
    wake = cluster.controller.sync()

    assert wake == cluster.now + timedelta(seconds=10)
    assert cluster.job.deleting
    assert cluster.job.pods[0].deleting
    cluster.now += timedelta(seconds=10)
    cluster.controller.sync()
    for ended in cluster.wakeups.wait(30):
        cluster.controller.finish(ended)
    cluster.controller.sync()
    assert not cluster.controller.jobs


def test_a_disrupted_pod_is_no_failure_of_its_own(cluster: Cluster) -> None:
    cluster.create("while :; do sleep 0.1; done", backoffLimit=0)
    cluster.controller.disrupt()
    (pod,) = cluster.settle(pods=1).pods
    assert pod.disrupted
    assert cluster.controller.last_failure is None


def test_temporary_files_go_with_the_pod_and_its_config_stays_for_a_look(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.create("echo x > $TMPDIR/scratch; echo $TMPDIR")
    cluster.settle(pods=1)
    (log,) = (tmp_path / "logs").iterdir()
    assert not Path(log.read_text().strip()).exists()


def test_a_command_that_cannot_be_started_is_told(cluster: Cluster) -> None:
    cluster.create("exec /nowhere/at/all", backoffLimit=0)
    (pod,) = cluster.settle(pods=1).pods
    assert pod.exit_code == 127
    assert "not found" in pod.message

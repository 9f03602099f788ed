"""Every fault of a job on a cluster is recognised, told in one sentence, and retried rightly.

All faulty jobs run side by side, most of them waiting for something; about four minutes in all,
half of it for the few that start to train. What was seen becomes docs/failures.md.
"""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from bed.paths import ROOT
from pretrain_testing.cluster_jobs import stage_of
from pretrain_testing.fault import Fault
from pretrain_testing.fault_ends import FAILS, HANG
from pretrain_testing.fault_run import Seen
from pretrain_testing.fault_waits import WAITS
from pretrain_testing.fault_world import World

ALL = (*WAITS, *FAILS, HANG)


def name_of(fault: Fault) -> str:
    return fault.name


@pytest.mark.parametrize("fault", ALL, ids=name_of)
def test_a_fault_is_told_soon_after_the_cluster_knows_it(
    seen: dict[str, Seen], fault: Fault
) -> None:
    assert seen[fault.name].delay <= fault.seconds


@pytest.mark.parametrize("fault", WAITS, ids=name_of)
def test_the_same_job_goes_on_when_its_fault_is_mended(seen: dict[str, Seen], fault: Fault) -> None:
    job = seen[fault.name]

    assert job.ended_at is not None, job.status
    assert stage_of(job.status, "tokenizer")["state"] == "Complete"
    assert job.last["metadata"]["uid"] == job.told["metadata"]["uid"]
    assert set(job.status.get("restarts") or {}) <= {"StorageUnavailable"} & {fault.cause}


@pytest.mark.parametrize("fault", FAILS, ids=name_of)
def test_a_fault_that_stays_ends_the_job_after_the_attempts_it_may_have(
    seen: dict[str, Seen], world: World, fault: Fault
) -> None:
    job = seen[fault.name]
    failed = condition_of(job, "Failed")

    assert (failed["status"], failed["reason"]) == ("True", fault.reason), job.status
    assert re.search(fault.told, failed["message"], re.DOTALL), failed["message"]
    assert job.status.get("restarts", {}) == fault.restarts
    assert condition_of(job, "Running")["status"] == "False"
    pods = world.jobs(limited=fault.limited).children("pods", fault.name)
    assert not [pod for pod in pods if pod["status"]["phase"] in {"Pending", "Running"}]


def test_a_hanging_gang_is_replaced_and_trains_on(seen: dict[str, Seen]) -> None:
    job = seen[HANG.name]

    assert job.ended_at is not None, job.status
    assert job.status["restarts"] == HANG.restarts
    assert stage_of(job.status, "train")["attempt"] == 1
    assert job.status["attemptStartStep"] > 0


def condition_of(job: Seen, name: str) -> dict[str, str]:
    return next(c for c in job.status["conditions"] if c["type"] == name)


def test_the_page_of_failures_says_what_was_seen(seen: dict[str, Seen]) -> None:
    assert all(job.told for job in seen.values())
    command = (sys.executable, "-m", "tools.failures_page", "--check")

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr

"""Whatever takes workers from a job, it restarts once, for the right cause, and ends the same.

About six minutes, most of it imports of torch, as every kill costs one more start of the training.
One job suffers all kills, and is looked at from several sides afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from bed.cluster import Bed
from bed.namespaces import create_namespace, delete_namespace
from pretrain_testing.bed_operator import WRITES
from pretrain_testing.cluster_jobs import ClusterJobs, stage_of
from pretrain_testing.cluster_storage import Prefix
from pretrain_testing.disturbed_job import GRACE_SECONDS
from pretrain_testing.killed_job import KILLS, LOST_NODE, Killed, KilledJob, killed_job

pytestmark = pytest.mark.timeout(3600)
"""The first test waits for all kills, which on a busy machine is longer than a test may take."""

NAMESPACE = "killed-job"
SURVIVAL_SECONDS = 30
"""How long the workers of a broken gang may live on, beside their grace period."""

MOVE_SECONDS = 60
"""How long after an eviction and its grace period the next attempt has its pods."""

POLL_SECONDS = 2
"""How much later than the cluster itself the operator may see training begin or end."""

WRITES_A_RESTART = 10
STATUS_WRITE = ("patch", "pretrainjobs")
WORKERS = 2
NAMES = [kill.name for kill in KILLS]
RESTARTS = [number for number, kill in enumerate(KILLS) if kill.cause]


@pytest.fixture(scope="module")
def killed(bed: Bed, shared_prefix: Prefix) -> Iterator[KilledJob]:
    """The job after all kills, and complete."""
    create_namespace(bed.api, NAMESPACE)
    with killed_job(bed, ClusterJobs(bed.kubectl, NAMESPACE, bed.api), shared_prefix) as killed:
        yield killed
    delete_namespace(bed.api, NAMESPACE)


@pytest.fixture(params=range(len(KILLS)), ids=NAMES)
def one(killed: KilledJob, request: pytest.FixtureRequest) -> Killed:
    """One of its kills."""
    return killed.killed[request.param]


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def ended_at(pod: dict[str, Any]) -> datetime | None:
    """When a worker's container ended, as far as that became known."""
    states = [status["state"] for status in pod["status"].get("containerStatuses", [])]
    ends = [moment(state["terminated"]["finishedAt"]) for state in states if "terminated" in state]
    return max(ends, default=None)


def deleted_at(pod: dict[str, Any]) -> datetime | None:
    """When somebody asked for a worker to be deleted."""
    metadata = pod["metadata"]
    if "deletionTimestamp" not in metadata:
        return None
    grace = timedelta(seconds=metadata["deletionGracePeriodSeconds"])
    return moment(metadata["deletionTimestamp"]) - grace


def broken_at(pods: list[dict[str, Any]]) -> datetime:
    """When the cluster knew that a gang is not whole any more."""
    return min(filter(None, [*map(ended_at, pods), *map(deleted_at, pods)]))


def workers_of(killed: KilledJob, one: Killed, *, later: int = 0) -> list[dict[str, Any]]:
    """The workers of the attempt that a kill ended, or of a later one."""
    return killed.pods_of(stage_of(one.before, "train")["attempt"] + later)


def test_its_weights_are_those_of_a_job_left_alone(
    killed: KilledJob, undisturbed_weights: bytes
) -> None:
    assert killed.prefix.weights(killed.status["exportUri"]) == undisturbed_weights


def test_it_had_no_children_while_it_was_suspended_at_first(killed: KilledJob) -> None:
    assert killed.children_at_first == []


def test_a_kill_is_one_restart_of_its_own_cause(one: Killed) -> None:
    before, after = (status.get("restarts") or {} for status in (one.before, one.after))
    expected = {one.kill.cause: before.get(one.kill.cause, 0) + 1} if one.kill.cause else {}
    assert after == {**before, **expected}
    assert stage_of(one.after, "train")["attempt"] == stage_of(one.before, "train")["attempt"] + 1


def test_all_kills_together_are_counted_once_each(killed: KilledJob) -> None:
    causes = [kill.cause for kill in KILLS if kill.cause]
    assert killed.status["restarts"] == {cause: causes.count(cause) for cause in set(causes)}
    assert stage_of(killed.status, "train")["attempt"] == len(KILLS)


def test_every_restart_is_told_in_one_event(killed: KilledJob) -> None:
    told = [event for event in killed.events if event["reason"] == "AttemptFailed"]
    assert len(told) == len([kill for kill in KILLS if kill.cause])
    assert {event.get("count", 1) for event in told} == {1}
    text = " ".join(event["message"] for event in told)
    assert LOST_NODE in text


def test_every_attempt_goes_on_from_the_newest_commit(killed: KilledJob) -> None:
    begun = [one.before.get("attemptStartStep") or 0 for one in killed.killed]
    begun.append(killed.status["attemptStartStep"])
    for one, start in zip(killed.killed, begun[1:], strict=True):
        assert start >= one.before["checkpoint"]["step"]


def test_the_checkpoint_that_status_tells_of_never_goes_back(killed: KilledJob) -> None:
    steps = killed.checkpoints()
    assert steps == sorted(steps)


def test_every_second_of_its_training_is_told_in_one_category(killed: KilledJob) -> None:
    goodput, train = killed.status["goodput"], stage_of(killed.status, "train")
    seconds = sum(goodput["seconds"].values())
    told = (moment(goodput["time"]) - moment(goodput["startTime"])).total_seconds()
    life = (moment(train["completionTime"]) - moment(train["startTime"])).total_seconds()
    assert seconds == pytest.approx(told, rel=0.01)
    assert abs(seconds - life) <= 0.01 * life + POLL_SECONDS
    assert {"init", "restore", "step", "queued", "suspended", "lost"} <= goodput["seconds"].keys()
    assert min(goodput["seconds"].values()) > 0
    assert 0 < goodput["ratio"] < 1


def test_nothing_joins_a_broken_gang(killed: KilledJob, one: Killed) -> None:
    assert len(workers_of(killed, one)) == WORKERS


def test_no_survivor_of_a_broken_gang_lives_on(killed: KilledJob, one: Killed) -> None:
    pods = workers_of(killed, one)
    lost = LOST_NODE if one.kill.name == "a node is lost" else ""
    ends = [ended_at(pod) for pod in pods if pod["spec"]["nodeName"] != lost]
    assert None not in ends
    bound = timedelta(seconds=SURVIVAL_SECONDS + GRACE_SECONDS)
    assert max(filter(None, ends)) - broken_at(pods) <= bound


def test_the_next_attempt_does_not_wait_for_what_never_ends(killed: KilledJob, one: Killed) -> None:
    created = [
        moment(pod["metadata"]["creationTimestamp"]) for pod in workers_of(killed, one, later=1)
    ]
    bound = timedelta(seconds=MOVE_SECONDS + GRACE_SECONDS)
    assert max(created) - broken_at(workers_of(killed, one)) <= bound


@pytest.mark.parametrize("one", RESTARTS, indirect=True, ids=lambda number: NAMES[number])
def test_a_restart_costs_few_writes(killed: KilledJob, one: Killed) -> None:
    writes = [
        (request["verb"], request["objectRef"]["resource"])
        for request in killed.requests
        if request["verb"] in WRITES
        and one.begun_at < moment(request["requestReceivedTimestamp"]) < one.running_at
    ]
    of_children = [write for write in writes if write != STATUS_WRITE]
    of_news = [before != after for before, after in pairwise(map(news_of, one.versions))]
    assert len(of_children) + sum(of_news) <= WRITES_A_RESTART, (of_children, of_news)


def news_of(job: dict[str, Any]) -> tuple[Any, ...]:
    """What a status tells beside mere figures, which come once a poll whatever happens."""
    status = job["status"]
    stages = [(stage["state"], stage["attempt"]) for stage in status["stages"]]
    conditions = [(told["type"], told["status"]) for told in status["conditions"]]
    return status["phase"], status.get("restarts"), stages, conditions

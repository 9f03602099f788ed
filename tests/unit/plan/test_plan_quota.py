"""A quota that is full, for a Job or for its pods: a wait, told once, that costs nothing."""

from datetime import timedelta
from typing import Any

from pretrain_api.reports import Cause
from pretrain_api.status import Phase
from pretrain_operator.observed import Manifest
from pretrain_testing.plan_simulator import Simulation, make_job, tokenizer_result

QUOTA = (
    "exceeded quota: gpus, requested: requests.nvidia.com/gpu=8, "
    "used: requests.nvidia.com/gpu=4, limited: requests.nvidia.com/gpu=8"
)


def before_training(**spec: Any) -> Simulation:
    """A job whose gang is about to be created."""
    sim = Simulation(make_job(**spec))
    sim.settle()
    sim.run("tokenizer")
    sim.succeed("tokenizer", tokenizer_result(cached=frozenset({"preprocess"})))
    return sim


def refusing(message: str, *, code: int, kind: str = "Job") -> Simulation:
    """A job whose training has a child that the API server refuses."""

    def refuse(manifest: Manifest) -> tuple[int, str] | None:
        train = manifest["metadata"]["labels"]["pretrain.dev/stage"] == "train"
        return (code, message) if train and manifest["kind"] == kind else None

    sim = Simulation(make_job(), refuse=refuse)
    sim.settle()
    sim.run("tokenizer")
    sim.succeed("tokenizer", tokenizer_result(cached=frozenset({"preprocess"})))
    return sim


def test_a_full_quota_is_tried_again_in_growing_gaps_and_told_once() -> None:
    sim = refusing(f'services "x" is forbidden: {QUOTA}', code=403, kind="Service")
    gaps = []
    for _ in range(8):
        gap = sim.plan().requeue_after
        assert gap is not None
        gaps.append(gap)
        sim.wait(gap)

    assert gaps == [10, 20, 40, 80, 160, 300, 300, 300]
    assert sim.event_reasons().count("Quota") == 1
    running = sim.condition("Running")
    assert (running.status, running.reason) == ("False", "Quota")
    assert QUOTA in sim.job.status.blocked_by
    assert sim.condition("Accepted").status == "True"
    assert sim.job.status.restarts == {}
    assert not any("train" in name for name in sim.created)


def test_a_child_that_was_over_the_quota_is_created_once_there_is_room() -> None:
    sim = refusing(f'services "x" is forbidden: {QUOTA}', code=403, kind="Service")

    sim.refuse = lambda _manifest: None
    sim.wait(10)
    sim.run("train")

    assert sim.child("train").attempt == 0
    assert sim.phase() is Phase.TRAINING
    assert sim.job.status.blocked_by == ""


def test_pods_over_the_quota_are_told_by_quota_asked_used_and_limit_and_only_once() -> None:
    sim = before_training()
    sim.change("train", pods_refused=f"forbidden: {QUOTA}")

    for _ in range(3):
        sim.wait(60)

    blocked = sim.job.status.blocked_by
    for word in ("gpus", "requested: requests.nvidia.com/gpu=8", "used: ", "limited: "):
        assert word in blocked
    assert sim.condition("Running").reason == "Quota"
    assert [e.type for e in sim.events if e.reason == "Quota"] == ["Warning"]
    assert sim.condition("Accepted").status == "True"


def test_a_quota_that_admits_half_a_gang_is_shown_all_the_time_and_costs_nothing() -> None:
    sim = before_training(workers={"replicas": 4})
    sim.run("train")
    half = sim.child("train").pods[:2]
    sim.change("train", pods=half, active=2, pods_refused=f"forbidden: {QUOTA}")
    sim.wait(540)
    assert sim.phase() is Phase.PENDING
    assert sim.job.status.blocked_by.startswith("Rank 2 (and 1 more)")
    assert QUOTA in sim.job.status.blocked_by

    sim.report_failure(
        "train",
        1,
        Cause.INFRASTRUCTURE,
        message="the 4 nodes did not meet at a.b.svc:29400 within 600 s",
    )

    assert sim.job.status.restarts == {"Quota": 1}
    assert sim.job.status.no_progress_attempts == 0
    assert QUOTA in sim.job.status.blocked_by
    assert "a.b.svc:29400" in sim.job.status.blocked_by
    retry_time = sim.stage("train").retry_time
    assert retry_time is not None
    assert retry_time - sim.now <= timedelta(minutes=5)


def test_a_gang_starts_when_its_quota_is_raised_and_nobody_edits_the_job() -> None:
    sim = before_training()
    sim.change("train", pods_refused=f"forbidden: {QUOTA}")
    sim.wait(2400)

    sim.run("train")

    assert sim.phase() is Phase.TRAINING
    assert sim.job.status.blocked_by == ""
    assert sim.condition("Running").reason == "Training"

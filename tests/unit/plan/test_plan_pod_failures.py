"""What one lost pod is taken for."""

import signal
from datetime import timedelta

import pytest
from pretrain_api.reports import EXIT_CODES, Cause, StageReport
from pretrain_operator.observed import ObservedJob, ObservedPod
from pretrain_operator.plan.failures import Settling, failure_of, last_tries
from pretrain_operator.plan.pod_failures import Failure, Weight, classify_pod, pod_name
from pretrain_testing.plan_simulator import START


def lost_pod(**fields: object) -> ObservedPod:
    values = {"name": "p", "index": 1, "phase": "Failed", "node": "node-b", **fields}
    return ObservedPod(**values)  # type: ignore[arg-type]


def report(cause: Cause | None, **fields: object) -> StageReport:
    return StageReport.model_validate({"stage": "train", "index": 1, "cause": cause, **fields})


def job_of(*pods: ObservedPod, **fields: object) -> ObservedJob:
    values = {"name": "j", "stage": "train", "attempt": 0, "created_at": START, "completions": 2}
    return ObservedJob(**{**values, "pods": pods, **fields})  # type: ignore[arg-type]


def cause_of(job: ObservedJob, *, after: float = 60) -> Cause:
    failure = failure_of(job, now=START + timedelta(seconds=after), ranks_per_pod=1)
    assert isinstance(failure, Failure)
    return failure.cause


@pytest.mark.parametrize(("cause", "code"), [(c, n) for c, n in EXIT_CODES.items() if n > 1])
def test_an_exit_code_tells_the_cause_when_no_report_does(cause: Cause, code: int) -> None:
    assert classify_pod(lost_pod(exit_code=code), stage="train").cause is cause


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"exit_code": 137, "reason": "OOMKilled"}, Cause.OUT_OF_MEMORY),
        ({"exit_code": 137}, Cause.INFRASTRUCTURE),
        ({"signal": signal.SIGKILL}, Cause.INFRASTRUCTURE),
        ({"exit_code": 143}, Cause.PREEMPTED),
        ({"signal": signal.SIGBUS}, Cause.OUT_OF_MEMORY),
        ({"signal": signal.SIGSEGV}, Cause.UNKNOWN),
        ({"exit_code": 1}, Cause.UNKNOWN),
        ({"exit_code": 2}, Cause.UNKNOWN),
        ({"reason": "Evicted", "message": "low on ephemeral-storage"}, Cause.INFRASTRUCTURE),
        ({"reason": "UnexpectedAdmissionError"}, Cause.INFRASTRUCTURE),
        ({"disrupted": True, "reason": "DeletionByTaintManager"}, Cause.INFRASTRUCTURE),
        ({"disrupted": True, "reason": "PreemptionByScheduler"}, Cause.PREEMPTED),
        ({"disrupted": True, "reason": "EvictionByEvictionAPI"}, Cause.PREEMPTED),
        ({"phase": "Running", "deleting": True}, Cause.PREEMPTED),
        ({"exit_code": 1, "reason": "Error", "report": report(Cause.DATA_ERROR)}, Cause.DATA_ERROR),
        (
            {"exit_code": 1, "reason": "OOMKilled", "report": report(Cause.UNKNOWN)},
            Cause.OUT_OF_MEMORY,
        ),
        ({"disrupted": True, "report": report(Cause.USER_ERROR)}, Cause.USER_ERROR),
        ({"disrupted": True, "report": report(Cause.INFRASTRUCTURE)}, Cause.PREEMPTED),
    ],
)
def test_a_lost_pod_has_one_cause(fields: dict[str, object], cause: Cause) -> None:
    assert classify_pod(lost_pod(**fields), stage="train").cause is cause


def test_the_sentence_names_rank_node_and_what_the_process_said() -> None:
    pod = lost_pod(report=report(Cause.USER_ERROR, rank=9, message="max_steps must be positive"))

    failure = classify_pod(pod, stage="train", ranks_per_pod=8)

    assert failure.sentence == (
        "Rank 9 on node node-b ended with UserError: max_steps must be positive"
    )


def test_a_pod_of_several_ranks_names_them_all_when_nobody_says_which() -> None:
    assert pod_name(1, "train", 8) == "worker 1 (ranks 8 to 15)"
    assert pod_name(1, "train", 1) == "rank 1"
    assert pod_name(1, "preprocess", 1) == "slice 1"
    assert pod_name(0, "export", 1) == "the export stage"


def test_a_bus_error_says_what_to_do() -> None:
    failure = classify_pod(lost_pod(signal=signal.SIGBUS), stage="train")

    assert "workers.sharedMemory" in failure.sentence


def test_an_unknown_signal_is_told_by_its_number() -> None:
    failure = classify_pod(lost_pod(exit_code=128 + 50), stage="train")

    assert failure.cause is Cause.UNKNOWN
    assert "signal 50" in failure.sentence


def test_a_report_that_forbids_retrying_is_believed() -> None:
    refused = report(Cause.STORAGE_UNAVAILABLE, retryable=False, message="403")

    assert not classify_pod(lost_pod(report=refused), stage="train").retryable


def test_the_earliest_specific_cause_wins_over_noise_that_was_seen_first() -> None:
    noise = report(Cause.INFRASTRUCTURE, message="NCCL error")
    job = job_of(
        lost_pod(index=0, report=noise, finished_at=START),
        lost_pod(
            index=1,
            report=report(Cause.USER_ERROR, message="ValueError"),
            finished_at=START + timedelta(seconds=5),
        ),
    )

    assert cause_of(job) is Cause.USER_ERROR


def test_of_survivors_noise_the_earliest_counts() -> None:
    job = job_of(
        lost_pod(index=0, exit_code=1, finished_at=START + timedelta(seconds=5)),
        lost_pod(index=1, signal=signal.SIGKILL, finished_at=START),
    )

    assert cause_of(job) is Cause.INFRASTRUCTURE


def test_a_survivor_that_was_told_to_stop_in_the_same_second_is_no_preemption() -> None:
    job = job_of(
        lost_pod(index=0, exit_code=75, finished_at=START),
        lost_pod(index=1, exit_code=137, finished_at=START),
    )

    assert cause_of(job) is Cause.INFRASTRUCTURE


def test_an_evicted_rank_is_a_preemption_whatever_the_survivors_say() -> None:
    job = job_of(
        lost_pod(index=0, exit_code=71, finished_at=START),
        lost_pod(index=1, disrupted=True, finished_at=START + timedelta(seconds=9)),
    )

    assert cause_of(job) is Cause.PREEMPTED


def test_noise_waits_for_a_better_cause_but_not_for_long() -> None:
    alive = ObservedPod(name="q", index=0, phase="Running")
    job = job_of(alive, lost_pod(index=1, exit_code=71, finished_at=START))

    early = failure_of(job, now=START + timedelta(seconds=1), ranks_per_pod=1)

    assert isinstance(early, Settling)
    assert early.until == START + timedelta(seconds=30)
    assert early.so_far.cause is Cause.INFRASTRUCTURE
    assert cause_of(job, after=30) is Cause.INFRASTRUCTURE


def test_a_specific_cause_does_not_wait_for_survivors() -> None:
    alive = ObservedPod(name="q", index=0, phase="Running")
    job = job_of(alive, lost_pod(index=1, exit_code=64, finished_at=START))

    assert cause_of(job, after=0) is Cause.USER_ERROR


def test_a_pod_on_a_lost_node_ends_the_attempt_though_it_never_ends_itself() -> None:
    alive = ObservedPod(name="q", index=0, phase="Running")
    stuck = lost_pod(
        index=1,
        phase="Running",
        deleting=True,
        disrupted=True,
        reason="DeletionByTaintManager",
    )

    failure = failure_of(job_of(alive, stuck), now=START, ranks_per_pod=1)

    assert isinstance(failure, Failure)
    assert failure.cause is Cause.INFRASTRUCTURE
    assert "node-b" in failure.sentence


def test_one_lost_pod_is_enough_without_any_condition_of_the_job() -> None:
    assert cause_of(job_of(lost_pod(exit_code=71, finished_at=START))) is Cause.INFRASTRUCTURE


def test_failure_target_counts_as_failed() -> None:
    job = job_of(lost_pod(exit_code=65, finished_at=START), condition="FailureTarget")

    assert cause_of(job) is Cause.DATA_ERROR


def test_a_slice_that_its_job_tries_again_does_not_fail_the_attempt() -> None:
    job = job_of(lost_pod(exit_code=69), stage="preprocess", failed=1)

    assert failure_of(job, now=START, ranks_per_pod=1) is None


def test_only_the_last_try_of_a_slice_that_never_succeeded_counts() -> None:
    def try_of(index: int, minute: int, phase: str, code: int) -> ObservedPod:
        started = START + timedelta(minutes=minute)
        return lost_pod(index=index, phase=phase, exit_code=code, started_at=started)

    mended = [try_of(0, 0, "Failed", 69), try_of(0, 1, "Succeeded", 0)]
    spent = [try_of(1, 0, "Failed", 71), try_of(1, 2, "Failed", 77)]

    assert last_tries([*spent, *mended]) == [spent[1]]
    job = job_of(*spent, *mended, stage="preprocess", condition="Failed")
    assert cause_of(job) is Cause.OUT_OF_MEMORY


def test_a_failed_job_without_pods_tells_its_exit_code_in_its_message() -> None:
    message = "Container main for pod a/b failed with exit code 65 matching FailJob rule at index 0"

    assert cause_of(job_of(condition="Failed", message=message)) is Cause.DATA_ERROR
    assert cause_of(job_of(condition="Failed")) is Cause.INFRASTRUCTURE


def test_a_job_that_is_being_deleted_from_outside_has_failed() -> None:
    assert cause_of(job_of(deleting=True)) is Cause.INFRASTRUCTURE


def test_weights_are_ordered_from_telling_to_not_telling() -> None:
    assert list(Weight) == sorted(Weight)

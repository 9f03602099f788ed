"""From how each rank ended to why the attempt did."""

import pytest
from pretrain_api.reports import Cause, StageReport, StageResult
from pretrain_jobs.errors import StageError
from pretrain_jobs.train.outcome import RankEnding, explain, explain_agent
from pretrain_testing.plan_simulator import commit

KILLED, TERMINATED = -9, -15


def ended(
    rank: int, cause: Cause | None = None, *, code: int = 1, time: float = 0.0, **report: object
) -> RankEnding:
    told = StageReport.model_validate(
        {"stage": "train", "rank": rank, "cause": cause, "message": f"{cause} here"} | report
    )
    return RankEnding(rank, code if cause else 0, time, told)


def why(*endings: RankEnding, stopped: bool = False, out_of_memory: bool = False) -> StageError:
    error = explain(endings, stopped=stopped, out_of_memory=out_of_memory)
    assert error is not None
    return error


def test_success_of_all_is_no_error() -> None:
    assert explain([ended(0), ended(1)], stopped=False, out_of_memory=False) is None


@pytest.mark.parametrize(
    "cause", [Cause.USER_ERROR, Cause.DATA_ERROR, Cause.NON_FINITE, Cause.CHECKPOINT_UNUSABLE]
)
def test_a_specific_cause_explains_the_peers_that_were_lost(cause: Cause) -> None:
    error = why(ended(0, Cause.INFRASTRUCTURE), ended(1, cause), ended(2, Cause.UNKNOWN))

    assert error.cause is cause
    assert str(error) == f"rank 1: {cause} here"


def test_of_equal_causes_the_earliest_is_told() -> None:
    error = why(
        ended(0, Cause.UNKNOWN, time=8.0, message="late"),
        ended(1, Cause.UNKNOWN, time=7.0, message="early"),
    )

    assert str(error) == "rank 1: early"


def test_a_killed_rank_is_named_with_its_signal() -> None:
    error = why(ended(0, Cause.INFRASTRUCTURE), RankEnding(1, KILLED))

    assert error.cause is Cause.INFRASTRUCTURE
    assert str(error) == "rank 1 was ended by SIGKILL"


def test_a_kill_is_out_of_memory_only_where_the_kernel_says_so() -> None:
    error = why(ended(0, Cause.INFRASTRUCTURE), RankEnding(1, KILLED), out_of_memory=True)

    assert error.cause is Cause.OUT_OF_MEMORY
    assert "rank 1 was killed (SIGKILL)" in str(error)


def test_a_rank_that_was_killed_late_for_not_ending_does_not_hide_the_first_failure() -> None:
    error = why(ended(0, Cause.UNKNOWN, time=1.0), RankEnding(1, KILLED, time=31.0))

    assert error.cause is Cause.UNKNOWN


def test_a_rank_ended_by_its_agent_does_not_hide_the_peer_that_failed() -> None:
    error = why(RankEnding(0, TERMINATED), ended(1, Cause.DATA_ERROR))

    assert error.cause is Cause.DATA_ERROR


def test_a_node_that_was_asked_to_stop_is_preempted_though_ranks_lost_each_other() -> None:
    error = why(ended(0, Cause.PREEMPTED), ended(1, Cause.INFRASTRUCTURE), stopped=True)

    assert error.cause is Cause.PREEMPTED


def test_a_node_whose_rank_ended_when_it_was_asked_to_is_preempted() -> None:
    alone = why(RankEnding(0, TERMINATED), stopped=True)
    lost = why(RankEnding(0, TERMINATED, time=2.0), ended(1, Cause.INFRASTRUCTURE), stopped=True)

    assert (alone.cause, lost.cause) == (Cause.PREEMPTED, Cause.PREEMPTED)
    assert "before training began" in str(alone)


def test_a_rank_that_was_asked_to_stop_does_not_hide_a_mistake_of_its_peer() -> None:
    error = why(RankEnding(0, TERMINATED), ended(1, Cause.USER_ERROR), stopped=True)

    assert error.cause is Cause.USER_ERROR


@pytest.mark.parametrize("stopped", [True, False])
def test_an_error_has_the_newest_checkpoint_that_a_rank_tells(stopped: bool) -> None:
    older, newer = (StageResult(checkpoint=commit(step)) for step in (400, 450))

    error = why(
        ended(0, Cause.PREEMPTED, result=older),
        ended(1, Cause.INFRASTRUCTURE, result=newer),
        ended(2, Cause.PREEMPTED),
        stopped=stopped,
    )

    assert error.checkpoint == commit(450)
    assert why(ended(0, Cause.PREEMPTED), stopped=stopped).checkpoint is None


def test_an_error_keeps_whether_it_is_worth_a_retry() -> None:
    refused = why(ended(0, Cause.STORAGE_UNAVAILABLE, retryable=False))
    unavailable = why(ended(0, Cause.STORAGE_UNAVAILABLE))

    assert (refused.retryable, unavailable.retryable) == (False, True)


def test_an_error_keeps_whether_others_may_mend_it() -> None:
    denied = why(ended(0, Cause.STORAGE_UNAVAILABLE, retryable=False, mendable=True))
    refused = why(ended(0, Cause.STORAGE_UNAVAILABLE, retryable=False))

    assert (denied.mendable, refused.mendable) == (True, False)


def test_a_rank_without_a_report_is_told_by_its_exit_code() -> None:
    assert "rank 3 ended with exit code 139" in str(why(RankEnding(3, 139)))


@pytest.mark.parametrize(
    ("code", "stopped", "out_of_memory", "cause"),
    [
        (1, True, False, Cause.PREEMPTED),
        (KILLED, False, True, Cause.OUT_OF_MEMORY),
        (KILLED, False, False, Cause.INFRASTRUCTURE),
        (1, False, True, Cause.INFRASTRUCTURE),
    ],
)
def test_an_agent_that_ended_before_its_ranks_is_explained_by_what_happened_to_it(
    code: int, cause: Cause, *, stopped: bool, out_of_memory: bool
) -> None:
    error = explain_agent(code, stopped=stopped, out_of_memory=out_of_memory)

    assert error is not None
    assert error.cause is cause
    assert explain_agent(0, stopped=stopped, out_of_memory=out_of_memory) is None

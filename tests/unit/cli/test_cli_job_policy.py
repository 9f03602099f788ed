"""The local Job controller decides as Kubernetes' does for Indexed Jobs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretrainctl.local.job_policy import JobRules, Try, Verdict, decide

START = datetime(2026, 1, 1, tzinfo=UTC)

PREPROCESS = JobRules.of(
    {
        "completions": 4,
        "parallelism": 2,
        "backoffLimitPerIndex": 2,
        "maxFailedIndexes": 0,
        "podFailurePolicy": {
            "rules": [
                {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [64, 65]}},
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
            ]
        },
    }
)
GANG = JobRules.of({"completions": 2, "parallelism": 2, "backoffLimit": 0})


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def running(index: int) -> Try:
    return Try(index)


def ended(index: int, exit_code: int, seconds: float = 0, *, disrupted: bool = False) -> Try:
    return Try(index, exit_code, at(seconds), disrupted)


def judge(rules: JobRules, *tries: Try, seconds: float = 100) -> Verdict:
    return decide(rules, tries, now=at(seconds), started_at=START)


def test_indexes_start_in_order_and_never_more_than_the_parallelism() -> None:
    assert judge(PREPROCESS).start == (0, 1)
    assert judge(PREPROCESS, running(0)).start == (1,)
    assert judge(PREPROCESS, running(0), running(1)).start == ()


def test_a_finished_index_makes_room_for_the_next() -> None:
    assert judge(PREPROCESS, ended(0, 0), running(1)).start == (2,)
    assert judge(PREPROCESS, ended(0, 0), ended(1, 0), running(2)).start == (3,)


def test_the_job_succeeds_once_every_index_has() -> None:
    done = [ended(index, 0) for index in range(4)]
    assert judge(PREPROCESS, *done[:3]).ends is None
    assert judge(PREPROCESS, *done).ends == "SuccessCriteriaMet"


def test_a_failed_index_is_tried_again_after_a_growing_wait() -> None:
    once = [ended(0, 1, 10), running(1)]
    assert judge(PREPROCESS, *once, seconds=10.9).start == (2,)
    assert judge(PREPROCESS, *once, seconds=11).start == (0,)
    twice = [ended(0, 1, 10), ended(0, 1, 20), running(1), running(2)]
    assert judge(PREPROCESS, *twice, seconds=20).wake_at == at(22)


def test_an_index_that_fails_more_often_than_allowed_ends_the_job() -> None:
    tries = [ended(3, 1, 1), ended(3, 1, 2), ended(3, 1, 3)]
    assert judge(PREPROCESS, *tries[:2]).ends is None
    verdict = judge(PREPROCESS, *tries)
    assert (verdict.ends, verdict.reason) == ("FailureTarget", "MaxFailedIndexesExceeded")
    assert "index 3" in verdict.message


def test_without_a_limit_on_failed_indexes_the_others_are_finished_first() -> None:
    rules = JobRules.of({"completions": 2, "parallelism": 1, "backoffLimitPerIndex": 0})
    assert judge(rules, ended(0, 1)).start == (1,)
    assert judge(rules, ended(0, 1), ended(1, 0)).reason == "FailedIndexes"


@pytest.mark.parametrize("code", [64, 65])
def test_an_exit_code_that_no_retry_can_mend_fails_the_job_at_once(code: int) -> None:
    verdict = judge(PREPROCESS, ended(1, code), running(0))
    assert (verdict.ends, verdict.reason) == ("FailureTarget", "PodFailurePolicy")
    assert f"exit code {code}" in verdict.message


def test_a_disrupted_pod_is_replaced_at_once_and_never_counts() -> None:
    tries = [ended(0, 137, second, disrupted=True) for second in range(20)]
    assert judge(PREPROCESS, *tries, seconds=20).start == (0, 1)


def test_the_first_matching_rule_decides() -> None:
    assert judge(PREPROCESS, ended(0, 64, disrupted=True)).reason == "PodFailurePolicy"


def test_a_rule_may_name_the_exit_codes_it_does_not_mean() -> None:
    rules = JobRules.of(
        {
            "podFailurePolicy": {
                "rules": [{"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": [7]}}]
            },
            "backoffLimit": 0,
        }
    )
    assert judge(rules, ended(0, 1)).start == (0,)
    assert judge(rules, ended(0, 7)).ends == "FailureTarget"


@pytest.mark.parametrize("code", [1, 64, 137, 143])
def test_the_first_lost_pod_of_a_gang_ends_its_job(code: int) -> None:
    verdict = judge(GANG, ended(0, code), running(1))
    assert (verdict.ends, verdict.reason) == ("FailureTarget", "BackoffLimitExceeded")


def test_a_gang_whose_first_pods_have_finished_waits_for_the_others() -> None:
    assert judge(GANG, ended(0, 0), running(1)) == Verdict()


def test_a_job_that_is_active_for_too_long_fails() -> None:
    rules = JobRules.of({"activeDeadlineSeconds": 60})
    assert judge(rules, running(0), seconds=59).wake_at == at(60)
    assert judge(rules, running(0), seconds=60).reason == "DeadlineExceeded"


def test_defaults_are_those_of_kubernetes() -> None:
    assert JobRules.of({}) == JobRules(completions=1, parallelism=1, backoff_limit=6)
    per_index = JobRules.of({"backoffLimitPerIndex": 1})
    assert per_index.backoff_limit == 2**31 - 1


@given(
    completions=st.integers(1, 6),
    parallelism=st.integers(1, 6),
    limit=st.integers(0, 3),
    exits=st.lists(st.sampled_from([0, 0, 0, 1, 64]), max_size=60),
)
def test_a_job_ends_within_its_limits_and_never_runs_an_index_twice_at_once(
    completions: int, parallelism: int, limit: int, exits: list[int]
) -> None:
    rules = JobRules.of(
        {
            "completions": completions,
            "parallelism": parallelism,
            "backoffLimitPerIndex": limit,
            "maxFailedIndexes": 0,
        }
    )
    active: list[int] = []
    past: list[Try] = []
    clock = 0.0
    codes = iter(exits)
    while True:
        verdict = judge(rules, *past, *map(running, active), seconds=clock)
        assert set(verdict.start).isdisjoint(active)
        active += verdict.start
        assert len(active) <= parallelism
        if verdict.ends is not None:
            break
        if active:
            past.append(ended(active.pop(0), next(codes, 0), clock))
        else:
            assert verdict.wake_at is not None
            clock = (verdict.wake_at - START).total_seconds()
    failures = [sum(t.index == index and t.exit_code != 0 for t in past) for index in range(6)]
    assert max(failures) <= limit + 1
    assert (verdict.ends == "FailureTarget") == (max(failures) > limit)

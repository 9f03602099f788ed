"""Why a job does not run and what to do about it, as `pretrainctl describe` says it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from pretrain_api.reports import Cause
from pretrain_testing.described_jobs import LEADING, found, told, training
from pretrain_testing.plan_simulator import START, Simulation, make_job
from pretrainctl.cluster.findings import Pulse


def test_a_restart_tells_when_the_next_attempt_starts_and_what_is_left_of_its_budget() -> None:
    sim = training()
    sim.report_failure("train", 1, Cause.OUT_OF_MEMORY, message="out of memory in the kernel")
    lines = told(found(sim, later=4))
    assert lines["Why"][-1] == "Attempt 1 of train may start in 6s, at 00:00:10Z."
    assert "out of memory in the kernel" in " ".join(lines["Why"] + lines["Restarts"])
    assert lines["Restarts"][0] == "OutOfMemory 1 of 3"
    assert any("train" in line and "waits for attempt 1" in line for line in lines["Stages"])


def test_budgets_are_those_of_the_jobs_own_policy() -> None:
    sim = training(failurePolicy={"restarts": [{"cause": "Unknown", "limit": 7}]})
    sim.fail_pod("train", 1)
    assert told(found(sim))["Restarts"][0] == "Unknown 1 of 7"


def test_preemptions_are_counted_without_a_limit() -> None:
    sim = training()
    sim.fail_pod("train", 0, exit_code=75, disrupted=True, reason="PreemptionByScheduler")
    assert told(found(sim))["Restarts"][0] == "Preempted 1, without limit"


def test_a_failed_job_tells_its_cause_what_to_mend_and_how_to_begin_again() -> None:
    sim = training()
    sim.report_failure("train", 0, Cause.USER_ERROR, message="vocabSize disagrees", retryable=False)
    lines = told(found(sim, later=60))
    assert lines["Phase"] == ["Failed (train, attempt 0) since 2026-01-01 00:00:00Z, 1m00s ago"]
    assert lines["Why"] == [
        "Rank 0 on node node-0 ended with UserError: vocabSize disagrees",
    ]
    (advice,) = lines["What to do"]
    assert advice.startswith("Correct what the sentence names")
    assert "kubectl -n team-a delete ptj roberta-zh" in advice
    assert any("failed in attempt 0" in line for line in lines["Stages"])


def test_a_suspended_job_tells_how_to_resume_it() -> None:
    sim = training()
    sim.suspend(on=True)
    lines = told(found(sim))
    assert lines["Phase"][0].startswith("Suspended")
    (advice,) = lines["What to do"]
    assert """patch ptj roberta-zh --type=merge -p '{"spec":{"suspend":false}}'""" in advice


@pytest.mark.parametrize(
    ("pulses", "words"),
    [
        ((), "none may ever have been installed"),
        ((LEADING,), "An operator leads in namespace pretrain-system (replica-a)"),
        ((replace(LEADING, renewed_at=START - timedelta(hours=2)),), "was last renewed 2h01m ago"),
        ((replace(LEADING, holder=""),), "has no holder"),
    ],
)
def test_a_job_that_nobody_looks_at_says_so_and_what_is_known_of_operators(
    pulses: tuple[Pulse, ...], words: str
) -> None:
    beating = tuple(
        replace(pulse, renewed_at=START + timedelta(seconds=60)) if pulse == LEADING else pulse
        for pulse in pulses
    )
    lines = told(found(Simulation(make_job()), later=60, pulses=beating))
    assert lines["Phase"][0].startswith("Pending since")
    assert lines["Why"] == ["No operator has looked at this job, which was made 1m00s ago."]
    assert "kubectl get deploy,pods -A" in lines["What to do"][0]
    assert words in lines["Operator"][0]


def test_a_user_who_may_not_read_leases_is_told_how_to_look_for_an_operator() -> None:
    lines = told(found(Simulation(make_job()), later=60))
    assert "Operator" not in lines
    assert "kubectl get deploy,pods -A" in lines["What to do"][0]


def test_news_that_may_be_old_are_told_to_be_old() -> None:
    lines = told(found(training(), later=300, pulses=(LEADING,)))
    assert "was last renewed 5m00s ago by replica-a" in lines["Operator"][0]
    assert "may be out of date" in lines["Operator"][1]


def test_a_job_of_another_controller_names_it() -> None:
    sim = Simulation(make_job(managedBy="kueue.x-k8s.io/multikueue"))
    lines = told(found(sim, pulses=()))
    assert lines["Why"][0].endswith("spec.managedBy says: kueue.x-k8s.io/multikueue.")
    assert not {"What to do", "Operator"} & set(lines)

"""What holds for every history of a job, whatever happens to its children."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from pretrain_api.reports import STAGES, Cause, StageName, StageReport
from pretrain_api.spec.lifecycle import BackoffSpec, FailurePolicySpec, RestartBudget
from pretrain_api.status import TERMINAL_PHASES
from pretrain_operator.observed import Settings
from pretrain_operator.plan import plan
from pretrain_operator.plan.budgets import BUDGETS, backoff, count_no_progress, exhausted, limit_of
from pretrain_operator.plan.pod_failures import Failure
from pretrain_testing.plan_simulator import Simulation, make_job, tokenizer_result

Act = Callable[[Simulation], None]
CODES = st.sampled_from([1, 64, 65, 69, 70, 71, 74, 75, 76, 77, 137, 143])


def running_stage(sim: Simulation) -> StageName | None:
    """A stage whose pods can still do something."""
    stages = [job.stage for job in sim.observed.jobs if job.condition is None]
    return stages[-1] if stages else None


def on_running(act: Callable[[Simulation, StageName], None]) -> Act:
    def perform(sim: Simulation) -> None:
        stage = running_stage(sim)
        if stage is not None:
            act(sim, stage)

    return perform


def start(sim: Simulation, stage: StageName) -> None:
    if not sim.child(stage).pods:
        sim.run(stage)


def succeed(sim: Simulation, stage: StageName) -> None:
    start(sim, stage)
    if running_stage(sim) == stage:
        sim.succeed(stage, tokenizer_result() if stage == "tokenizer" else None)


def fail(code: int, *, disrupted: bool) -> Act:
    def perform(sim: Simulation, stage: StageName) -> None:
        start(sim, stage)
        if running_stage(sim) == stage:
            sim.fail_pod(stage, 0, exit_code=code, disrupted=disrupted)

    return on_running(perform)


def lose(sim: Simulation, stage: StageName) -> None:
    jobs = [job for job in sim.observed.jobs if job.stage != stage]
    sim.observed = replace(sim.observed, jobs=tuple(jobs))
    sim.settle()


def report(sim: Simulation, stage: StageName, *, step: int) -> None:
    if stage == "train":
        sim.progress(step, committed=step)


def wait_for_a_place(sim: Simulation, stage: StageName) -> None:
    for pod in sim.child(stage).pods[-1:]:
        waits = {"phase": "Pending", "reason": "Unschedulable", "message": "no place"}
        sim.change_pod(stage, pod.index, started_at=None, **waits)
    sim.settle()


def create_slowly(sim: Simulation, stage: StageName) -> None:
    for pod in sim.child(stage).pods[-1:]:
        slow = {"phase": "Pending", "started_at": None, "scheduled_at": sim.now}
        sim.change_pod(stage, pod.index, **slow)
    sim.settle()


def refuse_pods(message: str) -> Act:
    def perform(sim: Simulation, stage: StageName) -> None:
        sim.change(stage, pods=(), active=0, pods_refused=message)
        sim.settle()

    return on_running(perform)


def refuse_children(answer: tuple[int, str] | None) -> Act:
    def perform(sim: Simulation) -> None:
        sim.refuse = lambda _manifest: answer
        sim.settle()

    return perform


def correct(sim: Simulation) -> None:
    workers = sim.job.spec.workers.model_copy(update={"image": f"mine:{sim.writes}"})
    sim.edit(workers=workers)
    sim.settle()


REFUSALS = ["forbidden: exceeded quota: few", "forbidden: violates PodSecurity", "timed out"]
ACTS: st.SearchStrategy[Act] = st.one_of(
    st.just(on_running(wait_for_a_place)),
    st.just(on_running(create_slowly)),
    st.builds(refuse_pods, st.sampled_from(["", *REFUSALS])),
    st.builds(refuse_children, st.sampled_from([None, *((403, text) for text in REFUSALS)])),
    st.just(correct),
    st.just(on_running(start)),
    st.just(on_running(succeed)),
    st.just(on_running(lose)),
    st.builds(lambda code, disrupted: fail(code, disrupted=disrupted), CODES, st.booleans()),
    st.builds(
        lambda step: on_running(lambda sim, stage: report(sim, stage, step=step)),
        st.integers(1, 1000),
    ),
    st.builds(lambda seconds: lambda sim: sim.wait(seconds), st.sampled_from([1, 11, 400, 4000])),
    st.builds(lambda on: lambda sim: sim.suspend(on=on), st.booleans()),
)
HISTORIES = st.lists(ACTS, max_size=16)
STARTS = st.sampled_from([None, *STAGES])


def simulation(stage: StageName | None) -> Simulation:
    """A job that is new, or whose pods of a stage run."""
    sim = Simulation(make_job())
    if stage is not None:
        sim.until(stage)
    sim.settle()
    return sim


def check_invariants(sim: Simulation) -> None:
    status = sim.job.status
    jobs = [name for name in sim.created if name.startswith("Job/")]
    assert len(jobs) == len(set(jobs)), "no attempt is ever created twice"
    live = [job for job in sim.observed.jobs if job.condition is None]
    assert len(live) <= 1, "one attempt at a time"
    if status.phase == "Suspended":
        assert not sim.observed.jobs
    if sim.condition("Accepted").reason == "AdmissionDenied":
        assert not live, "a denied spec has no child that could run"
    assert status.restart_count == sum(status.restarts.values())
    for cause, count in status.restarts.items():
        limit = BUDGETS[Cause(cause)]
        assert limit is None or count <= limit
    for name in ("Complete", "Failed"):
        assert (sim.condition(name).status == "True") == (status.phase == name)
    assert [stage.name for stage in status.stages] == list(STAGES)


@settings(max_examples=60, deadline=None)
@given(STARTS, HISTORIES)
def test_any_history_keeps_the_invariants_and_comes_to_rest(
    stage: StageName | None, acts: list[Act]
) -> None:
    sim = simulation(stage)
    ended = None
    checkpoint = 0
    for act in acts:
        act(sim)
        check_invariants(sim)
        status = sim.job.status
        assert ended is None or status == ended, "a terminal status never changes"
        ended = status if status.phase in TERMINAL_PHASES else None
        step = status.checkpoint.step if status.checkpoint else 0
        assert step >= checkpoint, "a checkpoint never goes back"
        checkpoint = step


@settings(max_examples=40, deadline=None)
@given(STARTS, HISTORIES)
def test_the_plan_is_pure_and_idempotent(stage: StageName | None, acts: list[Act]) -> None:
    sim = simulation(stage)
    for act in acts:
        act(sim)
    sim.settle()

    first = plan(sim.job, sim.observed, sim.now, Settings())
    again = plan(sim.job, sim.observed, sim.now, Settings())

    assert first == again
    assert first.status == sim.job.status
    assert first.apply == ()
    assert first.delete == ()
    assert first.events == ()


@settings(max_examples=40, deadline=None)
@given(STARTS, HISTORIES, st.integers(0, 10_000))
def test_planning_again_before_the_time_it_asked_for_changes_nothing(
    stage: StageName | None, acts: list[Act], fraction: int
) -> None:
    sim = simulation(stage)
    for act in acts:
        act(sim)
    sim.settle()
    due = plan(sim.job, sim.observed, sim.now, Settings()).requeue_after
    seconds = 86_400.0 if due is None else due
    earlier = sim.now + timedelta(seconds=seconds * fraction / 10_001)

    made = plan(sim.job, sim.observed, earlier, Settings())

    assert made.status == sim.job.status
    assert made.apply == ()


@given(st.sampled_from(list(Cause)), st.integers(0, 20), st.integers(0, 10), st.booleans())
def test_a_restart_is_granted_only_within_every_bound(
    cause: Cause,
    used: int,
    no_progress: int,
    retryable: bool,
) -> None:
    policy = FailurePolicySpec()
    failure = Failure(cause, "text", retryable=retryable)

    end = exhausted(failure, restarts={cause: used}, no_progress=no_progress, policy=policy)

    limit = limit_of(cause, policy)
    within = limit is None or used < limit
    assert (end is None) == (retryable and within and no_progress < policy.no_progress_restarts)


@given(st.sampled_from(list(Cause)), st.integers(0, 100))
def test_a_policy_overrides_every_budget_but_preemptions(cause: Cause, limit: int) -> None:
    policy = FailurePolicySpec(restarts=[RestartBudget(cause=cause, limit=limit)])

    assert limit_of(cause, policy) == (None if cause is Cause.PREEMPTED else limit)


@given(st.integers(1, 10_000), st.integers(0, 3600), st.integers(0, 7200))
def test_a_wait_lies_between_nothing_and_the_maximum(
    restart: int, initial: int, maximum: int
) -> None:
    policy = BackoffSpec(initial_seconds=initial, maximum_seconds=maximum)

    wait = backoff(restart, cause=Cause.INFRASTRUCTURE, policy=policy)
    next_wait = backoff(restart + 1, cause=Cause.INFRASTRUCTURE, policy=policy)

    assert timedelta(0) <= wait <= timedelta(seconds=maximum)
    assert wait <= next_wait


@given(st.integers(0, 9), st.integers(0, 9), st.sampled_from(list(Cause)))
def test_progress_always_ends_the_count(before: int, attempt: int, cause: Cause) -> None:
    assert count_no_progress(before, attempt=attempt, progressed=True, cause=cause) == 0
    same = count_no_progress(before, attempt=0, progressed=False, cause=cause)
    assert same == before


def test_every_cause_has_a_budget() -> None:
    assert set(BUDGETS) == set(Cause)


def test_a_report_of_a_foreign_stage_is_no_trouble() -> None:
    sim = Simulation(make_job())
    sim.settle()
    sim.run("tokenizer")

    sim.change_pod("tokenizer", 0, report=StageReport(stage="train"))
    sim.settle()

    assert sim.stage("tokenizer").state == "Running"

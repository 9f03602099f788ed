"""A job's way through its stages when nothing goes wrong."""

from dataclasses import replace

from pretrain_api.reports import StageName, StageProgress, StageResult
from pretrain_api.status import Phase
from pretrain_operator.observed import Observed, Settings
from pretrain_testing.plan_simulator import (
    SPEC,
    Simulation,
    commit,
    make_job,
    tokenizer_result,
)

STAGE_NAMES = ["tokenizer", "preprocess", "train", "evaluate", "export"]


def test_stages_run_one_after_the_other_until_the_job_is_complete() -> None:
    sim = Simulation(make_job())
    sim.until("export")

    sim.succeed("export")

    jobs = [name for name in sim.created if name.startswith("Job/")]
    assert jobs == [f"Job/roberta-zh-0a1b2-{stage}-0" for stage in STAGE_NAMES]
    assert sim.phase() is Phase.COMPLETE
    assert sim.job.status.export_uri == "s3://models/zh/export/export-fp"
    assert sim.condition("Complete").status == "True"


def test_nothing_is_started_before_the_stage_before_it_is_complete() -> None:
    sim = Simulation(make_job())

    sim.until("preprocess")

    assert [job.stage for job in sim.observed.jobs] == ["tokenizer", "preprocess"]


def test_the_phase_names_the_stage_only_while_its_pods_run() -> None:
    sim = Simulation(make_job())
    sim.settle()
    assert sim.phase() is Phase.PENDING

    sim.run("tokenizer")
    assert sim.phase() is Phase.TOKENIZING

    sim.succeed("tokenizer", tokenizer_result())
    assert sim.phase() is Phase.PENDING

    sim.run("preprocess")
    assert sim.phase() is Phase.PREPROCESSING


def test_the_phase_stays_while_the_job_of_pods_that_are_done_is_not_complete_yet() -> None:
    sim = Simulation(make_job())
    phases: dict[StageName, Phase] = {"tokenizer": Phase.TOKENIZING, "train": Phase.TRAINING}
    for stage, phase in phases.items():
        sim.until(stage)
        writes = sim.writes

        for pod in sim.child(stage).pods:
            sim.change_pod(stage, pod.index, phase="Succeeded", exit_code=0)
            sim.settle()

        assert sim.phase() is phase
        assert sim.condition("Running").status == "True"
        assert sim.writes - writes <= len(sim.child(stage).pods)


def test_training_is_no_phase_without_a_live_rank_0() -> None:
    sim = Simulation(make_job())
    sim.until("train")

    sim.change_pod("train", 0, phase="Pending", started_at=None)
    sim.settle()

    assert sim.phase() is Phase.PENDING
    assert sim.condition("Running").status == "False"


def test_a_stage_may_complete_without_ever_having_been_seen_running() -> None:
    sim = Simulation(make_job())
    sim.settle()
    pods = sim.child("tokenizer").pods
    assert pods == ()

    sim.run("tokenizer")
    sim.succeed("tokenizer", tokenizer_result())

    assert sim.stage("tokenizer").state == "Complete"
    assert sim.job.status.start_time is not None


def test_preprocessing_has_one_completion_per_slice_that_the_tokenizer_told() -> None:
    sim = Simulation(make_job(preprocess={"parallelism": 2}))

    sim.until("preprocess", slices=7)

    assert sim.child("preprocess").completions == 7
    assert sim.stage("preprocess").total == 7


def test_the_gang_has_as_many_pods_as_workers() -> None:
    sim = Simulation(make_job(workers={"replicas": 4}))

    sim.until("train")

    assert sim.child("train").completions == 4
    assert sim.job.status.workers.ready == 4
    assert sim.job.status.workers.desired == 4


def test_status_remembers_fingerprints_when_the_tokenizers_job_is_gone() -> None:
    sim = Simulation(make_job())
    sim.until("preprocess")
    jobs = [job for job in sim.observed.jobs if job.stage != "tokenizer"]
    sim.observed = replace(sim.observed, jobs=tuple(jobs))

    sim.succeed("preprocess")

    assert sim.stage("train").fingerprint == "train-fp"
    assert sim.child("train").attempt == 0
    assert sim.created.count("Job/roberta-zh-0a1b2-tokenizer-0") == 1


def test_a_stage_that_was_committed_before_is_complete_without_a_job() -> None:
    sim = Simulation(make_job())
    sim.settle()
    sim.run("tokenizer")

    sim.succeed("tokenizer", tokenizer_result(cached=frozenset({"preprocess"})))

    assert sim.stage("preprocess").state == "Complete"
    assert sim.stage("preprocess").cached
    assert sim.child("train").attempt == 0
    assert "StagesReused" in sim.event_reasons()


def test_a_job_whose_every_output_is_committed_does_no_work() -> None:
    sim = Simulation(make_job())
    sim.settle()
    sim.run("tokenizer")

    sim.succeed("tokenizer", tokenizer_result(cached=frozenset(STAGE_NAMES)))  # type: ignore[arg-type]

    assert sim.phase() is Phase.COMPLETE
    assert [job.stage for job in sim.observed.jobs] == ["tokenizer"]


def test_evaluation_without_a_task_is_skipped() -> None:
    sim = Simulation(make_job(evaluation={}))
    sim.until("train")

    sim.succeed("train")

    assert sim.stage("evaluate").state == "Skipped"
    assert sim.child("export").attempt == 0


def test_results_of_the_stages_reach_the_status() -> None:
    sim = Simulation(make_job())
    sim.until("train")

    sim.succeed("train", StageResult(step=1000, checkpoint=commit(1000)))
    sim.run("evaluate")
    sim.succeed("evaluate", StageResult(metrics={"sentiment/pretrained/accuracy/mean": 0.72}))

    status = sim.job.status
    assert status.training is not None
    assert status.training.step == 1000
    assert status.checkpoint == commit(1000)
    assert status.metrics == {"sentiment/pretrained/accuracy/mean": 0.72}


def test_progress_of_rank_0_is_taken_over() -> None:
    sim = Simulation(make_job())
    sim.until("train")

    sim.progress(120, committed=100)

    assert sim.job.status.training is not None
    assert sim.job.status.training.step == 120
    assert sim.job.status.checkpoint == commit(100)
    assert sim.condition("CheckpointHealthy").status == "True"


def test_progress_of_slices_is_added_up() -> None:
    sim = Simulation(make_job())
    sim.until("preprocess")
    slices = [
        StageProgress(stage="preprocess", index=i, done=done, total=100, unit="MB")
        for i, done in enumerate((30, 45))
    ]

    sim.observed = replace(sim.observed, progress=tuple(slices))
    sim.settle()

    assert sim.stage("preprocess").message == "75 of 200 MB"


def test_progress_of_an_older_attempt_is_not_taken_for_the_current_ones() -> None:
    sim = Simulation(make_job())
    sim.until("train")
    sim.progress(450, committed=400)
    sim.fail_pod("train", 1, exit_code=137, signal=9)
    sim.wait(60)
    sim.run("train")

    late = StageProgress(stage="train", attempt=0, checkpoint=commit(500))
    sim.observed = replace(sim.observed, progress=(late,))
    sim.settle()

    assert sim.job.status.checkpoint == commit(400)


def test_the_services_of_a_gang_end_with_it() -> None:
    sim = Simulation(make_job())
    sim.until("train")
    assert sim.services() == ["roberta-zh-0a1b2-train-0"]

    sim.succeed("train")

    assert sim.services() == []


def test_a_single_worker_needs_no_service() -> None:
    sim = Simulation(make_job(workers={"replicas": 1}))

    sim.until("train")

    assert sim.services() == []


def test_a_service_exists_before_its_job() -> None:
    sim = Simulation(make_job())

    sim.until("train")

    train = [name for name in sim.created if name.endswith("train-0")]
    assert [name.partition("/")[0] for name in train] == ["Service", "ConfigMap", "Job"]


def test_a_crash_between_applying_children_is_made_good() -> None:
    name = "roberta-zh-0a1b2-tokenizer-0"
    sim = Simulation(make_job(), observed=Observed(config_maps=(name,)))

    sim.settle()

    assert sim.created == [f"Job/{name}"]


def test_the_results_of_a_complete_job_whose_pods_are_gone_are_not_needed_again() -> None:
    sim = Simulation(make_job())
    sim.until("preprocess")

    sim.change("preprocess", pods=(), condition="Complete", succeeded=3)
    sim.settle()

    assert sim.stage("preprocess").state == "Complete"
    assert sim.job.status.restarts == {}


def test_training_that_completed_while_nobody_looked_has_made_all_its_steps() -> None:
    sim = Simulation(make_job())
    sim.until("train")
    sim.progress(80)

    sim.change("train", pods=(), active=0, succeeded=2, condition="Complete", finished_at=sim.now)
    sim.settle()

    training = sim.job.status.training
    assert training is not None
    assert training.step == training.max_steps == 1000


def test_a_job_that_is_complete_before_its_pod_is_seen_to_end_is_waited_for() -> None:
    sim = Simulation(make_job())
    sim.settle()
    sim.run("tokenizer")

    sim.change("tokenizer", condition="Complete", succeeded=1, finished_at=sim.now)
    sim.settle()
    assert (sim.phase(), sim.stage("tokenizer").state) == (Phase.TOKENIZING, "Running")

    sim.succeed("tokenizer", tokenizer_result())
    assert sim.stage("tokenizer").state == "Complete"
    assert sim.job.status.restarts == {}


def test_a_pod_that_is_never_seen_to_end_is_not_waited_for_long() -> None:
    sim = Simulation(make_job())
    sim.until("preprocess")
    sim.run("preprocess")

    sim.change("preprocess", condition="Complete", succeeded=3, finished_at=sim.now)
    sim.wait(31)

    assert sim.stage("preprocess").state == "Complete"


def test_a_tokenizer_whose_report_is_lost_runs_again() -> None:
    sim = Simulation(make_job())
    sim.settle()

    sim.change("tokenizer", pods=(), condition="Complete", succeeded=1)
    sim.settle()
    sim.wait(10)

    assert sim.child("tokenizer").attempt == 1


def test_storage_may_be_left_to_the_default() -> None:
    spec = {name: value for name, value in SPEC.items() if name != "storage"}
    job = make_job()
    job = job.model_copy(update={"spec": type(job.spec).model_validate(spec)})
    sim = Simulation(job, settings=Settings(default_storage_uri="file:///var/lib/pretrain"))

    sim.settle()

    assert sim.child("tokenizer").attempt == 0


def test_events_are_few() -> None:
    sim = Simulation(make_job())
    sim.until("export")

    sim.succeed("export")

    expected = ["StageCompleted"] * 5
    assert sim.event_reasons() == [*expected, "JobComplete"]


def test_status_is_written_only_when_something_changed() -> None:
    sim = Simulation(make_job())
    sim.until("train")
    writes = sim.writes

    for _ in range(10):
        sim.plan()

    assert sim.writes == writes

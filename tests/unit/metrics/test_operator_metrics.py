"""What a scrape of the operator returns."""

from typing import Any

import pytest
from pretrain_operator.metrics import CONTENT_TYPE, OperatorMetrics
from pretrain_testing.plan_simulator import START, Simulation, make_job
from prometheus_client.parser import text_string_to_metric_families

NOW = START.timestamp() + 3600


def metrics() -> OperatorMetrics:
    return OperatorMetrics(version="0.1.0", clock=lambda: NOW)


def scraped(made: OperatorMetrics) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Samples by name and labels, those of the job left out."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(made.render().decode()):
        for sample in family.samples:
            labels = {k: v for k, v in sample.labels.items() if k not in {"namespace", "job"}}
            found.setdefault(sample.name, {})[tuple(sorted(labels.items()))] = sample.value
    return found


def with_job(sim: Simulation) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    made = metrics()
    made.set_job(sim.job)
    return scraped(made)


def by(label: str, samples: dict[tuple[tuple[str, str], ...], float]) -> dict[str, float]:
    return {dict(labels)[label]: value for labels, value in samples.items()}


def training() -> Simulation:
    sim = Simulation(make_job())
    sim.until("train")
    sim.progress(120, committed=100)
    return sim


def test_a_job_in_training_tells_its_phase_step_and_newest_commit() -> None:
    found = with_job(training())

    phases = by("phase", found["pretrain_job_status_phase"])
    assert [phase for phase, value in phases.items() if value] == ["Training"]
    assert found["pretrain_job_step"] == {(): 120}
    assert found["pretrain_job_max_steps"] == {(): 1000}
    assert found["pretrain_job_last_checkpoint_step"] == {(): 100}
    assert found["pretrain_job_last_checkpoint_timestamp_seconds"] == {(): START.timestamp()}
    assert by("state", found["pretrain_job_workers"]) == {"ready": 2, "desired": 2}
    assert by("condition", found["pretrain_job_condition"])["Running"] == 1


def test_what_is_trained_is_told_even_where_the_spec_leaves_it_to_its_architecture() -> None:
    found = with_job(Simulation(make_job(model={"preset": "gpt2"})))

    (labels,) = found["pretrain_job_info"]
    assert dict(labels) == {"architecture": "gpt2", "objective": "clm", "queue": ""}


def test_restarts_are_counted_by_cause() -> None:
    sim = training()
    sim.fail_pod("train", 1, exit_code=71)

    assert by("cause", with_job(sim)["pretrain_job_restarts_total"]) == {"Infrastructure": 1}


def test_a_stage_that_runs_has_lasted_until_now_and_one_that_is_complete_until_its_end() -> None:
    sim = Simulation(make_job())
    sim.settle()
    sim.run("tokenizer")
    running = with_job(sim)["pretrain_job_stage_duration_seconds"]
    sim.now = sim.now.replace(minute=5)
    sim.succeed("tokenizer")

    complete = with_job(sim)["pretrain_job_stage_duration_seconds"]

    assert by("stage", running) == {"tokenizer": 3600}
    assert by("stage", complete)["tokenizer"] == 300


def test_a_new_job_has_no_figures_of_training() -> None:
    found = with_job(Simulation(make_job()))

    assert "pretrain_job_step" not in found
    assert "pretrain_job_last_checkpoint_step" not in found


def test_two_hundred_jobs_leave_no_series_behind() -> None:
    made = metrics()
    sim = training()
    before = len(made.render().splitlines())
    for number in range(200):
        metadata = sim.job.metadata.model_copy(update={"name": f"job-{number}"})
        made.set_job(sim.job.model_copy(update={"metadata": metadata}))
        made.observe_reconcile(0.01)
    at_most = len(made.render().splitlines())

    for number in range(200):
        made.forget_job("team-a", f"job-{number}")

    assert at_most > before + 200 * 20
    assert len(made.render().splitlines()) == before


def test_a_job_that_is_set_twice_is_shown_once() -> None:
    made = metrics()
    sim = training()
    made.set_job(sim.job)
    once = len(made.render().splitlines())
    sim.progress(130)

    made.set_job(sim.job)

    assert len(made.render().splitlines()) == once
    assert scraped(made)["pretrain_job_step"] == {(): 130}


def test_forgetting_a_job_that_nobody_knows_is_no_trouble() -> None:
    metrics().forget_job("team-a", "nobody")


def test_the_operator_tells_of_itself() -> None:
    made = metrics()
    made.observe_reconcile(0.02)
    made.api_request("patch", "jobs", 201)
    made.api_request("watch", "pods", 200)
    made.reconcile_error("api")
    made.progress_poll("unreachable")
    made.set_queue_depth(7)
    made.set_leader(True)

    found = scraped(made)

    assert found["pretrain_operator_reconcile_duration_seconds_count"] == {(): 1}
    assert found["pretrain_operator_last_reconcile_timestamp_seconds"] == {(): NOW}
    assert by("reason", found["pretrain_operator_reconcile_errors_total"])["api"] == 1
    assert by("outcome", found["pretrain_operator_progress_polls_total"])["unreachable"] == 1
    assert found["pretrain_operator_queue_depth"] == {(): 7}
    assert found["pretrain_operator_is_leader"] == {(): 1}
    assert by("version", found["pretrain_operator_build_info"]) == {"0.1.0": 1}
    assert by("code", found["pretrain_operator_api_requests_total"]) == {"201": 1, "200": 1}
    assert made.api_request_total() == 1


def test_a_resync_with_nothing_to_do_shows_that_the_operator_is_alive() -> None:
    made = metrics()

    made.note_resync()

    assert scraped(made)["pretrain_operator_last_reconcile_timestamp_seconds"] == {(): NOW}


@pytest.mark.parametrize("prefix", ["pretrain_job_", "pretrain_operator_"])
def test_every_family_has_help_and_base_units_and_no_pod_uid_or_attempt(prefix: str) -> None:
    made = metrics()
    made.set_job(training().job)
    made.api_request("get", "leases", 200)
    families = [f for f in made.registry.collect() if f.name.startswith(prefix)]

    assert len(families) >= 8
    for family in families:
        assert family.documentation
        labels: set[Any] = {name for sample in family.samples for name in sample.labels}
        assert not labels & {"pod", "uid", "attempt"}
        for word in ("milliseconds", "minutes", "percent", "megabytes"):
            assert word not in family.name


def test_the_text_is_of_the_type_that_it_is_said_to_be() -> None:
    assert "version=0.0.4" in CONTENT_TYPE
    assert metrics().render().startswith(b"# HELP")

"""PretrainJobs as an API server keeps them: samples, defaults, status, scale and tables."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bed.cluster import Bed
from pretrain_api.documents import validate_object
from pretrain_api.job import PretrainJob
from pretrain_api.reports import StageName, StageResult
from pretrain_testing.plan_simulator import Simulation, make_job
from pretrain_testing.stored_jobs import SAMPLES, NotTakenError, StoredJobs, sample


def small(name: str = "small", **spec: Any) -> dict[str, Any]:
    return {
        "kind": "PretrainJob",
        "metadata": {"name": name},
        "spec": {
            "corpus": {"sources": [{"uri": "corpus/a.jsonl"}]},
            "model": {"architecture": "bert"},
            **spec,
        },
    }


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_is_taken(path: Path, jobs: StoredJobs) -> None:
    document = sample(path)

    stored = jobs.try_out(document)

    assert stored["metadata"]["name"] == document["metadata"]["name"]


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_reads_back_as_the_job_that_its_file_describes(
    path: Path, jobs: StoredJobs
) -> None:
    stored = jobs.try_out(sample(path))

    job = PretrainJob.model_validate(stored)

    assert job.spec == validate_object(sample(path)).spec


def test_defaults_are_filled_in_but_not_those_that_an_architecture_decides(
    jobs: StoredJobs,
) -> None:
    spec = jobs.try_out(small())["spec"]

    assert spec["workers"]["replicas"] == 1
    assert spec["checkpoint"]["keepLast"] == 2
    assert "globalBatchSize" not in spec["training"]
    assert "mlm" not in spec.get("objective", {})


def test_a_field_that_nobody_knows_is_refused_by_name(jobs: StoredJobs) -> None:
    with pytest.raises(NotTakenError, match="replica"):
        jobs.try_out(small(workers={"replica": 2}))


def test_a_pod_template_keeps_fields_that_only_pods_have(jobs: StoredJobs) -> None:
    template = {"spec": {"hostAliases": [{"ip": "10.0.0.1", "hostnames": ["cache"]}]}}

    stored = jobs.try_out(small(workers={"podTemplate": template}))

    assert stored["spec"]["workers"]["podTemplate"] == template


def test_a_status_is_written_apart_from_the_spec_and_begins_no_generation(
    jobs: StoredJobs,
) -> None:
    jobs.create({**small(), "status": {"phase": "Complete"}})
    assert "phase" not in jobs.read("small").get("status", {})

    stored = jobs.replace_status("small", {"phase": "Training", "restartCount": 2})

    assert stored["status"]["phase"] == "Training"
    assert stored["metadata"]["generation"] == 1


def test_a_status_of_the_plan_is_stored_whole(jobs: StoredJobs) -> None:
    sim = Simulation(make_job())
    sim.until("train")
    sim.progress(120, committed=100)
    sim.fail_pod("train", 1, exit_code=71)
    status = sim.job.status.model_dump(mode="json", by_alias=True, exclude_none=True)
    jobs.create(small())

    stored = jobs.replace_status("small", status)

    assert PretrainJob.model_validate(stored).status == sim.job.status


def test_a_phase_that_there_is_not_is_refused(jobs: StoredJobs) -> None:
    jobs.create(small())

    with pytest.raises(NotTakenError, match="phase"):
        jobs.replace_status("small", {"phase": "Dancing"})


def test_scale_reads_and_changes_the_number_of_workers(bed: Bed, jobs: StoredJobs) -> None:
    jobs.create(small(workers={"replicas": 2}))
    jobs.replace_status(
        "small", {"workers": {"ready": 1, "desired": 2, "selector": "pretrain.dev/stage=train"}}
    )

    scale = jobs.scale("small")
    assert scale["spec"]["replicas"] == 2
    assert scale["status"] == {"replicas": 1, "selector": "pretrain.dev/stage=train"}

    bed.kubectl("scale", "pretrainjob/small", "--replicas=4", f"--namespace={jobs.namespace}")

    assert jobs.read("small")["spec"]["workers"]["replicas"] == 4


def test_a_size_that_does_not_divide_the_batch_cannot_be_scaled_to(jobs: StoredJobs) -> None:
    jobs.create(small(workers={"replicas": 2}))

    with pytest.raises(NotTakenError, match="globalBatchSize"):
        jobs.set_scale("small", 3)


PHASES = ["Pending", "Tokenizing", "Preprocessing", "Training", "Complete", "Failed", "Suspended"]


@pytest.mark.parametrize("phase", PHASES)
def test_a_table_reads_well_in_every_phase(phase: str, bed: Bed, jobs: StoredJobs) -> None:
    sim = in_phase(phase)
    assert sim.phase() == phase
    jobs.create(small())
    status = sim.job.status.model_dump(mode="json", by_alias=True, exclude_none=True)
    jobs.replace_status("small", status)

    header, row = bed.kubectl("get", "ptj", f"--namespace={jobs.namespace}").splitlines()

    columns = ["NAME", "PHASE", "STAGE", "STEP", "LOSS", "TOK/S", "ETA", "RESTARTS", "AGE"]
    assert header.split() == columns
    assert len(header) < 100
    assert {name: cell_of(header, row, name) for name in columns[:-1]} == {
        "NAME": "small",
        "PHASE": phase,
        **dict.fromkeys(("STAGE", "STEP", "LOSS", "TOK/S", "ETA"), ""),
        "RESTARTS": "0",
        **CELLS[phase],
    }


FIGURES = {"STEP": "120", "LOSS": "1.2346", "TOK/S": "20481"}
CELLS: dict[str, dict[str, str]] = {
    "Pending": {"STAGE": "tokenizer"},
    "Tokenizing": {"STAGE": "tokenizer"},
    "Preprocessing": {"STAGE": "preprocess"},
    "Training": {"STAGE": "train", "ETA": "2h5m", **FIGURES},
    "Complete": {**FIGURES, "STEP": "1000"},
    "Failed": {"STAGE": "train", **FIGURES},
    "Suspended": {"STAGE": "train", **FIGURES},
}


def cell_of(header: str, row: str, name: str) -> str:
    """What stands below a column's title, up to the next one."""
    start = header.index(name)
    rest = header[start + len(name) :]
    following = len(rest) - len(rest.lstrip())
    end = start + len(name) + following if rest.strip() else len(row)
    return row[start:end].strip()


def in_phase(phase: str) -> Simulation:
    """A job whose history has brought it to a phase."""
    sim = Simulation(make_job())
    sim.settle()
    if phase == "Pending":
        return sim
    running: dict[str, StageName] = {"Tokenizing": "tokenizer", "Preprocessing": "preprocess"}
    if phase in running:
        sim.until(running[phase])
        return sim
    sim.until("train")
    report_figures(sim)
    if phase == "Failed":
        sim.fail_pod("train", 1, exit_code=64)
    if phase == "Suspended":
        sim.suspend(on=True)
    if phase == "Complete":
        complete(sim)
    return sim


def report_figures(sim: Simulation) -> None:
    sim.progress(120)
    (progress,) = sim.observed.progress
    assert progress.training is not None
    figures = progress.training.model_copy(
        update={"loss": 1.23456789, "tokens_per_second": 20_481.4, "eta_seconds": 7530.0}
    )
    sim.observed = replace(
        sim.observed, progress=(progress.model_copy(update={"training": figures}),)
    )
    sim.settle()


def complete(sim: Simulation) -> None:
    sim.succeed("train", StageResult(step=1000))
    last: tuple[StageName, ...] = ("evaluate", "export")
    for stage in last:
        sim.run(stage)
        sim.succeed(stage)

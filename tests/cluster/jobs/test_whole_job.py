"""One manifest on two nodes: from raw text in object storage to an exported model there.

About two minutes, most of it imports of torch in a dozen containers on two cores. What a job
leaves behind is looked at from several sides, so one job serves all tests of this file.
"""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from bed.binaries import program
from bed.cluster import Bed
from bed.namespaces import create_namespace, delete_namespace
from pretrain_testing.cluster_jobs import KIND, ClusterJobs, Manifest, stage_of
from pretrain_testing.cluster_storage import Prefix
from pretrain_testing.small_jobs import STEPS, small_quickstart

NAMESPACE = "whole-job"
NAME = "quickstart"
PHASES = ["Pending", "Tokenizing", "Preprocessing", "Training", "Evaluating", "Exporting"]
STAGES = ["tokenizer", "preprocess", "train", "evaluate", "export"]
REQUESTS_PER_STAGE = 8


@dataclass(frozen=True)
class CompletedJob:
    """What was seen of the job while it ran, and what is there now that it is complete."""

    jobs: ClusterJobs
    prefix: Prefix
    status: Manifest
    rows: list[dict[str, str]]
    """What `kubectl get --watch` printed, by column."""

    requests: list[Manifest]
    """Audit events of the operator's requests that concern the namespace."""


@pytest.fixture(scope="module")
def completed(bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CompletedJob]:
    create_namespace(bed.api, NAMESPACE)
    prefix = Prefix(NAMESPACE)
    prefix.upload_data()
    jobs = ClusterJobs(bed.kubectl, NAMESPACE)
    seen = tmp_path_factory.mktemp("watch") / "rows"
    with seen.open("w") as file, watching(bed, file) as watch:
        job = small_quickstart(name=NAME, steps=STEPS)
        jobs.apply({**job, "spec": {**job["spec"], "storage": prefix.storage}})
        jobs.wait_for_condition(NAME, "Complete")
        watch.terminate()
    yield CompletedJob(
        jobs=jobs,
        prefix=prefix,
        status=jobs.status(NAME),
        rows=table(seen.read_text()),
        requests=operator_requests(bed.audit_log),
    )
    delete_namespace(bed.api, NAMESPACE)


def watching(bed: Bed, file: Any) -> subprocess.Popen[bytes]:
    """`kubectl get ptj --watch`, writing into a file."""
    command = (program("kubectl"), f"--kubeconfig={bed.kubeconfig}", f"--namespace={NAMESPACE}")
    return subprocess.Popen([*command, "get", KIND, "--watch"], stdout=file)


def table(text: str) -> list[dict[str, str]]:
    """Rows of kubectl's table by its header, whose columns begin where their titles do."""
    header, *lines = text.splitlines()
    titles = header.split()
    starts = [header.index(title) for title in titles]
    ends = [*starts[1:], None]
    return [
        {
            title: line[start:end].strip()
            for title, start, end in zip(titles, starts, ends, strict=True)
        }
        for line in lines
    ]


def operator_requests(log: Path) -> list[Manifest]:
    """Requests about objects of the namespace, by the operator; watches are not of one job."""
    events = (json.loads(line) for line in log.read_text().splitlines())
    return [
        event
        for event in events
        if event["user"]["username"].endswith(":pretrain-operator")
        and event.get("objectRef", {}).get("namespace") == NAMESPACE
    ]


def test_its_weights_are_those_of_the_same_job_without_a_cluster(
    completed: CompletedJob, undisturbed_weights: bytes
) -> None:
    assert completed.prefix.weights(completed.status["exportUri"]) == undisturbed_weights


def test_its_workers_ran_on_two_nodes(completed: CompletedJob) -> None:
    pods = completed.jobs.children("pods", NAME, "train")
    assert {pod["spec"]["nodeName"] for pod in pods} == {"node-a", "node-b"}


def test_its_table_reads_well_in_every_phase(completed: CompletedJob) -> None:
    phases = [row["PHASE"] for row in completed.rows if row["PHASE"]]
    assert list(dict.fromkeys(phases)) == [*PHASES, "Complete"]
    training = [row for row in completed.rows if row["PHASE"] == "Training" and row["LOSS"]]
    assert training
    assert all(float(row["LOSS"]) > 0 and int(row["STEP"]) > 0 for row in training)
    last = completed.rows[-1]
    assert (last["PHASE"], last["RESTARTS"], last["STEP"]) == ("Complete", "0", str(STEPS))


def test_each_stage_is_told_in_status(completed: CompletedJob) -> None:
    stages = completed.status["stages"]
    assert [stage["name"] for stage in stages] == STAGES
    assert {stage["state"] for stage in stages} == {"Complete"}
    assert stage_of(completed.status, "train")["succeeded"] == 2
    assert completed.status["checkpoint"]["step"] == STEPS
    assert completed.status["metrics"]
    conditions = {item["type"]: item["status"] for item in completed.status["conditions"]}
    assert conditions["Complete"] == "True"
    assert conditions["Failed"] == "False"


def test_its_events_are_worth_reading_and_not_repeated(completed: CompletedJob) -> None:
    events = completed.jobs.events(NAME)
    told = Counter((event["reason"], event["message"]) for event in events)
    assert told
    assert set(told.values()) == {1}
    assert {event["type"] for event in events} == {"Normal"}


def test_the_operator_makes_few_requests_for_it(completed: CompletedJob) -> None:
    counts = Counter(
        f"{event['verb']} {event['objectRef']['resource']}" for event in completed.requests
    )
    assert counts
    assert counts.total() <= REQUESTS_PER_STAGE * len(STAGES), counts


def test_its_export_is_a_model_that_loads(completed: CompletedJob, tmp_path: Path) -> None:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    completed.prefix.download(completed.status["exportUri"], tmp_path)

    model = AutoModelForMaskedLM.from_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert model.config.vocab_size >= len(tokenizer)

"""One manifest on two nodes: from raw text in object storage to an exported model there.

About two minutes, most of it imports of torch in a dozen containers on two cores. What a job
leaves behind is looked at from several sides, so one job serves all tests of this folder.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

from pretrain_testing.cluster_jobs import stage_of
from pretrain_testing.completed_job import NAME, NEWS, POLL_SECONDS, CompletedJob
from pretrain_testing.small_jobs import STEPS

PHASES = ["Pending", "Tokenizing", "Preprocessing", "Training", "Evaluating", "Exporting"]
STAGES = ["tokenizer", "preprocess", "train", "evaluate", "export"]
REQUESTS_PER_STAGE = 8


def test_its_weights_are_those_of_the_same_job_without_a_cluster(
    completed: CompletedJob, undisturbed_weights: bytes
) -> None:
    assert completed.prefix.weights(completed.status["exportUri"]) == undisturbed_weights


def test_its_workers_ran_on_two_nodes(completed: CompletedJob) -> None:
    pods = completed.jobs.children("pods", NAME, "train")
    assert {pod["spec"]["nodeName"] for pod in pods} == {"node-a", "node-b"}


def test_its_table_reads_well_in_every_phase(completed: CompletedJob) -> None:
    phases = [row["Phase"] for row in completed.rows if row["Phase"]]
    assert list(dict.fromkeys(phases)) == [*PHASES, "Complete"]
    training = [row for row in completed.rows if row["Phase"] == "Training" and row["Loss"]]
    assert training
    assert all(float(row["Loss"]) > 0 and int(row["Step"]) > 0 for row in training)
    assert {row["Stage"] for row in training} == {"train"}
    last = completed.rows[-1]
    assert (last["Phase"], last["Restarts"], last["Step"]) == ("Complete", "0", str(STEPS))


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
    figures = sum(one[NEWS] == next_[NEWS] for one, next_ in pairwise(completed.rows))
    assert counts["patch pretrainjobs"] > figures
    assert counts.total() - figures <= REQUESTS_PER_STAGE * len(STAGES), (counts, figures)
    assert figures <= completed.seconds / POLL_SECONDS


def test_its_export_is_a_model_that_loads(completed: CompletedJob, tmp_path: Path) -> None:
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    completed.prefix.download(completed.status["exportUri"], tmp_path)

    model = AutoModelForMaskedLM.from_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert model.config.vocab_size >= len(tokenizer)

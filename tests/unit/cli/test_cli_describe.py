"""What `pretrainctl describe` says of how far a job is, as text and as data."""

from __future__ import annotations

from datetime import datetime

from pretrain_api.reports import Cause
from pretrain_api.status import GoodputStatus
from pretrain_testing.described_jobs import LEADING, event, found, pods, told, training
from pretrain_testing.plan_simulator import START, Simulation, make_job
from pretrain_testing.raw_children import condition, raw_pod
from pretrainctl.cluster.description import as_data, layout, paragraphs
from pretrainctl.cluster.events import told_once


def test_a_running_job_tells_how_far_it_is_and_nothing_of_reasons() -> None:
    sim = training()
    lines = told(found(sim, later=65))
    assert lines["PretrainJob"] == ["team-a/roberta-zh"]
    assert lines["Phase"] == ["Training (train, attempt 0) since 2026-01-01 00:00:00Z, 1m05s ago"]
    assert [line.split()[:3] for line in lines["Stages"]] == [
        ["✓", "tokenizer", "done"],
        ["✓", "preprocess", "done"],
        [">", "train", "attempt"],
        [".", "evaluate", "waits"],
        [".", "export", "waits"],
    ]
    assert "[#####---------------]  25%" in lines["Stages"][2]
    assert lines["Training"] == ["step 250 of 1,000, loss 1.500"]
    assert lines["Checkpoint"] == ["step 200, saved 1m05s ago: s3://c/step-200"]
    assert not {"Why", "What to do", "Operator", "Restarts", "Nodes", "Goodput"} & set(lines)


def test_slices_of_preprocessing_are_counted() -> None:
    sim = Simulation(make_job())
    sim.until("preprocess", slices=4)
    sim.change("preprocess", succeeded=1)
    sim.settle()
    (line,) = [line for line in told(found(sim))["Stages"] if "preprocess" in line]
    assert "1 of 4 slices done, [#####---------------]  25%" in line


def test_a_complete_job_tells_its_results_and_where_the_model_is() -> None:
    sim = Simulation(make_job())
    sim.until("export")
    sim.succeed("export")
    metrics = {"sentiment/pretrained/f1/mean": 0.75, "sentiment/pretrained/f1/stdev": 0.01}
    status = sim.job.status.model_copy(update={"metrics": metrics})
    sim.job = sim.job.model_copy(update={"status": status})
    lines = told(found(sim, later=90_000))
    assert lines["Phase"] == ["Complete since 2026-01-01 00:00:00Z, 1d01h ago"]
    assert lines["Results"] == [
        "sentiment/pretrained/f1 0.750 ± 0.010",
        "model at s3://models/zh/export/export-fp",
    ]
    assert not {"Why", "What to do", "Pods"} & set(lines)


def test_an_edit_that_nobody_has_seen_yet_and_a_deletion_are_told() -> None:
    sim = training()
    sim.edit(suspend=True)
    findings = found(sim)
    findings.known.raw["metadata"]["deletionTimestamp"] = START.isoformat()
    assert told(findings)["Phase"][1:] == [
        "It is being deleted.",
        "The newest edit of its spec has not been looked at yet.",
    ]


def test_goodput_tells_the_useful_share_and_the_longest_spans() -> None:
    sim = training()
    goodput = GoodputStatus(
        seconds={"queued": 10, "step": 80, "checkpoint_stall": 4, "restore": 0.2}, ratio=0.8
    )
    status = sim.job.status.model_copy(update={"goodput": goodput})
    sim.job = sim.job.model_copy(update={"status": status})
    assert told(found(sim))["Goodput"] == [
        "80% of the time trained; step 1m20s, queued 10s, checkpoint stall 4s"
    ]


def test_conditions_are_grouped_by_whether_they_hold() -> None:
    lines = told(found(training()))["Conditions"]
    assert lines[0].startswith("True: Accepted (Valid), DataReady (Prepared), Running (Training)")
    assert lines[1].startswith("False: Suspended (NotRequested)")


def test_what_may_not_be_read_is_told() -> None:
    lines = told(found(training(), unread=("pods: not allowed",)))
    assert lines["Not shown"] == ["pods: not allowed"]


def test_a_status_of_another_version_is_told_as_far_as_it_can_be_read() -> None:
    findings = found(training())
    findings.known.raw["status"] |= {"weather": "fine", "restarts": {"Sunspots": 2}}
    findings.known.raw["spec"]["corpus"] = {}
    lines = told(findings)
    assert lines["Restarts"] == ["Sunspots 2, without limit"]
    assert lines["Phase"][0].startswith("Training")


def test_text_is_wrapped_for_a_terminal_only() -> None:
    long = tuple(paragraphs(found(training(), unread=("events: " + "word " * 40,))))
    wide, narrow = layout(long, width=None), layout(long, width=60)
    assert max(map(len, wide.splitlines())) > 200
    assert max(map(len, narrow.splitlines())) <= 60
    assert wide.split() == narrow.split()


def test_a_program_gets_the_same_as_data() -> None:
    sim = training()
    sim.report_failure("train", 1, Cause.HANG, message="no step")
    events = told_once([event("again", at="2026-01-01T00:00:10Z")], job_uid="0")
    pending = raw_pod(1, attempt=1, phase="Pending", conditions=[condition("PodScheduled")])
    data = as_data(found(sim, pods=pods(pending), events=events, pulses=(LEADING,)))
    assert (data["name"], data["phase"], data["operatorLeads"]) == ("roberta-zh", "Pending", True)
    assert data["why"][-1].startswith("Attempt 1 of train may start")
    assert data["pods"][0] | {"name": ""} == {
        "name": "",
        "attempt": 1,
        "index": 1,
        "phase": "Pending",
        "node": "node-1",
        "reason": "",
        "state": "Pending",
    }
    assert data["events"][0]["time"] == "2026-01-01T00:00:10Z"
    assert data["status"]["restarts"] == {"Hang": 1}
    assert datetime.fromisoformat(data["since"]) == START

"""What `pretrainctl describe` says of a job: why it does not run first, then how far it is."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from pretrain_api.reports import Cause
from pretrain_api.status import GoodputStatus, SuspectNode
from pretrain_operator.known_job import KnownJob
from pretrain_operator.observe import PodFacts
from pretrain_testing.plan_simulator import START, Simulation, make_job
from pretrain_testing.raw_children import condition, raw_pod, terminated, waiting
from pretrainctl.cluster.description import as_data, layout, paragraphs
from pretrainctl.cluster.events import told_once
from pretrainctl.cluster.findings import Findings, Pulse

LEADING = Pulse("pretrain-system", "pretrain-operator", "replica-a", START, 15)


def found(sim: Simulation, *, later: float = 0, **more: Any) -> Findings:
    """What is found of a simulated job, some seconds later."""
    raw = sim.job.model_dump(mode="json", by_alias=True, exclude_none=True)
    raw["metadata"]["creationTimestamp"] = START.isoformat()
    if not sim.job.status.observed_generation:
        raw.pop("status")
    return Findings(KnownJob.of(raw), now=sim.now + timedelta(seconds=later), **more)


def told(findings: Findings) -> dict[str, list[str]]:
    return {part.title: list(part.lines) for part in paragraphs(findings)}


def pods(*raws: dict[str, Any]) -> tuple[PodFacts, ...]:
    return tuple(fact for fact in map(PodFacts.of, raws) if fact is not None)


def training(**spec: Any) -> Simulation:
    sim = Simulation(make_job(**spec))
    sim.until("train")
    sim.progress(250, committed=200)
    return sim


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


def test_an_edit_that_nobody_has_seen_yet_and_a_deletion_are_told() -> None:
    sim = training()
    sim.edit(suspend=True)
    findings = found(sim)
    findings.known.raw["metadata"]["deletionTimestamp"] = START.isoformat()
    assert told(findings)["Phase"][1:] == [
        "It is being deleted.",
        "The newest edit of its spec has not been looked at yet.",
    ]


def test_pods_in_trouble_come_first_with_their_reasons() -> None:
    lines = told(
        found(
            training(),
            pods=pods(
                raw_pod(0),
                raw_pod(1, phase="Pending", state=waiting("ErrImagePull", "no such tag")),
                raw_pod(2, phase="Failed", state=terminated(64, message="lost\nits way")),
            ),
        )
    )
    assert lines["Pods"] == [
        "rank 2  node-2      Failed, exit code 64: lost its way",
        "rank 1  node-1      Pending, ErrImagePull: registry.example/train:1: no such tag",
        "rank 0  node-0      Running",
    ]


def test_a_large_gang_is_told_in_a_few_lines() -> None:
    gang = [raw_pod(index) for index in range(64)]
    gang[63] = raw_pod(63, phase="Pending")
    lines = told(found(training(), pods=pods(*gang, raw_pod(0, attempt=7))))["Pods"]
    assert lines[0].startswith("rank 63")
    assert lines[10:] == ["and 54 Running", "1 of other attempts is still there"]


def test_a_pod_that_is_being_deleted_is_ending() -> None:
    raw = raw_pod(0)
    raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert told(found(training(), pods=pods(raw)))["Pods"][0].endswith("Ending")


def test_a_pod_that_waits_for_a_secret_has_its_advice() -> None:
    sim = Simulation(make_job())
    sim.settle()
    reason = "CreateContainerConfigError"
    sim.change("tokenizer", pods=())
    status = sim.job.status.model_copy(update={"blocked_by": f"waiting ({reason}): no secret"})
    sim.job = sim.job.model_copy(update={"status": status})
    pod = raw_pod(0, "tokenizer", phase="Pending", state=waiting(reason, "no secret"))
    (advice,) = told(found(sim, pods=pods(pod)))["What to do"]
    assert advice.startswith("Make the Secret")


def test_a_volume_that_cannot_be_mounted_is_not_taken_for_an_image() -> None:
    sim = Simulation(make_job())
    sim.settle()
    running = sim.condition("Running").model_copy(update={"reason": "ImagePull"})
    others = [c for c in sim.job.status.conditions if c.type != "Running"]
    changes = {"blocked_by": "still being created", "conditions": [*others, running]}
    sim.job = sim.job.model_copy(update={"status": sim.job.status.model_copy(update=changes)})
    pod = pods(raw_pod(0, "tokenizer", phase="Pending", state={}))
    about = {"kind": "Pod", "name": "p"}
    failed = event(
        "no Secret", at="2026-01-01T00:00:10Z", reason="FailedMount", involvedObject=about
    )
    events = told_once([failed], job_uid="0")
    assert "registry" in told(found(sim, pods=pod))["What to do"][0]
    assert told(found(sim, pods=pod, events=events))["What to do"][0].startswith("Make the volume")


def test_nodes_that_ended_attempts_are_told_with_their_fate() -> None:
    sim = training()
    nodes = [
        SuspectNode(name="node-a", failures=1, message="rank 0 was lost with its node."),
        SuspectNode(name="node-b", failures=2, kept_out_until=START + timedelta(hours=1)),
    ]
    status = sim.job.status.model_copy(update={"suspect_nodes": nodes})
    sim.job = sim.job.model_copy(update={"status": status})
    assert told(found(sim))["Nodes"] == [
        "node-a ended an attempt once, not kept out: rank 0 was lost with its node.",
        "node-b ended an attempt 2 times, kept out until 2026-01-01 01:00:00Z",
    ]


def test_goodput_tells_the_useful_share_and_the_longest_spans() -> None:
    sim = training()
    goodput = GoodputStatus(seconds={"queued": 10, "training": 80, "restore": 0.2}, ratio=0.8)
    status = sim.job.status.model_copy(update={"goodput": goodput})
    sim.job = sim.job.model_copy(update={"status": status})
    assert told(found(sim))["Goodput"] == ["80% of the time trained; training 1m20s, queued 10s"]


def test_conditions_are_grouped_by_whether_they_hold() -> None:
    lines = told(found(training()))["Conditions"]
    assert lines[0].startswith("True: Accepted (Valid), DataReady (Prepared), Running (Training)")
    assert lines[1].startswith("False: Suspended (NotRequested)")


def event(message: str, *, at: str, **fields: Any) -> dict[str, Any]:
    about = {"kind": "PretrainJob", "name": "roberta-zh", "uid": "0"}
    return {
        "type": "Warning",
        "reason": "BackOff",
        "message": message,
        "involvedObject": about,
        "lastTimestamp": at,
        "metadata": {},
        **fields,
    }


def test_events_that_say_the_same_are_told_once_with_their_number() -> None:
    events = told_once(
        [
            event("again", at="2026-01-01T00:00:50Z", count=3),
            event("again", at="2026-01-01T00:00:10Z"),
            event("other", at="2026-01-01T00:00:20Z", involvedObject={"kind": "Pod", "name": "p"}),
        ],
        job_uid="0",
    )
    assert told(found(training(), later=60, events=events))["Events"] == [
        "! 40s ago  BackOff: pod p: other",
        "! 10s ago  BackOff (x4): again",
    ]


def test_events_of_the_newer_kind_are_read_too() -> None:
    series = {"count": 5, "lastObservedTime": "2026-01-01T00:00:30.000000Z"}
    raw = event("slow", at="", lastTimestamp=None, series=series)
    (seen,) = told_once([raw], job_uid="0")
    assert (seen.count, seen.at) == (5, START + timedelta(seconds=30))


def test_only_the_newest_events_are_shown() -> None:
    events = told_once(
        [event(f"number {n}", at=f"2026-01-01T00:00:{n:02}Z") for n in range(20)], job_uid="0"
    )
    lines = told(found(training(), later=60, events=events))["Events"]
    assert lines[0] == "(12 earlier left out)"
    assert [line.split()[-1] for line in lines[1:]] == [str(n) for n in range(12, 20)]


def test_of_children_only_warnings_are_shown() -> None:
    pod = {"kind": "Pod", "name": "p"}
    events = told_once(
        [
            event("pulled", at="2026-01-01T00:00:10Z", type="Normal", involvedObject=pod),
            event("no image", at="2026-01-01T00:00:20Z", involvedObject=pod),
        ],
        job_uid="0",
    )
    lines = told(found(training(), later=60, events=events))["Events"]
    assert lines == ["! 40s ago  BackOff: pod p: no image"]


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

"""What `pretrainctl describe` says of pods, their nodes and events."""

from __future__ import annotations

from datetime import timedelta

from pretrain_api.status import SuspectNode
from pretrain_operator.observed import RunningInit
from pretrain_testing.described_jobs import event, found, pods, told, training
from pretrain_testing.plan_simulator import START, Simulation, make_job
from pretrain_testing.raw_children import raw_pod, terminated, waiting
from pretrainctl.cluster.events import told_once


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


def test_an_init_container_that_takes_its_time_has_its_advice() -> None:
    sim = Simulation(make_job())
    sim.until("train")
    init = RunningInit("fetch", sim.now)
    sim.change_pod("train", 0, phase="Pending", started_at=None, scheduled_at=sim.now, init=init)
    sim.wait(60)
    raw = raw_pod(0, phase="Pending", state=waiting("PodInitializing"))
    fetch = {"name": "fetch", "state": {"running": {"startedAt": "2026-01-01T00:00:05Z"}}}
    raw["status"]["initContainerStatuses"] = [fetch]
    lines = told(found(sim, pods=pods(raw)))
    assert "logs POD -c CONTAINER" in lines["What to do"][0]
    assert lines["Pods"][0].endswith("Pending, init container fetch runs")


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


def test_a_mount_that_failed_once_hides_no_missing_image_of_an_init_container() -> None:
    sim = Simulation(make_job())
    sim.settle()
    running = sim.condition("Running").model_copy(update={"reason": "ImagePull"})
    others = [c for c in sim.job.status.conditions if c.type != "Running"]
    changes = {"blocked_by": "cannot get the image", "conditions": [*others, running]}
    sim.job = sim.job.model_copy(update={"status": sim.job.status.model_copy(update=changes)})
    raw = raw_pod(0, "tokenizer", phase="Pending", state=waiting("PodInitializing"))
    raw["status"]["initContainerStatuses"] = [{"name": "fetch", "state": waiting("ErrImagePull")}]
    failed = event("timed out", at="2026-01-01T00:00:10Z", reason="FailedMount")
    events = told_once([failed], job_uid="0")
    (advice,) = told(found(sim, pods=pods(raw), events=events))["What to do"]
    assert advice.startswith("Check the image's name")


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


def test_progress_is_no_last_word_of_an_attempt() -> None:
    sim = Simulation(make_job())
    sim.until("preprocess", slices=2)
    running = sim.condition("Running").model_copy(update={"status": "False"})
    others = [c for c in sim.job.status.conditions if c.type != "Running"]
    stages = [s.model_copy(update={"message": "0 of 2 done"}) for s in sim.job.status.stages]
    changes = {"stages": stages, "conditions": [*others, running]}
    status = sim.job.status.model_copy(update=changes)
    sim.job = sim.job.model_copy(update={"status": status})
    assert "Restarts" not in told(found(sim))

    restarted = status.model_copy(update={"restarts": {"Unknown": 1}})
    sim.job = sim.job.model_copy(update={"status": restarted})
    begun = pods(raw_pod(0, "preprocess", attempt=sim.stage("preprocess").attempt))
    assert told(found(sim, pods=begun))["Restarts"] == ["Unknown 1 of 3"]


def test_pods_that_are_refused_for_the_same_reason_are_one_event() -> None:
    about = {"kind": "Job", "name": "j"}
    raws = [
        event(
            f'Error creating: pods "j-{name}" is forbidden: exceeded quota',
            at=f"2026-01-01T00:00:0{second}Z",
            reason="FailedCreate",
            involvedObject=about,
        )
        for second, name in enumerate(["bcdfg", "xxyyz", "lmnpq"])
    ]
    (seen,) = told_once(raws, job_uid="0")
    assert (seen.count, "j-lmnpq" in seen.message) == (3, True)

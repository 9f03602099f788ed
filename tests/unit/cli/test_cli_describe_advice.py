"""What `pretrainctl describe` says to do about a wait, and that it says nothing that is not so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from pretrain_api.reports import Cause
from pretrain_operator.observed import ObservedPod
from pretrain_testing.described_jobs import event, found, pods, told, training
from pretrain_testing.plan_simulator import Simulation, make_job
from pretrain_testing.raw_children import raw_pod
from pretrainctl.cluster.events import told_once
from pretrainctl.cluster.findings import SeenEvent


def advised(sim: Simulation, *, later: float = 0, events: Sequence[SeenEvent] = ()) -> str:
    """The one line of *What to do*, empty when there is none."""
    return "".join(told(found(sim, later=later, events=tuple(events))).get("What to do", []))


def waiting(**pod: Any) -> Simulation:
    """A job whose first pod waits."""
    sim = Simulation(make_job())
    sim.settle()
    first = ObservedPod(name="p", index=0, phase="Pending", **pod)
    sim.change("tokenizer", pods=(first,))
    sim.settle()
    return sim


def refusing_an_edit() -> Simulation:
    sim = training()
    template = {"spec": {"hostNetwork": True}}
    sim.edit(workers=sim.job.spec.workers.model_copy(update={"pod_template": template}))
    sim.settle()
    return sim


def test_an_edit_that_is_refused_is_told_while_the_job_runs_on() -> None:
    lines = told(found(refusing_an_edit()))
    assert lines["Phase"][0].startswith("Training")
    assert lines["Why"] == [
        "The edited spec cannot be run: spec.workers.podTemplate.spec.hostNetwork: "
        "is set by spec.workers.network.hostNetwork"
    ]
    assert lines["What to do"][0].startswith("Correct what was edited, or take the edit back")


def test_an_edit_that_is_refused_is_told_once_where_it_is_waited_for() -> None:
    sim = refusing_an_edit()
    sim.fail_pod("train", 1, exit_code=71)
    sim.wait(600)
    lines = told(found(sim))
    assert str(lines["Why"]).count("hostNetwork: is set by") == 1
    assert len(lines["Why"]) == 1


def test_a_refused_edit_is_told_beside_a_suspension() -> None:
    sim = refusing_an_edit()
    sim.suspend(on=True)
    lines = told(found(sim))
    assert "podTemplate.spec.hostNetwork" in lines["Why"][0]
    assert "Correct what was edited" in lines["What to do"][0]
    assert '"suspend":false' in lines["What to do"][0]


@pytest.mark.parametrize("from_event", [True, False])
def test_a_back_off_tells_what_to_mend_meanwhile(*, from_event: bool) -> None:
    sim = Simulation(make_job())
    sim.settle()
    sim.run("tokenizer")
    cause = Cause.STORAGE_UNAVAILABLE
    sim.report_failure("tokenizer", 0, cause, message="there is no such bucket")
    text = "Attempt 0 of tokenizer ended with StorageUnavailable. Attempt 1 follows after 10 s."
    failed = told_once([event(text, at="2026-01-01T00:00:00Z")], job_uid="0")
    if from_event:
        stages = [stage.model_copy(update={"message": "lost"}) for stage in sim.job.status.stages]
        status = sim.job.status.model_copy(update={"stages": stages})
        sim.job = sim.job.model_copy(update={"status": status})
    text = advised(sim, events=failed if from_event else ())
    assert text.startswith("Check the bucket, its endpoint")
    assert "kubectl -n team-a delete ptj roberta-zh" in text
    assert "annotate ptj roberta-zh --overwrite pretrain.dev/retry-now=" in text


def test_a_back_off_tells_its_end_once() -> None:
    sim = training()
    sim.report_failure("train", 1, Cause.OUT_OF_MEMORY, message="out of memory")
    why = told(found(sim, later=4))["Why"]
    assert why == [
        "Rank 1 on node node-1 ended with OutOfMemory: out of memory",
        "Attempt 1 of train may start in 6s, at 00:00:10Z.",
    ]


def test_pods_that_end_first_are_waited_for_without_saying_that_the_next_may_start_now() -> None:
    sim = training()
    sim.report_failure("train", 1, Cause.OUT_OF_MEMORY, message="out of memory")
    sentence = (
        "Attempt 1 of train starts at 2026-01-01T00:02:10Z at the latest: "
        "pods of the attempt before are ending."
    )
    status = sim.job.status.model_copy(update={"blocked_by": sentence})
    sim.job = sim.job.model_copy(update={"status": status})
    assert told(found(sim, later=70))["Why"] == [
        "Attempt 1 of train starts in 1m00s, at 00:02:10Z at the latest: "
        "pods of the attempt before are ending."
    ]


def test_a_suspended_job_tells_no_attempt_that_may_start() -> None:
    sim = training()
    sim.suspend(on=True)
    assert told(found(sim))["Why"] == ["The job is suspended."]


def test_a_claim_that_is_not_there_needs_no_more_nodes() -> None:
    message = '0/2 nodes are available: persistentvolumeclaim "nope" not found.'
    text = advised(waiting(reason="Unschedulable", message=message))
    assert text.startswith("Make the PersistentVolumeClaim")
    assert "nodes" not in text


def test_a_pod_without_a_place_tells_what_it_asks_for_and_where_that_is_said() -> None:
    text = advised(waiting(reason="Unschedulable", message="0/2 nodes: 2 Insufficient cpu."))
    assert "Free nodes or add some" in text
    assert "Each pod of tokenizer asks for cpu 500m, memory 1Gi (spec.preprocess.resources)" in text


def test_a_service_account_that_is_not_there_is_to_be_made() -> None:
    sim = Simulation(make_job())
    sim.settle()
    denial = 'error looking up service account team-a/nope: serviceaccount "nope" not found'
    sim.change("tokenizer", pods=(), pods_refused=f'pods "a-b" is forbidden: {denial}')
    sim.settle()
    assert "kubectl -n team-a create serviceaccount" in advised(sim)


def test_an_image_that_cannot_be_had_tells_how_long_it_is_waited_for() -> None:
    text = advised(waiting(reason="ErrImagePull", message="no such tag"))
    assert "After 10 minutes without it the attempt ends, and after 2 restarts" in text


def test_a_spec_that_cannot_be_admitted_tells_what_to_do_of_fields_that_no_edit_changes() -> None:
    sim = Simulation(make_job())
    sim.settle()
    denial = 'violates PodSecurity "restricted:latest"'
    sim.change("tokenizer", pods=(), pods_refused=f"forbidden: {denial}")
    sim.settle()
    text = advised(sim)
    assert text.startswith("Correct the field")
    assert "kubectl -n team-a delete ptj roberta-zh" in text


def test_a_volume_that_came_a_moment_late_is_not_asked_for() -> None:
    sim = waiting()
    about = {"kind": "Pod", "name": "p"}
    late = event("late", at="2026-01-01T00:00:01Z", reason="FailedMount", involvedObject=about)
    pod = pods(raw_pod(0, "tokenizer", phase="Pending", state={}))
    events = told_once([late], job_uid="0")
    new, old = (found(sim, later=s, pods=pod, events=events) for s in (60, 600))
    assert told(new)["What to do"][0].startswith("Make the volume")
    assert "What to do" not in told(old)

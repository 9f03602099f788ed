"""Children that somebody deletes while their attempt needs them."""

from dataclasses import replace
from typing import Any

import pytest
from pretrain_api.reports import StageName
from pretrain_api.status import Phase
from pretrain_operator.observed import ChildKind, Event
from pretrain_testing.plan_simulator import Simulation, make_job

NAME = "roberta-zh-0a1b2-train-0"


def begun(stage: StageName = "train", **spec: Any) -> Simulation:
    sim = Simulation(make_job(**spec))
    sim.until(stage)
    sim.created.clear()
    sim.events.clear()
    return sim


def lose(sim: Simulation, *kinds: ChildKind) -> None:
    """Somebody deletes all children of some kinds."""
    if "Service" in kinds:
        sim.observed = replace(sim.observed, services=())
    if "ConfigMap" in kinds:
        sim.observed = replace(sim.observed, config_maps=())


def wait_for_a_node(sim: Simulation, index: int = 1) -> None:
    sim.change_pod("train", index, phase="Pending", started_at=None, reason="Unschedulable")
    sim.settle()
    sim.events.clear()


def edit_the_deadline(sim: Simulation) -> None:
    sim.edit(active_deadline_seconds=86_400)
    sim.settle()


@pytest.mark.parametrize("kind", ["Service", "ConfigMap"])
def test_a_child_that_a_running_gang_has_lost_is_made_again_once_and_told(kind: ChildKind) -> None:
    sim = begun()

    lose(sim, kind)
    sim.settle()
    sim.wait(600)

    assert sim.created == [f"{kind}/{NAME}"]
    text = f"The {kind} {NAME} of attempt 0 of train was deleted from outside; it is made again."
    assert sim.events == [Event("Warning", "ChildMadeAgain", text)]
    assert sim.phase() is Phase.TRAINING
    assert sim.job.status.restarts == {}


def test_each_loss_is_told() -> None:
    sim = begun()
    for _ in range(3):
        lose(sim, "Service")
        sim.settle()

    assert sim.created == [f"Service/{NAME}"] * 3
    assert sim.event_reasons() == ["ChildMadeAgain"] * 3


def test_children_of_an_attempt_that_waits_are_made_again() -> None:
    sim = begun()
    wait_for_a_node(sim)

    lose(sim, "Service", "ConfigMap")
    sim.settle()

    assert sim.created == [f"Service/{NAME}", f"ConfigMap/{NAME}"]
    (event,) = sim.events
    assert f"The Service and the ConfigMap {NAME}" in event.message


def test_children_of_an_attempt_that_a_queue_holds_back_are_made_again() -> None:
    sim = begun()
    sim.change("train", condition="Suspended", pods=())

    lose(sim, "Service")
    sim.settle()

    assert sim.created == [f"Service/{NAME}"]


@pytest.mark.parametrize("stage", ["tokenizer", "preprocess", "evaluate", "export"])
def test_every_stage_gets_its_config_again(stage: StageName) -> None:
    sim = begun(stage)
    name = sim.child(stage).name

    lose(sim, "ConfigMap")
    sim.settle()

    assert sim.created == [f"ConfigMap/{name}"]


def test_a_gang_that_is_resized_while_it_loses_a_child_gets_nothing_of_the_old_size() -> None:
    sim = begun()

    lose(sim, "Service")
    sim.edit(workers=sim.job.spec.workers.model_copy(update={"replicas": 4}))
    sim.plan()

    assert sim.created == []


def test_one_worker_alone_has_no_service_to_lose() -> None:
    sim = begun(workers={"replicas": 1})

    sim.settle()

    assert sim.created == []


@pytest.mark.parametrize("condition", ["SuccessCriteriaMet", "Complete"])
def test_an_attempt_that_has_succeeded_needs_nothing(condition: str) -> None:
    sim = begun()
    sim.change("train", condition=condition)

    lose(sim, "Service", "ConfigMap")
    made = sim.plan()

    assert made.apply == ()


def test_a_gang_of_which_a_rank_has_ended_needs_nothing() -> None:
    sim = begun()
    sim.change_pod("train", 1, phase="Succeeded", exit_code=0)

    lose(sim, "Service", "ConfigMap")

    assert sim.plan().apply == ()


def test_an_attempt_that_fails_needs_nothing() -> None:
    sim = begun()
    sim.change_pod("train", 1, phase="Failed", exit_code=71, finished_at=sim.now)

    lose(sim, "Service", "ConfigMap")

    assert sim.plan().apply == ()


def test_a_suspended_job_needs_nothing() -> None:
    sim = begun()
    lose(sim, "Service", "ConfigMap")

    sim.suspend(on=True)

    assert sim.created == []


def test_a_service_is_the_same_whatever_was_edited() -> None:
    sim = begun()
    edit_the_deadline(sim)

    lose(sim, "Service")
    sim.settle()

    assert sim.created == [f"Service/{NAME}"]
    assert sim.stage("train").attempt == 0


def test_a_config_that_all_pods_have_read_is_not_made_from_another_spec() -> None:
    sim = begun()
    edit_the_deadline(sim)

    lose(sim, "ConfigMap")
    sim.settle()

    assert (sim.created, sim.events) == ([], [])
    assert sim.phase() is Phase.TRAINING


def test_an_attempt_that_waits_for_a_config_of_an_older_spec_is_begun_anew() -> None:
    sim = begun()
    sim.change_pod("train", 1, phase="Pending", started_at=None)
    edit_the_deadline(sim)

    lose(sim, "ConfigMap")
    sim.settle()

    assert sim.event_reasons() == ["AttemptReplaced"]
    assert "the spec was edited since" in sim.events[0].message
    assert sim.child("train").attempt == 1
    assert sim.job.status.restarts == {}


def test_nothing_is_made_from_a_spec_that_is_not_valid_and_that_is_told() -> None:
    sim = begun()
    good = sim.job.spec.workers
    sim.edit(workers=good.model_copy(update={"pod_template": {"spec": []}}))

    lose(sim, "Service")
    sim.settle()
    assert sim.created == []
    assert f"The Service {NAME} of attempt 0 of train was deleted" in sim.job.status.blocked_by

    sim.edit(workers=good)
    sim.settle()
    assert sim.created == [f"Service/{NAME}"]
    assert sim.job.status.blocked_by == ""


def test_what_the_api_server_refuses_is_told_and_tried_again_later_while_the_gang_goes_on() -> None:
    sim = begun()
    sim.refuse = lambda _manifest: (403, "exceeded quota: services")

    lose(sim, "Service")
    sim.settle()
    assert "exceeded quota: services" in sim.job.status.blocked_by
    assert sim.plan().requeue_after == 10
    assert sim.events == []
    assert sim.phase() is Phase.TRAINING

    sim.refuse = lambda _manifest: None
    sim.wait(10)
    assert sim.created == [f"Service/{NAME}"]
    assert sim.event_reasons() == ["ChildMadeAgain"]
    assert sim.job.status.blocked_by == ""

"""What is kept of a raw pod."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretrain_api.reports import Cause, StageReport, StageResult
from pretrain_operator.observe import PodFacts, key_of, uid_of
from pretrain_operator.observed import ObservedPod, RunningInit
from pretrain_testing.plan_simulator import UID
from pretrain_testing.raw_children import CREATED, condition, raw_pod, terminated, waiting


def facts_of(raw: dict[str, Any]) -> PodFacts:
    facts = PodFacts.of(raw)
    assert facts is not None
    return facts


def pod_of(raw: dict[str, Any]) -> ObservedPod:
    return facts_of(raw).pod


def test_a_running_pod_tells_whose_it_is_and_where_its_progress_is_served() -> None:
    facts = facts_of(raw_pod(1, attempt=3))

    assert facts.key == ("team-a", "roberta-zh")
    assert facts.job_uid == UID
    assert facts.child == "roberta-zh-0a1b2-train-3"
    assert (facts.stage, facts.attempt) == ("train", 3)
    assert (facts.ip, facts.progress_port) == ("10.0.0.2", 9400)
    assert facts.pod == ObservedPod(
        name="roberta-zh-0a1b2-train-3-1-x1y2z",
        index=1,
        phase="Running",
        node="node-1",
        scheduled_at=datetime(2026, 1, 1, tzinfo=UTC),
        started_at=datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC),
    )


def test_a_pod_without_our_labels_is_nobodys() -> None:
    raw = raw_pod()
    raw["metadata"]["labels"] = {"app": "other"}

    assert PodFacts.of(raw) is None
    assert key_of(raw) is None
    assert uid_of(raw) == ""


def test_labels_that_somebody_has_spoiled_make_a_pod_nobodys() -> None:
    for label, value in (("attempt", "x"), ("stage", "cooking"), ("job-uid", "")):
        raw = raw_pod()
        raw["metadata"]["labels"][f"pretrain.dev/{label}"] = value
        assert PodFacts.of(raw) is None


def test_a_pod_that_has_not_changed_for_the_plan_gives_equal_facts() -> None:
    raw = raw_pod()
    before = facts_of(raw)
    raw["metadata"]["resourceVersion"] = "2"
    raw["status"]["conditions"].append(condition("Ready"))

    assert facts_of(raw) == before


def test_a_termination_message_is_read_as_a_report() -> None:
    report = StageReport(stage="train", attempt=0, result=StageResult(step=100))
    ended = terminated(0, message=report.model_dump_json(by_alias=True), reason="Completed")

    pod = pod_of(raw_pod(phase="Succeeded", state=ended))

    assert pod.report == report
    assert (pod.exit_code, pod.reason, pod.message) == (0, "", "")
    assert pod.finished_at == datetime(2026, 1, 1, 0, 10, tzinfo=UTC)


@pytest.mark.parametrize("text", ["Traceback ...\nValueError: no", "{not json", '{"stage": 3}'])
def test_a_termination_message_that_is_no_report_is_kept_as_last_words(text: str) -> None:
    pod = pod_of(raw_pod(phase="Failed", state=terminated(1, message=text)))

    assert pod.report is None
    assert pod.message == text


def test_last_words_are_kept_from_their_end() -> None:
    text = "\n".join(f"line {number}" for number in range(1000))

    pod = pod_of(raw_pod(phase="Failed", state=terminated(1, message=text)))

    assert pod.message.endswith("line 999")
    assert len(pod.message) <= 2048


def test_a_container_that_was_killed_for_memory_says_so() -> None:
    pod = pod_of(raw_pod(phase="Failed", state=terminated(137, reason="OOMKilled")))

    assert (pod.exit_code, pod.reason) == (137, "OOMKilled")


def test_the_kubelets_reason_for_ending_a_pod_counts_when_its_container_has_none() -> None:
    text = "The node was low on resource: ephemeral-storage."
    raw = raw_pod(phase="Failed", state=terminated(137), reason="Evicted", message=text)

    pod = pod_of(raw)

    assert (pod.reason, pod.message) == ("Evicted", text)


def test_a_disruption_is_told_with_its_reason_and_time() -> None:
    raw = raw_pod()
    disruption = condition("DisruptionTarget", reason="PreemptionByScheduler", message="preempted")
    raw["status"]["conditions"].append(disruption)
    raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:10:30Z"

    pod = pod_of(raw)

    assert pod.disrupted
    assert pod.deleting
    assert (pod.reason, pod.message) == ("PreemptionByScheduler", "preempted")
    assert pod.finished_at == datetime(2026, 1, 1, 0, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("CreateContainerConfigError", 'secret "s3-credentials" not found'),
        ("InvalidImageName", "couldn't parse image name"),
        ("CreateContainerError", "context deadline exceeded"),
    ],
)
def test_a_container_that_cannot_start_tells_why_and_for_which_image(
    reason: str, message: str
) -> None:
    pod = pod_of(raw_pod(phase="Pending", state=waiting(reason, message)))

    assert pod.reason == reason
    assert pod.message == f"registry.example/train:1: {message}"
    assert pod.started_at is None


def test_a_registrys_text_that_names_the_image_is_kept_as_it_is() -> None:
    text = 'Back-off pulling image "registry.example/train:1": ErrImagePull: manifest unknown'

    assert pod_of(raw_pod(phase="Pending", state=waiting("ImagePullBackOff", text))).message == text


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing"])
def test_a_container_on_its_way_says_nothing(reason: str) -> None:
    pod = pod_of(raw_pod(phase="Pending", state=waiting(reason)))

    assert (pod.reason, pod.message) == ("", "")
    assert pod.scheduled_at is not None


NO_IMAGE = waiting("ErrImagePull", "manifest unknown")


def with_container(raw: dict[str, Any], name: str, state: dict[str, Any], *, init: bool) -> None:
    """Another container than the stage's own, as the user's pod template adds it."""
    kind, statuses = (
        ("initContainers", "initContainerStatuses") if init else ("containers", "containerStatuses")
    )
    image = f"registry.example/{name}:1"
    raw["spec"].setdefault(kind, []).append({"name": name, "image": image})
    raw["status"].setdefault(statuses, []).append({"name": name, "state": state})


def test_an_init_container_without_an_image_is_told_by_its_name() -> None:
    raw = raw_pod(phase="Pending", state=waiting("PodInitializing"))
    with_container(raw, "ready", terminated(0, reason="Completed"), init=True)
    with_container(raw, "fetch", NO_IMAGE, init=True)

    pod = pod_of(raw)

    assert pod.reason == "ErrImagePull"
    assert pod.message == "container fetch: registry.example/fetch:1: manifest unknown"


@pytest.mark.parametrize(
    "state", [None, terminated(0, reason="Completed")], ids=["at work", "done"]
)
def test_a_side_container_without_an_image_is_told_by_its_name(
    state: dict[str, Any] | None,
) -> None:
    raw = raw_pod(phase="Pending", state=state)
    with_container(raw, "proxy", NO_IMAGE, init=False)

    pod = pod_of(raw)

    assert (pod.phase, pod.reason) == ("Pending", "ErrImagePull")
    assert pod.message == "container proxy: registry.example/proxy:1: manifest unknown"


def test_the_stages_own_container_is_told_before_others() -> None:
    raw = raw_pod(phase="Pending", state=waiting("ImagePullBackOff", "no such tag"))
    with_container(raw, "proxy", NO_IMAGE, init=False)

    assert pod_of(raw).message == "registry.example/train:1: no such tag"


def test_a_failed_stage_is_lost_by_its_own_words_though_a_side_container_waits() -> None:
    raw = raw_pod(phase="Pending", state=terminated(1, message="Traceback"))
    with_container(raw, "proxy", NO_IMAGE, init=False)

    pod = pod_of(raw)

    assert (pod.phase, pod.reason, pod.message) == ("Failed", "", "Traceback")


def test_a_side_container_that_is_started_again_is_not_the_pods_end() -> None:
    raw = raw_pod()
    with_container(raw, "proxy", terminated(1), init=True)
    raw["spec"]["initContainers"][0]["restartPolicy"] = "Always"

    pod = pod_of(raw)

    assert (pod.phase, pod.exit_code) == ("Running", None)


def test_the_scheduler_is_quoted() -> None:
    text = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    raw = raw_pod(phase="Pending", containerStatuses=[])
    raw["spec"].pop("nodeName")
    raw["status"]["conditions"] = [
        condition("PodScheduled", "False", reason="Unschedulable", message=text)
    ]

    pod = pod_of(raw)

    assert (pod.reason, pod.message) == ("Unschedulable", text)
    assert pod.scheduled_at is None
    assert pod.node == ""


def test_the_init_container_that_the_others_wait_for_is_told_with_its_time() -> None:
    raw = raw_pod(phase="Pending", state=waiting("PodInitializing"))
    with_container(raw, "ready", terminated(0, reason="Completed"), init=True)
    with_container(raw, "fetch", {"running": {"startedAt": CREATED}}, init=True)
    with_container(raw, "later", waiting("PodInitializing"), init=True)

    assert pod_of(raw).init == RunningInit("fetch", datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(("started", "waits"), [(True, False), (False, True)])
def test_a_side_container_keeps_others_waiting_until_it_has_started(
    *, started: bool, waits: bool
) -> None:
    raw = raw_pod(phase="Pending", state=waiting("PodInitializing"))
    with_container(raw, "proxy", {"running": {"startedAt": CREATED}}, init=True)
    raw["spec"]["initContainers"][0]["restartPolicy"] = "Always"
    raw["status"]["initContainerStatuses"][0]["started"] = started

    assert (pod_of(raw).init is not None) is waits


def test_an_init_container_that_fails_is_the_pods_end() -> None:
    failed = {"name": "fetch", "state": terminated(3, message="no route to host")}
    raw = raw_pod(phase="Failed", state=waiting("PodInitializing"), initContainerStatuses=[failed])

    pod = pod_of(raw)

    assert pod.exit_code == 3
    assert pod.message == "no route to host"


def test_a_failed_stage_is_lost_though_a_side_container_runs_on() -> None:
    raw = raw_pod(state=terminated(64))
    raw["status"]["containerStatuses"].append({"name": "proxy", "state": {"running": {}}})

    assert pod_of(raw).phase == "Failed"


def test_a_stage_that_is_done_tells_which_container_keeps_its_pod() -> None:
    raw = raw_pod(state=terminated(0, reason="Completed"))
    raw["status"]["containerStatuses"].append({"name": "proxy", "state": {"running": {}}})

    assert pod_of(raw).phase == "Running"
    assert pod_of(raw).lingering == "proxy"


def test_a_pod_of_a_lost_node_is_taken_for_running() -> None:
    assert pod_of(raw_pod(phase="Unknown")).phase == "Running"


def test_an_index_may_be_an_annotation_only() -> None:
    raw = raw_pod(2)
    name = "batch.kubernetes.io/job-completion-index"
    raw["metadata"]["annotations"] = {name: raw["metadata"]["labels"].pop(name)}

    assert pod_of(raw).index == 2


def test_an_ipv6_address_is_kept_as_it_is() -> None:
    assert facts_of(raw_pod(podIP="fd00::5")).ip == "fd00::5"


def test_a_pod_without_a_metrics_port_serves_no_progress() -> None:
    raw = raw_pod()
    raw["spec"]["containers"][0].pop("ports")

    assert facts_of(raw).progress_port == 0


@pytest.mark.parametrize("name", ["containerStatuses", "initContainerStatuses", "conditions"])
def test_parts_that_are_null_are_as_good_as_absent(name: str) -> None:
    raw = raw_pod(phase="Pending")
    raw["status"][name] = None

    assert pod_of(raw).phase == "Pending"


@given(cause=st.sampled_from(list(Cause)), message=st.text(max_size=200))
def test_whatever_a_stage_reports_is_read_back(cause: Cause, message: str) -> None:
    report = StageReport(stage="train", cause=cause, message=message)
    ended = terminated(1, message=report.model_dump_json(by_alias=True))

    assert pod_of(raw_pod(phase="Failed", state=ended)).report == report

"""What is wrong with a child, as far as its raw objects tell."""

from pretrain_api.reports import Cause
from pretrain_operator.observe import Children, PodFacts, observed_of
from pretrain_operator.observed import ObservedPod
from pretrain_operator.plan.pod_failures import classify_pod
from pretrain_testing.plan_simulator import make_job
from pretrain_testing.raw_children import Raw, condition, raw_job, raw_pod


def pod_of(raw: Raw) -> ObservedPod:
    facts = PodFacts.of(raw)
    assert facts is not None
    return facts.pod


def test_a_pod_that_runs_and_is_not_ready_runs() -> None:
    raw = raw_pod(phase="Running")
    raw["status"]["conditions"] = [condition("Ready", "False", reason="ContainersNotReady")]

    assert pod_of(raw).phase == "Running"


def test_the_proxy_of_a_mesh_is_noticed_wherever_it_was_put() -> None:
    beside, before, none = raw_pod(), raw_pod(), raw_pod()
    beside["spec"]["containers"].append({"name": "istio-proxy"})
    before["spec"]["initContainers"] = [{"name": "linkerd-proxy", "restartPolicy": "Always"}]

    assert pod_of(beside).proxy == "istio-proxy"
    assert pod_of(before).proxy == "linkerd-proxy"
    assert pod_of(none).proxy == ""


def test_a_pod_that_was_evicted_while_it_prepared_says_what_for() -> None:
    text = 'Usage of EmptyDir volume "scratch" exceeds the limit "1Mi". '
    killed = {"name": "fill", "state": {"terminated": {"exitCode": 137, "reason": "Error"}}}
    raw = raw_pod(phase="Failed", reason="Evicted", message=text, initContainerStatuses=[killed])
    raw["status"]["containerStatuses"] = []

    pod = pod_of(raw)

    assert (pod.reason, pod.message) == ("Evicted", text.strip())
    assert classify_pod(pod, stage="train").cause is Cause.STORAGE_UNAVAILABLE


def test_a_pod_that_its_node_rejected_says_why_though_it_has_no_container() -> None:
    said = "Allocate failed due to no healthy devices present; cannot allocate nvidia.com/gpu"
    facts = PodFacts.of(
        raw_pod(
            phase="Failed",
            reason="UnexpectedAdmissionError",
            message=said,
            containerStatuses=None,
        )
    )

    assert facts is not None
    assert (facts.pod.phase, facts.pod.exit_code) == ("Failed", None)
    assert (facts.pod.reason, facts.pod.message) == ("UnexpectedAdmissionError", said)


def test_a_child_job_tells_the_generation_of_the_spec_it_was_made_from() -> None:
    told, silent = raw_job(), raw_job(attempt=1)
    told["metadata"]["annotations"] = {"pretrain.dev/generation": "3"}

    observed = observed_of(make_job(), Children(jobs=(told, silent)))

    assert [job.generation for job in observed.jobs] == [3, None]

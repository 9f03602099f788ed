"""The chart as the bed has installed it, with real pods; about 20 seconds."""

from bed.chart import NAMESPACE, RELEASE, helm
from bed.cluster import Bed


def test_helm_test_passes(bed: Bed) -> None:
    assert "Succeeded" in helm(bed.profile, "test", RELEASE)


def test_both_replicas_are_ready_and_were_never_restarted(bed: Bed) -> None:
    selector = "--selector=app.kubernetes.io/component=operator"
    bed.kubectl(
        "wait",
        "pods",
        selector,
        "--for=condition=Ready",
        "--timeout=60s",
        f"--namespace={NAMESPACE}",
    )

    pods = bed.kubectl_json("get", "pods", selector, f"--namespace={NAMESPACE}")["items"]

    statuses = [status for pod in pods for status in pod["status"]["containerStatuses"]]
    assert [status["restartCount"] for status in statuses] == [0, 0]

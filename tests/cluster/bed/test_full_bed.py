"""The `full` profile: pods run on two nodes, find each other, and reach the API and storage.

Takes about two minutes, most of it waiting for a node to be given up.
"""

from __future__ import annotations

import json
import subprocess
import urllib.parse
import urllib.request
from typing import Any

import pytest
import yaml
from bed.binaries import program
from bed.cluster import Bed
from bed.image_store import BASE_IMAGE
from bed.prometheus import URL
from bed.s3 import BUCKET, ENDPOINT, READER, s3_client
from bed.status import status_lines
from botocore.exceptions import ClientError
from pretrain_testing.processes import wait_for

NODES = ("node-a", "node-b")

GREET = """
import os, socket, time
rank = os.environ["JOB_COMPLETION_INDEX"]
if rank == "0":
    with socket.create_server(("", 29500)) as server:
        peer, _ = server.accept()
        print(peer.recv(100).decode())
else:
    while True:
        try:
            with socket.create_connection(("greet-0.greet", 29500)) as peer:
                peer.sendall(b"hello from " + os.environ["NODE"].encode())
                break
        except OSError:
            time.sleep(0.2)
"""

ASK_API = """
import json, pathlib, ssl, urllib.request
here = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")
request = urllib.request.Request("https://kubernetes.default.svc/api/v1/pods")
request.add_header("Authorization", "Bearer " + (here / "token").read_text())
try:
    urllib.request.urlopen(request, context=ssl.create_default_context(cafile=here / "ca.crt"))
except urllib.error.HTTPError as refused:
    print(json.load(refused)["message"])
"""

ASK_S3 = f"""
import urllib.request
try:
    urllib.request.urlopen("{ENDPOINT}/{BUCKET}/")
except urllib.error.HTTPError as refused:
    print(refused.code)
"""

SERVE_METRICS = """
import http.server
class Metrics(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"bed_example 7\\n")
http.server.ThreadingHTTPServer(("", 9400), Metrics).serve_forever()
"""

SLEEP = "import time; time.sleep(3600)"


def container(program: str, **fields: Any) -> dict[str, Any]:
    restricted = {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    return {
        "name": "main",
        "image": BASE_IMAGE,
        "imagePullPolicy": "Never",
        "command": ["python3", "-u", "-c", program],
        "securityContext": restricted,
        **fields,
    }


def pod_spec(main: dict[str, Any], **fields: Any) -> dict[str, Any]:
    user = {
        "runAsNonRoot": True,
        "runAsUser": 65532,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "securityContext": user,
        "containers": [main],
        **fields,
    }


def create_pod(bed: Bed, namespace: str, name: str, spec: dict[str, Any]) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
    bed.kubectl("apply", "-f", "-", "-n", namespace, stdin=yaml.safe_dump(pod))


def output_of(bed: Bed, namespace: str, name: str, spec: dict[str, Any]) -> str:
    """What a pod writes until it succeeds."""
    create_pod(bed, namespace, name, spec)
    succeeded = "--for=jsonpath={.status.phase}=Succeeded"
    bed.kubectl("wait", f"pod/{name}", succeeded, "-n", namespace, "--timeout=60s")
    return bed.kubectl("logs", name, "-n", namespace).strip()


def test_every_part_is_healthy(bed: Bed):
    assert [line for line in status_lines(bed.profile) if not line.endswith("  healthy")] == []


def test_pods_of_an_indexed_job_on_both_nodes_meet_under_their_names(bed: Bed, namespace: str):
    node = {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
    labels = {"app": "greet"}
    apart = {
        "labelSelector": {"matchLabels": labels},
        "topologyKey": "kubernetes.io/hostname",
    }
    spec = pod_spec(
        container(GREET, env=[node]),
        subdomain="greet",
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}},
    )
    service = {"clusterIP": "None", "selector": labels, "publishNotReadyAddresses": True}
    job = {
        "completionMode": "Indexed",
        "completions": 2,
        "parallelism": 2,
        "template": {"metadata": {"labels": labels}, "spec": spec},
    }
    objects = [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "greet"}, "spec": service},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "greet"}, "spec": job},
    ]

    bed.kubectl("apply", "-f", "-", "-n", namespace, stdin=yaml.safe_dump_all(objects))

    bed.kubectl("wait", "job/greet", "--for=condition=Complete", "-n", namespace, "--timeout=90s")
    said = bed.kubectl("logs", "--selector=app=greet", "-n", namespace).strip()
    assert said in {f"hello from {node}" for node in NODES}


def test_a_pod_reaches_the_api_with_its_own_account_from_either_node(bed: Bed, namespace: str):
    for node in NODES:
        said = output_of(bed, namespace, node, pod_spec(container(ASK_API), nodeName=node))

        assert f"system:serviceaccount:{namespace}:default" in said


def test_a_pod_reaches_object_storage_from_either_node(bed: Bed, namespace: str):
    for node in NODES:
        said = output_of(bed, namespace, node, pod_spec(container(ASK_S3), nodeName=node))

        assert said == "403"


def test_a_command_runs_in_a_pod_on_either_node(bed: Bed, namespace: str):
    for node in NODES:
        create_pod(bed, namespace, node, pod_spec(container(SLEEP), nodeName=node))
        bed.kubectl("wait", f"pod/{node}", "--for=condition=Ready", "-n", namespace)

        said = bed.kubectl("exec", node, "-n", namespace, "--", "id", "-u")

        assert said.strip() == "65532"


def test_a_reader_of_storage_may_not_write(bed: Bed, namespace: str):
    key = f"{namespace}/x"
    s3_client().put_object(Bucket=BUCKET, Key=key, Body=b"1")
    reader = s3_client(READER)

    assert reader.get_object(Bucket=BUCKET, Key=key)["Body"].read() == b"1"
    with pytest.raises(ClientError) as refused:
        reader.put_object(Bucket=BUCKET, Key=key, Body=b"2")
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403


def test_prometheus_scrapes_the_ports_named_metrics(bed: Bed, namespace: str):
    ports = [{"name": "metrics", "containerPort": 9400}]
    create_pod(bed, namespace, "metered", pod_spec(container(SERVE_METRICS, ports=ports)))

    query = f'bed_example{{namespace="{namespace}"}}'
    found = wait_for("a scraped sample", lambda: ask_prometheus(query))

    assert found[0]["value"][1] == "7"
    assert found[0]["metric"]["pod"] == "metered"


def test_a_secret_and_storage_are_ready_in_a_tests_namespace(bed: Bed, namespace: str):
    secret = bed.kubectl_json("get", "secret", "storage", "-n", namespace)

    assert set(secret["data"]) == {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}


def test_nothing_is_forwarded_from_the_bridge_elsewhere(bed: Bed):
    rules = subprocess.run(
        ["nft", "list", "table", "inet", "pretrain_bed"], capture_output=True, text=True, check=True
    ).stdout

    assert 'iifname "bed0" oifname != "bed0" drop' in rules
    assert 'iifname != "bed0" oifname "bed0" drop' in rules


def test_a_lost_node_is_noticed_and_comes_back(bed: Bed):
    ready = "--for=condition=Ready"
    bed.stop("kubelet-node-b")
    try:
        bed.kubectl("wait", "node/node-b", f"{ready}=Unknown", "--timeout=90s")
    finally:
        bed.start("kubelet-node-b")

    bed.kubectl("wait", "node/node-b", ready, "--timeout=90s")


def test_a_forwarded_port_reaches_a_pod(bed: Bed, namespace: str):
    listening = {"httpGet": {"port": 9400}, "periodSeconds": 1}
    spec = pod_spec(container(SERVE_METRICS, readinessProbe=listening), nodeName="node-b")
    create_pod(bed, namespace, "served", spec)
    bed.kubectl("wait", "pod/served", "--for=condition=Ready", "-n", namespace)
    command = [str(program("kubectl")), f"--kubeconfig={bed.kubeconfig}", "-n", namespace]
    with subprocess.Popen(
        [*command, "port-forward", "pod/served", ":9400"], stdout=subprocess.PIPE, text=True
    ) as forward:
        assert forward.stdout is not None
        address = forward.stdout.readline().split()[2]
        with urllib.request.urlopen(f"http://{address}/", timeout=30) as answer:
            said = answer.read()
        forward.kill()

    assert said == b"bed_example 7\n"


def ask_prometheus(query: str) -> list[dict[str, Any]]:
    parameters = urllib.parse.urlencode({"query": query})
    url = f"{URL}/api/v1/query?{parameters}"
    with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310
        result: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        return result

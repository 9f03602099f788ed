"""What a user is told of jobs by `pretrainctl describe` and `logs`, who may only look.

No pod runs here, so what is read of logs is why there are none; a real one is read in
tests/cluster.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bed.binaries import program
from bed.cluster import Bed
from pretrain_api.reports import Cause, StageReport
from pretrain_testing.chart import Chart
from pretrain_testing.command_line import Pretrainctl, Result
from pretrain_testing.played_pods import PlayedJob
from pretrain_testing.processes import wait_for
from pretrainctl.cluster import access, reading
from pretrainctl.exit_codes import ExitCode

Reader = Callable[..., Path]
Ask = Callable[..., Result]
RBAC = "rbac.authorization.k8s.io"


@pytest.fixture
def pretrainctl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Pretrainctl:
    return Pretrainctl(monkeypatch, capsys)


@pytest.fixture(scope="session")
def view_rules() -> list[dict[str, Any]]:
    """What the chart adds to the role *view*, which a cluster without it does not have."""
    (role,) = (
        manifest
        for manifest in Chart(str(program("helm"))).render()
        if manifest["metadata"]["name"].endswith("-view")
    )
    rules: list[dict[str, Any]] = role["rules"]
    return rules


@pytest.fixture
def reader(bed: Bed, tmp_path: Path, view_rules: list[dict[str, Any]]) -> Reader:
    """Makes an account in a namespace, which may look or not; its kubeconfig."""

    def reader(namespace: str, *, may_look: bool = True) -> Path:
        account = "reader" if may_look else "stranger"
        bed.api.create(
            f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": account}}
        )
        if may_look:
            roles = f"/apis/{RBAC}/v1/namespaces/{namespace}"
            role = {"metadata": {"name": account}, "rules": view_rules}
            bed.api.create(f"{roles}/roles", role)
            for kind, name in (("Role", account), ("ClusterRole", "view")):
                binding = {
                    "metadata": {"name": f"{account}-{name}"},
                    "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
                    "subjects": [{"kind": "ServiceAccount", "name": account}],
                }
                bed.api.create(f"{roles}/rolebindings", binding)
        return bed.account_kubeconfig(tmp_path / account, namespace=namespace, account=account)

    return reader


def test_a_job_that_waits_is_described_to_a_user_who_may_only_look(
    job: PlayedJob, pretrainctl: Pretrainctl, reader: Reader
):
    job.create()
    (pod,) = job.pods("tokenizer")
    job.wait_for_phase("Pending")
    kubeconfig = reader(job.namespace)

    result = pretrainctl("describe", job.name, "-n", job.namespace, "--kubeconfig", kubeconfig)

    assert (result.code, result.err) == (ExitCode.DONE, "")
    assert f"PretrainJob {job.namespace}/{job.name}" in result.out
    assert "Phase       Pending (tokenizer, attempt 0) since" in result.out
    assert "Why         The tokenizer stage" in result.out
    assert "> tokenizer  attempt 0" in result.out
    assert "the tokenizer stage  (no node)   Pending" in result.out
    assert "Not shown" not in result.out

    shown = pretrainctl(
        "describe", job.name, "-n", job.namespace, "--kubeconfig", kubeconfig, "-o", "json"
    )
    data = json.loads(shown.out)
    assert [found["name"] for found in data["pods"]] == [pod["metadata"]["name"]]
    assert data["operatorHasLooked"]
    assert "SuccessfulCreate" in [event["reason"] for event in data["events"]]
    assert data["operatorLeads"] is None

    logs = pretrainctl("logs", job.name, "-n", job.namespace, "--kubeconfig", kubeconfig)
    assert f"has no log: its pod {pod['metadata']['name']} is Pending" in logs.err


def test_a_job_that_failed_is_told_with_its_last_words_though_its_pods_are_gone(
    job: PlayedJob, bed: Bed, pretrainctl: Pretrainctl
):
    job.create()
    job.run("tokenizer")
    report = StageReport(
        stage="tokenizer", cause=Cause.USER_ERROR, message="no such column", retryable=False
    )
    (pod,) = job.pods("tokenizer")
    job.end(pod, exit_code=64, message=report.model_dump_json(by_alias=True))
    job.wait_for_phase("Failed")
    wait_for("the end of the pods", lambda: not job.objects("pods"))
    options = ("-n", job.namespace, "--kubeconfig", bed.kubeconfig)

    described = pretrainctl("describe", job.name, *options)
    assert "Failed (tokenizer, attempt 0) since" in described.out
    assert "ended with UserError: no such column" in described.out
    assert f"kubectl -n {job.namespace} delete ptj {job.name}" in described.out
    assert "JobFailed: UserError" in described.out

    for follow in ((), ("--follow",)):
        logs = pretrainctl("logs", job.name, *options, *follow)
        assert logs.code == ExitCode.DONE
        assert logs.out.endswith("ended with UserError: no such column\n")
        assert "no pod of attempt 0 of tokenizer has a log" in logs.err

    other = pretrainctl("logs", job.name, *options, "--attempt", "3")
    assert other.code == ExitCode.NOT_FOUND


def test_a_job_that_no_operator_looks_at_says_so(
    crd: None, own_job: PlayedJob, bed: Bed, pretrainctl: Pretrainctl
):
    own_job.create()
    result = pretrainctl(
        "describe", own_job.name, "-n", own_job.namespace, "--kubeconfig", bed.kubeconfig
    )
    assert result.code == ExitCode.DONE
    assert "Why         No operator has looked at this job" in result.out
    assert "kubectl get deploy,pods -A" in result.out


@pytest.mark.parametrize("command", ["describe", "logs"])
def test_a_user_without_rights_is_told_which_one_is_missing(
    crd: None, own_job: PlayedJob, pretrainctl: Pretrainctl, reader: Reader, command: str
):
    own_job.create()
    kubeconfig = reader(own_job.namespace, may_look=False)
    result = pretrainctl(command, own_job.name, "-n", own_job.namespace, "--kubeconfig", kubeconfig)
    assert (result.code, result.out) == (ExitCode.DENIED, "")
    assert 'stranger" cannot get resource "pretrainjobs" in API group "pretrain.dev"' in result.err
    assert "The role that Kubernetes calls view is enough" in result.err


def test_a_job_that_there_is_not_is_looked_for_under_other_names_and_elsewhere(
    crd: None, namespace: str, bed: Bed, pretrainctl: Pretrainctl, reader: Reader
):
    own_job = PlayedJob(bed.api, namespace, name=f"sole-{secrets.token_hex(3)}a").create()

    def missing(name: str, namespace: str, kubeconfig: Path = bed.kubeconfig) -> str:
        result = pretrainctl("describe", name, "-n", namespace, "--kubeconfig", kubeconfig)
        assert (result.code, result.out) == (ExitCode.NOT_FOUND, "")
        return result.err

    typo = f"{own_job.name[:-1]}x"
    assert f"did you mean {own_job.name}?" in missing(typo, own_job.namespace)
    assert f"there are {own_job.name}" in missing("something-else", own_job.namespace)
    assert f"there is one in {own_job.namespace}: add -n" in missing(own_job.name, "kube-system")
    looking = missing("nothing", own_job.namespace, reader(own_job.namespace))
    assert f"there are {own_job.name}" in looking


@pytest.mark.parametrize("may_look", [True, False])
def test_a_cluster_without_the_operators_resource_says_that_it_is_not_installed(
    bed: Bed,
    namespace: str,
    pretrainctl: Pretrainctl,
    *,
    reader: Reader,
    monkeypatch: pytest.MonkeyPatch,
    may_look: bool,
):
    monkeypatch.setattr(reading, "API", "/apis/not-installed.pretrain.dev/v1alpha1")
    kubeconfig = bed.kubeconfig if may_look else reader(namespace, may_look=False)
    result = pretrainctl("describe", "a", "-n", namespace, "--kubeconfig", kubeconfig)
    assert result.code == ExitCode.NOT_FOUND
    assert "pretrain-operator is not installed there" in result.err


def test_credentials_that_are_no_good_are_told(
    bed: Bed, namespace: str, pretrainctl: Pretrainctl, reader: Reader
):
    kubeconfig = reader(namespace, may_look=False)
    text = kubeconfig.read_text(encoding="utf-8")
    token = text.partition("token: ")[2].split()[0]
    kubeconfig.write_text(text.replace(token, "nonsense"), encoding="utf-8")
    result = pretrainctl("describe", "a", "-n", namespace, "--kubeconfig", kubeconfig)
    assert result.code == ExitCode.DENIED
    assert "does not accept these credentials" in result.err


def test_the_namespace_is_the_contexts_when_none_is_named(
    crd: None,
    own_job: PlayedJob,
    pretrainctl: Pretrainctl,
    reader: Reader,
    monkeypatch: pytest.MonkeyPatch,
):
    own_job.create()
    kubeconfig = reader(own_job.namespace)
    text = kubeconfig.read_text(encoding="utf-8")
    placed = text.replace("- context:\n", f"- context:\n    namespace: {own_job.namespace}\n")
    assert placed != text
    kubeconfig.write_text(placed, encoding="utf-8")
    monkeypatch.setenv(access.KUBECONFIG_ENV, str(kubeconfig))
    assert pretrainctl("describe", own_job.name).code == ExitCode.DONE


def test_a_server_that_does_not_answer_is_told_by_its_address(
    pretrainctl: Pretrainctl, tmp_path: Path
):
    kubeconfig = tmp_path / "kubeconfig"
    named = {"name": "gone", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "gone", "context": {"cluster": "gone", "user": "gone"}}
    config = {
        "clusters": [named],
        "contexts": [context],
        "users": [{"name": "gone", "user": {}}],
        "current-context": "gone",
    }
    kubeconfig.write_text(json.dumps(config), encoding="utf-8")
    result = pretrainctl("describe", "a", "--kubeconfig", kubeconfig)
    assert result.code == ExitCode.UNREACHABLE
    assert "http://127.0.0.1:1 does not answer: " in result.err
    assert "Connection refused" in result.err

    other = pretrainctl("logs", "a", "--kubeconfig", kubeconfig, "--context", "home")
    assert other.code == ExitCode.INVALID
    assert "it has no context 'home'; it has gone" in other.err


@pytest.mark.parametrize("content", [None, "", "just: text\n", "[1", "users: 7\n"])
def test_a_kubeconfig_that_cannot_be_used_is_told(
    pretrainctl: Pretrainctl, tmp_path: Path, content: str | None
):
    kubeconfig = tmp_path / "kubeconfig"
    if content is not None:
        kubeconfig.write_text(content, encoding="utf-8")
    result = pretrainctl("describe", "a", "--kubeconfig", kubeconfig)
    assert result.code == ExitCode.INVALID
    assert result.err.startswith(f"pretrainctl: no access to a cluster by {kubeconfig}: ")

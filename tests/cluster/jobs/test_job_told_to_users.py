"""What `pretrainctl describe` and `logs` tell of real pods to a user with the role *view*."""

from __future__ import annotations

from pathlib import Path

import pytest
from bed.cluster import Bed
from pretrain_testing.command_line import Pretrainctl
from pretrain_testing.completed_job import NAME, CompletedJob
from pretrain_testing.small_jobs import STEPS
from pretrainctl.exit_codes import ExitCode


@pytest.fixture
def pretrainctl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Pretrainctl:
    return Pretrainctl(monkeypatch, capsys)


@pytest.fixture
def options(bed: Bed, completed: CompletedJob, tmp_path: Path) -> list[str]:
    """Which cluster and namespace, as whom."""
    namespace = completed.jobs.namespace
    account = ("create", "serviceaccount", "viewer", f"--namespace={namespace}")
    binding = ("create", "rolebinding", "viewer", f"--namespace={namespace}", "--clusterrole=view")
    if not bed.kubectl("get", "serviceaccounts", "viewer", "--ignore-not-found", account[-1]):
        bed.kubectl(*account)
        bed.kubectl(*binding, f"--serviceaccount={namespace}:viewer")
    kubeconfig = bed.account_kubeconfig(
        tmp_path / "kubeconfig", namespace=namespace, account="viewer"
    )
    return ["-n", namespace, "--kubeconfig", str(kubeconfig)]


def test_the_logs_of_all_ranks_are_read_with_their_names(
    completed: CompletedJob, options: list[str], pretrainctl: Pretrainctl
) -> None:
    whole = pretrainctl("logs", NAME, *options, "--stage", "train", "--all")
    assert (whole.code, whole.err) == (ExitCode.DONE, "")
    assert {line.partition(" | ")[0] for line in whole.out.splitlines()} == {"rank 0", "rank 1"}

    one = pretrainctl("logs", NAME, *options, "--rank", "1")
    named = [line.partition(" | ") for line in whole.out.splitlines()]
    assert one.out.splitlines() == [text for rank, _, text in named if rank == "rank 1"]

    last = pretrainctl("logs", NAME, *options, "--rank", "1", "--tail", "1", "--follow")
    assert last.out == f"{one.out.splitlines()[-1]}\n"
    assert last.err == "attempt 0 of train prints no more\n"


def test_the_job_is_described_with_its_results(
    completed: CompletedJob, options: list[str], pretrainctl: Pretrainctl
) -> None:
    result = pretrainctl("describe", NAME, *options)
    assert (result.code, result.err) == (ExitCode.DONE, "")
    assert "Phase       Complete since" in result.out
    assert f"step {STEPS:,} of {STEPS:,}" in result.out
    assert f"model at {completed.status['exportUri']}" in result.out
    assert "JobComplete: The model is exported" in result.out
    assert "Not shown" not in result.out

"""Rank 0 cannot be met, and is the first to tell. About 15 s, most of it torch.

Its port is taken, as on a network that pods share; or its name leads nowhere.
"""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pretrain_api.reports import TERMINATION_LOG_ENV, StageReport
from pretrain_jobs.errors import InfrastructureError
from pretrain_jobs.train.rendezvous import HOST_ALIASES_ENV, wait_for_master
from pretrain_testing.training import Bed

HOST = "rank0.example.svc"


def rank_0(home: Path, config: Path, aliases: dict[str, str]) -> tuple[StageReport, str]:
    """What the launcher of rank 0 reports that ends without the others, and its output."""
    environment = {
        **os.environ,
        "TMPDIR": str(home),
        "JOB_COMPLETION_INDEX": "0",
        HOST_ALIASES_ENV: json.dumps(aliases),
        TERMINATION_LOG_ENV: str(home / "report"),
    }
    command = (sys.executable, "-m", "pretrain_jobs", "train", "--config", str(config))
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 71, done.stderr
    return StageReport.model_validate_json((home / "report").read_bytes()), done.stderr


def test_a_port_that_is_taken_is_an_infrastructure_failure_that_names_it(tmp_path: Path) -> None:
    config = Bed(tmp_path, replicas=2, processes=1, rendezvous_seconds=5).write_config(0)
    port = int(json.loads(config.read_bytes())["rendezvous"]["port"])

    with socket.create_server(("", port)):
        report, output = rank_0(tmp_path, config, {HOST: "127.0.0.1"})

    assert report.cause == "Infrastructure"
    assert f"127.0.0.1:{port}" in report.message
    assert "EADDRINUSE" in output


def test_a_name_that_leads_nowhere_is_named_by_rank_0_as_by_the_others(tmp_path: Path) -> None:
    config = Bed(tmp_path, replicas=2, processes=1, rendezvous_seconds=2).write_config(0)
    port = int(json.loads(config.read_bytes())["rendezvous"]["port"])

    report, _ = rank_0(tmp_path, config, {HOST: "rank0.invalid"})

    with pytest.raises(InfrastructureError) as others:
        wait_for_master("rank0.invalid", port, timeout_seconds=2, sleep=lambda _: None)
    assert report.cause == "Infrastructure"
    assert report.message == str(others.value)

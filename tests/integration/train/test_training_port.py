"""Rank 0 finds its port taken, as on a network that pods share. About 5 s, most of it torch."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from pretrain_api.reports import TERMINATION_LOG_ENV, StageReport
from pretrain_testing.training import Bed


def test_a_port_that_is_taken_is_an_infrastructure_failure_that_names_it(tmp_path: Path) -> None:
    config = Bed(tmp_path, replicas=2, processes=1, rendezvous_seconds=5).write_config(0)
    port = int(json.loads(config.read_bytes())["rendezvous"]["port"])
    environment = {
        **os.environ,
        "TMPDIR": str(tmp_path),
        "JOB_COMPLETION_INDEX": "0",
        "PRETRAIN_HOST_ALIASES": json.dumps({"rank0.example.svc": "127.0.0.1"}),
        TERMINATION_LOG_ENV: str(tmp_path / "report"),
    }
    command = (sys.executable, "-m", "pretrain_jobs", "train", "--config", str(config))

    with socket.create_server(("", port)):
        done = subprocess.run(command, env=environment, capture_output=True, check=False)

    report = StageReport.model_validate_json((tmp_path / "report").read_bytes())
    assert done.returncode == 71, done.stderr
    assert report.cause == "Infrastructure"
    assert f"127.0.0.1:{port}" in report.message
    assert b"EADDRINUSE" in done.stderr

"""A rank whose peers do not come to meet it. About 10 s, most of it torch."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
from pretrain_api.stages import TrainStageConfig
from pretrain_jobs.train.node import Node, worker_environment
from pretrain_testing.processes import wait_for
from pretrain_testing.training import Bed, free_port

LONG_SECONDS = 3600


def listens(process: psutil.Process) -> bool:
    """Whether a rank has made the place where the others are to meet it."""
    return any(found.status == psutil.CONN_LISTEN for found in process.net_connections("tcp"))


def test_a_rank_that_waits_for_its_peers_ends_at_once_when_it_is_asked_to(tmp_path: Path) -> None:
    """No handler of Python's runs in that wait, which would last an hour here."""
    bed = Bed(tmp_path, replicas=2, processes=1, rendezvous_seconds=LONG_SECONDS)
    path = bed.write_config(0)
    config = TrainStageConfig.model_validate_json(path.read_bytes())
    node = Node(0, "127.0.0.1", tmp_path / "scratch")
    node.reports.mkdir(parents=True)
    place = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "2"}
    meeting = {"MASTER_ADDR": node.master, "MASTER_PORT": str(free_port())}
    environment = {**worker_environment(config, node, os.environ), **place, **meeting}
    command = (sys.executable, "-m", "pretrain_jobs", "train-worker", "--config", str(path))
    process = subprocess.Popen(command, env=environment)
    try:
        wait_for("the meeting place", lambda: listens(psutil.Process(process.pid)))
        process.send_signal(signal.SIGTERM)
        assert process.wait() == -signal.SIGTERM
    finally:
        process.kill()

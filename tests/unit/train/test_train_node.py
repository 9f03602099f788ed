"""What a node's processes are given: the environment and the commands."""

import logging
import socket
from pathlib import Path
from typing import Any

import pytest
from pretrain_api.stages import RendezvousConfig, TrainStageConfig
from pretrain_jobs.errors import InfrastructureError, UserError
from pretrain_jobs.train.node import Node, agent_command, node_number, worker_environment
from pretrain_jobs.train.rendezvous import is_loopback, master_address, wait_for_master
from pretrain_testing.logged import logged
from pretrain_testing.training import Bed, free_port

RENDEZVOUS = RendezvousConfig(host="w-0.w.ns.svc", port=29400, run_id="w", timeout_seconds=5)


@pytest.fixture
def config(tmp_path: Path) -> TrainStageConfig:
    return Bed(tmp_path, replicas=2).config()


def node(tmp_path: Path, master: str = "10.0.0.1") -> Node:
    return Node(number=1, master=master, scratch=tmp_path)


def test_threads_come_from_the_job_not_from_the_machine(
    config: TrainStageConfig, tmp_path: Path
) -> None:
    environment = worker_environment(config, node(tmp_path), {"OMP_NUM_THREADS": "64"})

    assert environment["OMP_NUM_THREADS"] == environment["MKL_NUM_THREADS"] == "1"
    assert environment["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] == "1"
    assert environment["TOKENIZERS_PARALLELISM"] == "false"


def test_what_the_user_set_stays(config: TrainStageConfig, tmp_path: Path) -> None:
    environment = worker_environment(config, node(tmp_path), {"NCCL_DEBUG": "INFO"})

    assert environment["NCCL_DEBUG"] == "INFO"
    assert "GLOO_SOCKET_IFNAME" not in environment


def test_on_one_machine_the_ranks_meet_on_the_loopback_interface(
    config: TrainStageConfig, tmp_path: Path
) -> None:
    environment = worker_environment(config, node(tmp_path, "127.0.0.1"), {})

    assert environment["GLOO_SOCKET_IFNAME"] == "lo"


def test_torchrun_is_started_with_a_static_rendezvous_and_no_restarts(
    config: TrainStageConfig, tmp_path: Path
) -> None:
    command = agent_command(config, node(tmp_path), Path("/c.json"), launcher_pid=17)

    assert {"--nnodes=2", "--node-rank=1", "--nproc-per-node=2", "--max-restarts=0"} <= set(command)
    assert command[-5:] == ["-m", "pretrain_jobs", "train-worker", "--config", "/c.json"]


@pytest.mark.parametrize("index", ["2", "-1", "one", ""])
def test_an_index_outside_the_gang_is_refused(index: str) -> None:
    with pytest.raises(UserError, match="JOB_COMPLETION_INDEX"):
        node_number({"JOB_COMPLETION_INDEX": index}, 2)


def test_without_an_index_there_is_one_node() -> None:
    assert node_number({}, 1) == 0


def test_an_alias_stands_in_for_the_name_of_rank_0() -> None:
    aliases = {"PRETRAIN_HOST_ALIASES": '{"w-0.w.ns.svc": "127.0.0.1"}'}

    assert master_address(RENDEZVOUS, aliases) == "127.0.0.1"
    assert master_address(RENDEZVOUS, {}) == "w-0.w.ns.svc"
    with pytest.raises(UserError, match="PRETRAIN_HOST_ALIASES"):
        master_address(RENDEZVOUS, {"PRETRAIN_HOST_ALIASES": "nonsense"})


class Time:
    """A clock that a sleep moves on."""

    def __init__(self) -> None:
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.mark.parametrize(
    ("host", "reason"),
    [("127.0.0.1", "the port does not answer"), ("no-such-name.invalid", "does not resolve")],
)
def test_the_wait_for_rank_0_is_bounded_and_names_it(host: str, reason: str) -> None:
    time, port = Time(), free_port()

    with pytest.raises(InfrastructureError, match=f"{host}:{port} was not.*5 s.*{reason}"):
        wait_for_master(host, port, timeout_seconds=5, clock=time.clock, sleep=time.sleep)

    assert time.now == 5


def test_what_rank_0_is_waited_for_under_is_logged_every_ten_seconds() -> None:
    time, host, port = Time(), "127.0.0.1", free_port()

    with logged(logging.INFO) as records, pytest.raises(InfrastructureError):
        wait_for_master(host, port, timeout_seconds=35, clock=time.clock, sleep=time.sleep)

    lines = [record.getMessage() for record in records]
    told = [line for line in lines if "waiting for rank 0" in line]
    assert len(told) == 4
    assert all(f"{host}:{port}" in line for line in told)


def test_a_name_that_resolves_late_is_met(monkeypatch: pytest.MonkeyPatch) -> None:
    time, resolve = Time(), socket.getaddrinfo

    def getaddrinfo(host: str, *arguments: Any, **options: Any) -> Any:
        if time.now < 40:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return resolve("127.0.0.1", *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    with socket.create_server(("127.0.0.1", 0)) as rank_0:
        port = rank_0.getsockname()[1]
        wait_for_master(
            RENDEZVOUS.host, port, timeout_seconds=600, clock=time.clock, sleep=time.sleep
        )

    assert time.now == 40


def test_a_rank_0_that_answers_late_is_met() -> None:
    time, port, listening = Time(), free_port(), socket.socket()

    def sleep(seconds: float) -> None:
        time.sleep(seconds)
        if time.now == 10:
            listening.bind(("127.0.0.1", port))
            listening.listen()

    with listening:
        wait_for_master("127.0.0.1", port, timeout_seconds=600, clock=time.clock, sleep=sleep)

    assert time.now == 10


@pytest.mark.parametrize(
    ("host", "own"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("10.0.0.1", False)]
)
def test_loopback_addresses_are_told_apart(host: str, *, own: bool) -> None:
    assert is_loopback(host) is own

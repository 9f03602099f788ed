"""A stage's endpoint: what it answers, who serves, and that it never stands in the way."""

import json
import logging
import socket
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest
from pretrain_api.reports import PROGRESS_FILE_ENV, PROGRESS_PORT_ENV, StageName
from pretrain_jobs.telemetry.samples import published
from pretrain_jobs.telemetry.serving import process_labels, served, serving_port
from pretrain_testing.logged import logged
from pretrain_testing.scrapes import get, scrape
from pretrain_testing.training import free_port


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"job": {"namespace": "lab", "name": "zh"}, "attempt": 3}))
    return path


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        PROGRESS_PORT_ENV: str(free_port()),
        PROGRESS_FILE_ENV: str(tmp_path / "progress.json"),
    }


def port_of(environment: dict[str, str]) -> int:
    return int(environment[PROGRESS_PORT_ENV])


def test_progress_is_what_the_file_holds_and_nothing_before_it_is_there(
    config: Path, environment: dict[str, str]
) -> None:
    with served("preprocess", config, environment, index=4):
        before = get(port_of(environment), "/progress")
        Path(environment[PROGRESS_FILE_ENV]).write_text('{"done": 1}')
        after = get(port_of(environment), "/progress")

    assert before == (204, b"")
    assert after == (200, b'{"done": 1}')


def addresses() -> list[str]:
    """Loopback addresses that this machine has."""
    found = ["127.0.0.1"]
    with suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        found.append("::1")
    return found


def test_it_answers_at_ipv6_and_ipv4_alike_where_there_are_both(
    config: Path, environment: dict[str, str]
) -> None:
    with served("export", config, environment, index=0):
        for address in addresses():
            connection = HTTPConnection(address, port_of(environment), timeout=5)
            connection.request("GET", "/progress")
            assert connection.getresponse().status == 204
            connection.close()


def test_metrics_tell_of_the_process_and_whose_it_is(
    config: Path, environment: dict[str, str]
) -> None:
    with served("preprocess", config, environment, index=4):
        found = scrape(port_of(environment))
        opened = scrape(port_of(environment), open_metrics=True)

    assert found is not None
    assert opened is not None
    owner = {"namespace": "lab", "job": "zh", "attempt": "3", "stage": "preprocess", "rank": "4"}
    assert (found.value("pretrain_resident_memory_bytes", **owner) or 0) > 1e6
    assert (found.value("pretrain_open_file_descriptors", **owner) or 0) > 2
    assert opened.families == found.families


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_both_families_of_addresses_are_served(
    host: str, config: Path, environment: dict[str, str]
) -> None:
    with served("export", config, environment, index=0):
        assert get(port_of(environment), "/metrics", host=host)[0] == 200


def test_other_paths_and_methods_are_refused(config: Path, environment: dict[str, str]) -> None:
    with served("export", config, environment, index=0):
        assert get(port_of(environment), "/etc/passwd")[0] == 404
        with socket.create_connection(("127.0.0.1", port_of(environment))) as client:
            client.sendall(b"DELETE /metrics HTTP/1.0\r\n\r\n")
            assert b" 501 " in client.recv(100)


def test_a_taken_port_is_told_and_the_stage_runs(config: Path, environment: dict[str, str]) -> None:
    ran = False
    with (
        logged() as records,
        served("export", config, environment, index=0),
        served("export", config, environment, index=0),
    ):
        ran = True

    assert ran
    (record,) = records
    assert f"not served at port {environment[PROGRESS_PORT_ENV]}" in record.getMessage()


def test_the_port_is_free_again_afterwards(config: Path, environment: dict[str, str]) -> None:
    for _ in range(3):
        with served("export", config, environment, index=0):
            assert get(port_of(environment), "/progress")[0] == 204

    assert scrape(port_of(environment)) is None


def test_a_source_that_fails_is_told_once_and_harms_nobody(
    config: Path, environment: dict[str, str]
) -> None:
    class Broken:
        def samples(self) -> list[object]:
            raise ZeroDivisionError

    with (
        logged() as records,
        served("export", config, environment, index=0),
        published(Broken()),  # type: ignore[arg-type]
    ):
        for _ in range(2):
            assert scrape(port_of(environment)) is None
        assert get(port_of(environment), "/progress")[0] == 204

    assert [record.levelno for record in records] == [logging.WARNING]


@pytest.mark.parametrize(
    ("stage", "environment", "port"),
    [
        ("tokenizer", {PROGRESS_PORT_ENV: "9400"}, 9400),
        ("tokenizer", {}, None),
        ("tokenizer", {PROGRESS_PORT_ENV: "none"}, None),
        ("train", {PROGRESS_PORT_ENV: "9400"}, None),
        ("train", {PROGRESS_PORT_ENV: "9400", "RANK": "8", "LOCAL_RANK": "0"}, 9400),
        ("train", {PROGRESS_PORT_ENV: "9400", "RANK": "9", "LOCAL_RANK": "1"}, None),
    ],
)
def test_one_process_of_a_pod_serves(
    stage: StageName, environment: dict[str, str], port: int | None
) -> None:
    assert serving_port(stage, environment) == port


@pytest.mark.parametrize("content", ["", "{", "[]", '{"job": null, "attempt": 1}'])
def test_a_config_that_tells_nothing_leaves_labels_empty(content: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(content)

    labels = process_labels("train", path, rank="0")

    assert labels == {"namespace": "", "job": "", "attempt": "", "stage": "train", "rank": "0"}

"""A pod's container becomes a process with the command, files and environment of the pod."""

# ruff: noqa: S108 - paths in a pod, not on this machine

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pretrain_operator.children.volumes import LOCAL_CHECKPOINTS, LOCAL_CHECKPOINTS_PATH
from pretrainctl.errors import InvalidError
from pretrainctl.local.pod_process import (
    PodContext,
    PodProcess,
    build_pod_process,
    host_aliases,
    inherited_environment,
    map_path,
)

POD = Path("/runs/pods/p-0")
KEPT = Path("/runs/kept")


def spec(**container: Any) -> dict[str, Any]:
    return {
        "containers": [
            {
                "name": "main",
                "command": ["python", "-m", "x", "--config", "/etc/pretrain/config.json"],
                "volumeMounts": [
                    {"name": "config", "mountPath": "/etc/pretrain"},
                    {"name": "tmp", "mountPath": "/tmp"},
                    {"name": "shm", "mountPath": "/dev/shm"},
                ],
                **container,
            }
        ],
        "volumes": [
            {"name": "config", "configMap": {"name": "settings"}},
            {"name": "tmp", "emptyDir": {}},
            {"name": "shm", "emptyDir": {"medium": "Memory"}},
        ],
    }


def build(template: dict[str, Any], *, caller: dict[str, str] | None = None) -> PodProcess:
    context = PodContext(
        name="p-0",
        index=3,
        namespace="default",
        directory=POD,
        temporary=POD / "tmp",
        hosts={"p-0.p": "127.0.0.1"},
        config_maps={"settings": {"config.json": "{}"}},
        caller=caller or {},
        marks={"MARK": "here"},
        local_checkpoints=KEPT,
    )
    return build_pod_process(template, context)


def env(*entries: dict[str, Any], caller: dict[str, str] | None = None) -> dict[str, str]:
    return dict(build(spec(env=list(entries)), caller=caller).env)


def test_mounted_paths_in_the_command_name_directories_of_the_pod() -> None:
    process = build(spec(args=["--scratch=/tmp/a", "/tmpfile", "x/tmp"]))
    assert process.argv[4] == f"{POD}/volumes/config/config.json"
    assert process.argv[5:] == (f"--scratch={POD}/tmp/a", "/tmpfile", "x/tmp")


def test_the_program_is_this_machines_wherever_it_lies() -> None:
    process = build(spec(command=["/tmp/checkout/.venv/bin/python", "-m", "x"]))
    assert process.argv == ("/tmp/checkout/.venv/bin/python", "-m", "x")


def test_a_config_map_is_files_and_an_empty_dir_a_directory_that_is_removed_afterwards() -> None:
    process = build(spec())
    assert process.files == {POD / "volumes/config/config.json": "{}"}
    assert set(process.directories) >= {POD, POD / "tmp", POD / "volumes/shm"}
    assert set(process.scratch) == {POD / "tmp", POD / "volumes/shm"}


def test_a_host_path_is_itself_and_never_made_or_removed() -> None:
    template = spec()
    template["volumes"].append({"name": "data", "hostPath": {"path": "/data/corpus"}})
    template["containers"][0]["volumeMounts"].append({"name": "data", "mountPath": "/mnt/corpus"})
    template["containers"][0]["args"] = ["/mnt/corpus/a.txt"]
    process = build(template)
    assert process.argv[-1] == "/data/corpus/a.txt"
    assert Path("/data/corpus") not in {*process.directories, *process.scratch}


@pytest.mark.parametrize("source", ["hostPath", "persistentVolumeClaim"])
def test_local_checkpoints_lie_in_a_directory_of_the_run_that_is_made_and_never_removed(
    source: str,
) -> None:
    template = spec(env=[{"name": "PLACE", "value": LOCAL_CHECKPOINTS_PATH}])
    template["volumes"].append({"name": LOCAL_CHECKPOINTS, source: {"path": "/data"}})
    mount = {"name": LOCAL_CHECKPOINTS, "mountPath": LOCAL_CHECKPOINTS_PATH}
    template["containers"][0]["volumeMounts"].append(mount)
    process = build(template)
    assert process.env["PLACE"] == str(KEPT)
    assert KEPT in process.directories
    assert KEPT not in process.scratch


@pytest.mark.parametrize("kind", ["secret", "persistentVolumeClaim", "csi"])
def test_a_volume_that_only_a_cluster_has_is_refused_by_name(kind: str) -> None:
    template = spec()
    template["volumes"][2] = {"name": "shm", kind: {}}
    with pytest.raises(InvalidError, match=f"'shm' is a {kind}"):
        build(template)


def test_an_unknown_config_map_is_refused_by_name() -> None:
    template = spec()
    template["volumes"][0]["configMap"]["name"] = "ca-bundle"
    with pytest.raises(InvalidError, match="'ca-bundle'"):
        build(template)


def test_the_report_and_the_progress_go_to_files_of_the_pod() -> None:
    process = build(
        spec(
            env=[
                {"name": "PRETRAIN_TERMINATION_LOG", "value": "/dev/termination-log"},
                {"name": "PRETRAIN_PROGRESS_FILE", "value": "/tmp/progress.json"},
            ]
        )
    )
    assert process.termination_log == POD / "termination-log"
    assert process.progress_file == POD / "tmp/progress.json"
    assert process.env["PRETRAIN_PROGRESS_FILE"] == f"{POD}/tmp/progress.json"


def test_a_pod_knows_its_index_its_name_and_its_peers() -> None:
    found = env()
    assert found["JOB_COMPLETION_INDEX"] == "3"
    assert found["HOSTNAME"] == "p-0"
    assert json.loads(found["PRETRAIN_HOST_ALIASES"]) == {"p-0.p": "127.0.0.1"}
    assert found["MARK"] == "here"


def test_references_are_expanded_as_kubernetes_does() -> None:
    found = env(
        {"name": "A", "value": "one"},
        {"name": "B", "value": "$(A)-two $(MISSING) $$(A)"},
        {"name": "C", "value": "file:///tmp/$(A)"},
    )
    assert found["B"] == "one-two $(MISSING) $(A)"
    assert found["C"] == f"file://{POD}/tmp/one"


def test_fields_of_the_pod_can_be_asked_for() -> None:
    def field(path: str) -> dict[str, Any]:
        return {"name": "X", "valueFrom": {"fieldRef": {"fieldPath": path}}}

    assert env(field("metadata.name"))["X"] == "p-0"
    assert env(field("status.podIP"))["X"] == "127.0.0.1"
    with pytest.raises(InvalidError, match="comes from a cluster"):
        env(field("metadata.annotations['x']"))


def test_a_key_of_a_secret_is_read_from_the_callers_environment() -> None:
    entry = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}
    assert env(entry, caller={"TOKEN": "abc"})["TOKEN"] == "abc"
    with pytest.raises(InvalidError, match="set TOKEN"):
        env(entry)


def test_only_what_finds_programs_devices_and_credentials_is_inherited() -> None:
    caller = {
        "PATH": "/bin",
        "HOME": "/home/me",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "CUDA_VISIBLE_DEVICES": "0",
        "https_proxy": "http://proxy",
        "OMP_NUM_THREADS": "8",
        "MASTER_ADDR": "elsewhere",
        "PRETRAIN_FAILPOINT": "before_commit:kill",
        "SECRET": "s",
    }
    found = inherited_environment(caller)
    assert found.keys() - caller.keys() == {"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"}
    assert caller.keys() - found.keys() == {"HOME", "OMP_NUM_THREADS", "MASTER_ADDR", "SECRET"}
    assert found["AWS_SHARED_CREDENTIALS_FILE"] == "/home/me/.aws/credentials"


def test_the_longest_mount_path_wins() -> None:
    mounts = {"/a": Path("/x"), "/a/b": Path("/y")}
    assert map_path("/a/b/c", mounts) == "/y/c"
    assert map_path("/a/bc", mounts) == "/x/bc"


def test_every_dns_name_of_a_pod_is_this_machine() -> None:
    names = host_aliases("job", 2, "svc", "team")
    assert {"job-0", "job-0.svc", "job-1.svc.team", "job-1.svc.team.svc"} <= names.keys()
    assert "job-1.svc.team.svc.cluster.local" in names
    assert set(names.values()) == {"127.0.0.1"}

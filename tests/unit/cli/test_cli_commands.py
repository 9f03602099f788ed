"""The command line: what it offers, what it prints where, and its exit codes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pretrain_api.reports import STAGES
from pretrain_testing.command_line import Pretrainctl
from pretrainctl.exit_codes import ExitCode
from pretrainctl.output import error_console
from pretrainctl.samples.manifests import list_samples
from pretrainctl.yaml_positions import read_documents

CRD = Path(__file__).parents[3] / "crds" / "pretrainjobs.yaml"


@pytest.fixture
def pretrainctl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Pretrainctl:
    return Pretrainctl(monkeypatch, capsys)


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    file = tmp_path / "bad.yaml"
    file.write_text(
        "apiVersion: pretrain.dev/v1alpha1\n"
        "kind: PretrainJob\n"
        "metadata: {name: a}\n"
        "spec:\n"
        "  corpus: {sources: [{uri: a.txt}]}\n"
        "  modell: {architecture: bert}\n"
    )
    return file


def sample(name: str) -> Path:
    return next(item.path for item in list_samples() if item.name == name)


def test_exit_codes_are_stable() -> None:
    assert {code.name: int(code) for code in ExitCode} == {
        "DONE": 0,
        "JOB_FAILED": 1,
        "INVALID": 2,
        "NOT_FOUND": 3,
        "UNREACHABLE": 4,
        "DENIED": 5,
        "INTERRUPTED": 130,
    }


def test_help_lists_only_the_commands_that_there_are(pretrainctl: Pretrainctl) -> None:
    result = pretrainctl("--help")
    commands = re.findall(r"^│ (\w+) {2,}\w", result.out, re.MULTILINE)
    assert commands == ["local", "validate", "render", "describe", "logs", "crd", "samples"]
    assert "First steps" in result.out


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert error_console().no_color


@pytest.mark.parametrize(
    "command", ["local", "validate", "render", "describe", "logs", "crd", "samples data"]
)
def test_every_commands_help_has_an_example(pretrainctl: Pretrainctl, command: str) -> None:
    result = pretrainctl(*command.split(), "-h")
    assert result.code == 0
    assert f"Example: pretrainctl {command}" in result.out


def test_the_help_of_local_names_every_stage(pretrainctl: Pretrainctl) -> None:
    words = set(re.findall(r"\w+", pretrainctl("local", "--help").out))
    assert words.issuperset(STAGES)


def test_the_version_is_that_of_the_distribution(pretrainctl: Pretrainctl) -> None:
    assert re.fullmatch(r"pretrainctl \d+\.\d+\.\d+\n", pretrainctl("--version").out)


@pytest.mark.parametrize("arguments", [["local"], ["nonsense"], ["validate", "-o", "xml", "x"]])
def test_wrong_usage_is_told_on_standard_error(
    pretrainctl: Pretrainctl, arguments: list[str]
) -> None:
    result = pretrainctl(*arguments)
    assert (result.code, result.out) == (ExitCode.INVALID, "")
    assert "Usage: pretrainctl" in result.err


def test_every_sample_is_valid(pretrainctl: Pretrainctl) -> None:
    files = [item.path for item in list_samples()]
    result = pretrainctl("validate", *files)
    assert (result.code, result.err) == (ExitCode.DONE, "")
    assert len(result.out.splitlines()) == len(files)


def test_problems_are_told_with_their_places(pretrainctl: Pretrainctl, bad: Path) -> None:
    result = pretrainctl("validate", bad)
    assert (result.code, result.out) == (ExitCode.INVALID, "")
    assert f"{bad}:6:3: spec.modell: " in result.err


def test_problems_can_be_had_as_data(pretrainctl: Pretrainctl, bad: Path) -> None:
    result = pretrainctl("validate", bad, sample("minimal"), "-o", "json")
    assert (result.code, result.err) == (ExitCode.INVALID, "")
    (first, second) = json.loads(result.out)
    assert (first["valid"], second["valid"]) == (False, True)
    assert {"line": 6, "column": 3, "path": "spec.modell"}.items() <= first["problems"][1].items()
    assert second["jobs"] == ["minimal"]


def test_a_container_that_is_added_is_a_warning_and_the_stages_own_is_none(
    pretrainctl: Pretrainctl, tmp_path: Path
) -> None:
    file = tmp_path / "job.yaml"
    containers = "[{name: main, env: []}, {name: preprocess, image: a/b}]"
    template = f"{{podTemplate: {{spec: {{containers: {containers}}}}}}}"
    file.write_text(f"{sample('minimal').read_text().rstrip()}\n  preprocess: {template}\n")
    result = pretrainctl("validate", file)
    assert (result.code, result.out) == (ExitCode.DONE, f"{file}: valid (minimal)\n")
    (warning,) = result.err.splitlines()
    assert warning.startswith(f"warning: {file}:")
    assert "spec.preprocess.podTemplate.spec.containers[1].name: preprocess is added" in warning
    assert warning.endswith("call it main to change the stage's")

    (data,) = json.loads(pretrainctl("validate", file, "-o", "json").out)
    assert (data["valid"], len(data["warnings"])) == (True, 1)


def test_a_file_that_is_missing_is_not_found(pretrainctl: Pretrainctl, tmp_path: Path) -> None:
    result = pretrainctl("validate", tmp_path / "no.yaml")
    assert (result.code, result.out) == (ExitCode.NOT_FOUND, "")
    assert result.err == f"pretrainctl: {tmp_path}/no.yaml does not exist\n"


def test_the_children_of_a_job_are_rendered_in_the_order_of_its_stages(
    pretrainctl: Pretrainctl,
) -> None:
    result = pretrainctl("render", sample("minimal"), "-o", "json")
    stages = [
        child["metadata"]["labels"]["pretrain.dev/stage"]
        for child in json.loads(result.out)
        if child["kind"] == "Job"
    ]
    assert stages == ["tokenizer", "preprocess", "train", "export"]
    assert result.err == ""


def test_rendered_json_and_yaml_are_the_same(pretrainctl: Pretrainctl) -> None:
    text = pretrainctl("render", sample("minimal")).out
    children = [document.data for document in read_documents(text)]
    assert json.loads(pretrainctl("render", sample("minimal"), "-o", "json").out) == children


def test_a_config_in_a_rendered_manifest_can_be_read_line_by_line(
    pretrainctl: Pretrainctl,
) -> None:
    assert "  config.json: |" in pretrainctl("render", sample("minimal")).out


def test_a_job_without_storage_is_rendered_with_the_clusters_default(
    pretrainctl: Pretrainctl,
) -> None:
    unnamed = pretrainctl("render", sample("quickstart"))
    assert "names no storage" in unnamed.err
    named = pretrainctl("render", sample("quickstart"), "--storage", "s3://models")
    assert "s3://models/corpus/reviews.jsonl" in named.out
    assert named.err == ""


@pytest.mark.parametrize("uri", ["ftp://models", "models", "s3://"])
@pytest.mark.parametrize("name", ["quickstart", "minimal"])
def test_a_default_storage_that_no_stage_could_open_is_refused(
    pretrainctl: Pretrainctl, name: str, uri: str
) -> None:
    result = pretrainctl("render", sample(name), "--storage", uri)
    assert (result.code, result.out) == (ExitCode.INVALID, "")
    assert result.err.startswith(f'pretrainctl: --storage: "{uri}"')


def test_an_invalid_job_is_not_rendered(pretrainctl: Pretrainctl, bad: Path) -> None:
    result = pretrainctl("render", bad)
    assert (result.code, result.out) == (ExitCode.INVALID, "")
    assert f"{bad}:6:3: spec.modell: " in result.err


def test_the_crd_is_printed_for_kubectl(pretrainctl: Pretrainctl) -> None:
    assert pretrainctl("crd").out == CRD.read_text(encoding="utf-8")


def test_samples_are_listed_with_what_they_are(pretrainctl: Pretrainctl) -> None:
    lines = pretrainctl("samples", "list").out.splitlines()
    assert len(lines) == len(list_samples())
    assert all(re.match(r"[a-z0-9-]+ {2,}\w.{20}", line) for line in lines)


def test_a_sample_is_shown_as_it_is(pretrainctl: Pretrainctl) -> None:
    shown = pretrainctl("samples", "show", "quickstart").out
    assert shown == sample("quickstart").read_text().rstrip("\n") + "\n"


def test_a_sample_that_there_is_not_names_the_others(pretrainctl: Pretrainctl) -> None:
    result = pretrainctl("samples", "show", "tea")
    assert result.code == ExitCode.NOT_FOUND
    assert "quickstart" in result.err


def test_a_sample_without_data_says_which_have_some(
    pretrainctl: Pretrainctl, tmp_path: Path
) -> None:
    result = pretrainctl("samples", "data", "gpt2", "--to", tmp_path)
    assert result.code == ExitCode.NOT_FOUND
    assert "quickstart" in result.err


def test_a_command_without_a_cluster_does_not_load_the_kubernetes_client() -> None:
    program = "import sys, pretrainctl.app; print('kubernetes' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert run.stdout == "False\n"

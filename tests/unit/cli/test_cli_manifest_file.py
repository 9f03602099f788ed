"""A manifest file is read whole, and everything wrong with it is told with its place."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from pretrainctl.errors import InvalidError, InvalidManifestError, NotFoundError
from pretrainctl.manifest_file import read_jobs, read_manifest_file, read_one_job

JOB = """\
apiVersion: pretrain.dev/v1alpha1
kind: PretrainJob
metadata: {name: NAME}
spec:
  corpus: {sources: [{uri: corpus/a.txt}]}
  model: {architecture: bert}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "job.yaml"


def job(name: str) -> str:
    return JOB.replace("NAME", name)


def problems(file: Path) -> list[str]:
    found = read_manifest_file(str(file)).problems
    return [str(problem).removeprefix(f"{file}:") for problem in found]


def test_a_valid_job_is_read(file: Path) -> None:
    file.write_text(job("a"))
    assert read_one_job(str(file)).metadata.name == "a"


def test_several_jobs_and_objects_of_other_kinds_may_share_a_file(file: Path) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s3}\n"
    file.write_text("---\n".join([secret, job("a"), job("b")]))
    manifest = read_manifest_file(str(file))
    assert [item.metadata.name for item in manifest.jobs] == ["a", "b"]
    assert (manifest.others, manifest.problems) == (1, ())


def test_standard_input_is_a_file_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(job("a").encode())))
    assert [item.metadata.name for item in read_jobs("-")] == ["a"]


def test_every_problem_of_every_document_is_told_with_its_line_and_path(file: Path) -> None:
    file.write_text(
        job("a").replace("architecture: bert", "architecture: bert, hiddenSize: 4")
        + "  workers: {replicas: two}\n"
        + "---\n"
        + job("b").replace("corpus/a.txt", "7").replace("uri: 7", "urri: 7")
        + "  workers: {replicas: 1}\n"
        + "  workers: {replicas: 2}\n"
    )
    places = [line.split(": ")[:2] for line in problems(file)]
    assert places == [
        ["6:31", "spec.model.hiddenSize"],
        ["7:13", "spec.workers.replicas"],
        ["13:22", "spec.corpus.sources[0].uri"],
        ["13:23", "spec.corpus.sources[0].urri"],
        ["16:3", "spec.workers"],
    ]


def test_a_rule_between_fields_has_the_line_of_the_field_to_change(file: Path) -> None:
    file.write_text(
        job("a")
        + "  workers:\n    replicas: 3\n"
        + "  training:\n    globalBatchSize: 32\n    microBatchSize: 32\n"
    )
    (problem,) = problems(file)
    assert problem.startswith("10:5: spec.training.globalBatchSize: ")


def test_what_a_pod_template_must_not_set_is_a_problem_with_its_line(file: Path) -> None:
    file.write_text(
        job("a")
        + "  workers:\n    podTemplate:\n      spec:\n        containers:\n"
        + "          - name: main\n            env:\n"
        + "              - {name: MASTER_ADDR, value: elsewhere}\n"
    )
    (problem,) = problems(file)
    assert problem.startswith("13:")
    assert "MASTER_ADDR" in problem


def test_text_that_is_not_yaml_is_a_problem_with_its_line(file: Path) -> None:
    file.write_text(job("a") + "  workers: {replicas: 2\nstatus: x\n")
    (problem,) = problems(file)
    assert problem.startswith("8:")
    assert "not YAML" in problem


def test_bytes_that_are_not_utf8_are_a_problem_with_their_line(file: Path) -> None:
    file.write_bytes(job("a").encode() + "# höhe".encode("latin-1"))
    assert problems(file) == ["7:4: not UTF-8 (byte 0xf6): save the file as UTF-8"]


@pytest.mark.parametrize(
    "text",
    ["", "# nothing\n", "---\n---\n", "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n"],
)
def test_a_file_without_a_job_is_a_problem(file: Path, text: str) -> None:
    file.write_text(text)
    assert problems(file) == ["1:1: there is no PretrainJob in this file"]


@pytest.mark.parametrize("text", ["[1, 2]\n", "just text\n", "spec: {}\n", "kind: PretrainJob\n"])
def test_a_document_that_is_no_object_of_another_kind_is_judged_as_a_job(
    file: Path, text: str
) -> None:
    file.write_text(text)
    assert problems(file)


def test_a_misspelt_group_is_not_taken_for_somebody_elses_object(file: Path) -> None:
    file.write_text(job("a").replace("pretrain.dev", "pretain.dev"))
    assert any("apiVersion" in problem for problem in problems(file))


def test_the_second_of_two_jobs_of_one_name_is_a_problem_where_its_name_stands(
    file: Path,
) -> None:
    file.write_text("---\n".join(map(job, ["a", "b", "a"])))
    assert problems(file) == [
        "17:12: metadata.name: another PretrainJob, in line 3, has the name 'a' too"
    ]


def test_jobs_in_a_list_as_kubectl_prints_it_are_told_what_to_do(file: Path) -> None:
    item = "".join(f"    {line}\n" for line in job("a").splitlines())
    file.write_text(f"apiVersion: v1\nkind: List\nitems:\n  -\n{item}")
    (problem,) = problems(file)
    assert problem.startswith("3:1: items: PretrainJobs in a List are not read")


def test_a_list_without_jobs_is_left_alone(file: Path) -> None:
    empty = "apiVersion: v1\nkind: List\nitems: [{kind: Secret}, nonsense]\n"
    file.write_text(f"{empty}---\n{job('a')}")
    manifest = read_manifest_file(str(file))
    assert (manifest.others, manifest.problems) == (1, ())


@pytest.mark.parametrize(
    ("metadata", "problem"),
    [
        ("", "1:1: metadata: is required: The job's name"),
        ("metadata: {}\n", "3:1: metadata.name: is required: The job's name"),
        ("metadata: {name: 2026}\n", "3:12: metadata.name: expected text"),
        ("metadata: {name: on}\n", "3:12: metadata.name: expected text"),
    ],
)
def test_a_job_without_a_proper_name_is_told_what_a_name_is(
    file: Path, metadata: str, problem: str
) -> None:
    file.write_text(job("a").replace("metadata: {name: a}\n", metadata))
    (found,) = problems(file)
    assert found.startswith(problem)
    assert ("put it in quotes" in found) == ("expected" in found)


def test_a_file_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match=r"missing\.yaml does not exist"):
        read_manifest_file(str(tmp_path / "missing.yaml"))


def test_a_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="is a directory"):
        read_manifest_file(str(tmp_path))


def test_a_huge_file_is_refused_without_being_read(file: Path) -> None:
    with file.open("wb") as stream:
        stream.truncate(5 * 2**20)
    with pytest.raises(InvalidError, match="larger than 4 MiB"):
        read_manifest_file(str(file))


def test_an_endless_standard_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(bytes(5 * 2**20))))
    with pytest.raises(InvalidError, match="standard input is larger than 4 MiB"):
        read_manifest_file("-")


def test_the_jobs_of_a_file_with_problems_are_not_given_out(file: Path) -> None:
    file.write_text(job("a") + "nonsense: 1\n---\n" + job("b"))
    with pytest.raises(InvalidManifestError) as raised:
        read_jobs(str(file))
    assert len(raised.value.problems) == 1


def test_where_one_job_is_wanted_two_are_refused(file: Path) -> None:
    file.write_text(f"{job('a')}---\n{job('b')}")
    with pytest.raises(InvalidError, match=r"holds 2 PretrainJobs \(a, b\)"):
        read_one_job(str(file))

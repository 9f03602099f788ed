"""Documents become jobs, or everything that is wrong with them is said at once."""

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pretrain_api.documents import document_tree, validate_object
from pretrain_api.errors import InvalidObjectError
from pretrain_api.job import PretrainJob
from pretrain_api.names import LONGEST_JOB_NAME
from pretrain_api.problems import Path, Problem, render_path
from pretrain_api.tree import node_at


def document(spec: dict[str, Any] | None = None, **top: Any) -> dict[str, Any]:
    minimal = {
        "corpus": {"sources": [{"uri": "corpus/a.jsonl"}]},
        "model": {"architecture": "bert"},
    }
    return {
        "apiVersion": "pretrain.dev/v1alpha1",
        "kind": "PretrainJob",
        "metadata": {"name": "example"},
        "spec": {**minimal, **(spec or {})},
        **top,
    }


def problems(data: Any) -> list[Problem]:
    with pytest.raises(InvalidObjectError) as refused:
        validate_object(data)
    return list(refused.value.problems)


def problems_if_any(data: Any) -> list[Problem]:
    try:
        validate_object(data)
    except InvalidObjectError as error:
        return list(error.problems)
    return []


def message_at(data: Any, *path: str | int) -> str:
    (message,) = [problem.message for problem in problems(data) if problem.path == path]
    return message


def test_a_valid_document_becomes_the_job_as_it_is_written() -> None:
    job = validate_object(document({"workers": {"replicas": 2}}))
    assert isinstance(job, PretrainJob)
    assert job.spec.workers.replicas == 2
    assert job.spec.preprocess.sequence_length is None


def test_an_object_from_an_api_server_is_read_with_its_metadata_and_status() -> None:
    metadata = {
        "name": "example",
        "namespace": "team",
        "uid": "6b1c",
        "creationTimestamp": "2030-01-01T00:00:00Z",
        "managedFields": [{"manager": "kubectl"}],
    }
    status = {"phase": "Training", "startTime": "2030-01-01T00:00:01Z"}
    job = validate_object(document(metadata=metadata, status=status))
    assert job.metadata.creation_timestamp == datetime(2030, 1, 1, tzinfo=UTC)
    assert job.status.phase == "Training"


def test_timestamps_that_yaml_made_of_text_are_read() -> None:
    metadata = {"name": "example", "creationTimestamp": datetime(2030, 1, 1, tzinfo=UTC)}
    assert validate_object(document(metadata=metadata)).metadata.creation_timestamp is not None


@pytest.mark.parametrize(
    ("spec", "path", "message"),
    [
        (
            {"workers": {"replicaz": 2}},
            ("workers", "replicaz"),
            "is no known field; did you mean replicas?",
        ),
        (
            {"training": {"global_batch_size": 8}},
            ("training", "global_batch_size"),
            "is no known field; did you mean globalBatchSize?",
        ),
        (
            {"checkpoint": {"zzz": 8}},
            ("checkpoint", "zzz"),
            "is no known field; known here are everySteps, everyMinutes, keepLast, "
            "keepEverySteps, uri, onPreemption, localVolume",
        ),
        (
            {"checkpoint": {"localVolume": {"emptyDir": {}}}},
            ("checkpoint", "localVolume", "emptyDir"),
            "dies with its pod, and what lies there must not; give hostPath or "
            "persistentVolumeClaim",
        ),
        (
            {"workers": {"replicas": "2"}},
            ("workers", "replicas"),
            'expected an integer of at least 1 and at most 4096, found the text "2" (write it '
            "without quotes, as 2)",
        ),
        (
            {"training": {"optimizer": {"learningRate": "2e-3"}}},
            ("training", "optimizer", "learningRate"),
            'expected a number of more than 0 and at most 10, found the text "2e-3" (write it '
            "without quotes, as 0.002)",
        ),
        ({"suspend": "yes"}, ("suspend",), 'expected true or false, found the text "yes"'),
        (
            {"workers": {"replicas": 0}},
            ("workers", "replicas"),
            "expected an integer of at least 1 and at most 4096, found 0",
        ),
        (
            {"training": {"precision": "fp8"}},
            ("training", "precision"),
            'expected one of auto, fp32, bf16, fp16, found the text "fp8"',
        ),
        (
            {"workers": {"resources": {"limits": {"cpu": [1]}}}},
            ("workers", "resources", "limits", "cpu"),
            "expected an integer of at least 0 or text of at most 32 characters, matching "
            r"^[0-9]+(\.[0-9]+)?(m|[kKMGTPE]i?)?$, found a list",
        ),
        (
            {"storage": {"uri": "s3://bucket", "credentialsSecret": "Not A Name"}},
            ("storage", "credentialsSecret"),
            "expected text of at least 1 characters and at most 253 characters, which are small "
            "letters, digits, hyphens and dots, with a letter or digit at both ends and beside "
            'each dot, found the text "Not A Name"',
        ),
        ({"training": [1]}, ("training",), "expected keys and values, found a list"),
        ({"tokenizer": None}, ("tokenizer",), "expected keys and values, found nothing"),
        (
            {"training": {"optimizer": {"betas": [0.9]}}},
            ("training", "optimizer", "betas"),
            "expected a list of at least 2 entries and at most 2 entries, found a list",
        ),
        (
            {"corpus": {"sources": [{"uri": "a"}, {"format": "jsonl"}]}},
            ("corpus", "sources", 1, "uri"),
            "is required: A file, a prefix (ending in /) or a glob; s3://bucket/key, "
            "file:///absolute/path, or a relative path, which is taken under the storage.",
        ),
    ],
)
def test_a_wrong_field_is_told_with_its_place_what_was_found_and_what_would_do(
    spec: dict[str, Any], path: Path, message: str
) -> None:
    assert message_at(document(spec), "spec", *path) == message


def test_a_value_of_several_types_is_one_problem() -> None:
    data = document({"model": {"architecture": "bert", "config": {"hidden_size": [1]}}})
    (problem,) = problems(data)
    assert problem.path == ("spec", "model", "config", "hidden_size")


def test_a_long_value_is_not_repeated_whole() -> None:
    data = document({"corpus": {"sources": [{"uri": "a" * 2000}]}})
    assert message_at(data, "spec", "corpus", "sources", 0, "uri").endswith(f'"{"a" * 60}..."')


def test_every_wrong_field_is_told_at_once_with_what_is_not_run() -> None:
    data = document(
        {"workers": {"replicas": "2"}, "suspend": 1, "managedBy": "x", "traning": {}},
        kind="Job",
    )
    assert {render_path(problem.path) for problem in problems(data)} == {
        "kind",
        "spec.workers.replicas",
        "spec.suspend",
        "spec.traning",
        "spec.managedBy",
    }


def test_fields_are_weighed_against_each_other_once_each_is_right() -> None:
    data = document({"workers": {"replicas": 3}, "training": {"globalBatchSize": 8}})
    assert "no multiple of 3" in message_at(data, "spec", "training", "globalBatchSize")


def test_rules_of_several_fields_do_not_follow_from_a_wrong_one() -> None:
    data = document({"workers": {"replicas": 3}, "training": {"globalBatchsize": 9}})
    assert [problem.path[-1] for problem in problems(data)] == ["globalBatchsize"]


@pytest.mark.parametrize(
    "name", ["a" * (LONGEST_JOB_NAME + 1), "a.b", "1a", "A", "a-", "-a", "名字", "a\n"]
)
def test_names_that_no_child_could_carry_are_refused_with_the_limit(name: str) -> None:
    message = message_at(document(metadata={"name": name}), "metadata", "name")
    assert f"at most {LONGEST_JOB_NAME} characters" in message


@pytest.mark.parametrize("name", ["a", "a" * LONGEST_JOB_NAME, "a-1"])
def test_names_that_every_child_can_carry_are_accepted(name: str) -> None:
    assert validate_object(document(metadata={"name": name})).metadata.name == name


def test_a_missing_spec_is_one_problem() -> None:
    data = {"apiVersion": "pretrain.dev/v1alpha1", "kind": "PretrainJob", "metadata": {"name": "a"}}
    (problem,) = problems(data)
    assert str(problem).startswith("spec: is required")


def test_another_version_is_told_which_is_known() -> None:
    data = document(apiVersion="pretrain.dev/v1")
    expected = 'expected pretrain.dev/v1alpha1, found the text "pretrain.dev/v1"'
    assert message_at(data, "apiVersion") == expected


@pytest.mark.parametrize("data", [None, [], "text", 3])
def test_a_document_of_another_shape_is_refused(data: Any) -> None:
    (problem,) = problems(data)
    assert problem == Problem((), "is no PretrainJob: expected keys and values")


def test_keys_that_are_no_text_are_refused_where_they_stand() -> None:
    data = document({"workers": {True: 1}})
    (problem,) = problems(data)
    assert problem.path == ("spec", "workers")
    assert problem.message == "has the key True, which is no text; put it in quotes"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_none_are_refused(value: float) -> None:
    data = document({"training": {"gradientClipping": value}})
    assert message_at(data, "spec", "training", "gradientClipping").startswith("expected a number")


def test_the_error_reads_as_one_line_per_problem() -> None:
    with pytest.raises(InvalidObjectError) as refused:
        validate_object(document({"workers": {"replicas": 0, "device": "tpu"}}))
    lines = str(refused.value).splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        "spec.workers.replicas",
        "spec.workers.device",
    ]
    assert refused.value.exit_code == 64


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.dates(),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3)
    ),
    max_leaves=5,
)


def all_paths() -> list[Path]:
    """Give the path of every field of the spec that is in no list."""
    paths: list[Path] = []

    def visit(node: dict[str, Any], path: Path) -> None:
        for name, child in node.get("properties", {}).items():
            paths.append((*path, name))
            visit(child, (*path, name))

    visit(node_at(document_tree(), ("spec",)) or {}, ("spec",))
    return paths


@settings(deadline=None, max_examples=50)
@given(st.sampled_from(all_paths()), json_values)
def test_any_value_anywhere_makes_a_job_or_problems_that_lie_in_the_document(
    path: Path, value: Any
) -> None:
    data = document()
    node = data
    for name in path[:-1]:
        node = node.setdefault(str(name), {})
    node[str(path[-1])] = value
    for problem in problems_if_any(data):
        assert problem.message
        assert node_at(document_tree(), problem.path[:-1]) is not None


def test_a_date_is_no_text_of_a_field_that_wants_a_number() -> None:
    data = document({"training": {"seed": date(2030, 1, 1)}})
    assert "found the text" in message_at(data, "spec", "training", "seed")


NAMED_OBJECTS: list[tuple[str, ...]] = [
    ("storage", "credentialsSecret"),
    ("storage", "serviceAccountName"),
    ("storage", "caBundle"),
    ("export", "push", "tokenSecret"),
    ("scheduling", "priorityClassName"),
]


@pytest.mark.parametrize("path", NAMED_OBJECTS, ids=".".join)
@pytest.mark.parametrize("name", ["Not A Name", "keys/mine", "-keys", "keys."])
def test_a_name_that_no_object_of_kubernetes_can_have_is_refused(
    path: tuple[str, ...], name: str
) -> None:
    assert ("spec", *path) in {found.path for found in problems_if_any(with_name(path, name))}


@pytest.mark.parametrize("path", NAMED_OBJECTS, ids=".".join)
@pytest.mark.parametrize("name", ["k", "s3-keys", "team.keys.2", "0a"])
def test_a_name_that_an_object_can_have_is_taken(path: tuple[str, ...], name: str) -> None:
    found = {problem.path for problem in problems_if_any(with_name(path, name))}
    assert ("spec", *path) not in found


def with_name(path: tuple[str, ...], name: str) -> dict[str, Any]:
    value: Any = name
    for key in reversed(path):
        value = {key: value}
    if path[0] == "storage":
        value["storage"]["uri"] = "s3://bucket"
    if path[0] == "export":
        value["export"]["push"]["repo"] = "a/b"
    return document(value)

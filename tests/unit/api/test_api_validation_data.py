"""Specs whose data, tokenizer, tasks or places can never work are refused with what would do."""

from typing import Any

import pytest
from pretrain_testing.specs import found, problems, task


@pytest.mark.parametrize(
    ("corpus", "words"),
    [
        ({}, "has no text"),
        ({"sources": [{"uri": "a"}], "dataset": {"uri": "b"}}, "not both"),
    ],
)
def test_a_corpus_has_one_origin(corpus: dict[str, Any], words: str) -> None:
    assert words in found("corpus", corpus=corpus)


def test_a_tokenizer_has_one_origin() -> None:
    assert "not both" in found("tokenizer", tokenizer={"uri": "a", "train": {}})


@pytest.mark.parametrize(
    ("architecture", "field", "value", "words"),
    [
        ("gpt2", "algorithm", "unigram", "unigram needs a token for unknown text"),
        ("qwen2", "algorithm", "wordpiece", "tokenizers of qwen2 do not have; use byteLevelBpe"),
        ("qwen2", "lowercase", True, "keeps case"),
    ],
)
def test_a_tokenizer_that_the_architecture_cannot_hold_is_refused(
    architecture: str, field: str, value: Any, words: str
) -> None:
    model = {"architecture": architecture}
    tokenizer = {"train": {field: value}}
    assert words in found("tokenizer", "train", field, model=model, tokenizer=tokenizer)


@pytest.mark.parametrize(
    ("architecture", "algorithm"),
    [("bert", "unigram"), ("roberta", "wordpiece"), ("gpt2", "byteLevelBpe")],
)
def test_other_algorithms_than_the_usual_ones_may_be_trained(
    architecture: str, algorithm: str
) -> None:
    tokenizer = {"train": {"algorithm": algorithm, "lowercase": False}}
    assert problems(model={"architecture": architecture}, tokenizer=tokenizer) == []


def test_bounds_that_no_document_meets_are_refused() -> None:
    cleaning = {"minCharacters": 10, "maxCharacters": 9}
    corpus = {"sources": [{"uri": "a"}], "cleaning": cleaning}
    assert "no document is kept" in found("corpus", "cleaning", "maxCharacters", corpus=corpus)


@pytest.mark.parametrize(
    "objective", [{"mlm": {"wholeWord": False}}, {"mlm": {"segmenter": "whitespace"}}]
)
def test_a_user_dictionary_that_nothing_reads_is_refused(objective: dict[str, Any]) -> None:
    preprocess = {"userDictionary": "words.txt"}
    path = ("preprocess", "userDictionary")
    assert "jieba" in found(*path, preprocess=preprocess, objective=objective)
    assert problems(preprocess=preprocess) == []


def test_tasks_of_one_name_are_refused_at_each() -> None:
    tasks = [task("a"), task("b"), task("a")]
    paths = [problem.path for problem in problems(evaluation={"tasks": tasks})]
    assert paths == [("evaluation", "tasks", i, "name") for i in (0, 2)]


@pytest.mark.parametrize(("field", "values"), [("seeds", [1, 2, 1]), ("metrics", ["f1", "f1"])])
def test_repeats_in_a_task_are_refused(field: str, values: list[Any]) -> None:
    path = ("evaluation", "tasks", 0, field)
    tasks = [{**task(), field: values}]
    assert "more than once" in found(*path, evaluation={"tasks": tasks})


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("gs://bucket/a", "s3:// and file:// are read"),
        ("/data/a", "write file:///data/a"),
        ("file://data/a", "write file:///data/a"),
        ("s3:///a", "names no bucket"),
        ("../a", "climbs out"),
        ("s3://bucket/../a", "climbs out"),
    ],
)
def test_uris_that_no_stage_can_open_are_refused_wherever_they_stand(uri: str, words: str) -> None:
    corpus = {"sources": [{"uri": "a"}, {"uri": uri}]}
    assert words in found("corpus", "sources", 1, "uri", corpus=corpus)
    held_out = {"sources": [{"uri": "a"}], "validation": {"sources": [{"uri": uri}]}}
    assert words in found("corpus", "validation", "sources", 0, "uri", corpus=held_out)
    assert words in found("tokenizer", "uri", tokenizer={"uri": uri})
    assert words in found("checkpoint", "uri", checkpoint={"uri": uri})
    assert words in found("export", "uri", export={"uri": uri})
    tasks = [{"name": "a", "data": {"uri": "b", "testUri": uri}}]
    path = ("evaluation", "tasks", 0, "data", "testUri")
    assert words in found(*path, evaluation={"tasks": tasks})


@pytest.mark.parametrize("uri", ["a/b.jsonl", "a/", "a/*.jsonl.gz", "file:///a", "s3://b/c/..d"])
def test_uris_of_files_prefixes_and_globs_are_fine(uri: str) -> None:
    assert problems(corpus={"sources": [{"uri": uri}]}) == []


def test_a_storage_is_absolute() -> None:
    assert "has no scheme" in found("storage", "uri", storage={"uri": "data"})
    assert problems(storage={"uri": "file:///data"}) == []


def test_an_endpoint_is_a_url() -> None:
    storage = {"uri": "s3://a", "endpointUrl": "minio:9000"}
    assert "https://" in found("storage", "endpointUrl", storage=storage)


def test_a_storage_has_one_identity() -> None:
    storage = {"uri": "s3://a", "credentialsSecret": "a", "serviceAccountName": "b"}
    assert "not both" in found("storage", storage=storage)


HOST_PATH = {"path": "/var/lib/pretrain"}


@pytest.mark.parametrize(
    "volume", [{}, {"hostPath": HOST_PATH, "persistentVolumeClaim": {"claimName": "kept"}}]
)
def test_checkpoints_are_left_on_one_volume_that_outlives_its_pod(volume: dict[str, Any]) -> None:
    path = ("checkpoint", "localVolume")
    assert "hostPath or persistentVolumeClaim" in found(*path, checkpoint={"localVolume": volume})
    assert problems(checkpoint={"localVolume": {"hostPath": HOST_PATH}}) == []


def test_a_directory_of_the_node_is_where_it_says() -> None:
    volume = {"hostPath": {"path": "/var/../etc"}}
    path = ("checkpoint", "localVolume", "hostPath", "path")
    assert "climbs out" in found(*path, checkpoint={"localVolume": volume})

"""Specs that can never work are refused, with the numbers and what would do."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pretrain_api.problems import Path, Problem
from pretrain_api.resolve import resolve
from pretrain_api.spec import PretrainJobSpec
from pretrain_api.validation import check

GPUS = {"resources": {"limits": {"nvidia.com/gpu": 8}}, "processesPerWorker": 8}


def problems(model: dict[str, Any] | None = None, **sections: Any) -> list[Problem]:
    spec = {
        "corpus": {"sources": [{"uri": "corpus/a.jsonl"}]},
        "model": {"architecture": "bert"} if model is None else model,
        **sections,
    }
    return check(resolve(PretrainJobSpec.model_validate(spec)))


def found(*path: str | int, **sections: Any) -> str:
    """Give the message at a path, which must be the one problem."""
    (problem,) = problems(**sections)
    assert problem.path == path
    return problem.message


def task(name: str = "a", **fields: Any) -> dict[str, Any]:
    return {"name": name, "data": {"uri": "a.jsonl"}, **fields}


def test_the_smallest_job_has_no_problem() -> None:
    assert problems() == []


def test_a_batch_that_ranks_cannot_share_is_refused_with_the_nearest_that_they_can() -> None:
    message = found("training", "globalBatchSize", workers={"replicas": 3})
    assert message == (
        "256 is no multiple of 3 (3 replicas x 1 processes); the nearest are 255 and 258"
    )


def test_a_micro_batch_takes_part_in_the_division() -> None:
    message = found(
        "training",
        "globalBatchSize",
        workers={"replicas": 2, "processesPerWorker": 2},
        training={"globalBatchSize": 100, "microBatchSize": 10},
    )
    assert "no multiple of 40 (2 replicas x 2 processes x microBatchSize 10)" in message
    assert message.endswith("the nearest are 80 and 120")


def test_a_batch_below_one_share_is_told_the_smallest_that_works() -> None:
    training = {"globalBatchSize": 2, "microBatchSize": 4}
    assert found("training", "globalBatchSize", training=training).endswith("the nearest are 4")


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 5000), st.integers(1, 64), st.integers(1, 64))
def test_the_batch_rule_is_division_without_rest(batch: int, replicas: int, micro: int) -> None:
    training = {"globalBatchSize": batch, "microBatchSize": micro}
    refused = problems(training=training, workers={"replicas": replicas}) != []
    assert refused == (batch % (replicas * micro) != 0)


def test_a_sequence_beyond_the_positions_is_refused_with_the_size_that_it_needs() -> None:
    message = found(
        "preprocess",
        "sequenceLength",
        preprocess={"sequenceLength": 1024},
    )
    assert message == (
        "1024 is more than the 512 positions of the model (max_position_embeddings 512); shorten "
        "it, or set model.config.max_position_embeddings to at least 1024"
    )


@pytest.mark.parametrize(("pad", "rows"), [(0, 513), (1, 514), (3, 516)])
def test_roberta_needs_rows_up_to_its_padding_token_beside_the_length(pad: int, rows: int) -> None:
    def with_rows(count: int) -> list[Problem]:
        config = {"pad_token_id": pad, "max_position_embeddings": count}
        return problems(
            model={"architecture": "roberta", "config": config},
            preprocess={"sequenceLength": 512},
        )

    assert with_rows(rows) == []
    (problem,) = with_rows(rows - 1)
    assert f"of which {pad + 1} are never used" in problem.message
    assert problem.message.endswith(f"to at least {rows}")


@pytest.mark.parametrize(
    ("architecture", "key", "limit"),
    [
        ("modernbert", "max_position_embeddings", 8192),
        ("gpt2", "n_positions", 1024),
        ("qwen2", "max_position_embeddings", 32_768),
    ],
)
def test_each_architecture_has_its_own_positions(architecture: str, key: str, limit: int) -> None:
    model = {"architecture": architecture}
    assert problems(model=model, preprocess={"sequenceLength": limit}) == []
    path = ("preprocess", "sequenceLength")
    longer = {"sequenceLength": limit + 1}
    assert f"({key} {limit})" in found(*path, model=model, preprocess=longer)
    wider = {**model, "config": {key: limit + 1}}
    assert problems(model=wider, preprocess=longer) == []


def test_an_architecture_with_relative_positions_has_no_limit() -> None:
    assert problems(model={"architecture": "t5"}, preprocess={"sequenceLength": 4096}) == []


def test_fine_tuning_is_bound_by_the_positions_too() -> None:
    tasks = [task(fineTuning={"maxLength": 600})]
    path = ("evaluation", "tasks", 0, "fineTuning", "maxLength")
    assert "512 positions" in found(*path, evaluation={"tasks": tasks})


def test_fp16_on_a_cpu_is_refused_with_the_reason() -> None:
    message = found("training", "precision", training={"precision": "fp16"})
    assert message == "fp16 is not trained on CPUs by DeepSpeed; use fp32 or bf16"


@pytest.mark.parametrize("architecture", ["t5", "deberta-v2"])
def test_fp16_is_refused_where_activations_overflow_it(architecture: str) -> None:
    message = found(
        "training",
        "precision",
        model={"architecture": architecture},
        training={"precision": "fp16"},
        workers=GPUS,
    )
    assert "use bf16, or fp32 on devices without it" in message


def test_fp16_on_gpus_is_fine_for_bert_and_bf16_everywhere() -> None:
    assert problems(training={"precision": "fp16"}, workers=GPUS) == []
    assert problems(training={"precision": "bf16"}) == []


@pytest.mark.parametrize(
    ("zero", "field"),
    [
        ({"stage": 1, "offload": {"optimizer": True}}, "optimizer"),
        ({"stage": 0, "offload": {"optimizer": True}}, "optimizer"),
        ({"stage": 2, "offload": {"parameters": True}}, "parameters"),
    ],
)
def test_offload_needs_a_stage_that_shares_what_it_moves(zero: dict[str, Any], field: str) -> None:
    path = ("training", "zero", "offload", field)
    assert f"not at stage {zero['stage']}" in found(*path, training={"zero": zero})


@pytest.mark.parametrize("stage", [2, 3])
def test_the_optimizer_is_offloaded_at_stages_2_and_3(stage: int) -> None:
    zero = {"stage": stage, "offload": {"optimizer": True}}
    assert problems(training={"zero": zero}) == []


def test_flash_attention_needs_a_gpu() -> None:
    model = {"architecture": "bert", "attention": "flash_attention_2"}
    assert "needs a GPU" in found("model", "attention", model=model)
    assert problems(model=model, workers=GPUS) == []


def test_ranks_do_not_share_a_device() -> None:
    workers = {"resources": {"limits": {"amd.com/gpu": 4}}, "processesPerWorker": 8}
    message = found("workers", "processesPerWorker", workers=workers)
    assert message.startswith("8 processes would share 4 amd.com/gpu")


@pytest.mark.parametrize(
    ("model", "path", "words"),
    [
        ({}, ("model",), "set preset or architecture"),
        ({"preset": "roberta-bas"}, ("model", "preset"), "did you mean roberta-base?"),
        ({"preset": "gpt2", "architecture": "bert"}, ("model", "architecture"), "contradicts"),
    ],
)
def test_a_model_is_named_once(model: dict[str, Any], path: Path, words: str) -> None:
    at_path = [p.message for p in problems(model=model) if p.path == path]
    assert any(words in message for message in at_path)


@pytest.mark.parametrize(
    ("architecture", "config", "key", "words"),
    [
        ("bert", {"hidden_sise": 768}, "hidden_sise", "did you mean hidden_size?"),
        ("bert", {"zzz": 1}, "zzz", "known are hidden_size, "),
        ("bert", {"vocab_size": 100}, "vocab_size", "follows from the tokenizer"),
        ("bert", {"num_hidden_layers": 2.5}, "num_hidden_layers", "is an integer, not 2.5"),
        ("bert", {"num_hidden_layers": True}, "num_hidden_layers", "is an integer, not True"),
        ("gpt2", {"resid_pdrop": "0.1"}, "resid_pdrop", "is a number, not '0.1'"),
        ("bert", {"hidden_size": 770}, "hidden_size", "cannot be shared by 12 attention heads"),
        ("gpt2", {"n_head": 7}, "n_embd", "768 cannot be shared by 7 attention heads (n_head)"),
        ("bert", {"num_attention_heads": 0}, "hidden_size", "shared by 0 attention heads"),
        (
            "modernbert",
            {"hidden_size": 9, "num_attention_heads": 3},
            "hidden_size",
            "need an even size",
        ),
        ("qwen2", {"num_key_value_heads": 5}, "num_key_value_heads", "does not divide the 32"),
    ],
)
def test_a_configuration_that_no_model_can_be_made_of_is_refused(
    architecture: str, config: dict[str, Any], key: str, words: str
) -> None:
    model = {"architecture": architecture, "config": config}
    assert words in found("model", "config", key, model=model)


def test_no_positions_are_refused_by_name() -> None:
    model = {"architecture": "bert", "config": {"max_position_embeddings": 0}}
    messages = [str(problem) for problem in problems(model=model)]
    key = "model.config.max_position_embeddings"
    assert f"{key}: 0 positions leave no room for a token" in messages


def test_an_integer_is_a_number_in_a_configuration() -> None:
    assert problems(model={"architecture": "gpt2", "config": {"resid_pdrop": 0}}) == []


@pytest.mark.parametrize(
    ("architecture", "objective", "words"),
    [
        ("bert", "clm", "bert is trained with mlm"),
        ("gpt2", "mlm", "gpt2 is trained with clm"),
        ("qwen2", "spanCorruption", "qwen2 is trained with clm"),
        ("t5", "denoising", "t5 is trained with spanCorruption"),
    ],
)
def test_an_objective_needs_its_head(architecture: str, objective: str, words: str) -> None:
    model = {"architecture": architecture}
    assert words in found("objective", objective, model=model, objective={objective: {}})


def test_two_objectives_are_refused() -> None:
    assert (
        found("objective", objective={"mlm": {}, "clm": {}}) == "has mlm and clm; give one of them"
    )


def test_two_lengths_are_refused() -> None:
    message = found("training", training={"epochs": 1, "maxTokens": 10})
    assert message == "has epochs and maxTokens; give one of them"


def test_shares_of_chosen_tokens_are_at_most_one() -> None:
    mlm = {"maskRatio": 0.9, "randomRatio": 0.2}
    assert "more than 1" in found("objective", "mlm", "randomRatio", objective={"mlm": mlm})
    exact = {"maskRatio": 0.7, "randomRatio": 0.3}
    assert problems(objective={"mlm": exact}) == []


def test_a_cap_beyond_the_sample_is_refused() -> None:
    path = ("objective", "mlm", "maxPredictions")
    assert "512 positions" in found(*path, objective={"mlm": {"maxPredictions": 513}})


def test_a_warmup_as_long_as_training_is_refused() -> None:
    path = ("training", "schedule", "warmupSteps")
    training = {"maxSteps": 100, "schedule": {"warmupSteps": 100}}
    assert "not below the 100 steps" in found(*path, training=training)


@pytest.mark.parametrize(
    ("schedule", "field"),
    [
        ({"type": "cosine", "decaySteps": 10}, "decaySteps"),
        ({"type": "constant", "minimumRatio": 0.5}, "minimumRatio"),
    ],
)
def test_settings_that_a_schedule_would_ignore_are_refused(
    schedule: dict[str, Any], field: str
) -> None:
    assert found("training", "schedule", field, training={"schedule": schedule})


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"architecture": "bart"}, "cannot keep packed documents apart"),
        ({"architecture": "bert", "attention": "eager"}, "needs the sdpa attention"),
        ({"architecture": "roberta", "attention": "flash_attention_2"}, "needs the sdpa attention"),
    ],
)
def test_documents_are_kept_apart_only_where_attention_can(
    model: dict[str, Any], words: str
) -> None:
    path = ("preprocess", "packing", "isolateDocuments")
    packing = {"packing": {"isolateDocuments": True}}
    assert words in found(*path, model=model, preprocess=packing, workers=GPUS)


def test_documents_are_kept_apart_in_the_models_that_run() -> None:
    packing = {"packing": {"isolateDocuments": True}}
    for architecture in ("bert", "roberta", "modernbert", "gpt2", "qwen2"):
        assert problems(model={"architecture": architecture}, preprocess=packing) == []


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


def test_a_cause_has_one_restart_budget() -> None:
    restarts = [{"cause": "Hang", "limit": 1}, {"cause": "Hang", "limit": 2}]
    paths = [problem.path for problem in problems(failurePolicy={"restarts": restarts})]
    assert paths == [("failurePolicy", "restarts", i, "cause") for i in (0, 1)]


def test_a_backoff_starts_below_its_maximum() -> None:
    policy = {"backoff": {"initialSeconds": 9, "maximumSeconds": 8}}
    assert found("failurePolicy", "backoff", "initialSeconds", failurePolicy=policy)


def test_all_problems_are_found_at_once() -> None:
    several = problems(
        training={"precision": "fp16", "epochs": 1, "maxTokens": 1},
        workers={"replicas": 3},
        tokenizer={"uri": "a", "train": {}},
    )
    assert len(several) == 4

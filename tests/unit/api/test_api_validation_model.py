"""Models that can never be made, or never take the samples, are refused with what would do."""

from typing import Any

import pytest
from pretrain_api.presets import ARCHITECTURES, Architecture
from pretrain_api.problems import Path, Problem
from pretrain_api.validation.config_ranges import range_problem
from pretrain_testing.specs import GPUS, found, problems, task


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


@pytest.mark.parametrize(
    ("architecture", "key", "value", "words"),
    [
        ("bert", "hidden_size", -768, "is -768; it must be at least 1"),
        ("bert", "num_attention_heads", 0, "is 0; it must be at least 1"),
        ("gpt2", "n_layer", 0, "must be at least 1"),
        ("modernbert", "intermediate_size", -1, "must be at least 1"),
        ("qwen2", "num_key_value_heads", 0, "must be at least 1"),
        ("roberta", "pad_token_id", -1, "must be at least 0"),
        ("bert", "hidden_dropout_prob", 1.5, "is 1.5; a share that is dropped lies from 0 to"),
        ("gpt2", "attn_pdrop", -0.1, "is -0.1; a share that is dropped"),
        ("modernbert", "mlp_dropout", 1, "from 0 to below 1"),
        ("bert", "layer_norm_eps", 0, "is 0; it must be more than 0"),
        ("qwen2", "rope_theta", -10_000.0, "must be more than 0"),
        ("bert", "initializer_range", -0.02, "must be more than 0"),
    ],
)
def test_a_number_out_of_its_range_is_refused_once_and_where_it_stands(
    architecture: str, key: str, value: float, words: str
) -> None:
    (problem,) = problems(model={"architecture": architecture, "config": {key: value}})

    assert problem.path == ("model", "config", key)
    assert words in problem.message


@pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=lambda one: str(one.name))
def test_what_an_architecture_has_by_itself_is_in_range(architecture: Architecture) -> None:
    for key, value in architecture.config.items():
        assert range_problem(architecture, key, value) == ""


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


def test_shares_of_chosen_tokens_are_at_most_one() -> None:
    mlm = {"maskRatio": 0.9, "randomRatio": 0.2}
    assert "more than 1" in found("objective", "mlm", "randomRatio", objective={"mlm": mlm})
    exact = {"maskRatio": 0.7, "randomRatio": 0.3}
    assert problems(objective={"mlm": exact}) == []


def test_a_cap_beyond_the_sample_is_refused() -> None:
    path = ("objective", "mlm", "maxPredictions")
    assert "512 positions" in found(*path, objective={"mlm": {"maxPredictions": 513}})


@pytest.mark.parametrize(
    ("field", "value"), [("isolateDocuments", True), ("strategy", "documents")], ids=str
)
@pytest.mark.parametrize(
    ("model", "words"),
    [
        ({"architecture": "bert", "attention": "eager"}, "needs the sdpa attention"),
        ({"architecture": "roberta", "attention": "flash_attention_2"}, "needs the sdpa attention"),
        ({"architecture": "deberta-v2"}, "cannot keep packed documents apart"),
        ({"architecture": "bart"}, "cannot keep packed documents apart"),
    ],
)
def test_documents_are_kept_apart_only_where_attention_can(
    model: dict[str, Any], words: str, field: str, value: Any
) -> None:
    path = ("preprocess", "packing", field)
    packing = {"packing": {field: value}}
    assert words in found(*path, model=model, preprocess=packing, workers=GPUS)


@pytest.mark.parametrize("packing", [{"isolateDocuments": True}, {"strategy": "documents"}])
def test_documents_are_kept_apart_in_the_models_that_run(packing: dict[str, Any]) -> None:
    for architecture in ("bert", "roberta", "modernbert", "gpt2", "qwen2"):
        model = {"architecture": architecture}
        assert problems(model=model, preprocess={"packing": packing}) == []


def test_a_causal_model_keeps_documents_apart_with_any_attention() -> None:
    model = {"architecture": "gpt2", "attention": "eager"}
    assert problems(model=model, preprocess={"packing": {"strategy": "documents"}}) == []


@pytest.mark.parametrize(
    ("architecture", "strategy", "words"),
    [
        ("bert", "blocks", "blocks is no packing of mlm; use fullSentences or documents"),
        ("gpt2", "fullSentences", "fullSentences is no packing of clm; use blocks or documents"),
    ],
)
def test_a_packing_that_the_objective_cannot_use_is_refused(
    architecture: str, strategy: str, words: str
) -> None:
    packing = {"packing": {"strategy": strategy}}
    path = ("preprocess", "packing", "strategy")
    assert found(*path, model={"architecture": architecture}, preprocess=packing).startswith(words)

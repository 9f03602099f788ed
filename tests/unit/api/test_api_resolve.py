"""What a job gets for the fields it leaves out."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretrain_api.presets import ARCHITECTURES, PRESETS
from pretrain_api.resolve import resolve, with_steps
from pretrain_api.spec import PretrainJobSpec
from pretrain_api.spec.training import TrainingSpec


def spec(model: dict[str, Any] | None = None, **sections: Any) -> PretrainJobSpec:
    return PretrainJobSpec.model_validate(
        {
            "corpus": {"sources": [{"uri": "corpus/a.jsonl"}]},
            "model": model or {"architecture": "bert"},
            **sections,
        }
    )


def maybe(strategy: st.SearchStrategy[Any], key: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.just({}) | strategy.map(lambda value: {key: value})


def joined(*parts: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.tuples(*parts).map(lambda dicts: {k: v for part in dicts for k, v in part.items()})


models = joined(
    maybe(st.sampled_from([*PRESETS, "unknown"]), "preset"),
    maybe(st.sampled_from([*ARCHITECTURES, "unknown"]), "architecture"),
    maybe(
        st.dictionaries(
            st.sampled_from(["max_position_embeddings", "n_positions", "pad_token_id"]),
            st.integers(0, 600) | st.text(max_size=3),
        ),
        "config",
    ),
)
trainings = joined(
    maybe(st.integers(1, 5000), "globalBatchSize"),
    maybe(st.integers(1, 100), "microBatchSize"),
    maybe(st.integers(1, 2000), "maxSteps"),
    maybe(st.floats(0.1, 9), "epochs"),
    maybe(st.sampled_from(["auto", "fp16"]), "precision"),
)
tokenizers = joined(
    maybe(st.just("tokenizers/a"), "uri"), maybe(st.sampled_from([{}, {"vocabSize": 99}]), "train")
)
objectives = joined(maybe(st.just({}), "clm"), maybe(st.just({"wholeWord": False}), "mlm"))
workers = joined(
    maybe(st.integers(1, 9), "replicas"),
    maybe(st.just({"limits": {"nvidia.com/gpu": 2}}), "resources"),
)
specs = st.builds(
    lambda model, **sections: spec(model or {"architecture": "bert"}, **sections),
    models,
    training=trainings,
    tokenizer=tokenizers,
    objective=objectives,
    workers=workers,
    checkpoint=maybe(st.integers(1, 60), "everyMinutes"),
)


@given(specs)
def test_resolving_a_resolved_spec_changes_nothing(given_spec: PretrainJobSpec) -> None:
    once = resolve(given_spec)
    assert resolve(once) == once


@given(specs)
def test_a_resolved_spec_survives_its_json(given_spec: PretrainJobSpec) -> None:
    once = resolve(given_spec)
    read_back = PretrainJobSpec.model_validate_json(once.model_dump_json(by_alias=True))
    assert resolve(read_back) == once


@given(specs)
def test_what_the_user_says_stays(given_spec: PretrainJobSpec) -> None:
    said = given_spec.model_dump(by_alias=True, exclude_unset=True)
    resolved = resolve(given_spec).model_dump(by_alias=True)
    for section in ("training", "objective", "tokenizer", "workers", "checkpoint"):
        for name, value in said.get(section, {}).items():
            if value != "auto" and not isinstance(value, dict):
                assert resolved[section][name] == value


@given(specs)
def test_the_micro_batch_divides_each_rank_s_share_or_is_left_open(
    given_spec: PretrainJobSpec,
) -> None:
    said = given_spec.training.micro_batch_size
    resolved = resolve(given_spec)
    batch = resolved.training.global_batch_size or 0
    ranks = resolved.workers.replicas * resolved.workers.processes_per_worker
    micro = resolved.training.micro_batch_size
    if said is None:
        assert (micro is None) == bool(batch % ranks)
        assert micro is None or (micro <= 32 and batch // ranks % micro == 0)


def test_the_smallest_job_becomes_a_whole_one() -> None:
    resolved = resolve(spec(workers={"replicas": 2, "processesPerWorker": 8}))
    assert resolved.objective.mlm is not None
    assert resolved.objective.clm is None
    assert resolved.tokenizer.train is not None
    assert resolved.tokenizer.train.algorithm == "wordpiece"
    assert resolved.preprocess.sequence_length == 512
    assert resolved.preprocess.packing.strategy == "fullSentences"
    assert resolved.training.global_batch_size == 256
    assert resolved.training.micro_batch_size == 16
    assert resolved.training.max_steps == 10_000
    assert resolved.training.optimizer.learning_rate == 1e-4
    assert resolved.training.schedule.warmup_steps == 600
    assert resolved.training.evaluation.every_steps == 1000
    assert resolved.training.precision == "fp32"
    assert resolved.workers.device == "cpu"
    assert resolved.checkpoint.every_steps == 500


@pytest.mark.parametrize(
    ("architecture", "objective", "algorithm", "lowercase", "packing"),
    [
        ("bert", "mlm", "wordpiece", True, "fullSentences"),
        ("roberta", "mlm", "byteLevelBpe", False, "fullSentences"),
        ("modernbert", "mlm", "wordpiece", True, "fullSentences"),
        ("gpt2", "clm", "byteLevelBpe", False, "blocks"),
        ("qwen2", "clm", "byteLevelBpe", False, "blocks"),
        ("t5", "spanCorruption", "unigram", False, "blocks"),
        ("bart", "denoising", "byteLevelBpe", False, "fullSentences"),
    ],
)
def test_an_architecture_brings_its_objective_tokenizer_and_packing(
    architecture: str, objective: str, algorithm: str, lowercase: bool, packing: str
) -> None:
    resolved = resolve(spec({"architecture": architecture})).model_dump(by_alias=True)
    members = {name: value for name, value in resolved["objective"].items() if value is not None}
    assert [*members] == [objective]
    assert resolved["tokenizer"]["train"]["algorithm"] == algorithm
    assert resolved["tokenizer"]["train"]["lowercase"] is lowercase
    assert resolved["preprocess"]["packing"]["strategy"] == packing


def test_a_preset_gives_what_the_user_leaves_out_and_nothing_else() -> None:
    resolved = resolve(
        spec(
            {"preset": "roberta-base", "config": {"num_hidden_layers": 6}},
            training={"optimizer": {"learningRate": 1e-3}},
        )
    )
    assert resolved.model.architecture == "roberta"
    assert resolved.model.config["num_hidden_layers"] == 6
    assert resolved.model.config["hidden_size"] == 768
    assert resolved.training.optimizer.learning_rate == 1e-3
    assert resolved.training.optimizer.betas == [0.9, 0.98]
    assert resolved.training.schedule.warmup_steps == 1000
    assert resolved.preprocess.sequence_length == 128


@pytest.mark.parametrize("length", [{"maxSteps": 5000}, {"maxTokens": 10**9}, {"epochs": 2}])
def test_a_length_that_the_user_gives_replaces_the_preset_s(length: dict[str, float]) -> None:
    training = resolve(spec({"preset": "gpt2"}, training=length)).training
    shown = training.model_dump(by_alias=True, include={"max_steps", "max_tokens", "epochs"})
    assert {name: value for name, value in shown.items() if value is not None} == length


def test_an_objective_that_the_user_gives_replaces_the_preset_s() -> None:
    objective = resolve(spec({"preset": "roberta-base"}, objective={"clm": {}})).objective
    assert objective.mlm is None
    assert objective.clm is not None


def test_a_tokenizer_that_the_user_gives_is_not_trained() -> None:
    tokenizer = resolve(spec({"preset": "gpt2"}, tokenizer={"uri": "tokenizers/a"})).tokenizer
    assert tokenizer.train is None


def test_a_run_that_is_shorter_than_the_preset_s_warmup_gets_its_share() -> None:
    training = resolve(spec({"preset": "bert-base"}, training={"maxSteps": 200})).training
    assert training.schedule.warmup_steps == 12


def test_steps_that_only_the_dataset_tells_are_left_to_it() -> None:
    training = resolve(spec(training={"epochs": 3})).training
    assert training.max_steps is None
    assert training.schedule.warmup_steps is None
    assert training.evaluation.every_steps is None
    told = with_steps(training, 1000)
    assert told.schedule.warmup_steps == 60
    assert told.evaluation.every_steps == 100
    assert told.max_steps is None


def test_known_steps_change_nothing_that_was_said() -> None:
    said = TrainingSpec.model_validate(
        {"schedule": {"warmupSteps": 7}, "evaluation": {"everySteps": 9}}
    )
    told = with_steps(said, 1000)
    assert (told.schedule.warmup_steps, told.evaluation.every_steps) == (7, 9)


def test_samples_are_no_longer_than_the_model_has_positions() -> None:
    short = spec({"architecture": "roberta", "config": {"max_position_embeddings": 130}})
    assert resolve(short).preprocess.sequence_length == 128


def test_a_roberta_without_sizes_has_room_for_512_positions() -> None:
    resolved = resolve(spec({"architecture": "roberta"}))
    assert resolved.preprocess.sequence_length == 512
    assert resolved.model.config["max_position_embeddings"] == 514


def test_checkpoints_by_the_clock_need_no_steps() -> None:
    assert resolve(spec(checkpoint={"everyMinutes": 5})).checkpoint.every_steps is None


@pytest.mark.parametrize(
    ("resource", "device", "precision"),
    [
        ("nvidia.com/gpu", "cuda", "bf16"),
        ("amd.com/gpu", "cuda", "bf16"),
        ("nvidia.com/mig-1g.5gb", "cuda", "bf16"),
        ("aliyun.com/gpu-mem", "cuda", "bf16"),
        ("rdma/hca", "cpu", "fp32"),
        ("memory", "cpu", "fp32"),
    ],
)
def test_an_accelerator_resource_decides_device_and_precision(
    resource: str, device: str, precision: str
) -> None:
    resolved = resolve(spec(workers={"resources": {"limits": {resource: 1}}}))
    assert resolved.workers.device == device
    assert resolved.training.precision == precision


def test_a_device_that_is_said_is_kept_whatever_the_resources() -> None:
    asked = {"device": "cpu", "resources": {"limits": {"nvidia.com/gpu": 1}}}
    assert resolve(spec(workers=asked)).workers.device == "cpu"


def test_none_of_a_resource_is_no_accelerator() -> None:
    asked = {"resources": {"limits": {"nvidia.com/gpu": 0}}}
    assert resolve(spec(workers=asked)).workers.device == "cpu"


def test_next_sentence_prediction_packs_pairs() -> None:
    resolved = resolve(spec(objective={"mlm": {"nextSentence": True}}))
    assert resolved.preprocess.packing.strategy == "segmentPairs"

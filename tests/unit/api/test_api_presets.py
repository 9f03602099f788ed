"""Presets and architectures: whole, consistent, and runnable unless they say they are not."""

import pytest
from pretrain_api.layers import leaf_paths, stack
from pretrain_api.presets import ARCHITECTURES, PRESETS, Architecture, Preset, layered_paths
from pretrain_api.resolve import resolve
from pretrain_api.spec import PretrainJobSpec
from pretrain_api.validation import check, unsupported


def job_with(preset: Preset) -> PretrainJobSpec:
    return resolve(
        PretrainJobSpec.model_validate(
            {"corpus": {"sources": [{"uri": "a.jsonl"}]}, "model": {"preset": preset.name}}
        )
    )


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda preset: preset.name)
def test_a_preset_alone_makes_a_job_without_contradictions(preset: Preset) -> None:
    assert check(job_with(preset)) == []


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda preset: preset.name)
def test_a_preset_runs_just_when_its_architecture_does(preset: Preset) -> None:
    assert (unsupported(job_with(preset)) == []) == ARCHITECTURES[preset.architecture].runs


@pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda preset: preset.name)
def test_a_preset_says_where_its_numbers_are_from(preset: Preset) -> None:
    assert preset.source
    assert preset.layer["model"]["architecture"] == preset.architecture


@pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=lambda each: each.name)
def test_an_architecture_names_settings_that_it_has(architecture: Architecture) -> None:
    names = [architecture.hidden, architecture.heads, architecture.key_value_heads]
    named = {name for name in [*names, architecture.positions] if name is not None}
    overridden = architecture.layer.get("model", {}).get("config", {})
    assert named | overridden.keys() <= architecture.config.keys()


@pytest.mark.parametrize(("pad_token_id", "rows"), [(0, 513), (1, 514), (3, 516)])
def test_roberta_loses_the_position_rows_up_to_its_padding_token(
    pad_token_id: int, rows: int
) -> None:
    roberta = ARCHITECTURES["roberta"]
    config = {"pad_token_id": pad_token_id, "max_position_embeddings": rows}
    assert roberta.longest_sequence(config) == 512


def test_fields_of_presets_and_architectures_are_fields_of_the_spec() -> None:
    for preset in PRESETS.values():
        assert leaf_paths(preset.layer) <= layered_paths()
    assert ("training", "optimizer", "weightDecay") in layered_paths()
    assert ("tokenizer", "train", "lowercase") in layered_paths()


def test_the_upper_of_two_layers_wins_and_says_nothing_with_none() -> None:
    upper = {"training": {"seed": 1, "compile": None}, "suspend": None}
    lower = {"training": {"seed": 2, "compile": True}, "suspend": True}
    assert stack(upper, lower) == {"training": {"seed": 1, "compile": True}, "suspend": True}


def test_one_member_of_a_union_hides_the_others_below() -> None:
    below = {"training": {"epochs": 18, "seed": 1}}
    assert stack({"training": {"maxSteps": 5}}, below) == {"training": {"maxSteps": 5, "seed": 1}}

"""The API's picture of each architecture is what transformers has (about ten seconds)."""

from typing import Any

import pytest
from pretrain_api.presets import ARCHITECTURES, Architecture
from transformers import CONFIG_MAPPING

DERIVED = {
    "modernbert": {"global_attn_every_n_layers"},
    "gpt2": {"n_inner"},
    "qwen2": {"rope_theta", "sliding_window"},
    "deberta-v2": {"position_buckets", "pos_att_type", "norm_rel_ebd", "share_att_key"},
}
"""Settings that the configuration takes but shows in another form, or derives when left out."""


@pytest.mark.parametrize("architecture", ARCHITECTURES.values(), ids=lambda each: each.name)
def test_every_setting_has_the_default_of_transformers(architecture: Architecture) -> None:
    config = CONFIG_MAPPING[architecture.name]()
    compared = architecture.config.keys() - DERIVED.get(architecture.name, set())
    assert {key: getattr(config, key) for key in compared} == {
        key: architecture.config[key] for key in compared
    }


def configured(name: str, **settings: Any) -> dict[str, Any]:
    shown: dict[str, Any] = CONFIG_MAPPING[name](**settings).to_dict()
    return shown


def test_settings_in_another_form_reach_the_configuration() -> None:
    qwen2 = configured("qwen2", rope_theta=5.0, use_sliding_window=True, sliding_window=7)
    modernbert = configured("modernbert", global_attn_every_n_layers=2, num_hidden_layers=2)
    assert qwen2["rope_parameters"]["rope_theta"] == 5.0
    assert qwen2["sliding_window"] == 7
    assert modernbert["layer_types"] == ["full_attention", "sliding_attention"]
    assert configured("gpt2", n_inner=9)["n_inner"] == 9

"""A stage's image is of another version than the operator that wrote its config."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pretrain_api.base import ApiModel
from pretrain_api.reports import STAGES, StageName
from pretrain_api.skew import asked_fields
from pretrain_api.stages import StageConfig, TokenizerStageConfig, TrainStageConfig
from pretrain_jobs.errors import UserError
from pretrain_jobs.process import load_config
from pretrain_operator.children import render
from pretrain_operator.observed import Settings
from pretrain_testing.future_fields import of_the_future
from pretrain_testing.plan_simulator import make_job
from pretrain_testing.stage_configs import CONFIGS, config_text


def written(stage: StageName) -> dict[str, Any]:
    """What this version's operator writes for a stage."""
    config: dict[str, Any] = json.loads(config_text(render(make_job(), Settings()), stage))
    return config


def load(stage: StageName, config: bytes | dict[str, Any], tmp_path: Path) -> StageConfig:
    path = tmp_path / "config.json"
    path.write_bytes(config if isinstance(config, bytes) else json.dumps(config).encode())
    return load_config(CONFIGS[stage], path)


@pytest.mark.parametrize("stage", STAGES)
def test_a_config_of_a_newer_operator_is_read_without_what_is_not_known(
    stage: StageName, tmp_path: Path
) -> None:
    config = CONFIGS[stage].model_validate(written(stage))

    assert load(stage, of_the_future(config, kind=ApiModel), tmp_path) == config


def test_a_config_of_an_older_operator_is_read_that_told_nothing_of_what_is_asked(
    tmp_path: Path,
) -> None:
    config = {k: v for k, v in written("train").items() if k not in {"asked", "earlier"}}

    assert load("train", config, tmp_path).asked == ()


def test_a_newer_field_that_the_job_asks_for_is_refused_and_named(tmp_path: Path) -> None:
    config = written("train")
    config["training"]["optimizer"]["lookahead"] = 5
    config["asked"].append("training.optimizer.lookahead")

    with pytest.raises(UserError, match=r"asks for training\.optimizer\.lookahead.*newer image"):
        load("train", config, tmp_path)


def test_a_field_in_the_list_that_this_version_knows_is_no_reason_to_refuse(
    tmp_path: Path,
) -> None:
    config = written("train")
    config["workers"]["firmware"] = "auto"

    assert "workers.replicas" in config["asked"]
    assert load("train", config, tmp_path) == TrainStageConfig.model_validate(written("train"))


def test_a_value_that_does_not_fit_is_refused_whatever_else_is_not_known(tmp_path: Path) -> None:
    config = written("train")
    config["workers"] |= {"firmware": "auto", "replicas": "many"}

    with pytest.raises(UserError, match=r"workers\.replicas"):
        load("train", config, tmp_path)


def test_what_is_asked_for_are_the_fields_that_are_not_at_their_default() -> None:
    config = TokenizerStageConfig.model_validate(written("tokenizer"))
    asked = asked_fields(config)

    assert {"spec.corpus.sources", "spec.corpus.sources.0.uri", "spec.workers.replicas"} <= {*asked}
    assert "spec.corpus.sources.0.format" not in asked
    assert not [path for path in asked if path.startswith("job")]
    assert config.asked == asked

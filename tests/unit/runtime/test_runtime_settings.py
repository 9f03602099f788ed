"""The operator's configuration, from environment variables alone."""

from __future__ import annotations

import pytest
from pretrain_operator.errors import SettingsError
from pretrain_operator.settings import OperatorSettings


def test_an_empty_environment_is_an_operator_for_all_namespaces():
    settings = OperatorSettings.from_environment({})
    assert settings.namespaces == ()
    assert (settings.lease_seconds, settings.poll_seconds) == (15, 10.0)


def test_lists_and_objects_are_read_and_what_is_left_empty_is_unset():
    settings = OperatorSettings.from_environment(
        {
            "PRETRAIN_OPERATOR_NAMESPACES": "team-a, team-b,",
            "PRETRAIN_CHILD_LABELS": '{"cost": "42"}',
            "PRETRAIN_DEFAULT_STORAGE_URI": "s3://models",
            "PRETRAIN_DEFAULT_STORAGE_ENDPOINT_URL": "",
            "PRETRAIN_TRAIN_IMAGE": "registry/train:1",
        }
    )
    plan = settings.for_plan()
    assert settings.namespaces == ("team-a", "team-b")
    assert plan.labels == {"cost": "42"}
    assert plan.default_storage_uri == "s3://models"
    assert plan.default_storage_endpoint_url is None
    assert plan.train_image == "registry/train:1"
    assert not plan.shared_network


def test_every_wrong_variable_is_named_at_once():
    with pytest.raises(SettingsError) as error:
        OperatorSettings.from_environment(
            {"PRETRAIN_OPERATOR_HTTP_PORT": "x", "PRETRAIN_CHILD_LABELS": "[1"}
        )
    assert len(error.value.problems) == 2
    assert "PRETRAIN_OPERATOR_HTTP_PORT" in str(error.value)
    assert "PRETRAIN_CHILD_LABELS" in str(error.value)


def test_variables_that_kubernetes_makes_for_services_do_no_harm():
    environment = {"PRETRAIN_OPERATOR_PORT": "tcp://10.96.0.7:8080"}
    assert OperatorSettings.from_environment(environment).http_port == 8080

"""What the chart tells the operator is what the operator reads."""

from typing import Any

from pretrain_operator.settings import OperatorSettings
from pretrain_testing.chart import Chart, only

FROM_THE_POD = {
    "PRETRAIN_OPERATOR_POD_NAMESPACE": "pretrain-system",
    "PRETRAIN_OPERATOR_POD_NAME": "pretrain-operator-0",
}
ONLY_OUTSIDE_A_CLUSTER = {"PRETRAIN_KUBECONFIG"}

VALUES: dict[str, Any] = {
    "watchNamespaces": ["team-a", "team-b"],
    "image": {"registry": "r.example", "tag": "1", "pullPolicy": "Always"},
    "defaultStorage": {
        "uri": "s3://models/zh",
        "endpointUrl": "https://s3.example",
        "credentialsSecret": "keys",
    },
    "childLabels": {"team": "nlp"},
    "lease": {"name": "leader", "seconds": 30},
    "pollSeconds": 5,
    "resyncSeconds": 90,
    "logging": {"level": "debug", "format": "plain"},
    "metrics": {"port": 9090},
}


def told(chart: Chart, values: dict[str, Any]) -> dict[str, str]:
    (container,) = only(chart.render(values), "Deployment")["spec"]["template"]["spec"][
        "containers"
    ]
    return {
        entry["name"]: FROM_THE_POD[entry["name"]] if "valueFrom" in entry else entry["value"]
        for entry in container["env"]
    }


def test_every_variable_that_the_operator_reads_has_a_value(chart: Chart) -> None:
    read = {str(field.alias) for field in OperatorSettings.model_fields.values()}

    assert set(told(chart, VALUES)) == read - ONLY_OUTSIDE_A_CLUSTER


def test_the_operator_reads_what_the_values_say(chart: Chart) -> None:
    settings = OperatorSettings.from_environment(told(chart, VALUES))

    assert settings == OperatorSettings(
        PRETRAIN_OPERATOR_NAMESPACES=("team-a", "team-b"),
        PRETRAIN_OPERATOR_POD_NAMESPACE="pretrain-system",
        PRETRAIN_OPERATOR_POD_NAME="pretrain-operator-0",
        PRETRAIN_OPERATOR_LEASE_NAME="leader",
        PRETRAIN_OPERATOR_LEASE_SECONDS=30,
        PRETRAIN_OPERATOR_HTTP_PORT=9090,
        PRETRAIN_OPERATOR_POLL_SECONDS=5,
        PRETRAIN_OPERATOR_RESYNC_SECONDS=90,
        PRETRAIN_OPERATOR_LOG_LEVEL="debug",
        PRETRAIN_OPERATOR_LOG_FORMAT="plain",
        PRETRAIN_OPERATOR_IMAGE="r.example/pretrain-operator/operator:1",
        PRETRAIN_PREPROCESS_IMAGE="r.example/pretrain-operator/preprocess:1",
        PRETRAIN_TRAIN_IMAGE="r.example/pretrain-operator/train:1",
        PRETRAIN_IMAGE_PULL_POLICY="Always",
        PRETRAIN_CHILD_LABELS={"team": "nlp"},
        PRETRAIN_DEFAULT_STORAGE_URI="s3://models/zh",
        PRETRAIN_DEFAULT_STORAGE_ENDPOINT_URL="https://s3.example",
        PRETRAIN_DEFAULT_STORAGE_CREDENTIALS_SECRET="keys",
    )


def test_the_default_values_are_the_operator_s_own_defaults(chart: Chart) -> None:
    own = {**FROM_THE_POD, "PRETRAIN_OPERATOR_NAMESPACES": ""}

    by_default = OperatorSettings.from_environment(told(chart, {}))

    assert by_default.for_plan() == OperatorSettings.from_environment(own).for_plan()
    images = {"operator_image", "preprocess_image", "train_image", "image_pull_policy"}
    assert by_default.model_dump(exclude=images) == OperatorSettings.from_environment(
        own
    ).model_dump(exclude=images)

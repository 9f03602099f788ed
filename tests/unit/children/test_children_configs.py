"""What the stages' processes are told: configs, absolute URIs, names and rendezvous."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretrain_api.errors import InvalidObjectError
from pretrain_api.reports import STAGES, StageName
from pretrain_api.stages import (
    EvaluateStageConfig,
    ExportStageConfig,
    StageConfig,
    TokenizerStageConfig,
    TrainStageConfig,
)
from pretrain_operator.children import Attempt, StageArtifact, build_attempt, render
from pretrain_operator.children.names import child_name, rank0_host, uid5
from pretrain_operator.children.resolved import resolved_job, storage_of
from pretrain_operator.children.uris import absolute_uri
from pretrain_operator.observed import Manifest, Settings
from pretrain_testing.plan_simulator import UID, make_job
from pretrain_testing.stage_configs import CONFIGS, config_text


def make_attempt(
    stage: StageName, *, number: int = 0, settings: Settings | None = None, **spec: Any
) -> Attempt:
    settings = settings or Settings()
    job = resolved_job(make_job(**spec), settings)
    return Attempt(
        job=job,
        stage=stage,
        number=number,
        completions=job.spec.workers.replicas if stage == "train" else 1,
        artifacts={name: StageArtifact(f"{name}-fp", f"s3://models/zh/{name}") for name in STAGES},
        storage=storage_of(job, settings),
        settings=settings,
    )


def config_of(manifests: tuple[Manifest, ...] | list[Manifest], stage: StageName) -> StageConfig:
    return CONFIGS[stage].model_validate_json(config_text(manifests, stage))


def train_config(attempt: Attempt) -> TrainStageConfig:
    config = config_of(build_attempt(attempt), "train")
    assert isinstance(config, TrainStageConfig)
    return config


@pytest.mark.parametrize("stage", STAGES)
def test_every_config_is_a_valid_document_of_its_model(stage: StageName) -> None:
    config = config_of(render(make_job(), Settings()), stage)

    assert config.job.uid == UID
    assert config.storage.uri == "s3://models/zh"


def test_a_config_holds_no_relative_uri() -> None:
    job = make_job(
        corpus={
            "sources": [{"uri": "wiki/*.jsonl"}],
            "validation": {"sources": [{"uri": "held-out.txt"}]},
        },
        tokenizer={"uri": "tokenizers/own"},
        preprocess={"userDictionary": "words.txt"},
        checkpoint={"uri": "saved"},
        export={"uri": "final"},
    )

    config = config_of(render(job, Settings()), "tokenizer")

    assert isinstance(config, TokenizerStageConfig)
    spec = config.spec
    root = "s3://models/zh"
    assert spec.corpus.sources[0].uri == f"{root}/wiki/*.jsonl"
    assert spec.corpus.validation.sources[0].uri == f"{root}/held-out.txt"
    assert spec.tokenizer.uri == f"{root}/tokenizers/own"
    assert spec.preprocess.user_dictionary == f"{root}/words.txt"
    assert spec.checkpoint.uri == f"{root}/saved"
    assert spec.export.uri == f"{root}/final"
    assert spec.evaluation.tasks[0].data.uri == f"{root}/tasks/sentiment.jsonl"
    assert spec.evaluation.tasks[0].data.test_uri is None


def test_the_spec_in_a_config_is_resolved() -> None:
    config = config_of(render(make_job(), Settings()), "tokenizer")

    assert isinstance(config, TokenizerStageConfig)
    assert config.spec.training.global_batch_size is not None
    assert config.spec.preprocess.sequence_length is not None


@pytest.mark.parametrize(
    ("uri", "root", "expected"),
    [
        ("a/b.txt", "s3://bucket/x/", "s3://bucket/x/a/b.txt"),
        ("prefix/", "s3://bucket", "s3://bucket/prefix/"),
        ("s3://other/key", "s3://bucket", "s3://other/key"),
        ("语料/*.txt", "file:///data", "file:///data/%E8%AF%AD%E6%96%99/*.txt"),
        ("语料.txt", "s3://bucket", "s3://bucket/语料.txt"),
        (None, "s3://bucket", None),
    ],
)
def test_a_relative_uri_lies_under_the_storage(
    uri: str | None, root: str, expected: str | None
) -> None:
    assert absolute_uri(uri, root) == expected


def test_no_two_jobs_share_checkpoints() -> None:
    assert train_config(make_attempt("train")).checkpoint_uri == (
        f"s3://models/zh/checkpoints/roberta-zh-{UID}"
    )
    own = make_attempt("train", checkpoint={"uri": "s3://fast/ckpt/"})
    assert train_config(own).checkpoint_uri == f"s3://fast/ckpt/roberta-zh-{UID}"


def test_a_later_stage_is_told_what_the_tokenizer_stage_found_out() -> None:
    config = config_of(build_attempt(make_attempt("evaluate")), "evaluate")

    assert isinstance(config, EvaluateStageConfig)
    assert config.model_fingerprint == "train-fp"
    assert config.evaluation_uri == "s3://models/zh/evaluate"


def test_an_export_without_tasks_has_no_evaluation() -> None:
    config = config_of(build_attempt(make_attempt("export", evaluation={})), "export")

    assert isinstance(config, ExportStageConfig)
    assert config.evaluation_uri == ""


def test_rank_0_is_met_under_a_name_of_this_attempt() -> None:
    attempt = make_attempt("train", number=3)

    rendezvous = train_config(attempt).rendezvous

    assert rendezvous.host == ("roberta-zh-0a1b2-train-3-0.roberta-zh-0a1b2-train-3.team-a.svc")
    assert rendezvous.run_id == "roberta-zh-0a1b2-train-3"
    assert rendezvous.port == 29400


def test_a_single_worker_meets_itself() -> None:
    assert train_config(make_attempt("train", workers={})).rendezvous.host == "127.0.0.1"


@pytest.mark.parametrize("shared", ["host network", "local"])
def test_on_a_shared_network_every_attempt_has_another_port(shared: str) -> None:
    network = {"hostNetwork": shared == "host network"}
    settings = Settings(shared_network=shared == "local")

    attempts = [
        make_attempt(
            "train", number=i, settings=settings, workers={"replicas": 2, "network": network}
        )
        for i in range(10)
    ]
    ports = [attempt.rendezvous_port for attempt in attempts]

    assert len(set(ports)) > 8
    assert all(20_000 <= port < 30_000 for port in ports)


def test_on_the_hosts_network_jobs_have_ports_of_their_own() -> None:
    workers = {"replicas": 2, "network": {"hostNetwork": True}}
    attempt = make_attempt("train", workers=workers)
    metadata = attempt.job.metadata
    others = [
        replace(
            attempt,
            job=attempt.job.model_copy(
                update={"metadata": metadata.model_copy(update={"uid": f"{number:08x}-uid"})}
            ),
        )
        for number in range(10)
    ]

    assert len({other.rendezvous_port for other in others}) > 8
    assert len({other.progress_port for other in others}) > 8
    assert all(16_000 <= (other.progress_port or 0) < 20_000 for other in others)


def test_pod_templates_stay_out_of_configs() -> None:
    template = {"spec": {"containers": [{"name": "main", "env": [{"name": "X", "value": "s3cr"}]}]}}
    job = make_job(
        workers={"replicas": 2, "podTemplate": template}, preprocess={"podTemplate": template}
    )

    configs = [m for m in render(job, Settings()) if m["kind"] == "ConfigMap"]

    assert "s3cr" not in json.dumps(configs)


def test_credentials_stay_out_of_configs_and_environment() -> None:
    manifests = render(make_job(), Settings())

    jobs = [manifest for manifest in manifests if manifest["kind"] == "Job"]
    for job in jobs:
        container = job["spec"]["template"]["spec"]["containers"][0]
        assert container["envFrom"] == [{"secretRef": {"name": "s3-credentials"}}]
        sources = [
            variable["valueFrom"] for variable in container["env"] if "valueFrom" in variable
        ]
        assert all(list(source) == ["fieldRef"] for source in sources)


def test_an_invalid_job_is_not_rendered() -> None:
    with pytest.raises(InvalidObjectError, match="sources"):
        render(make_job(corpus={}), Settings())


def test_placeholders_lie_where_the_artifacts_will() -> None:
    config = config_of(render(make_job(export={"uri": "final"}), Settings()), "export")

    assert isinstance(config, ExportStageConfig)
    assert config.model_uri == "s3://models/zh/models/0000000000000000"
    assert config.export_uri == "s3://models/zh/final"


@given(
    st.from_regex(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True),
    st.uuids(),
    st.sampled_from(STAGES),
    st.integers(0, 99_999),
)
def test_every_host_name_is_a_dns_label(
    job: str, uid: object, stage: StageName, attempt: int
) -> None:
    name = child_name(job=job, uid=str(uid), stage=stage, attempt=attempt)

    largest = {"preprocess": 99_999, "train": 4095}.get(stage, 0)
    assert len(f"{name}-{largest}") <= 63
    assert name.endswith(f"-{str(uid)[:5]}-{stage}-{attempt}")


def test_a_short_uid_is_filled_up() -> None:
    assert uid5("") == "00000"
    assert uid5("AB-c") == "abc00"


def test_a_host_name_stops_at_svc_so_that_any_cluster_domain_will_do() -> None:
    assert rank0_host("x", "y") == "x-0.x.y.svc"


def test_names_do_not_depend_on_the_number_of_pods() -> None:
    attempt = make_attempt("train")

    assert replace(attempt, completions=4096).name == attempt.name

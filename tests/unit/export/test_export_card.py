"""The model card as a function of facts."""

import dataclasses
from pathlib import Path

import pytest
import yaml
from pretrain_api.stages import ExportStageConfig, JobRef
from pretrain_jobs.dataset.manifest import DatasetManifest, ShardEntry
from pretrain_jobs.dataset.statistics import CorpusStatistics
from pretrain_jobs.evaluate.results import Results, RunResult, summarise
from pretrain_jobs.export.card import lineage, model_card, sampled, table
from pretrain_jobs.export.facts import Facts, ModelFacts
from pretrain_testing.tokenizer_texts import job_spec

MODEL = ModelFacts(
    model_type="bert",
    masked=True,
    parameters=1_234_567,
    rows=21_128,
    tokens=21_128,
    positions=512,
    dtype="bfloat16",
    tied=True,
    output_key="bert.embeddings.word_embeddings.weight",
)
TRAINING = {
    "training": {"maxSteps": 300, "optimizer": {"name": "adamw"}, "precision": "fp32", "seed": 42},
    "worldSize": 2,
    "steps": 300,
    "tokens": {"real": 1000},
    "curve": [{"step": step, "loss": 600 / step, "learningRate": 1e-4} for step in range(1, 301)],
    "evaluations": [
        {"step": 300, "validation": {"loss": 2.5, "perplexity": 12.18, "accuracy": 0.5}}
    ],
}


def shard(documents: int, tokens: int) -> ShardEntry:
    return ShardEntry(
        path=f"shards/{documents}.h5",
        documents=documents,
        sentences=documents,
        words=tokens,
        tokens=tokens,
        bytes=1,
        sha256="0" * 64,
    )


def results(task_spec) -> Results:
    runs = [
        RunResult(
            task="sentiment",
            initialisation=weights,
            seed=seed,
            train_samples=500,
            test_samples=1_000,
            steps=48,
            metrics={"accuracy": accuracy + seed / 100, "f1": 0.5},
        )
        for weights, accuracy in (("pretrained", 0.85), ("random", 0.75))
        for seed in (1, 2)
    ]
    return Results(tasks=[summarise(task_spec, labels=["neg", "pos"], runs=runs)])


@pytest.fixture
def facts(tmp_path: Path) -> Facts:
    task = {
        "name": "sentiment",
        "data": {"uri": "tasks/x.csv"},
        "metrics": ["accuracy", "f1"],
        "seeds": [1, 2],
    }
    card = {"title": "Little BERT", "language": ["zh"], "license": "apache-2.0"}
    spec = job_spec(
        tmp_path, evaluation={"tasks": [task]}, export={"dtype": "bfloat16", "modelCard": card}
    )
    config = ExportStageConfig(
        job=JobRef(namespace="default", name="little", uid="0"),
        storage=spec.storage,
        model_uri="file:///s/models/m",
        model_fingerprint="m" * 16,
        dataset_uri="file:///s/datasets/d",
        dataset_fingerprint="d" * 16,
        evaluation_uri="file:///s/evaluations/e",
        export_uri="file:///s/exports/x",
        export_fingerprint="x" * 16,
        export=spec.export,
        spec=spec,
    )
    dataset = DatasetManifest(
        fingerprint="d" * 16,
        tokenizer_sha256="t" * 64,
        dtype="uint16",
        vocab_size=21_128,
        splits={
            "train": (shard(900, 90_000), shard(90, 10_000)),
            "validation": (shard(10, 1_000),),
        },
        statistics=CorpusStatistics(
            documents_read=1_005,
            rejects={"JSON": 2},
            removed={"empty": 3},
            characters_per_token=1.25,
            unknown_rate=0.0001,
        ),
    )
    return Facts(
        config=config,
        model=MODEL,
        training=TRAINING,
        dataset=dataset,
        results=results(spec.evaluation.tasks[0]),
        evaluation_fingerprint="e" * 16,
    )


def front_matter(card: str) -> dict:
    return yaml.safe_load(card.split("---\n")[1])


def test_the_front_matter_is_what_hubs_read(facts):
    metadata = front_matter(model_card(facts))

    assert metadata["language"] == ["zh"]
    assert metadata["license"] == "apache-2.0"
    assert metadata["library_name"] == "transformers"
    assert metadata["pipeline_tag"] == "fill-mask"
    (index,) = metadata["model-index"]
    assert index["name"] == "Little BERT"
    assert index["results"][0]["metrics"][0] == {"type": "accuracy", "value": 0.865}


@pytest.mark.parametrize(
    "line",
    [
        "# Little BERT",
        "| Parameters | 1,234,567 |",
        "| Key of the output matrix | `bert.embeddings.word_embeddings.weight` (tied to the input "
        "embedding, stored once) |",
        "- `corpus/`",
        "| train | 990 | 100,000 |",
        "| validation | 10 | 1,000 |",
        "| sequenceLength | `512` |",
        "| precision | `fp32` |",
        "| worldSize | `2` |",
        "| 300 | 2 | 0.0001 |",
        "| 300 | 2.5 | 12.18 | 0.5 |",
        "| sentiment | accuracy | 0.8650 ± 0.0071 | 0.7650 ± 0.0071 | +0.1000 | 2 |",
        "| sentiment | f1 | 0.5000 ± 0.0000 | 0.5000 ± 0.0000 | +0.0000 | 2 |",
        f"| dataset | `{'d' * 16}` |",
        f"| evaluation | `{'e' * 16}` |",
        "Cleaning: empty documents were removed, nothing else.",
        "- It was trained on samples of 512 tokens; texts longer than 512 must be cut.",
    ],
)
def test_the_card_has_the_line(facts, line):
    assert line in model_card(facts).splitlines()


def test_the_card_tells_what_was_removed(facts):
    assert "Of 1,005 documents read, 5 were removed or refused." in model_card(facts)


def test_a_card_without_evaluation_or_dataset_leaves_them_out(facts):
    bare = dataclasses.replace(facts, results=None, dataset=None, evaluation_fingerprint="")

    card = model_card(bare)

    assert "## Evaluation" not in card
    assert "- The model was not evaluated on any task." in card
    assert "model-index" not in front_matter(card)
    assert lineage(bare) == {"dataset": "d" * 16, "model": "m" * 16, "export": "x" * 16}


def test_the_job_gives_the_title_where_the_card_has_none(facts):
    spec = facts.config.export.model_copy(
        update={"model_card": type(facts.config.export.model_card)()}
    )
    config = facts.config.model_copy(update={"export": spec})

    card = model_card(dataclasses.replace(facts, config=config))

    assert "# little\n" in card
    assert "license" not in front_matter(card)


def test_a_causal_model_generates_text(facts):
    model = dataclasses.replace(MODEL, model_type="gpt2", masked=False)

    card = model_card(dataclasses.replace(facts, model=model))

    assert front_matter(card)["pipeline_tag"] == "text-generation"
    assert "AutoModelForCausalLM" in card


@pytest.mark.parametrize("count", [0, 1, 5, 12, 13, 300])
def test_a_sampled_curve_has_both_ends(count):
    points = sampled(list(range(count)), 12)

    assert len(points) == min(count, 12)
    assert points[:1] == list(range(count))[:1]
    assert points[-1:] == list(range(count))[-1:]
    assert points == sorted(set(points))


def test_a_bar_in_a_cell_does_not_part_it():
    assert table(["a"], [["x|y"]]).splitlines()[-1] == r"| x\|y |"

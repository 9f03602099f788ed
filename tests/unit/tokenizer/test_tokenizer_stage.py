"""The tokenizer stage on a file system: artifacts, fingerprints, reuse and refusals."""

import json
from pathlib import Path

import pytest
from pretrain_api.reports import STAGES, StageResult
from pretrain_jobs.corpus.slices import decode_plan
from pretrain_jobs.errors import DataError, UserError
from pretrain_jobs.storage import open_store
from pretrain_jobs.storage.artifact import commit, load, upload_directory, verify
from pretrain_jobs.tokenizer.stage import main
from pretrain_testing.tokenizer_texts import (
    storage_of,
    texts,
    tokenizer_config,
    write_config,
    write_jsonl,
)

TASK = {"name": "sentiment", "data": {"uri": "tasks/sentiment.csv"}}


def make_storage(directory: Path) -> Path:
    root = directory / "storage"
    write_jsonl(root / "corpus/a.jsonl", texts())
    write_jsonl(root / "corpus/b.jsonl", texts(20))
    (root / "tasks").mkdir()
    (root / "tasks/sentiment.csv").write_text("text,label\n好,1\n坏,0\n")
    return root


@pytest.fixture
def storage(tmp_path) -> Path:
    return make_storage(tmp_path)


@pytest.fixture(scope="module")
def used_storage(tmp_path_factory) -> Path:
    """A storage that a job has used; no test changes its files."""
    return make_storage(tmp_path_factory.mktemp("used"))


@pytest.fixture(scope="module")
def usual(used_storage) -> StageResult:
    """What the stage tells of the usual job, wherever its storage is."""
    return run(used_storage)


def run(storage: Path, **sections) -> StageResult:
    path = write_config(storage.parent / "config.json", tokenizer_config(storage, **sections))
    return main(path)


def fingerprints(result: StageResult) -> dict[str, str]:
    return {artifact.stage: artifact.fingerprint for artifact in result.artifacts}


def changed(before: StageResult, after: StageResult) -> set[str]:
    first, second = fingerprints(before), fingerprints(after)
    return {stage for stage in STAGES if first[stage] != second[stage]}


def store(storage: Path, uri: str):
    return open_store(storage_of(storage), uri)


def test_the_result_tells_every_stages_artifact_and_the_slices(storage):
    result = run(storage, preprocess={"sliceBytes": 2048})

    places = {artifact.stage: artifact.uri for artifact in result.artifacts}
    assert list(places) == list(STAGES)
    for stage, folder in zip(
        STAGES, ("tokenizers", "datasets", "models", "evaluations", "exports"), strict=True
    ):
        assert places[stage] == f"{storage.as_uri()}/{folder}/{fingerprints(result)[stage]}"
    plan = decode_plan(store(storage, places["preprocess"]).read("plan.json"))
    assert result.slices == len(plan.slices) > 1
    assert not any(artifact.cached for artifact in result.artifacts)
    assert result.counts["files"] == 2


def test_the_tokenizer_is_committed_with_its_length_and_warnings(used_storage, usual):
    tokenizer = store(used_storage, usual.artifacts[0].uri)
    manifest = load(tokenizer, kind="tokenizer", fingerprint=usual.artifacts[0].fingerprint)
    assert manifest is not None
    assert verify(tokenizer, manifest, hashes=True) == []
    assert manifest.extra["algorithm"] == "wordpiece"
    assert manifest.extra["vocabSize"] == 400
    assert manifest.extra["length"] == usual.counts["vocabulary"] < 400
    assert any("enough for" in warning for warning in usual.warnings)


def test_a_second_job_reuses_the_tokenizer_and_warns_the_same(used_storage, usual):
    second = run(used_storage)

    assert fingerprints(second) == fingerprints(usual)
    assert [artifact.cached for artifact in second.artifacts] == [True, False, False, False, False]
    assert second.warnings == usual.warnings


def test_a_tokenizer_that_lost_a_file_is_made_anew(storage):
    first = run(storage)
    lost = storage / "tokenizers" / fingerprints(first)["tokenizer"] / "tokenizer.json"
    before = lost.read_bytes()
    lost.unlink()

    second = run(storage)

    assert second.artifacts[0].cached is False
    assert lost.read_bytes() == before


def test_fingerprints_do_not_depend_on_the_order_or_time_of_writing(usual, tmp_path):
    other = tmp_path / "elsewhere" / "storage"
    for name in ("corpus/b.jsonl", "corpus/a.jsonl"):
        write_jsonl(other / name, texts(20 if name.startswith("corpus/b") else 60))

    assert fingerprints(run(other)) == fingerprints(usual)


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"preprocess": {"parallelism": 7}}, set()),
        ({"training": {"maxSteps": 11}}, {"train", "evaluate", "export"}),
        ({"tokenizer": {"train": {"vocabSize": 90}}}, set(STAGES)),
        ({"evaluation": {"tasks": [TASK]}}, {"evaluate", "export"}),
        ({"export": {"dtype": "bfloat16"}}, {"export"}),
    ],
)
def test_a_change_renews_what_follows_from_it_and_no_more(used_storage, usual, sections, expected):
    assert changed(usual, run(used_storage, **sections)) == expected


def test_changed_text_renews_everything(storage, usual):
    write_jsonl(storage / "corpus/b.jsonl", texts(21))

    assert changed(usual, run(storage)) == set(STAGES)


def test_changed_evaluation_data_renews_the_evaluation(used_storage, usual, storage):
    sections = {"evaluation": {"tasks": [TASK]}}
    before = run(used_storage, **sections)
    (storage / "tasks/sentiment.csv").write_text("text,label\n好,1\n坏,1\n")

    assert changed(before, run(storage, **sections)) == {"evaluate", "export"}


def test_validation_files_are_in_the_dataset_and_not_in_the_tokenizer(storage):
    sections = {
        "corpus": {
            "sources": [{"uri": "corpus/a.jsonl"}],
            "validation": {"sources": [{"uri": "corpus/b.jsonl"}]},
        }
    }
    before = run(storage, **sections)
    write_jsonl(storage / "corpus/b.jsonl", texts(21))

    assert changed(before, run(storage, **sections)) == set(STAGES) - {"tokenizer"}


def test_artifacts_that_are_committed_are_told_as_cached(storage, tmp_path):
    before = run(storage)
    model = before.artifacts[2]
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text("{}")
    target = store(storage, model.uri)
    files = upload_directory(target, tmp_path / "model")
    commit(target, kind="model", fingerprint=model.fingerprint, files=files, extra={})

    cached = {artifact.stage: artifact.cached for artifact in run(storage).artifacts}

    assert cached["train"] is True
    assert cached["export"] is False


def test_a_committed_evaluation_hands_over_its_figures(storage, tmp_path):
    sections = {"evaluation": {"tasks": [TASK]}}
    evaluation = run(storage, **sections).artifacts[3]
    figures = {"pretrained": {"accuracy": {"mean": 0.75, "stdev": 0.01}}}
    task = {"name": "sentiment", "labels": [], "runs": [], "figures": figures, "difference": {}}
    (tmp_path / "evaluation").mkdir()
    (tmp_path / "evaluation/results.json").write_text(json.dumps({"tasks": [task]}))
    target = store(storage, evaluation.uri)
    files = upload_directory(target, tmp_path / "evaluation")
    commit(target, kind="evaluation", fingerprint=evaluation.fingerprint, files=files, extra={})

    result = run(storage, **sections)

    assert result.metrics == {
        "sentiment/pretrained/accuracy/mean": 0.75,
        "sentiment/pretrained/accuracy/stdev": 0.01,
    }


def test_an_export_may_have_its_own_place(used_storage, tmp_path):
    uri = (tmp_path / "out").as_uri()

    assert run(used_storage, export={"uri": uri}).artifacts[4].uri == uri


def test_a_tokenizer_directory_is_loaded_and_decides_the_fingerprint(storage):
    trained = run(storage).artifacts[0]
    place = f"tokenizers/{trained.fingerprint}"
    sections = {"tokenizer": {"uri": place}}

    first = run(storage, **sections)

    manifest = load(store(storage, first.artifacts[0].uri), kind="tokenizer")
    assert manifest is not None
    assert manifest.extra["algorithm"] is None
    assert first.artifacts[0].fingerprint != trained.fingerprint
    config = storage / place / "tokenizer_config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | {"model_max_length": 77}))
    assert changed(first, run(storage, **sections)) == set(STAGES)


def test_skipped_and_empty_files_are_told(storage):
    (storage / "corpus/notes.json.bak").write_text("x")
    (storage / "corpus/empty.jsonl").write_text("")

    warnings = run(storage).warnings

    assert any("notes.json.bak is skipped" in warning for warning in warnings)
    assert any("empty.jsonl is empty" in warning for warning in warnings)


def test_evaluation_data_that_is_missing_is_found_before_training(storage):
    task = {"name": "x", "data": {"uri": "tasks/none.csv"}}

    with pytest.raises(DataError, match=r"evaluation\.tasks\.0\.data\.uri names .*none\.csv"):
        run(storage, evaluation={"tasks": [task]})
    assert not (storage / "tokenizers").exists()


def test_a_causal_objective_needs_an_end_of_document(storage):
    with pytest.raises(UserError, match=r"tokenizer\.endOfDocument"):
        run(storage, objective={"clm": {}})

    run(
        storage,
        objective={"clm": {}},
        tokenizer={"train": {"vocabSize": 400}, "endOfDocument": "[SEP]"},
    )


def test_a_corpus_of_empty_files_is_refused(storage):
    for path in (storage / "corpus").iterdir():
        path.write_text("")

    with pytest.raises(DataError, match="no document"):
        run(storage)

"""The export stage over tiny models of every architecture. About 20 seconds."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from pretrain_api.stages import ExportStageConfig, JobRef
from pretrain_jobs.errors import DataError
from pretrain_jobs.export.stage import main
from pretrain_jobs.export.weights import load_model, parameter_hashes
from pretrain_jobs.storage import open_store
from pretrain_jobs.storage.artifact import load, verify
from pretrain_testing.tiny_models import (
    ARCHITECTURES,
    CAUSAL,
    MODEL_FINGERPRINT,
    commit_model,
    write_model,
)
from pretrain_testing.tokenizer_texts import job_spec, storage_of
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer


def write_config(
    root: Path, *, name: str = "exports/x", fingerprint: str = "e" * 16, **export
) -> Path:
    spec = job_spec(root / "storage", export=export)
    assert spec.storage is not None
    uri = spec.storage.uri
    config = ExportStageConfig(
        job=JobRef(namespace="default", name="job", uid="0"),
        storage=spec.storage,
        model_uri=f"{uri}/models/{MODEL_FINGERPRINT}",
        model_fingerprint=MODEL_FINGERPRINT,
        dataset_uri=f"{uri}/datasets/{'d' * 16}",
        dataset_fingerprint="d" * 16,
        export_uri=f"{uri}/{name}",
        export_fingerprint=fingerprint,
        export=spec.export,
        spec=spec,
    )
    path = root / "config.json"
    path.write_text(config.model_dump_json(by_alias=True))
    return path


def prepare(root: Path, architecture: str, **overrides) -> Path:
    """Commit a tiny model; its directory."""
    model = write_model(root / "model", architecture, **overrides)
    commit_model(storage_of(root / "storage"), model)
    return model


def exported(root: Path, name: str = "exports/x") -> Path:
    return root / "storage" / name


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_an_export_loads_with_the_trained_weights_logits_and_tokenizer(tmp_path, architecture):
    trained = load_model(prepare(tmp_path, architecture))

    result = main(write_config(tmp_path))

    out = exported(tmp_path)
    assert {"README.md", "training.json", "eval_results.json"} <= contents(out).keys()
    auto = AutoModelForCausalLM if architecture in CAUSAL else AutoModelForMaskedLM
    model, tokenizer = auto.from_pretrained(out), AutoTokenizer.from_pretrained(out)
    assert parameter_hashes(model) == parameter_hashes(trained)
    encoded = tokenizer("今天的天气 the old clock", return_tensors="pt")
    with torch.inference_mode():
        assert torch.equal(model.eval()(**encoded).logits, trained(**encoded).logits)
    assert int(encoded["input_ids"].max()) < len(tokenizer) == model.config.vocab_size
    assert tokenizer.model_max_length == 64
    assert result.counts["parameters"] == sum(p.numel() for p in model.parameters())
    store = open_store(storage_of(tmp_path / "storage"), result.artifacts[0].uri)
    manifest = load(store, kind="export", fingerprint="e" * 16)
    assert manifest is not None
    assert verify(store, manifest, hashes=True) == []
    assert manifest.extra["vocabulary"] == {"rows": len(tokenizer), "tokens": len(tokenizer)}


@pytest.mark.parametrize("architecture", ["bert", "modernbert", "gpt2", "qwen2"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_an_export_holds_the_weights_in_the_type_that_was_asked_for(tmp_path, architecture, dtype):
    prepare(tmp_path, architecture)

    main(write_config(tmp_path, dtype=dtype))

    stored = load_file(exported(tmp_path) / "model.safetensors")
    assert {tensor.dtype for tensor in stored.values()} == {getattr(torch, dtype)}
    assert json.loads((exported(tmp_path) / "config.json").read_text())["dtype"] == dtype


@pytest.mark.parametrize(
    ("architecture", "tied", "kept", "dropped"),
    [
        ("gpt2", True, "transformer.wte.weight", "lm_head.weight"),
        ("qwen2", True, "model.embed_tokens.weight", "lm_head.weight"),
        ("bert", True, "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"),
    ],
)
def test_tied_weights_are_written_once_and_are_one_storage_again(
    tmp_path, architecture, tied, kept, dropped
):
    prepare(tmp_path, architecture)

    main(write_config(tmp_path))

    names = load_file(exported(tmp_path) / "model.safetensors").keys()
    assert kept in names
    assert dropped not in names
    model = load_model(exported(tmp_path))
    embedding, output = model.get_input_embeddings(), model.get_output_embeddings()
    assert output.weight is embedding.weight
    assert f"`{kept}` (tied" in (exported(tmp_path) / "README.md").read_text()


def test_weights_that_are_not_tied_are_both_written(tmp_path):
    prepare(tmp_path, "qwen2", tie_word_embeddings=False)

    main(write_config(tmp_path))

    names = load_file(exported(tmp_path) / "model.safetensors").keys()
    assert {"lm_head.weight", "model.embed_tokens.weight"} <= names


def test_a_large_model_is_written_in_parts_that_the_index_lists(tmp_path):
    prepare(tmp_path, "bert")

    main(write_config(tmp_path, maxShardBytes=60_000))

    out = exported(tmp_path)
    index = json.loads((out / "model.safetensors.index.json").read_text())["weight_map"]
    assert len(set(index.values())) > 1
    assert all(name in load_file(out / file) for name, file in index.items())


def test_equal_input_gives_equal_bytes(tmp_path):
    prepare(tmp_path, "bert")
    main(write_config(tmp_path))
    main(write_config(tmp_path, name="exports/y"))

    assert contents(exported(tmp_path)) == contents(exported(tmp_path, "exports/y"))


def test_a_committed_export_is_not_written_again(tmp_path):
    prepare(tmp_path, "bert")
    first = main(write_config(tmp_path))
    before = {path: path.stat().st_mtime_ns for path in exported(tmp_path).iterdir()}

    assert main(write_config(tmp_path)) == first
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_new_export_to_the_same_place_leaves_nothing_of_the_old_one(tmp_path):
    prepare(tmp_path, "bert")
    main(write_config(tmp_path, maxShardBytes=60_000))
    (exported(tmp_path) / "notes.txt").write_text("the user's own")

    main(write_config(tmp_path, fingerprint="f" * 16))

    names = {path.name for path in exported(tmp_path).iterdir()}
    assert "model.safetensors" in names
    assert "notes.txt" in names
    assert not any("-of-" in name for name in names)


def test_an_export_never_replaces_an_artifact_of_another_kind(tmp_path):
    prepare(tmp_path, "bert")
    place = f"models/{MODEL_FINGERPRINT}"
    before = contents(exported(tmp_path, place))

    with pytest.raises(DataError, match="kind 'model' where 'export' was expected"):
        main(write_config(tmp_path, name=place))
    assert contents(exported(tmp_path, place)) == before


def test_a_weight_that_half_precision_cannot_hold_stops_the_export(tmp_path):
    model = write_model(tmp_path / "model", "bert")
    weights = load_file(model / "model.safetensors")
    weights["cls.predictions.bias"][0] = 1e6
    save_file(weights, model / "model.safetensors", metadata={"format": "pt"})
    commit_model(storage_of(tmp_path / "storage"), model)

    with pytest.raises(DataError, match=r"predictions.*float16 cannot hold.*export\.dtype"):
        main(write_config(tmp_path, dtype="float16"))
    assert not exported(tmp_path).exists()


def test_a_model_that_lacks_its_head_stops_the_export(tmp_path):
    model = write_model(tmp_path / "model", "bert")
    weights = load_file(model / "model.safetensors")
    kept = {name: value for name, value in weights.items() if "cls.predictions" not in name}
    save_file(kept, model / "model.safetensors", metadata={"format": "pt"})
    commit_model(storage_of(tmp_path / "storage"), model)

    with pytest.raises(DataError, match=r"missing keys cls\.predictions"):
        main(write_config(tmp_path))


def test_the_trained_model_is_read_from_the_store_and_left_there(tmp_path):
    model = prepare(tmp_path, "bert")
    before = contents(exported(tmp_path, f"models/{MODEL_FINGERPRINT}"))
    shutil.rmtree(model)

    main(write_config(tmp_path))

    assert contents(exported(tmp_path, f"models/{MODEL_FINGERPRINT}")) == before

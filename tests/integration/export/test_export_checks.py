"""What the checks of an exported directory find. About 10 seconds."""

import json
from pathlib import Path

import pytest
import torch
from pretrain_jobs.errors import DataError
from pretrain_jobs.export.verify import (
    check_export,
    check_files,
    check_logits,
    check_parameters,
    check_ties,
    check_tokenizer,
)
from pretrain_jobs.export.weights import load_model
from pretrain_testing.tiny_models import (
    write_model,
)
from safetensors.torch import load_file, save_file


class Spoilt:
    """An exported directory to be damaged, and the model that it should hold."""

    def __init__(self, root: Path) -> None:
        self.directory = write_model(root / "model", "bert")
        self.reference = load_model(self.directory)
        check_export(self.directory, self.reference, dtype=torch.float32)

    def rewrite(self, change) -> None:
        path = self.directory / "model.safetensors"
        weights = load_file(path)
        change(weights)
        save_file(weights, path, metadata={"format": "pt"})

    def check(self) -> None:
        check_files(self.directory, self.reference, dtype=torch.float32)


@pytest.fixture
def spoilt(tmp_path) -> Spoilt:
    return Spoilt(tmp_path)


NAME = "bert.encoder.layer.0.output.dense.weight"
HEAD = "cls.predictions.decoder.weight"
EMBEDDING = "bert.embeddings.word_embeddings.weight"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.update({NAME: w[NAME] + 1e-3}), "differs from the trained"),
        (lambda w: w.update({NAME: w[NAME].half()}), "as torch.float16"),
        (lambda w: w.update({NAME: torch.empty(0)}), "differs from the trained"),
        (lambda w: w.update({"surplus": torch.ones(1)}), "surplus"),
        (lambda w: w.pop(NAME), "0 times"),
        (lambda w: w.update({HEAD: w[EMBEDDING].clone()}), "2 times"),
    ],
)
def test_files_that_are_not_the_models_are_found(spoilt, change, message):
    spoilt.rewrite(change)

    with pytest.raises(DataError, match=message):
        spoilt.check()


def test_an_index_that_names_what_no_file_has_is_found(spoilt):
    index = {
        "weight_map": dict.fromkeys([*load_file(spoilt.directory / "model.safetensors"), "x"], "f")
    }
    (spoilt.directory / "model.safetensors.index.json").write_text(json.dumps(index))

    with pytest.raises(DataError, match="differ in x"):
        spoilt.check()


def test_one_random_weight_after_a_clean_load_is_found(spoilt):
    reloaded = load_model(spoilt.directory)
    torch.nn.init.normal_(reloaded.get_parameter(NAME))

    with pytest.raises(DataError, match=NAME):
        check_parameters(spoilt.reference, reloaded)
    with pytest.raises(DataError, match="logits differ"):
        check_logits(spoilt.reference, reloaded)


def test_a_head_that_came_untied_is_found(spoilt):
    reloaded = load_model(spoilt.directory)
    output = reloaded.get_output_embeddings()
    output.weight = torch.nn.Parameter(output.weight.detach().clone())

    with pytest.raises(DataError, match="not tied"):
        check_ties(spoilt.reference, reloaded)


def test_a_tokenizer_longer_than_the_embedding_is_found(spoilt):
    path = spoilt.directory / "tokenizer.json"
    data = json.loads(path.read_text())
    extra = {"content": "<new>", "id": len(data["model"]["vocab"])}
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
    data["added_tokens"].append(extra | flags)
    path.write_text(json.dumps(data))

    with pytest.raises(DataError, match="out of range"):
        check_tokenizer(spoilt.directory, spoilt.reference)


def test_a_tokenizer_that_transformers_reads_otherwise_is_found(spoilt):
    path = spoilt.directory / "tokenizer_config.json"
    config = json.loads(path.read_text())
    path.write_text(
        json.dumps(config | {"tokenizer_class": "BertTokenizer", "do_lower_case": True})
    )

    with pytest.raises(DataError, match="BertTokenizer of transformers tokenizes otherwise"):
        check_tokenizer(spoilt.directory, spoilt.reference)

"""Tokenizers across processes and libraries: equal bytes, and AutoTokenizer. About 30 seconds."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pretrain_api.reports import StageReport
from pretrain_api.spec.tokenizer import TokenizerTrainingSpec
from pretrain_jobs.tokenizer.load import load_tokenizer
from pretrain_jobs.tokenizer.special import load_special_tokens
from pretrain_jobs.tokenizer.train import train_tokenizer
from pretrain_testing.tokenizer_texts import texts, tokenizer_config, write_config, write_jsonl
from transformers import AutoTokenizer

TRAIN = """
import sys
from pathlib import Path
from pretrain_api.spec.tokenizer import TokenizerTrainingSpec
from pretrain_jobs.tokenizer.train import train_tokenizer
from pretrain_testing.tokenizer_texts import texts

spec = TokenizerTrainingSpec(algorithm=sys.argv[1], vocab_size=500, lowercase=False)
train_tokenizer(texts(400), spec, architecture=sys.argv[2]).save(Path(sys.argv[3]))
"""
SUPPORT = Path(__file__).parents[2] / "support"
TEXTS = ("今天 the clock's fine。\n第3章 𠮷野家 😀", "  two  spaces\tand a tab", "ＡＢＣ①")


def digest(directory: Path) -> str:
    files = sorted(directory.iterdir())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


@pytest.mark.parametrize(
    ("algorithm", "architecture"),
    [("wordpiece", "bert"), ("byteLevelBpe", "gpt2"), ("unigram", "bert")],
)
def test_every_process_trains_the_same_bytes_with_any_number_of_threads(
    tmp_path, algorithm, architecture
):
    digests = set()
    for number, threads in enumerate(("1", "2", "8")):
        out = tmp_path / str(number)
        environment = os.environ | {
            "RAYON_NUM_THREADS": threads,
            "PYTHONHASHSEED": str(number),
            "PYTHONPATH": str(SUPPORT),
        }
        subprocess.run(
            [sys.executable, "-c", TRAIN, algorithm, architecture, str(out)],
            check=True,
            env=environment,
        )
        digests.add(digest(out))

    assert len(digests) == 1


@pytest.mark.parametrize(
    ("architecture", "algorithm"),
    [
        ("bert", "wordpiece"),
        ("bert", "unigram"),
        ("modernbert", "wordpiece"),
        ("roberta", "byteLevelBpe"),
        ("roberta", "wordpiece"),
        ("gpt2", "byteLevelBpe"),
        ("qwen2", "byteLevelBpe"),
    ],
)
def test_auto_tokenizer_gives_the_same_ids_and_special_tokens(tmp_path, architecture, algorithm):
    spec = TokenizerTrainingSpec(algorithm=algorithm, vocab_size=600, lowercase=False)
    train_tokenizer(texts(200), spec, architecture=architecture).save(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": architecture}))

    theirs = AutoTokenizer.from_pretrained(tmp_path)

    ours, special = load_tokenizer(tmp_path), load_special_tokens(tmp_path)
    assert len(theirs) == special.length
    for text in TEXTS:
        assert theirs(text)["input_ids"] == ours.encode(text).ids
    for role in ("pad", "unk", "cls", "sep", "mask", "bos", "eos"):
        if role == "unk" and architecture == "qwen2":  # its class names one by itself
            continue
        assert getattr(theirs, f"{role}_token_id") == getattr(special, role)
    assert ("token_type_ids" in theirs("a")) == (architecture == "bert")


def test_auto_tokenizer_agrees_on_a_directory_that_only_had_a_vocabulary(tmp_path):
    from pretrain_api.spec.storage import StorageSpec
    from pretrain_jobs.tokenizer.load import fetch_tokenizer

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "今", "天", "the", "##s", "clock"]
    source = tmp_path / "bert"
    source.mkdir()
    (source / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    (source / "config.json").write_text(json.dumps({"model_type": "bert"}))
    before = AutoTokenizer.from_pretrained(source)

    fetch_tokenizer(StorageSpec(uri=tmp_path.as_uri()), "bert", tmp_path / "out")

    after = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert after(list(TEXTS))["input_ids"] == before(list(TEXTS))["input_ids"]
    assert after.mask_token_id == before.mask_token_id == 4


def test_the_stage_runs_as_a_process_and_reports(tmp_path):
    storage = tmp_path / "storage"
    write_jsonl(storage / "corpus/a.jsonl", texts())
    config = write_config(tmp_path / "config.json", tokenizer_config(storage))
    report = tmp_path / "report.json"

    done = subprocess.run(
        [sys.executable, "-m", "pretrain_jobs", "tokenizer", "--config", str(config)],
        check=False,
        env=os.environ | {"PRETRAIN_TERMINATION_LOG": str(report)},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    result = StageReport.model_validate_json(report.read_bytes()).result
    assert result is not None
    assert result.artifacts[0].stage == "tokenizer"


def test_the_stage_needs_neither_torch_nor_transformers():
    program = (
        "import sys, pretrain_jobs.tokenizer.stage\n"
        "assert not {'torch', 'transformers'} & sys.modules.keys()"
    )

    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_missing_corpus_ends_with_the_data_errors_code_and_one_sentence(tmp_path):
    config = write_config(tmp_path / "config.json", tokenizer_config(tmp_path / "storage"))

    done = subprocess.run(
        [sys.executable, "-m", "pretrain_jobs", "tokenizer", "--config", str(config)],
        check=False,
        capture_output=True,
        text=True,
    )

    assert done.returncode == 65
    assert "source 'corpus/'" in done.stderr
    assert "Traceback" not in done.stderr

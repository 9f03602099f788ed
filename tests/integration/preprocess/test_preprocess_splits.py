"""Training and validation documents of a dataset, and words of a user; in this process, 2 s."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pretrain_api.reports import StageResult
from pretrain_api.spec.corpus import SourceSpec, ValidationSpec
from pretrain_api.spec.objective import ClmSpec, ObjectiveSpec
from pretrain_api.spec.preprocess import PreprocessSpec
from pretrain_jobs.corpus.slice_run import is_held_out
from pretrain_jobs.corpus.stage import main
from pretrain_jobs.errors import DataError
from pretrain_testing.corpora import PreprocessJob, json_lines, wordpiece

TOKENIZER = wordpiece("云朵裤和衫好坏人民天气，。")
Run = Callable[..., StageResult]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Lays a job out and runs all of its slices; the last one's result."""

    def prepare(job: PreprocessJob, files: dict[str, bytes]) -> StageResult:
        job.write(files)
        result = StageResult()
        for index in range(len(job.lay_out(TOKENIZER).slices)):
            monkeypatch.setenv("JOB_COMPLETION_INDEX", str(index))
            result = main(job.config_path)
        return result

    return prepare


def test_a_fraction_that_holds_out_nothing_is_told(tmp_path: Path, run: Run) -> None:
    job = PreprocessJob(tmp_path, validation_fraction=0.001)

    result = run(job, {"a.jsonl": json_lines(["好人"] * 7)})

    [warning] = result.warnings
    assert "corpus.validation (fraction 0.001) holds out none of 7 documents" in warning
    assert job.manifest() is not None


def test_without_a_fraction_nothing_is_missed(tmp_path: Path, run: Run) -> None:
    result = run(PreprocessJob(tmp_path), {"a.jsonl": json_lines(["好人"] * 7)})

    assert result.warnings == []


@pytest.mark.parametrize("held_out", [b"", json_lines(["", " "])])
def test_held_out_sources_without_text_are_refused_by_name(
    tmp_path: Path, run: Run, held_out: bytes
) -> None:
    validation = ValidationSpec(sources=[SourceSpec(uri="corpus/held.jsonl")])
    job = PreprocessJob(tmp_path, corpus={"validation": validation})

    with pytest.raises(DataError, match=r"validation split is empty: corpus\.validation\.sources"):
        run(job, {"a.jsonl": json_lines(["好人"]), "held.jsonl": held_out})

    assert job.manifest() is None


def test_a_corpus_that_is_held_out_whole_is_refused(tmp_path: Path, run: Run) -> None:
    job = PreprocessJob(tmp_path, validation_fraction=0.5)
    texts = ("好" * length for length in range(1, 40))
    text = next(text for text in texts if is_held_out(text, 0.5, seed=7))

    with pytest.raises(DataError, match="training split is empty: all 1 documents"):
        run(job, {"a.jsonl": json_lines([text])})

    assert job.manifest() is None


class CausalJob(PreprocessJob):
    """A job whose model predicts the next token, in blocks of 64 positions."""

    def config(self) -> Any:
        return (
            super()
            .config()
            .model_copy(
                update={
                    "objective": ObjectiveSpec(clm=ClmSpec()),
                    "preprocess": PreprocessSpec(sequence_length=64),
                }
            )
        )


@pytest.mark.parametrize(("tokens", "told"), [(62, True), (63, True), (64, False), (200, False)])
def test_held_out_text_too_short_for_a_block_is_told(
    tmp_path: Path, run: Run, tokens: int, *, told: bool
) -> None:
    validation = ValidationSpec(sources=[SourceSpec(uri="corpus/held.jsonl")])
    job = CausalJob(
        tmp_path,
        sources=(SourceSpec(uri="corpus/a.jsonl"),),
        corpus={"validation": validation},
    )

    result = run(
        job, {"a.jsonl": json_lines(["好人" * 100]), "held.jsonl": json_lines(["好" * tokens])}
    )

    assert bool(result.warnings) is told
    assert all(
        f"holds out {tokens} tokens, too few for one block of 64" in w for w in result.warnings
    )


def test_a_users_words_are_whole_in_every_slice(tmp_path: Path, run: Run) -> None:
    job = PreprocessJob(
        tmp_path,
        sources=(SourceSpec(uri="corpus/text/"),),
        slice_bytes=60,
        preprocess=PreprocessSpec(user_dictionary="corpus/words.txt"),
    )

    run(
        job,
        {
            "text/a.jsonl": json_lines(["云朵裤和云朵衫。"] * 4),
            "words.txt": "\ufeff云朵裤 10000\r\n云朵衫 10000\r\n".encode(),
        },
    )

    shards = job.shards()
    assert len(shards) > 1
    for shard in shards:
        bits = "".join(str(int(bit)) for bit in shard.word_starts)
        assert bits == "10011001" * shard.documents

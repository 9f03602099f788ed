"""The preprocessing stage over files on disk, in this process; about 10 s."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import h5py
import numpy as np
import pytest
from pretrain_api.reports import PROGRESS_FILE_ENV, StageProgress
from pretrain_api.spec.corpus import CleaningSpec, SourceSpec, ValidationSpec
from pretrain_api.spec.objective import MlmSpec
from pretrain_api.spec.preprocess import PreprocessSpec
from pretrain_testing.corpora import PreprocessJob, json_lines, wordpiece
from pretrain_testing.sentence_jobs import TEXTS, TOKENIZER, WORDS, Run, make_job


def test_a_corpus_becomes_a_dataset(tmp_path: Path, run: Run) -> None:
    job = make_job(tmp_path, validation_fraction=0.2)

    result = run(job)

    manifest = job.manifest()
    assert manifest is not None
    assert manifest.documents("train") + manifest.documents("validation") == 40
    assert 0 < manifest.documents("validation") < 20
    assert (manifest.dtype, manifest.vocab_size) == ("uint16", TOKENIZER.get_vocab_size())
    assert manifest.statistics.documents == manifest.statistics.documents_read == 40
    assert manifest.statistics.unknown_rate == 0
    assert result.artifacts[0].uri == f"{job.storage.uri}/dataset"
    assert result.counts["documents"] == 40
    assert (job.dataset_directory / "tokenizer" / "tokenizer.json").read_bytes() == (
        job.directory / "storage" / "tokenizer" / "tokenizer.json"
    ).read_bytes()


def test_shards_hold_the_text_in_order(tmp_path: Path, run: Run) -> None:
    job = make_job(tmp_path)

    run(job)

    [shard] = job.shards()
    texts = [
        TOKENIZER.decode(shard.tokens[a:b].tolist()).replace(" ", "")
        for a, b in pairwise(shard.document_offsets)
    ]
    assert texts == TEXTS
    assert shard.sentences == 80
    assert shard.words == 440


def test_equal_texts_are_on_the_same_side_whatever_the_file(tmp_path: Path, run: Run) -> None:
    job = make_job(
        tmp_path,
        {"a.jsonl": json_lines(TEXTS), "b.jsonl": json_lines(reversed(TEXTS))},
        validation_fraction=0.3,
    )

    run(job)

    held_out, trained = job.shards("validation")[0], job.shards("train")[0]
    assert held_out.documents % 2 == 0
    texts = [
        {tuple(s.tokens[a:b]) for a, b in pairwise(s.document_offsets)} for s in (held_out, trained)
    ]
    assert texts[0].isdisjoint(texts[1])


def test_validation_sources_replace_the_fraction(tmp_path: Path, run: Run) -> None:
    validation = ValidationSpec(sources=[SourceSpec(uri="corpus/b.jsonl")], fraction=0.5)
    job = make_job(
        tmp_path,
        {"a.jsonl": json_lines(TEXTS), "b.jsonl": json_lines(TEXTS[:3])},
        corpus={"validation": validation},
    )

    for index in range(2):
        run(job, index)

    manifest = job.manifest()
    assert manifest is not None
    assert (manifest.documents("train"), manifest.documents("validation")) == (40, 3)


def test_output_larger_than_a_shard_makes_several(tmp_path: Path, run: Run) -> None:
    job = make_job(tmp_path, preprocess=PreprocessSpec(shard_size=100))

    run(job)

    sizes = [len(shard.tokens) for shard in job.shards()]
    assert len(sizes) > 3
    assert max(sizes) <= 100


def test_a_document_longer_than_a_shard_is_whole(tmp_path: Path, run: Run) -> None:
    job = make_job(
        tmp_path,
        {"a.jsonl": json_lines(["好。", "好坏" * 300_000, "坏。"])},
        preprocess=PreprocessSpec(shard_size=1000),
    )

    run(job)

    assert [len(shard.tokens) for shard in job.shards()] == [2, 600_000, 2]


def test_sources_stay_apart_so_that_they_can_be_weighted(tmp_path: Path, run: Run) -> None:
    job = make_job(
        tmp_path,
        {"a/x.jsonl": json_lines(TEXTS), "b/x.jsonl": json_lines(TEXTS[:2])},
        sources=(SourceSpec(uri="corpus/a/", weight=2), SourceSpec(uri="corpus/b/", weight=1)),
    )

    for index in range(2):
        run(job, index)

    manifest = job.manifest()
    assert manifest is not None
    assert [(shard.source, shard.documents) for shard in manifest.shards("train")] == [
        (0, 40),
        (1, 2),
    ]


def test_a_slice_without_documents_is_done_and_stays_done(tmp_path: Path, run: Run) -> None:
    job = make_job(
        tmp_path, {"a.jsonl.gz": b"no archive", "b.jsonl": json_lines(TEXTS)}, slice_bytes=2000
    )
    run(job, 0)
    first = (job.dataset_directory / "slices" / "00000.json").stat().st_mtime_ns

    run(job, 0)
    for index in range(1, len(job.lay_out().slices)):
        run(job, index)

    assert (job.dataset_directory / "slices" / "00000.json").stat().st_mtime_ns == first
    assert job.manifest() is not None


def test_options_act(tmp_path: Path, run: Run) -> None:
    cleaning = CleaningSpec(normalization="NFKC", min_characters=3)
    job = make_job(
        tmp_path,
        {"a.jsonl": json_lines(["１２ 好坏", "好坏"]), "dict.txt": "好坏 100000\n".encode()},
        sources=(SourceSpec(uri="corpus/a.jsonl"),),
        corpus={"cleaning": cleaning},
        preprocess=PreprocessSpec(user_dictionary="corpus/dict.txt"),
    )

    run(job)

    [shard] = job.shards()
    assert shard.tokens.tolist() == [TOKENIZER.token_to_id(t) for t in ("12", "好", "坏")]
    assert shard.word_starts.tolist() == [True, True, False]


def test_the_segmenter_follows_the_objective(tmp_path: Path, run: Run) -> None:
    job = make_job(tmp_path, mlm=MlmSpec(whole_word=False))

    run(job)

    assert all(shard.word_starts.all() for shard in job.shards())


def test_a_tokenizers_saved_truncation_and_padding_do_not_act(tmp_path: Path, run: Run) -> None:
    tokenizer = wordpiece([*WORDS])
    tokenizer.enable_truncation(128)
    tokenizer.enable_padding(length=128)
    job = PreprocessJob(tmp_path)
    job.write({"a.jsonl": json_lines(["好坏" * 500, "好"])})
    job.lay_out(tokenizer)
    saved = (tmp_path / "storage" / "tokenizer" / "tokenizer.json").read_bytes()

    run(job)

    assert np.diff(job.shards()[0].document_offsets).tolist() == [1000, 1]
    assert (tmp_path / "storage" / "tokenizer" / "tokenizer.json").read_bytes() == saved


def test_progress_ends_with_all_bytes(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PROGRESS_FILE_ENV, str(tmp_path / "progress.json"))
    job = make_job(tmp_path)

    run(job)

    progress = StageProgress.model_validate_json((tmp_path / "progress.json").read_bytes())
    assert progress.total == len(json_lines(TEXTS))
    assert (progress.done, progress.unit) == (progress.total, "bytes")


def test_shards_can_be_read_by_plain_hdf5(tmp_path: Path, run: Run) -> None:
    job = make_job(tmp_path)
    run(job)
    [path] = (job.dataset_directory / "shards").iterdir()

    with h5py.File(path) as file:
        tokens = file["tokens"][:]
        bits = np.unpackbits(file["word_starts"][:])[: len(tokens)]

    assert tokens.tolist() == job.shards()[0].tokens.tolist()
    assert bits.tolist() == job.shards()[0].word_starts.tolist()

"""The preprocessing stage over files on disk, in this process; about 10 s."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from pretrain_api.reports import PROGRESS_FILE_ENV, StageProgress, StageResult
from pretrain_api.spec.corpus import CleaningSpec, SourceSpec, ValidationSpec
from pretrain_api.spec.objective import MlmSpec
from pretrain_api.spec.preprocess import PreprocessSpec
from pretrain_jobs.corpus.stage import main
from pretrain_jobs.errors import DataError, UserError
from pretrain_testing.corpora import PreprocessJob, json_lines, wordpiece

WORDS = "乌鲁木齐是城市中华人民共和国成立研究生命的起源很忙好坏一二三四五六七八九十"
TEXTS = [f"研究生命的起源，{number}。乌鲁木齐是城市！" for number in range(40)]
TOKENIZER = wordpiece([*WORDS, "，", "。", "！", *(str(n) for n in range(100))])

Run = Callable[..., StageResult]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs one slice of a job in this process."""

    def prepare(job: PreprocessJob, index: int = 0) -> StageResult:
        monkeypatch.setenv("JOB_COMPLETION_INDEX", str(index))
        return main(job.config_path)

    return prepare


def make_job(
    tmp_path: Path, files: dict[str, bytes] | None = None, **options: Any
) -> PreprocessJob:
    job = PreprocessJob(tmp_path, **options)
    job.write(files if files is not None else {"a.jsonl": json_lines(TEXTS)})
    job.lay_out(TOKENIZER)
    return job


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


def test_a_refused_record_is_told_by_its_place(tmp_path: Path, run: Run) -> None:
    data = json_lines(["好"]) + b'{"text": "x\n' + json_lines(["坏"])
    job = make_job(tmp_path, {"a/p.jsonl": data, "b/p.jsonl": data}, corpus={"max_rejects": 2})

    result = run(job)

    rejects = (job.dataset_directory / "rejects" / "00000.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in rejects]
    assert [(r["file"].rsplit("/", 2)[1], r["line"], r["cause"]) for r in found] == [
        ("a", 2, "JSON"),
        ("b", 2, "JSON"),
    ]
    assert result.counts["rejects"] == 2
    manifest = job.manifest()
    assert manifest is not None
    assert manifest.statistics.rejects == {"JSON": 2}
    assert manifest.statistics.documents_read == 6


def test_one_reject_too_many_ends_the_slice_with_file_and_line(tmp_path: Path, run: Run) -> None:
    data = json_lines(["好"]) + b'{"text": "x\n'
    job = make_job(tmp_path, {"a.jsonl": data}, corpus={"max_rejects": 0})

    with pytest.raises(DataError, match=r"a\.jsonl, line 2, byte \d+: JSON"):
        run(job)

    assert job.manifest() is None


def test_rejects_are_limited_over_all_slices(tmp_path: Path, run: Run) -> None:
    files = {f"{n}/a.jsonl": json_lines(TEXTS) + b"{\n" for n in range(3)}
    sources = tuple(SourceSpec(uri=f"corpus/{n}/") for n in range(3))
    job = make_job(tmp_path, files, sources=sources, corpus={"max_rejects": 2})

    for index in range(2):
        run(job, index)
    with pytest.raises(DataError, match=r"3 records were refused and corpus\.maxRejects is 2"):
        run(job, 2)

    assert job.manifest() is None


def test_a_cut_archive_is_a_warning_beside_its_documents(tmp_path: Path, run: Run) -> None:
    job = make_job(tmp_path, {"a.jsonl.gz": gzip.compress(json_lines(TEXTS * 10))[:-20]})

    result = run(job)

    [warning] = result.warnings
    assert "a.jsonl.gz: truncated" in warning


def test_a_corpus_without_text_is_refused_and_makes_no_dataset(tmp_path: Path, run: Run) -> None:
    job = make_job(tmp_path, {"a.jsonl": json_lines(["", " ", 5]), "b.jsonl": b""})

    with pytest.raises(DataError, match=r"no document with text in 2 files \(2 empty, 1 type\)"):
        run(job)

    assert job.manifest() is None


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


def test_an_index_without_a_slice_is_refused(tmp_path: Path, run: Run) -> None:
    job = make_job(tmp_path)

    with pytest.raises(UserError, match="the plan has 1 slices"):
        run(job, 1)


def test_a_missing_tokenizer_is_told(tmp_path: Path, run: Run) -> None:
    job = PreprocessJob(tmp_path)
    job.write({"a.jsonl": json_lines(TEXTS)})
    job.lay_out()

    with pytest.raises(DataError, match=r"no tokenizer in .*/tokenizer"):
        run(job)


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


@pytest.mark.parametrize("damage", ["cut", "flip", "delete", "empty"])
def test_damaged_shards_are_made_again(tmp_path: Path, run: Run, damage: str) -> None:
    job = make_job(tmp_path)
    run(job)
    sound = job.content()
    [path] = (job.dataset_directory / "shards").iterdir()
    data = path.read_bytes()
    path.unlink()
    if damage != "delete":
        half = len(data) // 2
        flipped = data[:half] + bytes([data[half] ^ 1]) + data[half + 1 :]
        path.write_bytes(
            {"cut": data[: len(data) * 6 // 10], "flip": flipped, "empty": b""}[damage]
        )

    run(job)

    assert job.content() == sound


@pytest.mark.parametrize("junk", [b"", b"{}", b"\x00" * 100])
def test_a_damaged_slice_manifest_counts_as_none(tmp_path: Path, run: Run, junk: bytes) -> None:
    job = make_job(tmp_path)
    run(job)
    sound = job.content()
    (job.dataset_directory / "slices" / "00000.json").write_bytes(junk)
    (job.dataset_directory / "manifest.json").write_bytes(junk)

    run(job)

    assert job.content() == sound


def test_all_shards_without_a_manifest_are_no_dataset_until_the_stage_completes_it(
    tmp_path: Path, run: Run
) -> None:
    job = make_job(tmp_path)
    run(job)
    sound = job.content()
    (job.dataset_directory / "manifest.json").unlink()
    assert job.manifest() is None

    run(job)

    assert job.content() == sound


def test_another_fingerprints_slices_are_not_taken(tmp_path: Path, run: Run) -> None:
    job = make_job(tmp_path)
    run(job)
    slice_path = job.dataset_directory / "slices" / "00000.json"
    foreign = json.loads(slice_path.read_text()) | {"fingerprint": "another"}
    slice_path.write_text(json.dumps(foreign))
    sound = {k: v for k, v in job.content().items() if not k.startswith("slices/")}

    run(job)

    assert {k: v for k, v in job.content().items() if not k.startswith("slices/")} == sound
    assert json.loads(slice_path.read_text())["fingerprint"] == "fingerprint"


def test_shards_can_be_read_by_plain_hdf5(tmp_path: Path, run: Run) -> None:
    job = make_job(tmp_path)
    run(job)
    [path] = (job.dataset_directory / "shards").iterdir()

    with h5py.File(path) as file:
        tokens = file["tokens"][:]
        bits = np.unpackbits(file["word_starts"][:])[: len(tokens)]

    assert tokens.tolist() == job.shards()[0].tokens.tolist()
    assert bits.tolist() == job.shards()[0].word_starts.tolist()

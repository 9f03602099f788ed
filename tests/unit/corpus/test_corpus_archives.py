"""Archives and files that change: what is read of them, and what is refused."""

from __future__ import annotations

import gzip
import lzma
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from pretrain_api.spec.corpus import SourceSpec
from pretrain_jobs.corpus.documents import read_documents
from pretrain_jobs.corpus.readers.records import Document, RejectCause
from pretrain_jobs.corpus.slices import plan_slices
from pretrain_jobs.corpus.sources import list_source_files
from pretrain_jobs.errors import DataError
from pretrain_testing.corpora import json_lines, read_file, rejects_of, storage_at, texts_of

COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_archives_are_told_by_their_suffix_and_may_have_several_members(
    tmp_path: Path, suffix: str
) -> None:
    compress = COMPRESSORS[suffix]
    data = compress(json_lines(["一", "二"])) + compress(json_lines(["三", "四"]))

    records = read_file(tmp_path, f"a.jsonl{suffix}", data)

    assert texts_of(records) == ["一", "二", "三", "四"]
    assert rejects_of(records) == []


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_an_archive_that_is_cut_keeps_its_documents_and_is_a_reject(
    tmp_path: Path, suffix: str
) -> None:
    texts = [random.Random(number).randbytes(200).hex() for number in range(1000)]
    data = COMPRESSORS[suffix](json_lines(texts))

    records = read_file(tmp_path, f"a.jsonl{suffix}", data[:-20])

    kept = texts_of(records)
    assert kept == texts[: len(kept)]
    assert len(kept) >= 500
    assert rejects_of(records)[-1].cause == RejectCause.TRUNCATED


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_an_archive_of_another_kind_is_a_reject(tmp_path: Path, suffix: str) -> None:
    [reject] = read_file(tmp_path, f"a.jsonl{suffix}", b"no archive at all, just text")

    assert not isinstance(reject, Document)
    assert reject.cause == RejectCause.DAMAGED


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_csv_json_and_text_are_read_from_archives(tmp_path: Path, suffix: str) -> None:
    wrap = gzip.compress if suffix else bytes
    files = {"a.csv": "text\n好\n", "a.json": '[{"text":"好"}]', "a.txt": "好\n"}

    for name, content in files.items():
        assert texts_of(read_file(tmp_path, name + suffix, wrap(content.encode()))) == ["好"]


def test_a_file_that_changed_after_planning_is_refused(tmp_path: Path) -> None:
    storage = storage_at(tmp_path)
    (tmp_path / "a.jsonl").write_bytes(json_lines(["a"]))
    plan = plan_slices(
        list_source_files([SourceSpec(uri="a.jsonl")], storage).files, slice_bytes=100
    )
    (tmp_path / "a.jsonl").write_bytes(json_lines(["a", "b"]))

    with pytest.raises(DataError, match="when the slices were planned"):
        list(read_documents(plan.slices[0], plan, storage))

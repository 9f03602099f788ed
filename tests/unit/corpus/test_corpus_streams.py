"""Reading and encoding take their input as it comes: no more of it, and no other cuts, than due."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pretrain_api.spec.corpus import CleaningSpec, SourceSpec
from pretrain_jobs.corpus import tokens
from pretrain_jobs.corpus.documents import read_documents
from pretrain_jobs.corpus.preparation import Preparation, Recipe, Vocabulary
from pretrain_jobs.corpus.readers import input as input_module
from pretrain_jobs.corpus.readers.records import Document, Reject, RejectCause
from pretrain_jobs.corpus.slices import plan_slices
from pretrain_jobs.corpus.sources import list_source_files
from pretrain_jobs.corpus.tokens import BatchEncoder
from pretrain_jobs.corpus.words import make_segmenter
from pretrain_testing.corpora import json_lines, read_file, storage_at, texts_of, wordpiece

SEPARATORS = "前\u2028后。左\u0085右。上\x0b中\x0c下。"
"""Characters at which str.splitlines parts lines, and no reader may."""


def parquet_bytes(directory: Path, texts: list[str], rows_together: int) -> bytes:
    path = directory / "made.parquet"
    pq.write_table(pa.table({"text": texts}), path, row_group_size=rows_together, compression=None)
    return path.read_bytes()


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv", "txt", "parquet"])
def test_only_line_feeds_part_lines_in_every_format(tmp_path: Path, suffix: str) -> None:
    data = {
        "jsonl": json_lines([SEPARATORS]),
        "json": json.dumps([{"text": SEPARATORS}], ensure_ascii=False).encode(),
        "csv": f"id,text\n1,{SEPARATORS}\n".encode(),
        "txt": f"{SEPARATORS}\n".encode(),
        "parquet": parquet_bytes(tmp_path, [SEPARATORS], 1),
    }

    records = read_file(tmp_path, f"a.{suffix}", data[suffix])

    assert texts_of(records) == [SEPARATORS]


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv", "txt", "parquet"])
def test_the_first_document_is_there_before_the_rest_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.setattr(input_module, "CHUNK_BYTES", 1 << 18)
    texts = [f"{number:06d}" + "好" * 8000 for number in range(60)]
    data = {
        "jsonl": json_lines(texts),
        "json": json.dumps([{"text": text} for text in texts], ensure_ascii=False).encode(),
        "csv": "\n".join(["text", *texts]).encode(),
        "txt": "\n\n".join(texts).encode(),
        "parquet": parquet_bytes(tmp_path, texts, 5),
    }[suffix]
    (tmp_path / f"a.{suffix}").write_bytes(data)
    storage = storage_at(tmp_path)
    files = list_source_files([SourceSpec(uri=f"a.{suffix}")], storage).files
    plan = plan_slices(files, slice_bytes=1 << 40)
    read: list[int] = []

    first = next(read_documents(plan.slices[0], plan, storage, progress=read.append))

    assert isinstance(first, Document)
    assert first.text == texts[0]
    assert sum(read) < len(data) / 3


class CountingTokenizer:
    """A tokenizer that counts the characters that it is given."""

    def __init__(self) -> None:
        self._tokenizer = wordpiece(["好", "人"])
        self.characters = 0

    def encode(self, text: str, **options: Any) -> Any:
        self.characters += len(text)
        return self._tokenizer.encode(text, **options)

    def encode_batch(self, texts: list[str], **options: Any) -> Any:
        self.characters += sum(map(len, texts))
        return self._tokenizer.encode_batch(texts, **options)


@pytest.mark.parametrize("unit", ["好人", "x"], ids=["borders everywhere", "no border at all"])
def test_the_work_on_a_long_document_grows_with_its_length_alone(
    monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    monkeypatch.setattr(tokens, "WINDOW_CHARACTERS", 300)
    monkeypatch.setattr(tokens, "OVERLAP_CHARACTERS", 100)

    def work(characters: int) -> int:
        counting: Any = CountingTokenizer()
        BatchEncoder(counting).encode([unit * (characters // len(unit))])
        return int(counting.characters)

    assert work(30_000) <= 15 * work(3_000)
    assert work(30_000) <= 4 * 30_000


@pytest.mark.parametrize(
    "error",
    [
        AttributeError("no such thing"),
        IndexError("out of range"),
        RecursionError("too deep"),
        RuntimeError("not today"),
        UnicodeError("no character"),
        ZeroDivisionError("by zero"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_the_splitter_raises_refuses_its_document_alone(error: Exception) -> None:
    def split(text: str) -> list[int]:
        if "木" in text:
            raise error
        return [0]

    preparation = Preparation(
        Recipe(
            cleaning=CleaningSpec(),
            encoder=BatchEncoder(wordpiece(["好"])),
            segmenter=make_segmenter("none"),
            vocabulary=Vocabulary(dtype="uint16", unknown=1, special=frozenset()),
            split_sentences=split,
        )
    )

    outcomes = [preparation.clean(Document(text, "file:///a", 1, 0)) for text in ("好", "木", "好")]

    assert [isinstance(outcome, Reject) for outcome in outcomes] == [False, True, False]
    assert isinstance(outcomes[1], Reject)
    assert outcomes[1].cause == RejectCause.SPLITTER
    assert f"{type(error).__name__}: {error}" in outcomes[1].message

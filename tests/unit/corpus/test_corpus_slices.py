"""How input is cut: equal slices, no document lost, twice or broken, whatever the cut."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pretrain_api.spec.corpus import SourceSpec
from pretrain_jobs.corpus.documents import read_documents
from pretrain_jobs.corpus.slices import SlicePlan, decode_plan, encode_plan, plan_slices
from pretrain_jobs.corpus.sources import FileCompression, SourceFile, list_source_files
from pretrain_jobs.errors import DataError
from pretrain_testing.corpora import json_lines, read_file, storage_at, texts_of

MIB = 1 << 20


def files_of(
    sizes: Sequence[int], *, compression: FileCompression = "none", source: int = 0
) -> list[SourceFile]:
    return [
        SourceFile(
            uri=f"s3://b/{source}/{number:05}",
            size=size,
            etag="",
            format="jsonl",
            compression=compression,
            source=source,
        )
        for number, size in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    "sizes",
    [[MIB] * 100, [100 * MIB], [91 * MIB, *([MIB // 11] * 99)]],
    ids=["equal", "one", "mix"],
)
def test_slices_are_within_five_percent_of_equal(sizes: list[int]) -> None:
    target = sum(sizes) / 10

    plan = plan_slices(files_of(sizes), slice_bytes=-(-sum(sizes) // 10))

    assert len(plan.slices) == 10
    assert all(abs(part.size - target) <= 0.05 * target for part in plan.slices)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 5000), min_size=1, max_size=30),
    archives=st.lists(st.integers(1, 5000), max_size=5),
    slice_bytes=st.integers(50, 6000),
)
def test_slices_cover_every_byte_once_and_in_order(
    sizes: list[int], archives: list[int], slice_bytes: int
) -> None:
    files = files_of(sizes) + files_of(archives, compression="gzip", source=1)

    plan = plan_slices(files, slice_bytes=slice_bytes)

    parts = [part for piece in plan.slices for part in piece.parts]
    assert [piece.index for piece in plan.slices] == list(range(len(plan.slices)))
    assert all(piece.size == sum(p.end - p.start for p in piece.parts) for piece in plan.slices)
    for number, file in enumerate(plan.files):
        own = [part for part in parts if part.file == number]
        borders = [0, *(part.end for part in own)] if own else [0]
        assert [part.start for part in own] == borders[:-1]
        assert borders[-1] == file.size
    assert [part.file for part in parts] == sorted(part.file for part in parts)


def test_archives_and_formats_that_cannot_be_cut_go_whole() -> None:
    plan = plan_slices(files_of([10, 1000, 10], compression="zstd"), slice_bytes=100)

    assert [[part.file for part in piece.parts] for piece in plan.slices] == [[0], [1], [2]]


def test_sources_and_splits_do_not_share_slices() -> None:
    train = files_of([10, 10]) + files_of([10], source=1)
    validation = [file.model_copy(update={"split": "validation"}) for file in files_of([10])]

    plan = plan_slices([*validation, *train], slice_bytes=1000)

    assert [(piece.split, piece.source) for piece in plan.slices] == [
        ("train", 0),
        ("train", 1),
        ("validation", 0),
    ]


def test_a_plan_survives_its_file() -> None:
    plan = plan_slices(files_of([1000, 2000]), slice_bytes=300, warnings=["a is empty"])

    assert decode_plan(encode_plan(plan)) == plan
    assert encode_plan(decode_plan(encode_plan(plan))) == encode_plan(plan)


@pytest.mark.parametrize("data", [b"", b"{}", b'{"formatVersion":2,"files":[],"slices":[]}'])
def test_a_damaged_or_foreign_plan_is_refused(data: bytes) -> None:
    with pytest.raises(DataError, match=r"plan\.json"):
        decode_plan(data)


LINES = json_lines(
    ["一" * (number % 50) + "，”\n" + "ab" * (number % 7) for number in range(300)] + ["尾" * 3000]
)
TEXT = "\n\n".join("段" * (n % 9 + 1) + "\r\n行" for n in range(200)).encode()


@pytest.mark.parametrize("count", [1, 2, 3, 8, 64])
@pytest.mark.parametrize(("name", "data"), [("a.jsonl", LINES), ("a.txt", TEXT + b"\n\n\n")])
def test_any_number_of_slices_reads_the_same_documents(
    tmp_path: Path, name: str, data: bytes, count: int
) -> None:
    whole = texts_of(read_file(tmp_path, name, data))

    cut = texts_of(read_file(tmp_path, name, data, slice_bytes=-(-len(data) // count)))

    assert cut == whole


@settings(max_examples=60, deadline=None)
@given(
    text=st.lists(st.sampled_from(["a", "好", "\n", "\r\n", " ", "]]", "\ufeff"]), max_size=40),
    slice_bytes=st.integers(1, 12),
    separator=st.sampled_from(["", "]]"]),
)
def test_plain_text_is_cut_at_any_byte_without_loss(
    tmp_path_factory: pytest.TempPathFactory, text: list[str], slice_bytes: int, separator: str
) -> None:
    directory = tmp_path_factory.mktemp("cut")
    data = "".join(text).encode()
    whole = read_file(directory, "a.txt", data, document_separator=separator)

    cut = read_file(directory, "a.txt", data, document_separator=separator, slice_bytes=slice_bytes)

    assert texts_of(cut) == texts_of(whole)
    assert [record.offset for record in cut] == [record.offset for record in whole]


def plan_for(directory: Path, data: bytes, count: int) -> SlicePlan:
    (directory / "a.jsonl").write_bytes(data)
    files = list_source_files([SourceSpec(uri="a.jsonl")], storage_at(directory)).files
    return plan_slices(files, slice_bytes=-(-len(data) // count))


@pytest.mark.parametrize(("texts", "filled"), [(["一二三" * 100] * 3, 3), (["一" * 900], 1)])
def test_fewer_documents_than_slices_leave_valid_empty_slices(
    tmp_path: Path, texts: list[str], filled: int
) -> None:
    plan = plan_for(tmp_path, json_lines(texts), 10)

    per_slice = [
        len(list(read_documents(piece, plan, storage_at(tmp_path)))) for piece in plan.slices
    ]

    assert len(per_slice) == 10
    assert sum(per_slice) == len(texts)
    assert sum(count > 0 for count in per_slice) == filled


def test_rejects_inside_a_cut_file_tell_their_byte(tmp_path: Path) -> None:
    good = json_lines(["一"] * 50)
    records = read_file(tmp_path, "a.jsonl", good + b"{\n" + good, slice_bytes=200)

    [reject] = [record for record in records if not hasattr(record, "text")]

    assert reject.offset == len(good)

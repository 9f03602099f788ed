"""The native shard: arrays in, the same arrays and the same bytes out."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pretrain_jobs.dataset.format.native import (
    Shard,
    ShardFile,
    ShardWriter,
    TokenDtype,
    read_offsets,
    read_shard,
    token_dtype,
    write_shard,
)
from pretrain_jobs.errors import DataError, UserError


def shard_of(lengths: list[list[int]], *, first: int = 0, dtype: TokenDtype = "uint16") -> Shard:
    """Documents of sentences of so many tokens; ids count up, every third token starts a word."""
    sentences = [length for document in lengths for length in document]
    total = sum(sentences)
    tokens = (np.arange(total) + first).astype(dtype)
    documents = np.cumsum([0, *(sum(document) for document in lengths)])
    starts = np.arange(total) % 3 == 0
    starts[documents[:-1]] = True
    return Shard(tokens, documents, np.cumsum([0, *sentences]), starts)


def assert_equal(found: Shard, expected: Shard) -> None:
    assert found.tokens.dtype == expected.tokens.dtype
    assert found.tokens.tolist() == expected.tokens.tolist()
    assert found.document_offsets.tolist() == expected.document_offsets.tolist()
    assert found.sentence_offsets.tolist() == expected.sentence_offsets.tolist()
    assert found.word_starts.tolist() == expected.word_starts.tolist()


LENGTHS = st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=4), min_size=1, max_size=20)


@settings(max_examples=15, deadline=None)
@given(lengths=LENGTHS)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[list[int]]
) -> None:
    path = tmp_path_factory.mktemp("shard") / "a.h5"

    write_shard(path, shard_of(lengths))

    assert_equal(read_shard(path), shard_of(lengths))


@settings(max_examples=15, deadline=None)
@given(
    lengths=LENGTHS, shard_size=st.integers(40, 400), cuts=st.lists(st.integers(0, 20), max_size=4)
)
def test_streaming_in_any_portions_gives_the_same_shards(
    tmp_path_factory: pytest.TempPathFactory,
    lengths: list[list[int]],
    shard_size: int,
    cuts: list[int],
) -> None:
    whole = shard_of(lengths)
    borders = sorted({0, len(lengths), *(cut for cut in cuts if cut < len(lengths))})

    def stream(directory: Path, portions: list[Shard]) -> list[ShardFile]:
        writer = ShardWriter(directory, "train-00000", dtype="uint16", shard_size=shard_size)
        files = [file for portion in portions for file in writer.append(portion)]
        return [*files, *writer.close()]

    portions = [whole.select(a, b) for a, b in pairwise(borders)]
    at_once = stream(tmp_path_factory.mktemp("once"), [whole])
    in_portions = stream(tmp_path_factory.mktemp("portions"), portions)

    shards = [read_shard(file.path) for file in in_portions]
    assert [file.path.name for file in in_portions] == [file.path.name for file in at_once]
    for one, other in zip(at_once, shards, strict=True):
        assert_equal(read_shard(one.path), other)
    assert np.concatenate([shard.tokens for shard in shards]).tolist() == whole.tokens.tolist()
    assert all(len(s.tokens) <= shard_size or s.documents == 1 for s in shards)
    assert [(f.documents, f.sentences, f.words, f.tokens) for f in in_portions] == [
        (s.documents, s.sentences, s.words, len(s.tokens)) for s in shards
    ]


def test_equal_content_gives_equal_bytes(tmp_path: Path) -> None:
    for name in ("a.h5", "b.h5"):
        write_shard(tmp_path / name, shard_of([[5, 7], [100_000]]))

    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


def test_a_document_longer_than_a_shard_gets_one_of_its_own(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path, "train-00003", dtype="uint16", shard_size=100)

    files = [*writer.append(shard_of([[10], [500], [10], [10]])), *writer.close()]

    assert [(file.path.name, file.tokens) for file in files] == [
        ("train-00003-000.h5", 10),
        ("train-00003-001.h5", 500),
        ("train-00003-002.h5", 20),
    ]


def test_no_documents_make_no_shard(tmp_path: Path) -> None:
    writer = ShardWriter(tmp_path, "train-00000", dtype="uint16", shard_size=100)

    assert [*writer.append(shard_of([])), *writer.close()] == []
    assert list(tmp_path.iterdir()) == []


def test_shards_use_filters_that_every_hdf5_has(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.h5", shard_of([[5]]))

    with h5py.File(tmp_path / "a.h5") as file:
        assert {(d.compression, d.shuffle) for d in file.values()} == {("gzip", True)}
        assert {name: d.dtype.name for name, d in file.items()} == {
            "tokens": "uint16",
            "document_offsets": "int64",
            "sentence_offsets": "int64",
            "word_starts": "uint8",
        }


@pytest.mark.parametrize(
    ("length", "dtype"), [(65_536, "uint16"), (65_537, "uint32"), (65_540, "uint32")]
)
def test_the_type_follows_from_the_tokenizers_length(
    tmp_path: Path, length: int, dtype: TokenDtype
) -> None:
    assert token_dtype(length) == dtype
    largest = shard_of([[1]], first=length - 1, dtype=dtype)

    write_shard(tmp_path / "a.h5", largest)

    assert read_shard(tmp_path / "a.h5").tokens.tolist() == [length - 1]


def test_a_type_that_is_too_small_is_refused() -> None:
    assert token_dtype(100, "uint32") == "uint32"
    with pytest.raises(UserError, match="65537"):
        token_dtype(65_537, "uint16")


def test_offsets_are_read_without_the_tokens(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    shard = shard_of([[5, 7], [50_000]])
    write_shard(path, shard)
    with h5py.File(path, "r") as file:
        place = file["tokens"].id.get_chunk_info(0)
    data = bytearray(path.read_bytes())
    data[place.byte_offset : place.byte_offset + place.size] = bytes(place.size)
    path.write_bytes(data)

    documents, sentences = read_offsets(path)

    assert documents.tolist() == shard.document_offsets.tolist()
    assert sentences.tolist() == shard.sentence_offsets.tolist()
    with pytest.raises(DataError, match="cannot be read"):
        read_shard(path)


def test_a_cut_shard_is_a_data_error(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    write_shard(path, shard_of([[50_000]]))
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 6 // 10])

    with pytest.raises(DataError, match="cannot be read"):
        read_shard(path)


def test_another_hdf5_file_is_refused_with_what_it_holds(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["input_ids"] = [[1, 2]]

    with pytest.raises(DataError, match="it has input_ids"):
        read_shard(tmp_path / "a.h5")

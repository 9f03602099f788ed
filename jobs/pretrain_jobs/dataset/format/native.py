"""The native shard: one HDF5 file of unpadded token streams with their borders.

| dataset | type | meaning |
|---|---|---|
| tokens | uint16 or uint32 [T] | all documents, one after another; no special tokens |
| document_offsets | int64 [D + 1] | where documents begin; 0 first, T last, ascending |
| sentence_offsets | int64 [S + 1] | where sentences begin, document borders among them |
| word_starts | uint8 [ceil(T / 8)] | a bit for each token, most significant first: a word begins |

Chunks are shuffled and deflated (gzip), which every build of HDF5 reads. Equal content gives
equal bytes with one version of HDF5. What the tokens mean is the manifest's and the tokenizer's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import h5py
import numpy as np
from numpy.typing import NDArray

from pretrain_jobs.errors import DataError, UserError
from pretrain_jobs.storage.local_files import translated

FORMAT_VERSION = 1
TokenDtype = Literal["uint16", "uint32"]
TokenArray = NDArray[np.uint16] | NDArray[np.uint32]

_CHUNK_ITEMS = 1 << 14
_GZIP_LEVEL = 1


@dataclass(frozen=True)
class Shard:
    """A shard's arrays in memory (see the module); word_starts unpacked to bool [T]."""

    tokens: TokenArray
    document_offsets: NDArray[np.int64]
    sentence_offsets: NDArray[np.int64]
    word_starts: NDArray[np.bool_]

    @property
    def documents(self) -> int:
        """Number of documents."""
        return len(self.document_offsets) - 1

    @property
    def sentences(self) -> int:
        """Number of sentences."""
        return len(self.sentence_offsets) - 1

    @property
    def words(self) -> int:
        """Number of words."""
        return int(np.count_nonzero(self.word_starts))

    def select(self, first: int, last: int) -> Shard:
        """Documents [first, last) as a shard of their own; arrays of tokens are views."""
        begin, end = self.document_offsets[first], self.document_offsets[last]
        sentences = np.searchsorted(self.sentence_offsets, [begin, end])
        return Shard(
            self.tokens[begin:end],
            self.document_offsets[first : last + 1] - begin,
            self.sentence_offsets[sentences[0] : sentences[1] + 1] - begin,
            self.word_starts[begin:end],
        )


def token_dtype(length: int, given: TokenDtype | None = None) -> TokenDtype:
    """The smallest type for the ids of a tokenizer of this length, added tokens counted.

    A type asked for (`given`) is taken if it is wide enough; else UserError.
    """
    smallest: TokenDtype = "uint16" if length <= 1 << 16 else "uint32"
    if length > 1 << 32 or (given == "uint16" and smallest == "uint32"):
        raise UserError(
            f"token ids of a tokenizer of length {length} do not fit {given or 'uint32'}: "
            "leave the type out, or use a smaller tokenizer"
        )
    return given or smallest


def read_shard(path: Path) -> Shard:
    """Read a whole shard; DataError when the file is damaged or no native shard."""
    arrays = _read(path, _NAMES)
    tokens = arrays["tokens"]
    bits = np.unpackbits(arrays["word_starts"], count=len(tokens)).view(np.bool_)
    return Shard(tokens, arrays["document_offsets"], arrays["sentence_offsets"], bits)


def read_offsets(path: Path) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Read the document and sentence offsets of a shard and none of its tokens; errors as there."""
    arrays = _read(path, ("document_offsets", "sentence_offsets"))
    return arrays["document_offsets"], arrays["sentence_offsets"]


def _read(path: Path, wanted: Sequence[str]) -> dict[str, NDArray[Any]]:
    try:
        with h5py.File(path, "r") as file:
            if file.attrs.get("format_version") != FORMAT_VERSION or not set(_NAMES) <= set(file):
                raise DataError(
                    f"{path} is no native shard of version {FORMAT_VERSION}: "
                    f"it has {', '.join(sorted(file))}"
                )
            return {name: file[name][:] for name in wanted}
    except OSError as error:
        raise DataError(f"shard {path} cannot be read: {error}") from error


def write_shard(path: Path, shard: Shard) -> None:
    """Write a whole shard to a new file."""
    with _ShardFile(path, shard.tokens.dtype.name) as file:
        file.append(shard)


@dataclass(frozen=True)
class ShardFile:
    """A finished shard on the local disk, and what it holds."""

    path: Path
    documents: int
    sentences: int
    words: int
    tokens: int


class ShardWriter:
    """Streams documents into shards of at most `shard_size` tokens.

    A document is never divided: one that is longer than a shard gets a shard of its own. Memory
    follows what is appended at once, not the shard. Errors of the disk are the storage's own.
    """

    def __init__(self, directory: Path, prefix: str, *, dtype: TokenDtype, shard_size: int) -> None:
        self._directory = directory
        self._prefix = prefix
        self._dtype = dtype
        self._shard_size = shard_size
        self._file: _ShardFile | None = None
        self._finished = 0

    def append(self, documents: Shard) -> Iterator[ShardFile]:
        """Write documents; yields each shard that became full, to be taken away."""
        first = 0
        while first < documents.documents:
            room = self._shard_size - (self._file.tokens if self._file else 0)
            limit = documents.document_offsets[first] + room
            last = int(np.searchsorted(documents.document_offsets, limit, side="right")) - 1
            if last <= first and self._file:
                yield self._finish()
                continue
            last = max(last, first + 1)
            file = self._open()
            with translated(file.path, "writing"):
                file.append(documents.select(first, last))
            first = last

    def close(self) -> Iterator[ShardFile]:
        """Finish the last shard, if there is one."""
        if self._file:
            yield self._finish()

    def _open(self) -> _ShardFile:
        if self._file is None:
            path = self._directory / f"{self._prefix}-{self._finished:03d}.h5"
            with translated(path, "writing"):
                self._file = _ShardFile(path, self._dtype)
        return self._file

    def _finish(self) -> ShardFile:
        file = self._open()
        with translated(file.path, "writing"):
            file.close()
        self._file = None
        self._finished += 1
        return ShardFile(
            path=file.path,
            documents=file.documents,
            sentences=file.sentences,
            words=file.words,
            tokens=file.tokens,
        )


_NAMES = ("tokens", "document_offsets", "sentence_offsets", "word_starts")


class _ShardFile:
    """An HDF5 file that grows by documents."""

    def __init__(self, path: Path, dtype: str) -> None:
        self.path = path
        self.documents = self.sentences = self.words = self.tokens = 0
        self._odd_bits = np.empty(0, np.bool_)
        self._hdf5 = h5py.File(path, "w", libver=("earliest", "v108"))
        self._hdf5.attrs["format_version"] = FORMAT_VERSION
        for name, kind in zip(_NAMES, (dtype, "int64", "int64", "uint8"), strict=True):
            self._create(name, kind)
        self._extend("document_offsets", np.zeros(1, np.int64))
        self._extend("sentence_offsets", np.zeros(1, np.int64))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def append(self, documents: Shard) -> None:
        """Add documents after those that are there."""
        self._extend("tokens", documents.tokens)
        self._extend("document_offsets", documents.document_offsets[1:] + self.tokens)
        self._extend("sentence_offsets", documents.sentence_offsets[1:] + self.tokens)
        bits = np.concatenate((self._odd_bits, documents.word_starts))
        whole = len(bits) // 8 * 8
        self._extend("word_starts", np.packbits(bits[:whole]))
        self._odd_bits = bits[whole:]
        self.documents += documents.documents
        self.sentences += documents.sentences
        self.words += documents.words
        self.tokens += len(documents.tokens)

    def close(self) -> None:
        """Write what is left and close the file."""
        if len(self._odd_bits):
            self._extend("word_starts", np.packbits(self._odd_bits))
        self._hdf5.close()

    def _create(self, name: str, dtype: str) -> None:
        self._hdf5.create_dataset(
            name,
            shape=(0,),
            maxshape=(None,),
            dtype=dtype,
            chunks=(_CHUNK_ITEMS,),
            compression="gzip",
            compression_opts=_GZIP_LEVEL,
            shuffle=True,
            track_times=False,
        )

    def _extend(self, name: str, values: NDArray[Any]) -> None:
        dataset = self._hdf5[name]
        length = dataset.shape[0]
        dataset.resize(length + len(values), axis=0)
        dataset[length:] = values

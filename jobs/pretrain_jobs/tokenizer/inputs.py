"""All files that a job reads, listed once, with what fingerprints need of each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pretrain_api.spec import PretrainJobSpec
from pretrain_api.spec.storage import StorageSpec

from pretrain_jobs.corpus.sources import (
    SourceFile,
    exclude_validation,
    list_source_files,
    split_uri,
)
from pretrain_jobs.errors import DataError
from pretrain_jobs.storage import NotFoundError, open_store
from pretrain_jobs.storage.uri import absolute_uri, join_uri
from pretrain_jobs.tokenizer.load import list_tokenizer_files

Entry = dict[str, Any]
"""A file in a fingerprint: `uri`, `size` in bytes and `etag`, which depends on its content.

The uri is relative to the storage where the file lies under it, so that a storage may move.
"""


@dataclass(frozen=True)
class Inputs:
    """Corpus files, and entries of the corpus, the tokenizer's own sources and the tasks."""

    files: tuple[SourceFile, ...]
    corpus: list[Entry]
    tokenizer: list[Entry]
    tasks: list[Entry]
    warnings: tuple[str, ...]

    @property
    def training_files(self) -> tuple[SourceFile, ...]:
        """Files that are not held out for validation."""
        return tuple(file for file in self.files if file.split == "train")


def list_inputs(spec: PretrainJobSpec, storage: StorageSpec) -> Inputs:
    """List sources, validation, tokenizer directory, user dictionary and evaluation data.

    DataError or UserError for what is not there, before anything is made.
    """
    training = list_source_files(spec.corpus.sources, storage)
    held_out = list_source_files(spec.corpus.validation.sources, storage, split="validation")
    both = exclude_validation(training.files, held_out.files)
    corpus = [_source_entry(file, storage) for file in both.files]
    dictionary = spec.preprocess.user_dictionary
    named = [] if dictionary is None else [("preprocess.userDictionary", dictionary)]
    return Inputs(
        files=both.files,
        corpus=corpus + _named_entries(named, storage),
        tokenizer=_tokenizer_entries(spec, storage, both.files),
        tasks=_named_entries(_task_uris(spec), storage),
        warnings=(*training.warnings, *held_out.warnings, *both.warnings),
    )


def _tokenizer_entries(
    spec: PretrainJobSpec, storage: StorageSpec, files: Iterable[SourceFile]
) -> list[Entry]:
    """The directory's files for a loaded tokenizer, the training files for a trained one."""
    if spec.tokenizer.uri is None:
        return [_source_entry(file, storage) for file in files if file.split == "train"]
    store, found = list_tokenizer_files(storage, spec.tokenizer.uri)
    return [{"uri": info.key, "size": info.size, "etag": store.content_tag(info)} for info in found]


def _task_uris(spec: PretrainJobSpec) -> list[tuple[str, str]]:
    uris: list[tuple[str, str]] = []
    for number, task in enumerate(spec.evaluation.tasks):
        field = f"evaluation.tasks.{number}.data"
        uris.append((f"{field}.uri", task.data.uri))
        if task.data.test_uri is not None:
            uris.append((f"{field}.testUri", task.data.test_uri))
    return uris


def _named_entries(uris: Iterable[tuple[str, str]], storage: StorageSpec) -> list[Entry]:
    """Entries of files that fields of the spec name; DataError names the field of a missing one."""
    entries: list[Entry] = []
    for field, uri in uris:
        folder, key = split_uri(absolute_uri(uri, base=storage.uri))
        store = open_store(storage, folder)
        try:
            info = store.head(key)
        except NotFoundError as error:
            raise DataError(f"{field} names {join_uri(folder, key)}, which is not there") from error
        entries.append(
            {
                "uri": relative_uri(join_uri(store.uri, key), storage),
                "size": info.size,
                "etag": store.content_tag(info),
            }
        )
    return entries


def _source_entry(file: SourceFile, storage: StorageSpec) -> Entry:
    return {
        "uri": relative_uri(file.uri, storage),
        "size": file.size,
        "etag": file.etag,
        "split": file.split,
    }


def relative_uri(uri: str, storage: StorageSpec) -> str:
    """The URI under the storage's own, or as it is when it lies elsewhere."""
    root = storage.uri.rstrip("/") + "/"
    return uri.removeprefix(root)

"""The manifest of a native dataset: what its shards hold and what the corpus was like.

A dataset exists once its manifest does. How it is committed is `storage.artifact`'s subject.
"""

from __future__ import annotations

from typing import Any, Literal

from pretrain_api.base import Message
from pydantic import ValidationError

from pretrain_jobs.dataset.format.native import TokenDtype
from pretrain_jobs.dataset.statistics import CorpusStatistics
from pretrain_jobs.errors import DataError
from pretrain_jobs.storage import ObjectStore, artifact

KIND = "dataset"

Split = Literal["train", "validation"]
SPLITS: tuple[Split, ...] = ("train", "validation")


class ShardEntry(Message):
    """A shard: its key in the dataset, its counts, and the number of its source in the corpus."""

    path: str
    documents: int
    sentences: int
    words: int
    tokens: int
    bytes: int
    sha256: str
    source: int = 0


class DatasetManifest(Message):
    """What a dataset's manifest.json holds beside its files.

    `vocab_size` is the tokenizer's length, added tokens counted; `tokenizer_sha256` is the one
    that the dataset's fingerprint was made from.
    """

    fingerprint: str
    tokenizer_sha256: str
    dtype: TokenDtype
    vocab_size: int
    splits: dict[Split, tuple[ShardEntry, ...]]
    statistics: CorpusStatistics

    def shards(self, split: Split) -> tuple[ShardEntry, ...]:
        """The shards of a split in the order of slices; none if it has none."""
        return self.splits.get(split, ())

    def tokens(self, split: Split) -> int:
        """Tokens of a split."""
        return sum(shard.tokens for shard in self.shards(split))

    def documents(self, split: Split) -> int:
        """Documents of a split."""
        return sum(shard.documents for shard in self.shards(split))

    def extra(self) -> dict[str, Any]:
        """What goes into manifest.json beside the fields that every artifact has."""
        return self.model_dump(mode="json", by_alias=True, exclude={"fingerprint"})


def load_dataset_manifest(
    store: ObjectStore, *, fingerprint: str | None = None
) -> DatasetManifest | None:
    """The manifest of the dataset in a store, None when there is no dataset.

    Raises DataError for a damaged one, and for another fingerprint than the one given.
    """
    manifest = artifact.load(store, kind=KIND, fingerprint=fingerprint)
    if manifest is None:
        return None
    try:
        return DatasetManifest.model_validate(
            {**manifest.extra, "fingerprint": manifest.fingerprint}
        )
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise DataError(
            f"the dataset manifest in {store.uri} is damaged at {place}: {first['msg']}"
        ) from error

"""Where a slice's records go: documents into shards of their split, rejects into a file.

Finished shards are handed on; how they reach the store is the caller's business.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from pretrain_jobs.corpus.preparation import CleanDocument, Preparation
from pretrain_jobs.corpus.readers.records import Reject
from pretrain_jobs.dataset.format.native import ShardFile, ShardWriter
from pretrain_jobs.errors import DataError

BATCH_CHARACTERS = 1 << 18
BATCH_DOCUMENTS = 1 << 12
"""Documents are encoded together until either is reached."""


class SplitOutput:
    """Gathers one split's documents in batches and writes them into shards."""

    def __init__(
        self,
        preparation: Preparation,
        writer: ShardWriter,
        publish: Callable[[ShardFile], None],
    ) -> None:
        self._preparation = preparation
        self._writer = writer
        self._publish = publish
        self._batch: list[CleanDocument] = []
        self._characters = 0

    def add(self, document: CleanDocument) -> None:
        """Take a document; now and then this encodes a batch and publishes full shards."""
        self._batch.append(document)
        self._characters += len(document.text)
        if self._characters >= BATCH_CHARACTERS or len(self._batch) >= BATCH_DOCUMENTS:
            self._encode()

    def finish(self) -> None:
        """Encode and publish what is left."""
        if self._batch:
            self._encode()
        for shard in self._writer.close():
            self._publish(shard)

    def _encode(self) -> None:
        batch, self._batch, self._characters = self._batch, [], 0
        for shard in self._writer.append(self._preparation.encode(batch)):
            self._publish(shard)


class RejectLog:
    """Writes rejects to a local file and ends the slice when there are too many."""

    def __init__(self, path: Path, limit: int) -> None:
        self.path = path
        self.counts: Counter[str] = Counter()
        self._limit = limit

    def add(self, reject: Reject) -> None:
        """Count and write a reject; DataError once there are more than the limit."""
        record = {
            "file": reject.uri,
            "line": reject.line,
            "offset": reject.offset,
            "cause": reject.cause.value,
            "message": reject.message,
        }
        with self.path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
        self.counts[reject.cause.value] += 1
        if self.counts.total() > self._limit:
            raise DataError(too_many(self.counts, self._limit, f"; the last: {describe(reject)}"))


def describe(reject: Reject) -> str:
    """One sentence about a reject."""
    return f"{reject.place}: {reject.cause.value}: {reject.message}"


def too_many(counts: dict[str, int], limit: int, details: str = "") -> str:
    """The message for more rejects than allowed."""
    by_cause = ", ".join(f"{count} {cause}" for cause, count in sorted(counts.items()))
    return (
        f"{sum(counts.values())} records were refused and corpus.maxRejects is {limit} "
        f"({by_cause}){details}; mend the input or raise corpus.maxRejects"
    )

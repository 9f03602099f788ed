"""The loader: the micro-batches of each optimizer step of one rank, and the cursor after it.

It joins the order of samples, the objective and the shards, and prepares steps ahead in a thread.
What a step yields is a function of the cursor, the share and the dataset: prefetching, the number
of ranks and earlier interruptions leave no trace.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from pretrain_jobs.dataset.counter_random import fold
from pretrain_jobs.dataset.manifest import DatasetManifest, Split
from pretrain_jobs.dataset.order import WINDOW_SAMPLES, Cursor, GlobalOrder
from pretrain_jobs.errors import DataError, UserError
from pretrain_jobs.objectives.batch import Batch
from pretrain_jobs.objectives.packing import SampleTable
from pretrain_jobs.objectives.pieces import Int64
from pretrain_jobs.objectives.select import Objective
from pretrain_jobs.storage import ObjectStore
from pretrain_jobs.train.shards import ShardCache, ShardFiles

STEPS_AHEAD = 2
"""Steps that are prepared before they are asked for."""

_VALIDATION = 1


@dataclass(frozen=True)
class Share:
    """What one rank does of each global batch: a contiguous slice, in micro-batches."""

    rank: int
    world_size: int
    global_batch: int
    micro_batch: int

    def __post_init__(self) -> None:
        if self.global_batch % (self.world_size * self.micro_batch):
            raise UserError(
                f"spec.training.globalBatchSize is {self.global_batch}, which {self.world_size}"
                f" ranks with microBatchSize {self.micro_batch} cannot divide among them; make it a"
                f" multiple of {self.world_size * self.micro_batch}."
            )

    @property
    def accumulation(self) -> int:
        """Micro-batches of a rank in one optimizer step."""
        return self.global_batch // (self.world_size * self.micro_batch)

    def of(self, samples: Int64) -> Int64:
        """The rank's slice of a global batch's array."""
        size = self.global_batch // self.world_size
        return samples[self.rank * size : (self.rank + 1) * size]


@dataclass(frozen=True)
class Step:
    """One optimizer step of one rank.

    `batches` are its micro-batches; `cursor` is where training stands once the step is done;
    `epochs` and `sample_ids` int64 [n] tell what the rank consumed, in order.
    """

    batches: tuple[Batch, ...]
    cursor: Cursor
    epochs: Int64
    sample_ids: Int64


class SampleLoader:
    """Samples of one split of a dataset. A context manager: leaving it stops the threads."""

    def __init__(
        self,
        *,
        fingerprint: str,
        table: SampleTable,
        files: ShardFiles,
        objective: Objective,
        seed: int,
        mask_seed: int,
    ) -> None:
        """Use `open`, which makes the table and chooses the seeds."""
        self.dropped_labels = table.dropped_labels
        self._fingerprint = fingerprint
        self._table = table
        self._objective = objective
        self._mask_seed = mask_seed
        self._order = GlobalOrder(seed, table.shard_samples)
        self._cache = ShardCache(files, _capacity(files, objective))
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="samples")

    @classmethod
    def open(
        cls,
        *,
        store: ObjectStore,
        manifest: DatasetManifest,
        split: Split,
        objective: Objective,
        seed: int,
        cache: Path,
    ) -> Self:
        """Download and verify the split's shards under `cache` and compute its samples.

        DataError when a shard is damaged, or when the training split has too little text for one
        sample. A validation split may have none.
        """
        files = ShardFiles(store, manifest.shards(split), cache / manifest.fingerprint)
        table = objective.table(files.layouts())
        if split == "train" and not sum(table.shard_samples):
            tokens = sum(entry.tokens for entry in files.entries)
            raise DataError(
                f"The training split under {store.uri} has {tokens} tokens, too few for one sample"
                f" of {objective.sequence_length} positions. Add documents to spec.corpus.sources"
                " or lower spec.preprocess.sequenceLength."
            )
        mask_seed = seed if split == "train" else int(fold(seed, _VALIDATION)[0])
        return cls(
            fingerprint=manifest.fingerprint,
            table=table,
            files=files,
            objective=objective,
            seed=seed,
            mask_seed=mask_seed,
        )

    @property
    def samples_per_epoch(self) -> int:
        """Samples of the split, each of which an epoch has once."""
        return self._order.samples_per_epoch

    def start(self) -> Cursor:
        """The cursor before the first step."""
        return self._order.start(self._fingerprint)

    def steps(self, cursor: Cursor, share: Share) -> Iterator[Step]:
        """Steps from a cursor on, without end; none of the samples before it is read.

        CheckpointUnusableError if the cursor was made with other data, seed or samples.
        """
        self._order.check(cursor, self._fingerprint)
        return self._steps(cursor, share)

    def fixed_batches(
        self, max_samples: int, *, rank: int, world_size: int, micro_batch: int
    ) -> Iterator[Batch]:
        """The first `max_samples` samples, always the same, as micro-batches of one rank.

        A micro-batch's rows do not depend on the number of ranks. Every rank gets equally many:
        rows and batches beyond the samples are fillers without loss tokens or real tokens.
        """
        samples = min(max_samples, self.samples_per_epoch)
        batches = -(-samples // micro_batch)
        for number in range(rank, -(-batches // world_size) * world_size, world_size):
            first = number * micro_batch if number < batches else 0
            ids = np.arange(first, min(first + micro_batch, samples))
            batch = self._form(ids, np.zeros(len(ids), np.int64)).filled_up(micro_batch)
            yield batch if number < batches else batch.as_filler()

    def close(self) -> None:
        """Stop preparing samples."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._cache.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _steps(self, cursor: Cursor, share: Share) -> Iterator[Step]:
        ahead: deque[Future[Step]] = deque()
        while True:
            while len(ahead) < STEPS_AHEAD:
                ahead.append(self._thread.submit(self._step, cursor, share))
                cursor = cursor.advance(share.global_batch)
            yield ahead.popleft().result()

    def _step(self, cursor: Cursor, share: Share) -> Step:
        epochs, sample_ids, end = self._order.take(cursor, share.global_batch)
        epochs, sample_ids = share.of(epochs), share.of(sample_ids)
        formed = self._form(sample_ids, epochs)
        for window in islice(self._order.shards_from(end), 2):
            self._cache.prefetch(window)
        size = share.micro_batch
        batches = tuple(formed.rows(i, i + size) for i in range(0, len(sample_ids), size))
        return Step(batches, end, epochs, sample_ids)

    def _form(self, sample_ids: Int64, epochs: Int64) -> Batch:
        return self._objective.form(
            self._table, self._cache, sample_ids, epochs=epochs, seed=self._mask_seed
        )


def steps_for_epochs(samples_per_epoch: int, global_batch: int, epochs: float) -> int:
    """Steps that consume `epochs` epochs, the last one wrapping into what follows; at least 1."""
    return max(1, -(-round(samples_per_epoch * epochs) // global_batch))


def _capacity(files: ShardFiles, objective: Objective) -> int:
    """Tokens of decoded shards to hold: two windows, and a neighbour that a sample reaches into."""
    largest = max((entry.tokens for entry in files.entries), default=0)
    return 2 * (WINDOW_SAMPLES * objective.sequence_length + largest) + largest

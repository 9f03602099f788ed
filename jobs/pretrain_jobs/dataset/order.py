"""The one global order of samples, and the cursor that says where training stands in it.

The order is a function of (seed, epoch) and of how many samples begin in each shard; workers,
ranks and prefetching do not enter it. Shards come in a random order, and samples are shuffled
within windows: a window is one shard, or several neighbours of that order where shards are small.
So a reader needs few shards at a time and old neighbours part all the same.

Batch i is samples [i*B, (i+1)*B) of the endless sequence epoch 0, epoch 1, ...: an epoch's rest
wraps into the next epoch, so no sample is dropped or repeated. Reading samples is not done here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pretrain_jobs.dataset.counter_random import fold, permutation
from pretrain_jobs.errors import CheckpointUnusableError

Int64 = NDArray[np.int64]

WINDOW_SAMPLES = 4096
"""A window takes further shards until it has this many samples."""

_SHARDS, _SAMPLES = 1, 2


@dataclass(frozen=True)
class Cursor:
    """Where training stands: what was consumed, not what was prefetched.

    `next_sample` is the position in the epoch's order, always below `samples_per_epoch`, which
    together with `dataset` (the fingerprint) and `seed` tells whether a cursor fits an order.
    """

    dataset: str
    seed: int
    samples_per_epoch: int
    epoch: int = 0
    next_sample: int = 0

    @property
    def consumed(self) -> int:
        """Samples consumed since the first step."""
        return self.epoch * self.samples_per_epoch + self.next_sample

    def advance(self, count: int) -> Cursor:
        """The cursor after `count` more samples; an epoch's end is the next epoch's start."""
        epoch, next_sample = divmod(self.consumed + count, self.samples_per_epoch)
        return Cursor(self.dataset, self.seed, self.samples_per_epoch, epoch, next_sample)

    def to_json(self) -> dict[str, Any]:
        """A JSON object that `from_json` reads."""
        return {
            "dataset": self.dataset,
            "seed": self.seed,
            "samplesPerEpoch": self.samples_per_epoch,
            "epoch": self.epoch,
            "nextSample": self.next_sample,
            "consumed": self.consumed,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Cursor:
        """Read a cursor; CheckpointUnusableError when a part is missing or contradicts another."""
        try:
            cursor = cls(
                dataset=str(value["dataset"]),
                seed=int(value["seed"]),
                samples_per_epoch=int(value["samplesPerEpoch"]),
                epoch=int(value["epoch"]),
                next_sample=int(value["nextSample"]),
            )
            consumed = int(value["consumed"])
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointUnusableError(f"The data cursor {value!r} cannot be read.") from error
        if not 0 <= cursor.next_sample < cursor.samples_per_epoch or cursor.consumed != consumed:
            raise CheckpointUnusableError(f"The data cursor {value!r} contradicts itself.")
        return cursor


@dataclass(frozen=True)
class GlobalOrder:
    """The order of a split's samples, numbered shard after shard.

    `shard_samples` has, for each shard, how many samples begin in it.
    """

    seed: int
    shard_samples: tuple[int, ...]

    @property
    def samples_per_epoch(self) -> int:
        """Samples of one epoch: all of the split, each once."""
        return sum(self.shard_samples)

    def start(self, dataset: str) -> Cursor:
        """The cursor before the first sample."""
        return Cursor(dataset, self.seed, self.samples_per_epoch)

    def check(self, cursor: Cursor, dataset: str) -> None:
        """CheckpointUnusableError unless the cursor was made with this order and dataset."""
        expected = self.start(dataset)
        for name in ("dataset", "seed", "samples_per_epoch"):
            found, wanted = getattr(cursor, name), getattr(expected, name)
            if found != wanted:
                raise CheckpointUnusableError(
                    f"The checkpoint's data cursor has {name} {found!r}, but this job has"
                    f" {wanted!r}: resuming would repeat or skip samples. Resume with the same"
                    " dataset, seed, sequence length and packing, or start a new job."
                )

    def take(self, cursor: Cursor, count: int) -> tuple[Int64, Int64, Cursor]:
        """The next `count` samples: epochs int64 [count], sample ids int64 [count], new cursor."""
        end = cursor.advance(count)
        epochs: list[Int64] = []
        ids: list[Int64] = []
        for epoch in range(cursor.epoch, end.epoch + 1):
            first = cursor.next_sample if epoch == cursor.epoch else 0
            last = end.next_sample if epoch == end.epoch else self.samples_per_epoch
            ids.append(self.slice(epoch, first, last))
            epochs.append(np.full(last - first, epoch, np.int64))
        return np.concatenate(epochs), np.concatenate(ids), end

    def slice(self, epoch: int, start: int, stop: int) -> Int64:
        """Sample ids int64 [stop - start] at positions [start, stop) of one epoch's order."""
        windows, bounds = _windows(self.seed, epoch, self.shard_samples)
        parts = [np.empty(0, np.int64)]
        first = int(np.searchsorted(bounds, start, side="right")) - 1
        for number in range(first, len(windows)):
            low, high = int(bounds[number]), int(bounds[number + 1])
            if low >= stop:
                break
            ids = _window_ids(self.seed, epoch, self.shard_samples, windows[number])
            parts.append(ids[max(start, low) - low : min(stop, high) - low])
        return np.concatenate(parts)

    def shards_from(self, cursor: Cursor) -> Iterator[tuple[int, ...]]:
        """The shards of each window in turn, the cursor's own first, without end."""
        epoch, position = cursor.epoch, cursor.next_sample
        while self.samples_per_epoch:
            windows, bounds = _windows(self.seed, epoch, self.shard_samples)
            yield from windows[int(np.searchsorted(bounds, position, side="right")) - 1 :]
            epoch, position = epoch + 1, 0


@lru_cache(maxsize=4)
def _windows(
    seed: int, epoch: int, shard_samples: tuple[int, ...]
) -> tuple[tuple[tuple[int, ...], ...], Int64]:
    """An epoch's windows as tuples of shards, and the positions int64 [windows + 1] between."""
    windows: list[tuple[int, ...]] = []
    bounds = [0]
    window: list[int] = []
    size = 0
    for shard in permutation(fold(seed, _SHARDS, epoch), len(shard_samples)).tolist():
        if shard_samples[shard]:
            window.append(shard)
            size += shard_samples[shard]
        if size >= WINDOW_SAMPLES:
            windows.append(tuple(window))
            bounds.append(bounds[-1] + size)
            window, size = [], 0
    if window:
        windows.append(tuple(window))
        bounds.append(bounds[-1] + size)
    return tuple(windows), np.array(bounds, np.int64)


@lru_cache(maxsize=4)
def _window_ids(
    seed: int, epoch: int, shard_samples: tuple[int, ...], window: tuple[int, ...]
) -> Int64:
    """The shuffled sample ids of one window."""
    first_ids = np.concatenate([[0], np.cumsum(shard_samples)])
    ids = np.concatenate([np.arange(first_ids[s], first_ids[s + 1]) for s in window])
    shuffled: Int64 = ids[permutation(fold(seed, _SAMPLES, epoch, window[0]), len(ids))]
    shuffled.flags.writeable = False
    return shuffled

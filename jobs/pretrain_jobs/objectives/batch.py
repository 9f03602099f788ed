"""A batch: the arrays that one forward pass of a rank is made of.

Only numpy; `tensors` turns a batch into what a model takes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pretrain_jobs.objectives.pieces import Bool, Int64

IGNORED = -100
"""The one label that says "nothing is predicted here"; 0 is a token like any other."""

FILLER = -1
"""Sample id of a row that only fills a batch up: it has no label and counts no token."""


@dataclass(frozen=True)
class Batch:
    """Rows of L positions; all arrays are int64, [B, L] or (`sample_ids`, `unfilled`) [B].

    `labels[b, j]` is what the logits at [b, j] must predict, for masked and causal models alike:
    nothing is left to shift. `document_ids` counts a row's documents from 0 and is -1 at padding.
    `position_ids` restart at each document if `isolated`. `unfilled` counts the predictions that
    were due but would have cut a word.
    """

    input_ids: Int64
    labels: Int64
    position_ids: Int64
    document_ids: Int64
    sample_ids: Int64
    unfilled: Int64
    isolated: bool = False

    @property
    def real(self) -> Bool:
        """Positions that hold a token and are of a sample: bool [B, L]."""
        real: Bool = (self.document_ids >= 0) & (self.sample_ids != FILLER)[:, None]
        return real

    @property
    def positions(self) -> int:
        """Positions computed, padding and fillers included."""
        return int(self.input_ids.size)

    @property
    def real_tokens(self) -> int:
        """Positions that are neither padding nor of a filler row; special tokens count."""
        return int(np.count_nonzero(self.real))

    @property
    def loss_tokens(self) -> int:
        """Positions with a label: the weight of this batch in a mean."""
        return int(np.count_nonzero(self.labels != IGNORED))

    @property
    def unfilled_predictions(self) -> int:
        """Predictions due that no whole word had room for."""
        return int(self.unfilled.sum())

    @property
    def squared_lengths(self) -> int:
        """Sum of the squared lengths of what attends to itself: documents if isolated, or rows."""
        real = self.real
        if not self.isolated:
            return int((real.sum(axis=1) ** 2).sum())
        row = np.nonzero(real)[0]
        spans = row * self.input_ids.shape[1] + self.document_ids[real]
        return int((np.unique(spans, return_counts=True)[1] ** 2).sum())

    def rows(self, start: int, stop: int) -> Batch:
        """The batch of rows [start, stop)."""
        return self._select(np.arange(start, min(stop, len(self.sample_ids))))

    def filled_up(self, rows: int) -> Batch:
        """The batch with filler rows, copies of its first without labels, up to `rows` rows."""
        size = len(self.sample_ids)
        fillers = np.zeros(max(rows - size, 0), np.int64)
        return _silence(self._select(np.concatenate([np.arange(size), fillers])), size)

    def as_filler(self) -> Batch:
        """The batch as fillers alone, for a rank that must take part and has nothing to add."""
        return _silence(self.rows(0, len(self.sample_ids)), 0)

    def _select(self, rows: Int64) -> Batch:
        """A batch of copies of the given rows."""
        return replace(
            self,
            input_ids=self.input_ids[rows],
            labels=self.labels[rows],
            position_ids=self.position_ids[rows],
            document_ids=self.document_ids[rows],
            sample_ids=self.sample_ids[rows],
            unfilled=self.unfilled[rows],
        )


def _silence(batch: Batch, first: int) -> Batch:
    """A batch whose arrays are nobody else's, with fillers from row `first` on."""
    batch.labels[first:] = IGNORED
    batch.sample_ids[first:] = FILLER
    batch.unfilled[first:] = 0
    return batch

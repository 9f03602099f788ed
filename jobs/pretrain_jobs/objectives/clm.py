"""Causal language modelling: every real position predicts the next element of its stream.

The stream has one end-of-document token after each document. Labels stand where the logits are
that predict them, so nothing is shifted later and a row's last position has a label, too. Where
documents are isolated, no label crosses from one to the next.
"""

from __future__ import annotations

import numpy as np

from pretrain_jobs.objectives.batch import IGNORED
from pretrain_jobs.objectives.pieces import Int64, Pieces, Rows, ShardSource


def block_labels(rows: Rows, *, isolated: bool) -> tuple[Rows, Int64]:
    """Rows of L positions and labels int64 [B, L] from rows of L + 1 positions."""
    labels = rows.input_ids[:, 1:].copy()
    if isolated:
        labels[rows.document_ids[:, 1:] != rows.document_ids[:, :-1]] = IGNORED
    kept = Rows(
        input_ids=rows.input_ids[:, :-1],
        content=rows.content[:, :-1],
        word_starts=rows.word_starts[:, :-1],
        document_ids=rows.document_ids[:, :-1],
    )
    return kept, labels


def document_labels(
    rows: Rows, pieces: Pieces, source: ShardSource, *, end_of_document: int
) -> Int64:
    """Labels int64 [B, L] for rows of isolated documents.

    The last token of a piece without an end of its own predicts what follows in its document:
    the next token, or the end-of-document token when only that is left.
    """
    labels = np.full_like(rows.input_ids, IGNORED)
    same = rows.real[:, :-1] & (rows.document_ids[:, 1:] == rows.document_ids[:, :-1])
    labels[:, :-1][same] = rows.input_ids[:, 1:][same]
    last = pieces.columns() + pieces.width - 1
    for piece in np.flatnonzero(~pieces.suffix).tolist():
        shard = source.shard(int(pieces.shard[piece]))
        stop = int(pieces.start[piece] + pieces.length[piece])
        ends = shard.document_offsets[np.searchsorted(shard.document_offsets, stop)] == stop
        labels[pieces.row[piece], last[piece]] = end_of_document if ends else shard.tokens[stop]
    return labels

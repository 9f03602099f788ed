"""A resumed loader forms what comes next and nothing that was consumed before."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pretrain_api.spec.objective import MlmSpec, ObjectiveSpec
from pretrain_api.spec.preprocess import PackingSpec
from pretrain_jobs.objectives.batch import Batch
from pretrain_jobs.objectives.select import Objective, build_objective
from pretrain_jobs.tokenizer.special import SpecialTokens
from pretrain_jobs.train.data import STEPS_AHEAD, SampleLoader, Share
from pretrain_testing.token_datasets import commit_token_dataset

BERT = SpecialTokens(
    length=100_000, pad=0, unk=1, cls=2, sep=3, mask=4, special=frozenset(range(5))
)
TRAIN = [[[10, 4]] * 30, [[14]] * 30, [[14, 14]] * 15]
"""Ninety samples of 16 positions."""
BATCH = 6
ALONE = Share(rank=0, world_size=1, global_batch=BATCH, micro_batch=BATCH)


class Recording:
    """An objective that remembers which samples were formed, and of which epoch."""

    def __init__(self, objective: Objective) -> None:
        self._objective = objective
        self.formed: list[tuple[int, int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._objective, name)

    def form(self, table: Any, source: Any, sample_ids: Any, *, epochs: Any, seed: int) -> Batch:
        self.formed += zip(epochs.tolist(), sample_ids.tolist(), strict=True)
        return self._objective.form(table, source, sample_ids, epochs=epochs, seed=seed)


@pytest.mark.parametrize("steps_before", [0, 1, 14, 15, 16, 1_000_000])
def test_no_sample_before_the_cursor_is_formed_or_waited_for(
    tmp_path: Path, steps_before: int
) -> None:
    recording = Recording(
        build_objective(
            ObjectiveSpec(mlm=MlmSpec()), PackingSpec(), tokens=BERT, sequence_length=16
        )
    )
    store, manifest = commit_token_dataset(tmp_path, train=TRAIN)
    opened = SampleLoader.open(
        store=store,
        manifest=manifest,
        split="train",
        objective=recording,
        seed=3,
        cache=tmp_path / "cache",
    )

    with opened as loader:
        assert loader.samples_per_epoch == 15 * BATCH
        cursor = loader.start().advance(steps_before * BATCH)
        [step] = islice(loader.steps(cursor, ALONE), 1)

    consumed = [*zip(step.epochs.tolist(), step.sample_ids.tolist(), strict=True)]
    assert recording.formed[:BATCH] == consumed
    assert len(recording.formed) <= BATCH * (STEPS_AHEAD + 1)
    assert step.cursor.consumed == (steps_before + 1) * BATCH
    assert np.unique(step.epochs).tolist() == [steps_before // 15]

"""A save that one rank does not come to: for tests of how the others notice."""

from __future__ import annotations

import signal
from dataclasses import replace
from datetime import timedelta

from pretrain_jobs.train.ranks import Ranks

from pretrain_testing.toy_checkpoints import ToySettings, start

PATIENCE = timedelta(seconds=1)


def save_without(ranks: Ranks, settings: ToySettings, absent: int) -> None:
    """Train one step; all ranks save but one, which waits to be killed."""
    run = start(replace(ranks, patience=PATIENCE), settings)
    run.train([1])
    if ranks.rank == absent:
        signal.pause()
    run.save()

"""The committed history by ledgers: each sample once an epoch, whatever was made again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pretrain_testing.soak.history import History, Sample, judge_history, read_history

RANKS = 2
BROKEN_OFF = '{"step": 7, "ra'
EPOCH = 8
"""Samples of an epoch; a step takes two, one a rank."""


def sample(step: int, rank: int) -> Sample:
    """What a rank trains on in a step: the ids in their order, epoch after epoch."""
    epoch, number = divmod((step - 1) * RANKS + rank, EPOCH)
    return epoch, number


def steps(first: int, last: int) -> dict[tuple[int, int], tuple[Sample, ...]]:
    """What an attempt makes from one step to another."""
    return {
        (step, rank): (sample(step, rank),)
        for step in range(first, last + 1)
        for rank in range(RANKS)
    }


def judged(generations: dict[int, dict[tuple[int, int], tuple[Sample, ...]]]) -> list[str]:
    return judge_history(History(generations), through=10, ranks=RANKS)


def test_attempts_that_go_on_from_commits_repeat_and_skip_nothing() -> None:
    assert judged({1: steps(1, 6), 2: steps(5, 9), 3: steps(9, 12)}) == []


def test_steps_beyond_the_last_commit_need_not_be_whole() -> None:
    beyond = {key: samples for key, samples in steps(11, 12).items() if key[1] == 0}
    assert judged({1: steps(1, 10) | beyond}) == []


def test_a_step_that_nobody_made_is_told() -> None:
    assert judged({1: steps(1, 6), 2: steps(8, 10)}) == [
        "2 of 20 committed steps are in no ledger, such as 7 of rank 0, 7 of rank 1.",
        "Epoch 1 left out 2 of 8 samples, such as 4, 5.",
    ]


def test_a_step_made_again_with_other_samples_is_told() -> None:
    other = steps(5, 10) | {(5, 1): (sample(6, 1),)}

    sentences = judged({1: steps(1, 6), 2: other})
    assert sentences[0] == (
        "1 steps had other samples when generation 2 made them again, such as 5 of rank 1."
    )


def test_a_sample_that_comes_twice_in_an_epoch_is_told_and_the_one_left_out_for_it() -> None:
    assert judged({1: steps(1, 10) | {(2, 0): (sample(1, 0),)}}) == [
        "1 samples were trained on more than once an epoch, such as 0 in epoch 0.",
        "Epoch 0 left out 1 of 8 samples, such as 2.",
    ]


@pytest.fixture
def ledgers(tmp_path: Path) -> Path:
    """Files as ranks write them, the last line of rank 0's broken off."""
    for generation, (first, last) in {1: (1, 6), 2: (5, 10)}.items():
        for rank in range(RANKS):
            whole = "".join(f"{_line(step, rank)}\n" for step in range(first, last + 1))
            path = tmp_path / f"generation-{generation:06d}-rank-{rank:05d}.jsonl"
            path.write_text(whole + BROKEN_OFF if rank == 0 else whole)
    (tmp_path / "other").write_text("")
    return tmp_path


def _line(step: int, rank: int) -> str:
    epoch, number = sample(step, rank)
    return json.dumps({"step": step, "rank": rank, "samples": [number], "epochs": [epoch]})


def test_ledgers_are_read_by_generation_without_a_line_that_was_not_finished(
    ledgers: Path,
) -> None:
    history = read_history(ledgers)

    assert history.generations == {1: steps(1, 6), 2: steps(5, 10)}
    assert history.made == 12
    assert judge_history(history, through=10, ranks=RANKS) == []

"""Objects under a job's checkpoints: what retention allows, and a sentence for anything more."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pretrain_jobs.checkpoint.layout import CheckpointKey, generation_key
from pretrain_testing.soak.bounds import BOUNDS
from pretrain_testing.soak.stored import Stored, judge_stored

ATTEMPTS = 3


def checkpoint(step: int, generation: int = ATTEMPTS, *, commit: bool = True) -> list[str]:
    key = CheckpointKey(step, generation, f"{generation:032x}")
    files = [key.rank_file(rank, "model.pt") for rank in range(2)]
    manifests = [key.rank_manifest(rank) for rank in range(2)]
    return [*files, *manifests, *([key.commit] if commit else [])]


def mark(step: int, generation: int) -> str:
    return CheckpointKey(step, generation, f"{generation:032x}").commit


GIVEN_UP = mark(20, 1)
COMMITTED = [*checkpoint(30, 2), *checkpoint(40), *checkpoint(50)]
TIDY = Stored(
    keys=[
        *(generation_key(number) for number in range(1, ATTEMPTS + 1)),
        *COMMITTED,
        GIVEN_UP,
        "LATEST",
        "logs/log.jsonl",
        *(f"logs/tensorboard/events.{number}" for number in range(ATTEMPTS)),
    ],
    marks={GIVEN_UP},
    latest=50,
    uploads=[],
)


def judged(stored: Stored) -> list[str]:
    return judge_stored(stored, attempts=ATTEMPTS, keep_last=2, storage_outages=1, bounds=BOUNDS)


def with_keys(*keys: str) -> Stored:
    return replace(TIDY, keys=[*TIDY.keys, *keys])


def test_what_retention_keeps_is_not_too_much() -> None:
    assert judged(TIDY) == []


def test_a_commit_more_than_are_kept_is_told() -> None:
    assert judged(with_keys(*checkpoint(45))) == [
        "4 checkpoints are there where keepLast is 2: steps 50, 45, 40, 30."
    ]


def test_a_commit_less_than_are_kept_is_told() -> None:
    left = [key for key in TIDY.keys if not key.startswith(("step-000000030", "step-000000040"))]
    (sentence,) = judged(replace(TIDY, keys=left))
    assert sentence.startswith("1 checkpoints are there")


def test_a_broken_save_of_an_earlier_attempt_should_have_been_swept() -> None:
    (sentence,) = judged(with_keys(*checkpoint(35, 2, commit=False)))
    assert sentence.startswith("Saves of earlier attempts that nobody swept: step-000000035/")


def test_broken_saves_of_the_last_attempt_are_told_only_when_they_are_many() -> None:
    broken = [checkpoint(step, commit=False) for step in (60, 70, 80)]

    assert judged(with_keys(*broken[0], *broken[1])) == []
    (sentence,) = judged(with_keys(*(key for keys in broken for key in keys)))
    assert sentence.startswith("3 broken saves of the last attempt")


def test_marks_are_one_for_each_attempt_that_ended_and_each_outage() -> None:
    more = [mark(step, 2) for step in (31, 32)]
    assert judged(replace(with_keys(*more), marks={GIVEN_UP, *more})) == []

    more = [mark(step, 2) for step in (31, 32, 33)]
    (sentence,) = judged(replace(with_keys(*more), marks={GIVEN_UP, *more}))
    assert sentence == "4 saves were given up, by 3 attempts."


def test_files_beside_a_mark_are_told() -> None:
    (sentence,) = judged(with_keys(*checkpoint(20, 1, commit=False)))
    assert sentence.startswith("Saves that were given up still have their files: step-000000020/")


@pytest.mark.parametrize(
    ("stored", "told"),
    [
        (replace(TIDY, latest=40), "LATEST tells of step 40, the newest commit is of 50."),
        (replace(TIDY, latest=None), "LATEST tells of step None, the newest commit is of 50."),
        (replace(TIDY, uploads=["x"]), "1 unfinished multipart uploads: x."),
        (with_keys("gen-000004"), "3 attempts have claimed the generations [1, 2, 3, 4]."),
        (with_keys("step-1/x"), "1 objects that belong to nothing: step-1/x."),
    ],
)
def test_anything_else_that_is_wrong_is_told(stored: Stored, told: str) -> None:
    assert judged(stored) == [told]


def test_more_logs_than_attempts_are_told() -> None:
    (sentence,) = judged(with_keys("logs/tensorboard/more"))
    assert sentence.startswith("5 files of logs for 3 attempts: ")

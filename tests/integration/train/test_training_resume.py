"""Two ranks killed at a random step and started again, against a run left alone.

At every ZeRO stage, with the newest checkpoint damaged meanwhile. About 40 s.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest
from pretrain_api.timesheet import EarlierAttempts, TimeSheet
from pretrain_jobs.train.schedule import learning_rate
from pretrain_testing.processes import wait_for
from pretrain_testing.ranks import values_of
from pretrain_testing.training import DEFAULT_TRAINING, Bed, assert_same_training, flip_a_byte
from pretrain_testing.training_ranks import start_training
from safetensors.numpy import load_file

MAX_STEPS: int = DEFAULT_TRAINING["maxSteps"]
NOW = datetime.now(UTC)
LITTLE = TimeSheet(began=NOW, at=NOW, seconds={})
"""Less than any checkpoint holds."""


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


@dataclass(frozen=True)
class Case:
    """A ZeRO stage, which ranks are killed, and what then becomes of the newest checkpoint."""

    stage: int
    victims: tuple[int, ...]
    architecture: Literal["bert", "gpt2"]
    damaged: str
    damage: Callable[[Path], None]
    reason: str


CASES = {
    "stage 0, rank 0, a file missing": Case(
        0, (0,), "gpt2", "rank-00000/trainer.json", Path.unlink, "trainer.json is missing"
    ),
    "stage 1, rank 1, no COMMIT": Case(1, (1,), "bert", "COMMIT", Path.unlink, "it has no COMMIT"),
    "stage 2, both, a file cut": Case(
        2, (0, 1), "gpt2", "rank-00001/*optim_states.pt", _cut, "bytes instead of"
    ),
    "stage 3, both, a byte flipped": Case(
        3, (1, 0), "bert", "rank-00000/*model_states.pt", flip_a_byte, "another SHA-256"
    ),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("resume")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_killed_and_started_again_it_ends_as_if_left_alone(root: Path, case: Case) -> None:
    undisturbed = Bed(
        root,
        name=f"undisturbed-{case.stage}",
        architecture=case.architecture,
        training={"zero": {"stage": case.stage}},
    )
    values_of(start_training(undisturbed).results())
    killed = undisturbed.variant(f"killed-{case.stage}")
    step = random.Random(case.stage).randint(8, MAX_STEPS - 2)

    gang = start_training(killed, waiting=True)
    wait_for(f"step {step}", lambda: killed.reached(step) and len(killed.commits()) == 2)
    gang.kill(*case.victims)
    gang.results()
    newest = killed.commits()[-1].parent
    for path in newest.glob(case.damaged):
        case.damage(path)
    told = replace(killed, earlier=EarlierAttempts(time=LITTLE, step=step))
    resumed = values_of(start_training(told, attempt=1).results())

    assert_same_training(killed, undisturbed)
    _check_time(killed, resumed[0].time_sheet, made_before=step)
    _check_rates(killed)
    _check_warning(resumed[0].warnings, newest, case)
    _check_model(killed)


def test_a_stop_of_one_rank_in_an_evaluation_stops_all_and_the_evaluation_is_made_up_for(
    root: Path,
) -> None:
    undisturbed = Bed(root, name="evaluated", training={"evaluation": {"everySteps": 4}})
    values_of(start_training(undisturbed).results())
    stopped = replace(undisturbed, name="stopped", checkpoint={"everySteps": 100})

    results = start_training(stopped, stopped=1).results()

    assert [result.cause for result in results] == ["Preempted", "Preempted"]
    assert all("the checkpoint of step 8 is committed" in result.error for result in results)
    assert stopped.committed_steps() == [8]
    resumed = values_of(start_training(stopped, attempt=1).results())
    assert resumed[0].warnings == []
    assert_same_training(stopped, undisturbed)


def _check_time(bed: Bed, sheet: TimeSheet | None, *, made_before: int) -> None:
    """Time goes on from what the checkpoint holds, and steps made again are told apart."""
    own: dict[str, float] = bed.document("performance.json")["seconds"]
    (resumed_after,) = {line["step"] for line in bed.log_lines() if "resumed" in line}
    assert sheet is not None
    assert sheet.seconds["init"] > own["init"]
    assert sheet.seconds["step"] > own["step"]
    assert (own["recompute"] > 0) == (made_before > resumed_after)
    assert (own["step"] > 0) == (made_before < MAX_STEPS)
    assert sheet.booked <= (sheet.at - sheet.began).total_seconds() * 1.01
    assert bed.document("performance.json")["allAttempts"]["seconds"]["step"] == pytest.approx(
        sheet.seconds["step"]
    )


def _check_rates(bed: Bed) -> None:
    """The optimizer's own rate at every logged step is the schedule's, to the last bit."""
    lines = [line for line in bed.log_lines() if "learningRate" in line]
    assert [line["step"] for line in lines] == [3, 6, 9, 12]
    for line in lines:
        assert line["learningRate"] == learning_rate(
            line["step"],
            peak=DEFAULT_TRAINING["optimizer"]["learningRate"],
            schedule=bed.config().training.schedule,
            max_steps=MAX_STEPS,
        )


def _check_warning(warnings: list[str], newest: Path, case: Case) -> None:
    step = int(newest.parent.name.removeprefix("step-"))
    assert f"the checkpoint of step {step}" in warnings[0]
    assert case.reason in warnings[0]


def _check_model(bed: Bed) -> None:
    """The artifact holds one set of whole fp32 weights, cut to the tokenizer's length."""
    weights: dict[str, Any] = load_file(bed.model_directory / "model.safetensors")
    names = {"bert": "bert.embeddings.word_embeddings.weight", "gpt2": "transformer.wte.weight"}
    assert weights[names[bed.architecture]].shape == (300, 32)
    assert {str(value.dtype) for value in weights.values()} == {"float32"}
    assert bed.document("config.json")["vocab_size"] == 300
    assert bed.document("training.json")["steps"] == MAX_STEPS
    assert (bed.model_directory / "tokenizer.json").exists()

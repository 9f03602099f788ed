"""Training by its own command on two ranks, killed and started again, against one left alone.

About 150 s on two idle cores: every start imports torch and DeepSpeed in three processes.
"""

import os
import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from pretrain_jobs.train.schedule import learning_rate
from pretrain_testing.processes import processes_of, wait_for
from pretrain_testing.training import DEFAULT_TRAINING, Attempt, Bed, Ending
from safetensors.numpy import load_file

MAX_STEPS: int = DEFAULT_TRAINING["maxSteps"]
WALL = {"tokensPerSecond", "stepSeconds", "mfu"}


def _workers(attempt: Attempt) -> list[psutil.Process]:
    children = psutil.Process(attempt.pid).children(recursive=True)
    return [child for child in children if "train-worker" in child.cmdline()[-3:]]


def _the_launcher(attempt: Attempt) -> list[psutil.Process]:
    return [psutil.Process(attempt.pid)]


def _one_worker(attempt: Attempt) -> list[psutil.Process]:
    return _workers(attempt)[-1:]


def _everything(attempt: Attempt) -> list[psutil.Process]:
    launcher = psutil.Process(attempt.pid)
    return [launcher, *launcher.children(recursive=True)]


def _lose_commit(commit: Path) -> None:
    commit.unlink()


def _cut_a_file(commit: Path) -> None:
    path = next(commit.parent.glob("rank-00001/*optim_states.pt"))
    path.write_bytes(path.read_bytes()[:-100])


def _flip_a_byte(commit: Path) -> None:
    path = next(commit.parent.glob("rank-00000/*model_states.pt"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def _nothing(_commit: Path) -> None:
    """Leave the checkpoint as it is."""


@dataclass(frozen=True)
class Case:
    """A ZeRO stage, who is killed from step 9 on, and what then becomes of the newest commit."""

    stage: int
    victims: Callable[[Attempt], list[psutil.Process]]
    damage: Callable[[Path], None] = _nothing
    reason: str = ""


CASES = {
    "stage 0, the launcher": Case(0, _the_launcher),
    "stage 1, one worker, COMMIT lost": Case(1, _one_worker, _lose_commit, "it has no COMMIT"),
    "stage 2, both workers, a file cut": Case(2, _workers, _cut_a_file, "bytes instead of"),
    "stage 3, everything, a byte flipped": Case(3, _everything, _flip_a_byte, "another SHA-256"),
}


def kill(attempt: Attempt, victims: list[psutil.Process]) -> Ending | None:
    """SIGKILL the victims; the launcher's ending if it could still tell it."""
    for victim in victims:
        os.kill(victim.pid, signal.SIGKILL)
    ending = attempt.wait()[0]
    return ending if ending.code >= 0 else None


def reached(bed: Bed, step: int) -> Callable[[], bool]:
    return lambda: any(number >= step for number, _ in bed.ledger_entries())


def without_wall_figures(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in line.items() if name not in WALL}
        for line in lines
        if "resumed" not in line
    ]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("training")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_killed_and_started_again_it_ends_as_if_left_alone(root: Path, case: Case) -> None:
    training = {"zero": {"stage": case.stage}}
    undisturbed = Bed(root, name=f"undisturbed-{case.stage}", training=training)
    assert undisturbed.run().code == 0
    killed = undisturbed.variant(f"killed-{case.stage}")
    step = random.Random(case.stage).randint(9, MAX_STEPS - 1)

    attempt = killed.start()
    wait_for(f"step {step}", reached(killed, step))
    told = kill(attempt, case.victims(attempt))
    wait_for("the end of all processes", lambda: not processes_of(killed.directory))
    if told is not None:
        assert told.report is not None
        assert "was ended by SIGKILL" in told.message
        assert told.report.cause == "Infrastructure"
    case.damage(killed.commits()[-1])
    resumed = killed.run(attempt=1)

    assert resumed.code == 0, resumed.output
    assert killed.weights == undisturbed.weights
    assert killed.document("training.json") == undisturbed.document("training.json")
    assert killed.document("eval_results.json") == undisturbed.document("eval_results.json")
    assert killed.ledger_entries() == undisturbed.ledger_entries()
    assert without_wall_figures(killed.log_lines()) == without_wall_figures(undisturbed.log_lines())
    _check_rates(killed)
    _check_warnings(resumed, case)


def _check_rates(bed: Bed) -> None:
    """The optimizer's own rate at every logged step is the schedule's, to the last bit."""
    training = bed.config().training
    for line in bed.log_lines():
        if "learningRate" in line:
            assert line["learningRate"] == learning_rate(
                line["step"],
                peak=DEFAULT_TRAINING["optimizer"]["learningRate"],
                schedule=training.schedule,
                max_steps=MAX_STEPS,
            )


def _check_warnings(ending: Ending, case: Case) -> None:
    assert ending.report is not None
    assert ending.report.result is not None
    warnings = [text for text in ending.report.result.warnings if case.reason in text]
    assert bool(case.reason) == any("the checkpoint of step 8" in text for text in warnings)
    assert all(text in ending.output for text in warnings)


def test_two_nodes_stopped_by_sigterm_go_on_from_the_step_they_stopped_at(root: Path) -> None:
    one_node = Bed(root, name="one-node", architecture="gpt2", training={"microBatchSize": 4})
    assert one_node.run().code == 0
    two_nodes = one_node.variant("two-nodes", replicas=2, processes=1)
    two_nodes = replace(two_nodes, checkpoint={"everySteps": 100})

    attempt = two_nodes.start()
    wait_for("step 5", reached(two_nodes, 5))
    for node in attempt.nodes:
        node.process.send_signal(signal.SIGTERM)
    endings = attempt.wait()

    assert [ending.code for ending in endings] == [75, 75]
    assert all("stopped by SIGTERM after step" in ending.message for ending in endings)
    (stopped_at,) = two_nodes.committed_steps()
    steps = {step for step, _ in two_nodes.ledger_entries()}
    assert steps == set(range(1, stopped_at + 1))

    resumed = two_nodes.start(attempt=1).wait()

    assert [ending.code for ending in resumed] == [0, 0], resumed[0].output
    assert two_nodes.weights == one_node.weights
    assert two_nodes.ledger_entries() == one_node.ledger_entries()
    _check_model(two_nodes)


def _check_model(bed: Bed) -> None:
    """The artifact holds one set of whole fp32 weights, cut to the tokenizer's length."""
    weights = load_file(bed.model_directory / "model.safetensors")
    assert weights["transformer.wte.weight"].shape[0] == 300
    assert {str(value.dtype) for value in weights.values()} == {"float32"}
    assert bed.document("config.json")["vocab_size"] == 300
    assert bed.document("training.json")["steps"] == MAX_STEPS
    assert (bed.model_directory / "tokenizer.json").exists()


def test_killed_while_the_model_is_written_it_trains_no_step_again(root: Path) -> None:
    bed = Bed(root, name="model", processes=1)
    killed = bed.run(PRETRAIN_FAILPOINT="before_model_manifest:kill")
    assert killed.code == 71
    assert not (bed.model_directory / "manifest.json").exists()
    trained = bed.ledger_entries()

    finished = bed.run(attempt=1)
    again = bed.run(attempt=2)

    assert (finished.code, again.code) == (0, 0)
    assert (bed.ledger / "generation-000002-rank-00000.jsonl").read_bytes() == b""
    assert bed.ledger_entries() == trained
    assert again.report is not None
    assert again.report.result is not None
    assert [found.cached for found in again.report.result.artifacts] == [True]
    _check_unusable(bed)


def _check_unusable(bed: Bed) -> None:
    """With the model gone and every checkpoint damaged, nothing starts afresh."""
    (bed.model_directory / "manifest.json").unlink()
    for commit in bed.commits():
        _flip_a_byte(commit)

    refused = bed.run(attempt=3)

    assert refused.code == 74
    assert "none can be used" in refused.message
    assert refused.report is not None
    assert not refused.report.retryable

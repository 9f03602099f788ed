"""Training by its own command, with torchrun: killed, stopped, spread over two nodes.

About a minute on two idle cores: a start imports torch in three processes or more, so what needs
no torchrun is done by workers that are forked.
"""

import os
import signal

import psutil
import pytest
from pretrain_testing.processes import processes_of, wait_for
from pretrain_testing.ranks import values_of
from pretrain_testing.training import Attempt, Bed, Ending, assert_same_training, flip_a_byte
from pretrain_testing.training_ranks import run_workers, start_training


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Bed:
    """One node of two ranks that nothing disturbed."""
    bed = Bed(tmp_path_factory.mktemp("command"), name="undisturbed")
    values_of(start_training(bed).results())
    return bed


def workers(attempt: Attempt) -> list[psutil.Process]:
    """The ranks, not torchrun, whose command names theirs."""
    children = psutil.Process(attempt.pid).children(recursive=True)
    return [
        child
        for child in children
        if "train-worker" in child.cmdline() and "pretrain_jobs.train.agent" not in child.cmdline()
    ]


def test_killed_at_one_place_after_the_other_it_ends_as_if_left_alone(undisturbed: Bed) -> None:
    bed = undisturbed.variant("killed", checkpoint={"everySteps": 2})

    lost_rank = _kill_a_worker(bed)
    assert "was ended by SIGKILL" in lost_rank.message
    assert lost_rank.code == 71
    hanging = _stop_a_worker(bed)
    assert hanging.code == 76
    assert "no training step ended in 15 s" in hanging.message
    assert "rank 1 is stopped (SIGSTOP); rank 0 is in " in hanging.message
    assert "pretrain_jobs/train/" in hanging.message.partition("rank 0")[2]
    assert "Current thread" in hanging.output
    _kill_the_launcher(bed)
    killed, _ = run_workers(bed, attempt=3, PRETRAIN_FAILPOINT="before_model_manifest:kill")
    assert killed.code == -signal.SIGKILL
    assert not (bed.model_directory / "manifest.json").exists()
    trained = bed.ledger_entries()
    finished, _ = run_workers(bed, attempt=4)

    assert finished.code == 0, finished.output
    assert (bed.ledger / "generation-000005-rank-00000.jsonl").read_bytes() == b""
    assert bed.ledger_entries() == trained
    assert_same_training(bed, undisturbed)
    _check_cached(bed)
    _check_unusable(bed)


def _kill_a_worker(bed: Bed) -> Ending:
    attempt = bed.start()
    wait_for("step 3", lambda: bed.reached(3))
    workers(attempt)[-1].kill()
    ending = attempt.wait()[0]
    assert processes_of(bed.directory) == []
    return ending


def _stop_a_worker(bed: Bed) -> Ending:
    attempt = bed.variant(bed.name, hang_seconds=15).start(attempt=1)
    wait_for("a step of this attempt", lambda: _trains(bed, generation=2))
    pids = (attempt.nodes[0].home / "tmp").glob("pretrain-*/*/ranks/00001.pid")
    os.kill(int(next(pids).read_text()), signal.SIGSTOP)
    ending = attempt.wait()[0]
    assert processes_of(bed.directory) == []
    return ending


def _kill_the_launcher(bed: Bed) -> None:
    attempt = bed.start(attempt=2)
    wait_for("a step of this attempt", lambda: _trains(bed, generation=3))
    assert len(workers(attempt)) == 2
    os.kill(attempt.pid, signal.SIGKILL)
    attempt.nodes[0].process.wait()
    wait_for("the end of what it left", lambda: not processes_of(bed.directory))


def _trains(bed: Bed, *, generation: int) -> bool:
    """Whether every rank of an attempt has finished a step."""
    ledgers = list(bed.ledger.glob(f"generation-{generation:06d}-rank-*.jsonl"))
    return len(ledgers) == bed.processes and all(path.stat().st_size for path in ledgers)


def _check_cached(bed: Bed) -> None:
    again = bed.run(attempt=5)

    assert again.code == 0
    assert again.report is not None
    assert again.report.result is not None
    assert [found.cached for found in again.report.result.artifacts] == [True]


def _check_unusable(bed: Bed) -> None:
    """With the model gone and every checkpoint damaged, nothing starts afresh."""
    (bed.model_directory / "manifest.json").unlink()
    for commit in bed.commits():
        flip_a_byte(next(commit.parent.glob("rank-00000/*model_states.pt")))

    for refused in run_workers(bed, attempt=5):
        assert refused.code == 74
        assert "none can be used" in refused.message
        assert refused.report is not None
        assert not refused.report.retryable


def test_two_nodes_stopped_by_sigterm_go_on_from_the_step_they_stopped_at(
    undisturbed: Bed,
) -> None:
    bed = undisturbed.variant("two-nodes", replicas=2, processes=1, checkpoint={"everySteps": 100})

    attempt = bed.start()
    wait_for("step 5", lambda: bed.reached(5))
    for node in attempt.nodes:
        node.process.send_signal(signal.SIGTERM)
    endings = attempt.wait()

    assert [ending.code for ending in endings] == [75, 75], endings[0].output
    assert all("stopped by SIGTERM after step" in ending.message for ending in endings)
    (stopped_at,) = bed.committed_steps()
    results = [ending.report.result for ending in endings if ending.report]
    told = [result.checkpoint.step for result in results if result and result.checkpoint]
    assert told == [stopped_at, stopped_at]
    assert {step for step, _ in bed.ledger_entries()} == set(range(1, stopped_at + 1))

    resumed = bed.start(attempt=1).wait()

    assert [ending.code for ending in resumed] == [0, 0], resumed[0].output
    assert resumed[0].report is not None
    assert resumed[0].report.result is not None
    assert resumed[0].report.result.step == 12
    assert bed.weights == undisturbed.weights
    assert bed.ledger_entries() == undisturbed.ledger_entries()

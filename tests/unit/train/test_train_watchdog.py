"""When a rank counts as hanging, and what is said of it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pretrain_jobs.train.goodput import Category, Goodput
from pretrain_jobs.train.heartbeat import Beat, Heartbeat, read_beat
from pretrain_jobs.train.stacks import Standing, frames_of, standings
from pretrain_jobs.train.watchdog import LONGEST_LOOK_SECONDS, Watchdog

STACK = """\
Thread 0x00007f1 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 320 in wait
  File "/usr/lib/python3.11/threading.py", line 975 in run

Current thread 0x00007f2 (most recent call first):
  File "/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 2811 in wait
  File "/env/lib/python3.11/site-packages/torch/distributed/c10d_logger.py", line 83 in wrapper
  File "/env/lib/python3.11/site-packages/torch/autograd/graph.py", line 10 in run
  File "/env/lib/python3.11/site-packages/torch/nn/module.py", line 11 in call
  File "/src/jobs/pretrain_jobs/train/ranks.py", line 93 in sum
  File "/src/jobs/pretrain_jobs/train/optimize.py", line 80 in optimize
"""
PRINTS_ITS_STACK = """
import sys
from pathlib import Path
from pretrain_jobs.train.stacks import told_at_signal
def sleeping():
    sys.stdout.write("ready\\n")
    sys.stdout.flush()
    sys.stdin.read()
with told_at_signal(Path(sys.argv[1])):
    sleeping()
"""


@pytest.fixture
def make_rank(tmp_path: Path) -> Iterator[Callable[[int], Goodput]]:
    """Ranks whose stopwatches are watched; time in them does not matter."""
    with ExitStack() as stack:

        def make(rank: int) -> Goodput:
            goodput = Goodput(lambda: 0.0)
            beat = stack.enter_context(Heartbeat(tmp_path / f"{rank:05d}.beat"))
            goodput.observer = beat.enter
            return goodput

        yield make


def step(goodput: Goodput) -> None:
    with goodput.during("data_wait"):
        pass
    with goodput.during("step"):
        pass


def seconds_until_a_hang(watchdog: Watchdog, limit: int = 100) -> int | None:
    return next((second for second in range(1, limit) if watchdog.look(1.0)), None)


def test_a_record_tells_what_the_rank_does_and_how_many_steps_it_made(
    make_rank: Callable[[int], Goodput], tmp_path: Path
) -> None:
    rank = make_rank(0)
    assert read_beat(tmp_path / "00000.beat") == Beat(0, 0, "init")
    step(rank)
    step(rank)
    rank.enter("evaluation")
    assert read_beat(tmp_path / "00000.beat") == Beat(9, 2, "evaluation")


def test_a_step_that_stands_still_for_a_save_is_one_step(
    make_rank: Callable[[int], Goodput], tmp_path: Path
) -> None:
    rank = make_rank(0)
    with rank.during("step"), rank.during("checkpoint_stall"):
        pass
    with rank.during("recompute"), rank.during("checkpoint_stall"):
        pass
    beat = read_beat(tmp_path / "00000.beat")
    assert beat is not None
    assert (beat.steps, beat.category) == (2, "init")


@pytest.mark.parametrize("content", [b"", b"\xff" * 17, b"short"])
def test_a_record_that_means_nothing_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "beat").write_bytes(content)
    assert read_beat(tmp_path / "beat") is None
    assert read_beat(tmp_path / "missing") is None


@pytest.mark.parametrize(
    "category", ["step", "recompute", "data_wait", "evaluation", "checkpoint_stall"]
)
def test_a_step_that_does_not_end_is_a_hang_after_the_timeout(
    make_rank: Callable[[int], Goodput], tmp_path: Path, category: Category
) -> None:
    rank, watchdog = make_rank(0), Watchdog(tmp_path, timeout_seconds=30)
    step(rank)
    rank.enter(category)
    assert seconds_until_a_hang(watchdog) == 32


@pytest.mark.parametrize("category", ["init", "restore", "idle"])
def test_what_may_take_long_is_no_hang(
    make_rank: Callable[[int], Goodput], tmp_path: Path, category: Category
) -> None:
    rank, watchdog = make_rank(0), Watchdog(tmp_path, timeout_seconds=30)
    step(rank)
    rank.enter(category)
    assert seconds_until_a_hang(watchdog) is None


def test_the_first_step_may_take_as_long_as_it_wants(
    make_rank: Callable[[int], Goodput], tmp_path: Path
) -> None:
    rank, watchdog = make_rank(0), Watchdog(tmp_path, timeout_seconds=30)
    rank.enter("step")
    assert seconds_until_a_hang(watchdog) is None


def test_steps_that_end_in_time_are_no_hang_however_many(
    make_rank: Callable[[int], Goodput], tmp_path: Path
) -> None:
    rank, watchdog = make_rank(0), Watchdog(tmp_path, timeout_seconds=30)
    step(rank)
    for _ in range(10):
        rank.enter("step")
        assert seconds_until_a_hang(watchdog, limit=30) is None
        step(rank)


def test_one_rank_is_enough(make_rank: Callable[[int], Goodput], tmp_path: Path) -> None:
    moving, stuck = make_rank(0), make_rank(1)
    watchdog = Watchdog(tmp_path, timeout_seconds=3)
    for rank in (moving, stuck):
        step(rank)
    stuck.enter("step")
    looks = []
    for _ in range(6):
        step(moving)
        looks.append(watchdog.look(1.0))
    assert looks == [False, False, False, False, True, True]


def test_time_in_which_the_launcher_was_stopped_does_not_count(
    make_rank: Callable[[int], Goodput], tmp_path: Path
) -> None:
    rank, watchdog = make_rank(0), Watchdog(tmp_path, timeout_seconds=2 * LONGEST_LOOK_SECONDS)
    step(rank)
    rank.enter("step")
    assert not watchdog.look(1.0)
    assert not watchdog.look(86_400.0)


def test_a_sentence_has_the_innermost_frames_and_the_first_of_our_own() -> None:
    assert frames_of(STACK) == [
        "torch/distributed/distributed_c10d.py:2811 wait",
        "torch/distributed/c10d_logger.py:83 wrapper",
        "torch/autograd/graph.py:10 run",
        "pretrain_jobs/train/ranks.py:93 sum",
    ]
    assert frames_of("") == []


@pytest.mark.parametrize(
    ("standing", "told"),
    [
        (Standing(3, "T", ""), "rank 3 is stopped (SIGSTOP)"),
        (Standing(3, "D", ""), "rank 3 waits in the kernel (state D"),
        (Standing(3, "R", ""), "rank 3 (state R) does not answer"),
        (Standing(3, "S", STACK), "rank 3 is in torch/distributed/distributed_c10d.py:2811 wait <"),
    ],
)
def test_a_standing_is_told_in_a_few_words(standing: Standing, told: str) -> None:
    assert str(standing).startswith(told)


def test_a_running_process_answers_and_a_stopped_one_is_told_so(
    make_rank: Callable[[int], Goodput], tmp_path: Path
) -> None:
    paths = {rank: tmp_path / f"{rank:05d}.stack" for rank in (0, 1)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PRINTS_ITS_STACK, str(paths[rank])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for rank in paths
    ]
    try:
        for rank, process in enumerate(processes):
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            (tmp_path / f"{rank:05d}.pid").write_text(str(process.pid))
            step(make_rank(rank))
        os.kill(processes[1].pid, signal.SIGSTOP)
        os.waitid(os.P_PID, processes[1].pid, os.WSTOPPED)
        watchdog = Watchdog(tmp_path, timeout_seconds=30)
        watchdog.look(1.0)

        error, found = watchdog.explain()

        assert [one.answers for one in found] == [True, False]
        assert found[1].state == "T"
        sentence = str(error)
        assert sentence.startswith(
            "no training step ended in 30 s, after 1 steps of this attempt: "
            "rank 1 is stopped (SIGSTOP); rank 0 is in <string>:"
        )
        assert " sleeping" in sentence
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def test_a_process_that_is_gone_is_told_too(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    (gone,) = standings({0: process.pid}, {0: tmp_path / "none"})
    assert (gone.state, gone.answers) == ("?", False)

"""Training that cannot go on ends with one clear sentence and the right exit code.

About 20 s.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pretrain_testing.made_datasets import make_dataset
from pretrain_testing.training import Bed, Ending
from pretrain_testing.training_ranks import run_workers


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return Bed(tmp_path, processes=1)


def told(ending: Ending) -> str:
    """The one line that a person reads: it is the report's message too."""
    lines = [line for line in ending.output.splitlines() if line.startswith("pretrain_jobs train:")]
    assert ending.message in lines[-1]
    return lines[-1]


def test_the_launcher_is_up_without_torch() -> None:
    code = "import pretrain_jobs.train.launcher, sys; print('torch' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"


def test_a_dataset_that_is_not_there_is_named(bed: Bed, tmp_path: Path) -> None:
    make_dataset(tmp_path / "dataset")
    (tmp_path / "dataset" / "manifest.json").unlink()

    ending = bed.run()

    assert ending.code == 65
    assert f"there is no dataset under file://{tmp_path}/dataset" in told(ending)
    assert not bed.checkpoints.exists()


def test_a_shard_that_was_changed_is_refused(bed: Bed, tmp_path: Path) -> None:
    make_dataset(tmp_path / "dataset")
    shard = tmp_path / "dataset" / "shards" / "train-00000-000.h5"
    data = bytearray(shard.read_bytes())
    data[-1] ^= 1
    shard.write_bytes(data)

    ending = bed.run()

    assert ending.code == 65
    assert "rank 0: The shard shards/train-00000-000.h5" in ending.message
    assert "has SHA-256" in told(ending)


def test_a_loss_that_is_never_finite_ends_the_attempt(bed: Bed) -> None:
    exploding = bed.variant(
        "exploding",
        training={
            "anomalies": {"maxConsecutiveNonFinite": 3},
        },
        model={"initializer_range": 1e30},
    )
    (ending,) = run_workers(exploding)

    assert ending.code == 70, ending.output
    assert "not finite in 3 steps in a row, the last of them step 3" in told(ending)
    assert ending.output.count("was skipped on all ranks") == 3
    assert not (exploding.model_directory / "manifest.json").exists()


def test_no_room_for_the_last_checkpoint_is_a_failure_and_leaves_nothing_half_written(
    bed: Bed,
) -> None:
    small = bed.variant("small", training={"maxSteps": 6}, checkpoint={"everySteps": 2})

    (ending,) = run_workers(small, file_bytes=40_000)

    assert ending.code == 69, ending.output
    assert "no space while making room for a snapshot" in told(ending)
    assert ending.output.count("was not saved") == 3
    assert small.commits() == []
    assert [path for path in small.directory.rglob(".pretrain-tmp-*") if path.is_file()] == []


def test_nodes_that_never_meet_end_within_the_bound_and_name_the_place(tmp_path: Path) -> None:
    gang = Bed(tmp_path, replicas=2, processes=1, rendezvous_seconds=2)
    attempt = gang.start()
    attempt.nodes[0].process.kill()
    missing = attempt.nodes[1].ending()

    assert missing.code == 71
    assert "rank 0 at 127.0.0.1:" in missing.message
    assert "was not reached within 2 s" in told(missing)
    shutil.rmtree(tmp_path)

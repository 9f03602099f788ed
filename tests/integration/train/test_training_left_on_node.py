"""Two ranks killed once their files lie on their node and before any is uploaded. About 15 s."""

from pathlib import Path

from pretrain_testing.ledgers import begun_after
from pretrain_testing.processes import wait_for
from pretrain_testing.ranks import Gang, start_ranks, values_of
from pretrain_testing.training import Bed, assert_same_training
from pretrain_testing.training_ranks import start_training, train_beside_a_volume

SECOND_SAVE = "after_local_copy:stop-writer:2"


def start(bed: Bed, volume: Path, *, attempt: int, failpoint: str = "") -> Gang:
    path = bed.write_config(attempt)
    return start_ranks(train_beside_a_volume, bed.processes, path, bed.ledger, volume, failpoint)


def test_a_save_that_was_left_on_the_node_is_what_the_next_attempt_goes_on_from(
    tmp_path: Path,
) -> None:
    undisturbed = Bed(tmp_path, name="undisturbed", training={"zero": {"stage": 1}})
    values_of(start_training(undisturbed).results())
    killed = undisturbed.variant("killed")
    volume = killed.directory / "volume"
    job = volume / "default" / killed.name / killed.config().job.uid

    gang = start(killed, volume, attempt=0, failpoint=SECOND_SAVE)
    manifests = "step-000000008/*/ranks/*.json"
    wait_for("the files on the node", lambda: len(list(job.glob(manifests))) == killed.processes)
    gang.kill(*range(killed.processes))
    gang.results()
    assert killed.committed_steps() == [4]
    assert not list(killed.checkpoints.glob("step-000000008/*"))
    resumed = values_of(start(killed, volume, attempt=1).results())

    assert begun_after(killed.ledger) == {1: 0, 2: 8}
    assert_same_training(killed, undisturbed)
    assert resumed[0].warnings == []
    output = (killed.directory / "attempt-1" / "output-0").read_text()
    assert "resuming after step 8 (generation 1, saved by 2 ranks)" in output
    assert "and 0.0 MB from the store" in output
    assert not list(volume.iterdir())

"""A job that is killed at ten random moments ends as if nothing had happened.

The quickstart, made small, with its real stages: about three minutes, most of them starts of
training, which imports torch in each of its processes. `make kill-demo` does the same with the
whole quickstart.
"""

import json
from pathlib import Path

import pytest
import yaml
from pretrain_testing.kills import (
    Workdir,
    compare,
    run_killed,
    run_undisturbed,
    seeded_kills,
    with_quick_restarts,
)
from pretrain_testing.ledgers import read_ledger
from pretrain_testing.small_jobs import small_data, small_quickstart

STEPS = 60


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    job = small_quickstart(steps=STEPS)
    job["spec"]["workers"] = {"replicas": 1, "processesPerWorker": 2}
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(job, allow_unicode=True))
    return with_quick_restarts(path, tmp_path / "job.yaml")


def with_data(workdir: Workdir) -> Workdir:
    """A working directory whose storage holds the job's data."""
    for name, content in small_data():
        path = workdir.storage / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return workdir


@pytest.mark.timeout(1800)
def test_ten_kills_change_neither_the_weights_nor_the_samples(
    tmp_path: Path, manifest: Path
) -> None:
    undisturbed = with_data(Workdir(tmp_path / "undisturbed"))
    killed = with_data(Workdir(tmp_path / "killed"))
    kills = seeded_kills(seed=3, max_steps=STEPS, in_training=6)

    run_undisturbed(manifest, undisturbed)
    done = run_killed(manifest, killed, kills)

    assert len(done) == len(kills) == 10
    compare(killed, undisturbed)
    assert len({step for step, _ in read_ledger(killed.ledger)}) == STEPS
    results = json.loads((killed.path / "export/eval_results.json").read_text())
    assert results == json.loads((undisturbed.path / "export/eval_results.json").read_text())

"""A job that is killed at ten random moments ends as if nothing had happened.

The quickstart, made small, with its real stages: about three minutes. `make kill-demo` does the
same with the whole quickstart.
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
from pretrainctl.samples.demo_corpus import load_demo_corpus

QUICKSTART = Path(__file__).parents[3] / "crds/samples/quickstart.yaml"
STEPS = 60


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    job = yaml.safe_load(QUICKSTART.read_text())
    spec = job["spec"]
    spec["tokenizer"]["train"]["vocabSize"] = 1000
    spec["model"]["config"] |= {"hidden_size": 32, "intermediate_size": 64}
    spec["training"] |= {"maxSteps": STEPS, "evaluation": {"everySteps": 20}}
    spec["training"]["schedule"]["warmupSteps"] = 5
    spec["checkpoint"] = {"everySteps": 5}
    task = spec["evaluation"]["tasks"][0]
    task["seeds"] = [1, 2]
    task["data"] |= {"maxTrainSamples": 64, "maxTestSamples": 64}
    task["fineTuning"]["epochs"] = 1
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(job, allow_unicode=True))
    return with_quick_restarts(path, tmp_path / "job.yaml")


def with_data(workdir: Workdir) -> Workdir:
    """A working directory whose storage holds the first lines of the quickstart's data."""
    for name, content in load_demo_corpus().files().items():
        path = workdir.storage / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(content.splitlines(keepends=True)[:800]))
    return workdir


@pytest.mark.timeout(1800)
def test_ten_kills_change_neither_the_weights_nor_the_samples(
    tmp_path: Path, manifest: Path
) -> None:
    undisturbed = with_data(Workdir(tmp_path / "undisturbed"))
    killed = with_data(Workdir(tmp_path / "killed"))
    kills = seeded_kills(seed=3, max_steps=STEPS)

    run_undisturbed(manifest, undisturbed)
    done = run_killed(manifest, killed, kills)

    assert len(done) == len(kills) == 10
    compare(killed, undisturbed)
    assert len({step for step, _ in read_ledger(killed.ledger)}) == STEPS
    results = json.loads((killed.path / "export/eval_results.json").read_text())
    assert results == json.loads((undisturbed.path / "export/eval_results.json").read_text())

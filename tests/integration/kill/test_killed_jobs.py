"""Jobs that are killed at twenty random moments end as if nothing had happened.

One job is run by the command and killed from outside: the quickstart, made small, with its real
stages. Three are bare ranks, which die from inside at random points of restoring, saving and
committing. About three minutes, most of them the command's starts of training, which import torch
in each of its processes. `make chaos` does the same two hundred times.
"""

import json
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from pretrain_testing import killed_ranks
from pretrain_testing.killed_commands import (
    STEPS,
    Workdir,
    compare,
    run_killed,
    run_undisturbed,
    with_quick_restarts,
    with_small_data,
)
from pretrain_testing.kills import Attempt, Deck, Kill, seeded_attempts, seeded_kills
from pretrain_testing.ledgers import read_ledger
from pretrain_testing.small_jobs import small_quickstart
from pretrain_testing.training import assert_same_training

SEED = 3
BY_COMMAND = 5
JOBS_OF_RANKS = 3


def plan() -> tuple[list[Kill], list[list[Attempt]]]:
    """What is killed of the job by the command, and of each job of bare ranks."""
    source = random.Random(SEED)
    kills = seeded_kills(source, max_steps=STEPS, before=1, in_training=3, after=1)
    deck = Deck(source)
    jobs = [
        seeded_attempts(
            source,
            deck,
            kills=killed_ranks.KILLS_EACH,
            on_node=killed_ranks.leaves_on_node(number),
        )
        for number in range(JOBS_OF_RANKS)
    ]
    return kills, jobs


def test_there_are_twenty_kills_and_no_two_jobs_of_ranks_die_alike() -> None:
    kills, jobs = plan()

    inside = [(kill.moment, kill.victim) for job in jobs for attempt in job for kill in attempt]
    assert len(kills) + len(inside) == 20
    assert len(set(inside)) == len(inside)


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    job = small_quickstart(steps=STEPS)
    job["spec"]["workers"] = {"replicas": 1, "processesPerWorker": 2}
    job["spec"]["checkpoint"]["localVolume"] = {"hostPath": {"path": "/var/lib/pretrain"}}
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(job, allow_unicode=True))
    return with_quick_restarts(path, tmp_path / "job.yaml")


def check_time(status: dict[str, Any]) -> None:
    """Every second of training is told, in one category."""
    (train,) = (stage for stage in status["stages"] if stage["name"] == "train")
    goodput = status["goodput"]
    told: timedelta = goodput["time"] - goodput["startTime"]
    lasted: timedelta = train["completionTime"] - train["startTime"]
    seconds = sum(goodput["seconds"].values())
    assert seconds == pytest.approx(told.total_seconds(), rel=0.01)
    assert seconds == pytest.approx(lasted.total_seconds(), rel=0.01, abs=2)
    assert {"init", "restore", "step", "lost"} <= goodput["seconds"].keys()
    assert 0 < goodput["ratio"] < 1


@pytest.mark.timeout(1800)
def test_kills_from_outside_in_all_stages_change_neither_the_weights_nor_the_samples(
    tmp_path: Path, manifest: Path
) -> None:
    undisturbed = with_small_data(Workdir(tmp_path / "undisturbed"))
    killed = with_small_data(Workdir(tmp_path / "killed"))
    kills, _ = plan()

    run_undisturbed(manifest, undisturbed)
    done = run_killed(manifest, killed, kills)

    assert [one.kill for one in done] == kills
    compare(killed, undisturbed)
    assert len({step for step, _ in read_ledger(killed.ledger)}) == STEPS
    check_time(yaml.safe_load((killed.path / "pretrainjob.yaml").read_text())["status"])
    results = json.loads((killed.path / "export/eval_results.json").read_text())
    assert results == json.loads((undisturbed.path / "export/eval_results.json").read_text())


@pytest.mark.timeout(1800)
def test_kills_of_ranks_and_writers_change_neither_the_weights_nor_the_samples(
    tmp_path: Path,
) -> None:
    undisturbed = killed_ranks.job(tmp_path, "undisturbed", stage=2)
    killed_ranks.run_undisturbed(undisturbed)

    for number, attempts in enumerate(plan()[1]):
        killed = undisturbed.variant(f"killed-{number}")
        main = killed_ranks.die_beside_a_volume if killed_ranks.leaves_on_node(number) else None
        done = [one for some in killed_ranks.run_killed(killed, attempts, main) for one in some]
        assert [one.kill for one in done] == [kill for attempt in attempts for kill in attempt]
        assert_same_training(killed, undisturbed)

"""A training whose storage and disk fail in one way after the other ends as if nothing had been.

Its ranks and their writers are real, and so is the S3 server behind what fails. About 30 s.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from email.utils import formatdate
from functools import partial
from pathlib import Path
from threading import Event

import psutil
import pytest
from pretrain_testing import killed_ranks
from pretrain_testing.hindered_ranks import (
    failures,
    let_go_on,
    train_and_stand_still,
    train_hindered,
)
from pretrain_testing.killed_ranks import run_killed, run_undisturbed
from pretrain_testing.kills import Kill
from pretrain_testing.processes import wait_for
from pretrain_testing.ranks import start_ranks, values_of
from pretrain_testing.s3 import rclone_server
from pretrain_testing.s3_faults import (
    Answer,
    Fault,
    FaultyServer,
    Forward,
    Request,
    error,
    faulty,
    first_of,
    lose_answer,
    on,
    times,
)
from pretrain_testing.training import Bed, assert_same_training

STORM, OUTAGE, SLOW, EXPIRED, SKEWED, DISORDER, FULL, LOST = range(4, 20, 2)
"""Steps whose saves meet a fault each; those of step 2 and of the last meet none."""

FAILURES = {
    STORM: "",
    OUTAGE: r"rank 0: .*the server answers 503",
    SLOW: "",
    EXPIRED: r"rank 0: .*the credentials have expired",
    SKEWED: r"rank 0: .*clock differs from the server's by -3(599|600|601) s",
    DISORDER: "",
    FULL: r"rank 1: no space while writing",
    LOST: "",
}
KILL = Kill("training", "all ranks", save=LOST // 2 + 2)
"""In the step after the save that waited for the last of them."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def undisturbed(root: Path) -> Bed:
    bed = killed_ranks.job(root, "undisturbed", stage=1)
    run_undisturbed(bed)
    return bed


def unavailable(*_: object) -> Answer:
    return error(503, "ServiceUnavailable")


def expired(*_: object) -> Answer:
    return error(400, "ExpiredToken")


def an_hour_behind(*_: object) -> Answer:
    return error(403, "RequestTimeTooSkewed", Date=formatdate(time.time() + 3600, usegmt=True))


def cut(request: Request, forward: Forward) -> Answer:
    answer = forward(request)
    return replace(answer, cut_to=len(answer.body) // 2)


def held_until_step(bed: Bed, step: int) -> Fault:
    """Requests stand still until training has made a step."""

    def hold(_request: Request, _forward: Forward) -> None:
        wait_for(f"step {step}", lambda: bed.reached(step))

    return hold


def rank_0_after_rank_1() -> Fault:
    """Rank 0's files come after all of rank 1's, its manifest included."""
    rank_1_is_done = Event()

    def reorder(request: Request, forward: Forward) -> Answer | None:
        if "/rank-00000/" in request.path:
            assert rank_1_is_done.wait(60)
        if not request.path.endswith("/ranks/00001.json"):
            return None
        answer = forward(request)
        rank_1_is_done.set()
        return answer

    return reorder


def of_step(step: int, fault: Fault) -> Fault:
    return on("PUT", fault, query=f"/step-{step:09d}/")


def saving_faults(bed: Bed) -> Fault:
    return first_of(
        of_step(STORM, times(3, unavailable)),
        of_step(OUTAGE, unavailable),
        of_step(SLOW, held_until_step(bed, SLOW + 1)),
        of_step(EXPIRED, expired),
        of_step(SKEWED, an_hour_behind),
        of_step(DISORDER, rank_0_after_rank_1()),
        of_step(LOST, on("PUT", times(1, lose_answer), query="/COMMIT")),
    )


def restoring_faults() -> Fault:
    return first_of(
        on("GET", times(2, unavailable), query="/rank-"),
        on("GET", times(1, expired), query="/rank-"),
        on("GET", times(2, cut), query="/rank-"),
    )


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[FaultyServer]:
    with rclone_server(root / "server") as server, faulty(server) as proxy:
        server.create_bucket("tests")
        yield proxy


@pytest.fixture(scope="module")
def hindered(undisturbed: Bed, root: Path, server: FaultyServer) -> Bed:
    """A job that met all faults and a kill, at its end."""
    bed = undisturbed.variant(
        "hindered",
        checkpoint={"everySteps": killed_ranks.EVERY_STEPS, "keepLast": 20},
        storage=server.server.storage("tests", "job"),
        files=root / "server/data/tests/job",
    )
    environment = {**server.server.environment, "AWS_MAX_ATTEMPTS": "3"}
    main = partial(train_hindered, environment=environment, full_at=FULL)
    server.fault = saving_faults(bed)
    run = run_killed(bed, [(KILL,)], main)
    next(run)
    server.fault = restoring_faults()
    assert list(run) == [[]]
    return bed


@pytest.mark.parametrize("step", FAILURES)
def test_a_save_that_meets_a_fault_is_made_late_or_told_and_left_out(
    hindered: Bed, step: int
) -> None:
    failure = failures(hindered, attempt=0)[step]

    assert re.match(FAILURES[step], failure) if FAILURES[step] else failure == ""
    assert (step in hindered.committed_steps()) == (not FAILURES[step])


def test_after_all_faults_weights_and_samples_are_those_of_a_run_left_alone(
    hindered: Bed, undisturbed: Bed
) -> None:
    assert_same_training(hindered, undisturbed)


def test_an_attempt_that_stood_still_while_another_finished_ends_and_changes_nothing(
    undisturbed: Bed,
) -> None:
    bed = undisturbed.variant("overtaken")
    path = bed.write_config(0)
    old = start_ranks(train_and_stand_still, 2, path, bed.ledger, 5)
    processes = [psutil.Process(rank.pid) for rank in old.processes]
    wait_for("ranks that stand still", lambda: all(map(stands_still, processes)))

    path = bed.write_config(1)
    values_of(start_ranks(killed_ranks.train_and_die, 2, path, bed.ledger, ()).results())
    for process in processes:
        let_go_on(process)
    results = old.results()

    assert [result.cause for result in results] == ["Infrastructure"] * 2
    assert "was replaced by generation 2" in results[1].error
    assert [path.parent.name.split("-")[0] for path in bed.commits()] == ["000002"]
    assert_same_training(bed, undisturbed)


def stands_still(process: psutil.Process) -> bool:
    return bool(process.status() == psutil.STATUS_STOPPED)

"""What training tells whoever scrapes it while it runs.

About half a minute on two idle cores: training is started twice, and each start imports torch.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from pretrain_api.reports import StageProgress
from pretrain_jobs.telemetry.families import FAMILIES, GROUPS
from pretrain_testing.scrapes import Scrape, get, wait_for_scrape
from pretrain_testing.training import DEFAULT_TRAINING, Bed, free_port

ELSEWHERE = {
    "pretrain_mfu_ratio",
    "pretrain_accelerator_memory_peak_bytes",
    "pretrain_s3_requests_total",
} | {family.name for family in GROUPS["Preprocessing"]}
"""Families of accelerators, of S3, and of another stage."""

INTERVAL: int = DEFAULT_TRAINING["logging"]["intervalSteps"]
OWNER = {"namespace": "default", "job": "endless"}


def has_stepped(to: int) -> Callable[[Scrape], bool]:
    """Whether a step was done, and an evaluation too."""
    return lambda found: (
        (found.value("pretrain_global_step") or 0) >= to
        and found.value("pretrain_loss", split="validation") is not None
    )


@contextmanager
def training(bed: Bed, port: int, *, attempt: int) -> Iterator[None]:
    """An attempt that is asked to stop at the end, and does so with a checkpoint."""
    running = bed.start(attempt=attempt, PRETRAIN_PROGRESS_PORT=str(port))
    try:
        yield
    finally:
        os.kill(running.pid, signal.SIGTERM)
        ending = running.wait()[0]
    assert ending.code == 75, ending.output


@pytest.fixture(scope="module")
def scrapes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scrape, Scrape, bytes]:
    """One scrape of a first attempt, one of the attempt that resumed it, and its progress.

    The training would go on for days.
    """
    spec = {"maxSteps": 1_000_000, "evaluation": {"everySteps": 4, "maxSamples": 8}}
    bed = Bed(tmp_path_factory.mktemp("metrics"), name="endless", training=spec)
    port = free_port()
    with training(bed, port, attempt=0):
        first = wait_for_scrape(port, "step 5", has_stepped(5))
    stopped_at = bed.committed_steps()[-1]
    with training(bed, port, attempt=1):
        resumed = wait_for_scrape(port, "an interval more", has_stepped(stopped_at + INTERVAL))
        _, progress = get(port, "/progress")
    return first, resumed, progress


def test_a_running_attempt_exports_every_family_of_the_reference(
    scrapes: tuple[Scrape, Scrape, bytes],
) -> None:
    _, resumed, _ = scrapes

    assert resumed.families == {family.name for family in FAMILIES} - ELSEWHERE


def test_every_family_has_the_help_and_the_type_of_the_reference(
    scrapes: tuple[Scrape, Scrape, bytes],
) -> None:
    _, resumed, _ = scrapes
    told = {metric.name: (metric.type, metric.documentation) for metric in resumed.metrics}

    for family in FAMILIES:
        if family.name not in ELSEWHERE:
            expected = (family.kind, family.help)
            assert told[family.name.removesuffix("_total")] == expected


def test_attempts_are_told_apart_and_counters_go_on(
    scrapes: tuple[Scrape, Scrape, bytes],
) -> None:
    first, resumed, _ = scrapes
    tokens = "pretrain_tokens_total"
    before = first.value(tokens, **OWNER, attempt="0", kind="real")
    after = resumed.value(tokens, **OWNER, attempt="1", kind="real")

    assert before is not None
    assert after is not None
    assert 0 < before < after
    assert "pretrain_restore_seconds" not in first.families
    assert (resumed.value("pretrain_restore_seconds", source="storage") or 0) > 0


def test_progress_tells_the_step_and_the_commit_it_goes_on_from(
    scrapes: tuple[Scrape, Scrape, bytes],
) -> None:
    _, resumed, answer = scrapes
    progress = StageProgress.model_validate_json(answer)

    assert progress.attempt == 1
    assert progress.training is not None
    assert progress.checkpoint is not None
    committed = resumed.value("pretrain_checkpoint_last_committed_step") or 0
    assert committed <= progress.checkpoint.step <= progress.training.step


def test_of_two_ranks_the_slower_one_is_measured_by_the_faster(
    scrapes: tuple[Scrape, Scrape, bytes],
) -> None:
    _, resumed, _ = scrapes
    told = [resumed.value("pretrain_straggler_ratio", **OWNER, rank=rank) for rank in ("0", "1")]

    faster, slower = sorted(ratio for ratio in told if ratio is not None)
    assert faster == 1.0
    assert slower >= 1.0


def test_progress_tells_the_time_of_all_attempts(scrapes: tuple[Scrape, Scrape, bytes]) -> None:
    _, resumed, answer = scrapes
    sheet = StageProgress.model_validate_json(answer).time_sheet
    own = resumed.value("pretrain_job_time_seconds_total", category="init")

    assert sheet is not None
    assert own is not None
    assert sheet.seconds["init"] > own > 0

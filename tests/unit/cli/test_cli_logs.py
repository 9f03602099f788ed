"""Which logs `pretrainctl logs` shows when it is told little, and what it refuses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from pretrain_api.reports import Cause
from pretrain_operator.observe import PodFacts
from pretrain_testing.command_line import Pretrainctl
from pretrain_testing.described_jobs import event
from pretrain_testing.plan_simulator import Simulation, make_job
from pretrain_testing.raw_children import raw_pod, terminated
from pretrainctl.cluster.log_choice import Wanted, choose, stage_to_show
from pretrainctl.cluster.log_reading import LogReader
from pretrainctl.errors import DeniedError, NotFoundError
from pretrainctl.exit_codes import ExitCode


@pytest.fixture
def pretrainctl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Pretrainctl:
    return Pretrainctl(monkeypatch, capsys)


def training() -> Simulation:
    sim = Simulation(make_job())
    sim.until("train")
    return sim


def pods(*raws: dict[str, Any]) -> tuple[PodFacts, ...]:
    return tuple(fact for fact in map(PodFacts.of, raws) if fact is not None)


def chosen(sim: Simulation, facts: tuple[PodFacts, ...], **wanted: Any) -> list[int]:
    choice = choose(sim.job.status, facts, Wanted(**wanted), ranks_per_pod=2)
    return [fact.pod.index for fact in choice.pods]


GANG = pods(raw_pod(0), raw_pod(1), raw_pod(2))


def test_of_a_gang_that_runs_rank_0_is_shown() -> None:
    assert chosen(training(), GANG) == [0]


def test_of_a_gang_that_failed_the_pod_is_shown_that_explains_the_others() -> None:
    late = terminated(70)
    late["terminated"]["finishedAt"] = "2026-01-01T00:20:00Z"
    noise = raw_pod(0, phase="Failed", state=terminated(71))
    cause = raw_pod(1, phase="Failed", state=late)
    told_to_stop = raw_pod(2, phase="Failed", state=terminated(75))
    assert chosen(training(), pods(noise, cause, told_to_stop)) == [1]


def test_all_pods_are_shown_in_the_order_of_their_indexes() -> None:
    assert chosen(training(), GANG[::-1], all_pods=True) == [0, 1, 2]


def test_a_pod_is_chosen_by_its_index_or_by_a_rank_in_it() -> None:
    assert chosen(training(), GANG, index=2) == [2]
    assert chosen(training(), GANG, rank=3, stage="train") == [1]


def test_an_index_that_there_is_not_names_the_others() -> None:
    with pytest.raises(NotFoundError, match="no pod with index 7; there are 0, 1, 2"):
        chosen(training(), GANG, index=7)


def test_of_slices_the_first_that_runs_is_shown() -> None:
    sim = Simulation(make_job())
    sim.until("preprocess")
    done = raw_pod(0, "preprocess", phase="Succeeded", state=terminated(0))
    assert chosen(sim, pods(done, raw_pod(1, "preprocess"), raw_pod(2, "preprocess"))) == [1]


def test_of_a_slice_that_was_tried_again_the_last_try_counts() -> None:
    sim = Simulation(make_job())
    sim.until("preprocess")
    first = raw_pod(0, "preprocess", phase="Failed", state=terminated(1))
    again = raw_pod(0, "preprocess")
    again["metadata"] |= {"name": "again", "creationTimestamp": "2026-01-01T00:11:00Z"}
    choice = choose(sim.job.status, pods(again, first), Wanted())
    assert [fact.pod.name for fact in choice.pods] == ["again"]


def test_the_newest_attempt_that_has_pods_is_shown_unless_another_is_wanted() -> None:
    facts = pods(raw_pod(0, attempt=0), raw_pod(1, attempt=1))
    assert chosen(training(), facts) == [1]
    assert chosen(training(), facts, attempt=0) == [0]


def test_once_a_job_is_complete_its_last_stage_is_shown() -> None:
    sim = Simulation(make_job())
    assert stage_to_show(sim.job.status, Wanted()).name == "tokenizer"
    sim.until("export")
    sim.succeed("export")
    assert stage_to_show(sim.job.status, Wanted()).name == "export"


def test_pods_that_are_gone_leave_the_last_words_that_status_keeps() -> None:
    sim = training()
    sim.report_failure("train", 1, Cause.HANG, message="no step for long")
    status = sim.job.status
    assert "no step for long" in choose(status, (), Wanted()).last_words
    assert "no step for long" in choose(status, (), Wanted(stage="train", attempt=0)).last_words
    assert choose(status, (), Wanted(stage="train", attempt=7)).last_words == ""
    assert choose(status, (), Wanted(stage="export")).last_words == ""


@dataclass
class Events:
    """A cluster with a job, events about it, and no pods any more."""

    sim: Simulation
    messages: tuple[str, ...] = ()
    denied: bool = False

    def get(self, path: str, _query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        if path.endswith("/pods"):
            return {"items": []}
        if not path.endswith("/events"):
            return self.sim.job.model_dump(mode="json", by_alias=True)
        if self.denied:
            raise DeniedError("no right to list events")
        at = "2026-01-01T00:00:00Z"
        return {"items": [event(text, at=at, reason="AttemptFailed") for text in self.messages]}

    def words(self, **wanted: Any) -> str:
        """What is kept of what is wanted."""
        cluster: Any = self
        reader = LogReader(
            cluster=cluster,
            namespace="team-a",
            name="roberta-zh",
            wanted=Wanted(**wanted),
            tail=None,
            print=print,
            note=print,
        )
        return reader.last_words(reader.look()[1])


def test_the_event_of_an_earlier_attempts_end_has_its_last_words_while_a_later_one_runs() -> None:
    sim = training()
    first = "Attempt 0 of train ended with OutOfMemory. Attempt 1 follows after 10 s. Rank 1 died"
    second = "Attempt 1 of train ended with Hang. Attempt 2 follows after 10 s. Rank 0 hung"
    for cause in (Cause.OUT_OF_MEMORY, Cause.HANG):
        sim.report_failure("train", 1, cause, message="a sentence")
        sim.wait(600)
        sim.run("train")
    cluster = Events(sim, (first, second))
    assert (cluster.words(attempt=0), cluster.words(attempt=1)) == (first, second)
    assert cluster.words(attempt=2) == ""
    assert Events(sim, (first,), denied=True).words(attempt=0) == ""


def test_lines_are_named_by_rank_worker_or_slice() -> None:
    (worker,) = choose(training().job.status, GANG[:1], Wanted(), ranks_per_pod=2).pods
    assert choose(training().job.status, GANG, Wanted()).name_of(worker) == "rank 0"
    assert choose(training().job.status, GANG, Wanted(), ranks_per_pod=2).name_of(worker) == (
        "worker 0"
    )


@pytest.mark.parametrize(
    "options",
    [
        ["--rank", "1", "--all"],
        ["--index", "1", "--rank", "1"],
        ["--rank", "0", "--stage", "export"],
        ["--stage", "cooking"],
        ["--tail", "-1"],
    ],
)
def test_options_that_make_no_sense_are_refused_before_any_cluster_is_asked(
    pretrainctl: Pretrainctl, options: list[str]
) -> None:
    assert pretrainctl("logs", "a", *options).code == ExitCode.INVALID

"""`pretrainctl logs --follow` goes on with what a job does next, and ends when it does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from pretrain_api.reports import Cause
from pretrain_testing.plan_simulator import Simulation, make_job
from pretrain_testing.raw_children import raw_pod, terminated, waiting
from pretrainctl.cluster.log_choice import Choice, Wanted
from pretrainctl.cluster.log_following import follow
from pretrainctl.cluster.log_reading import LogReader

Raw = dict[str, Any]
Step = Callable[[], None]
ENDED = terminated(0)


@dataclass
class World:
    """A job and its pods; the next of some steps is taken at each wait."""

    sim: Simulation
    pods: list[Raw] = field(default_factory=list)
    steps: Iterator[Step] = field(default_factory=lambda: iter(()))
    printed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    queries: list[Mapping[str, Any]] = field(default_factory=list)
    closed: bool = False

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Raw:
        if not path.endswith("/pods"):
            return self.sim.job.model_dump(mode="json", by_alias=True)
        stage = str((query or {})["labelSelector"]).rpartition("=")[2]
        mine = [p for p in self.pods if p["metadata"]["labels"]["pretrain.dev/stage"] == stage]
        return {"items": mine}

    def lines(self, path: str, query: Mapping[str, Any]) -> Iterator[str]:
        self.queries.append(query)
        yield path.split("/")[-2]

    def print(self, line: str) -> None:
        if self.closed:
            raise BrokenPipeError
        self.printed.append(line)

    def follow(self, *steps: Step, tail: int | None = None, **wanted: Any) -> Choice | None:
        self.steps = iter(steps)
        cluster: Any = self
        reader = LogReader(
            cluster=cluster,
            namespace="team-a",
            name="roberta-zh",
            wanted=Wanted(**wanted),
            tail=tail,
            print=self.print,
            note=self.notes.append,
            sleep=lambda _seconds: next(self.steps)(),
        )
        return follow(reader)

    def replace(self, *pods: Raw) -> Step:
        """A step after which these pods are there."""

        def step() -> None:
            self.pods = list(pods)

        return step

    def fail(self) -> None:
        """Rank 1 fails, and the operator ends the attempt."""
        self.sim.report_failure("train", 1, Cause.INFRASTRUCTURE, message="NCCL error")
        self.pods = []

    def train_anew(self) -> None:
        """The next attempt of training runs."""
        self.sim.wait(600)
        self.sim.run("train")
        self.pods = [raw_pod(0, attempt=1), raw_pod(1, attempt=1)]

    def complete(self) -> None:
        """All that is left of the job succeeds."""
        for stage in ("train", "evaluate", "export"):
            if self.sim.stage(stage).state != "Complete":
                self.sim.wait(600)
                self.sim.run(stage)
                self.sim.succeed(stage)


@pytest.fixture
def world() -> World:
    """A job whose two workers train."""
    sim = Simulation(make_job())
    sim.until("train")
    return World(sim, [raw_pod(0), raw_pod(1)])


def name(index: int, attempt: int = 0, stage: Any = "train") -> str:
    return str(raw_pod(index, stage, attempt)["metadata"]["name"])


def test_the_next_attempt_is_followed_and_what_it_waits_for_is_told(world: World) -> None:
    starting = raw_pod(0, attempt=1, phase="Pending", state=waiting("ContainerCreating"))

    done = world.follow(
        world.fail,
        world.replace(starting),
        world.train_anew,
        world.complete,
    )

    assert done is None
    assert world.printed == [name(0), name(0, attempt=1)]
    assert world.notes[0] == "attempt 0 of train prints no more"
    assert "Attempt 1 of train starts at" in world.notes[1]
    assert "NCCL error" in world.notes[1]
    assert world.notes[-1] == "attempt 1 of train prints no more"


def test_nothing_is_said_while_it_is_not_known_what_follows(world: World) -> None:
    world.follow(lambda: None, lambda: None, world.complete)

    assert world.notes == ["attempt 0 of train prints no more"]


def test_pods_of_an_attempt_that_ends_are_not_followed_one_after_the_other(world: World) -> None:
    lost = raw_pod(1, phase="Failed", state=terminated(71))

    world.follow(world.replace(raw_pod(0), lost), world.complete)

    assert world.printed == [name(0)]


def test_without_a_stage_the_next_ones_are_followed(world: World) -> None:
    def evaluate() -> None:
        world.sim.succeed("train")
        world.sim.run("evaluate")
        world.pods.append(raw_pod(0, "evaluate"))

    world.follow(evaluate, world.complete)

    assert world.printed == [name(0), name(0, stage="evaluate")]


@pytest.mark.parametrize("wanted", [{"stage": "train"}, {"stage": "train", "rank": 1}])
def test_a_stage_that_was_asked_for_is_followed_until_it_is_complete(
    world: World, wanted: dict[str, Any]
) -> None:
    def lose_rank_1() -> None:
        world.fail()
        world.pods = [raw_pod(0, attempt=1)]

    def evaluate() -> None:
        world.sim.succeed("train")
        world.sim.run("evaluate")

    world.follow(lose_rank_1, world.train_anew, evaluate, **wanted)

    rank = wanted.get("rank", 0)
    assert world.printed == [name(rank), name(rank, attempt=1)]


def test_an_attempt_that_was_asked_for_is_followed_alone(world: World) -> None:
    world.follow(attempt=0)

    assert world.printed == [name(0)]


def test_slices_are_followed_as_they_take_turns() -> None:
    sim = Simulation(make_job())
    sim.until("preprocess")
    done = [raw_pod(i, "preprocess", phase="Succeeded", state=ENDED) for i in range(3)]
    world = World(sim, [done[0], raw_pod(1, "preprocess")])

    world.follow(
        world.replace(*done[:2], raw_pod(2, "preprocess")),
        world.replace(*done),
        lambda: sim.succeed("preprocess"),
        stage="preprocess",
    )

    assert world.printed == [name(1, stage="preprocess"), name(2, stage="preprocess")]


def test_of_all_pods_those_that_come_later_are_followed_too(world: World) -> None:
    world.pods = [raw_pod(0)]

    world.follow(world.replace(raw_pod(0), raw_pod(1)), world.complete, all_pods=True)

    assert world.printed == [name(0), name(1)]


def test_only_the_first_pods_are_cut_to_their_last_lines(world: World) -> None:
    world.follow(world.fail, world.replace(raw_pod(0, attempt=1)), world.complete, tail=5)

    followed = [query for query in world.queries if "follow" in query]
    assert [query.get("tailLines") for query in followed] == [5, None]


def test_a_job_that_fails_tells_why_at_the_end(world: World) -> None:
    def spoil() -> None:
        world.sim.report_failure("train", 1, Cause.USER_ERROR, message="no such column")

    world.follow(spoil)

    assert world.notes[-1].startswith("the job has failed: Rank 1")
    assert "no such column" in world.notes[-1]


def test_a_job_that_has_ended_without_a_log_is_left_to_its_last_words(world: World) -> None:
    world.fail()
    world.complete()
    world.pods = []

    choice = world.follow()

    assert choice is not None
    assert choice.pods == ()


def test_it_ends_when_nobody_reads_on(world: World) -> None:
    world.closed = True

    assert world.follow() is None
    assert world.printed == []

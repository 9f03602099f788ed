"""Which pods' logs are wanted, of all that a job has left; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pretrain_api.reports import STAGES, StageName
from pretrain_api.status import PretrainJobStatus, StageStatus
from pretrain_operator.observe import PodFacts
from pretrain_operator.plan.failures import decisive_order, is_lost, last_tries
from pretrain_operator.plan.pod_failures import classify_pod, pod_name
from pretrain_operator.plan.stages import current_stage

from pretrainctl.cluster.findings import last_words
from pretrainctl.errors import InvalidError, NotFoundError


@dataclass(frozen=True)
class Wanted:
    """What a user asked for; None stands for whatever tells most.

    `index` is that of a pod, `rank` one of training's processes.
    """

    stage: StageName | None = None
    attempt: int | None = None
    index: int | None = None
    rank: int | None = None
    all_pods: bool = False


@dataclass(frozen=True)
class Choice:
    """Pods of one attempt, by index; `last_words` are those that status keeps of their stage."""

    stage: StageName
    attempt: int
    pods: tuple[PodFacts, ...]
    last_words: str
    ranks_per_pod: int

    def name_of(self, fact: PodFacts) -> str:
        """What a pod is called before its lines: `rank 1`, `worker 1`, `slice 7`."""
        return pod_name(fact.pod.index, fact.stage, self.ranks_per_pod).partition(" (")[0]


def choose(
    status: PretrainJobStatus,
    pods: Sequence[PodFacts],
    wanted: Wanted,
    *,
    ranks_per_pod: int = 1,
    must_exist: bool = True,
) -> Choice:
    """The pods to show; none of them where they are gone or not there yet.

    Without any wish these are of the stage that runs, or ran last, and of its newest attempt that
    has pods: the one that failed first, else the one of index 0, or of the first running slice.
    NotFoundError says which indexes there are, unless the wanted one may still come.
    """
    stage = stage_to_show(status, wanted)
    mine = [fact for fact in pods if fact.stage == stage.name]
    attempt = stage.attempt if wanted.attempt is None else wanted.attempt
    if wanted.attempt is None and mine:
        attempt = max(fact.attempt for fact in mine)
    tries = _newest_by_index([fact for fact in mine if fact.attempt == attempt])
    return Choice(
        stage=stage.name,
        attempt=attempt,
        pods=_chosen(tries, wanted, ranks_per_pod, must_exist=must_exist),
        last_words=_last_words(status, stage, wanted),
        ranks_per_pod=ranks_per_pod,
    )


def first_to_fail(tries: Sequence[PodFacts]) -> PodFacts | None:
    """The pod whose end explains the others', as the plan weighs them; None when none is lost."""
    lost = {fact.pod.index: fact for fact in tries if is_lost(fact.pod)}
    pods = [pod for pod in last_tries([fact.pod for fact in tries]) if pod.index in lost]
    if not pods:
        return None
    stage = tries[0].stage
    first = min(pods, key=lambda pod: decisive_order(classify_pod(pod, stage=stage)))
    return lost[first.index]


def stage_to_show(status: PretrainJobStatus, wanted: Wanted) -> StageStatus:
    """The stage that was asked for, else the one that runs or failed, or ran last."""
    stages = {stage.name: stage for stage in status.stages}
    if wanted.stage is not None:
        return stages.get(wanted.stage) or StageStatus(name=wanted.stage)
    current = current_stage(status.stages)
    if current is not None:
        return current
    ran = [stage for stage in status.stages if stage.start_time is not None]
    return ran[-1] if ran else StageStatus(name="tokenizer")


def _last_words(status: PretrainJobStatus, stage: StageStatus, wanted: Wanted) -> str:
    """A stage keeps those of its current or last attempt; a job, why it does not run."""
    if wanted.attempt not in {None, stage.attempt, stage.attempt - 1}:
        return ""
    words = last_words(status, stage)
    if words or wanted.attempt is not None or stage != current_stage(status.stages):
        return words
    return status.blocked_by


def _chosen(
    tries: list[PodFacts], wanted: Wanted, ranks_per_pod: int, *, must_exist: bool
) -> tuple[PodFacts, ...]:
    if not tries or wanted.all_pods:
        return tuple(tries)
    index = wanted.index if wanted.rank is None else wanted.rank // ranks_per_pod
    if index is not None:
        found = [fact for fact in tries if fact.pod.index == index]
        if not found and must_exist:
            indexes = ", ".join(str(fact.pod.index) for fact in tries)
            raise NotFoundError(f"there is no pod with index {index}; there are {indexes}")
        return tuple(found)
    failed = first_to_fail(tries)
    return (failed or _representative(tries),)


def _representative(tries: list[PodFacts]) -> PodFacts:
    """Rank 0 tells of the gang; of slices, the first that runs."""
    running = [fact for fact in tries if fact.pod.phase == "Running"]
    if tries[0].stage == "preprocess" and running:
        return running[0]
    return tries[0]


def _newest_by_index(facts: Sequence[PodFacts]) -> list[PodFacts]:
    """A slice may have several pods; the last one counts."""
    newest = {fact.pod.index: fact for fact in sorted(facts, key=lambda fact: fact.created_at)}
    return [newest[index] for index in sorted(newest)]


def stage_named(text: str | None) -> StageName | None:
    """A stage by its name; InvalidError lists them all."""
    if text is None:
        return None
    stage = next((name for name in STAGES if name == text), None)
    if stage is None:
        raise InvalidError(f"--stage {text!r} is none of {', '.join(STAGES)}")
    return stage

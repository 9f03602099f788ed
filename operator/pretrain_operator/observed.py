"""What was observed of a job's children, sorted once into types; no client objects, no clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from pretrain_api.reports import StageName, StageProgress, StageReport

PodPhase = Literal["Pending", "Running", "Succeeded", "Failed"]
JobCondition = Literal["Complete", "SuccessCriteriaMet", "FailureTarget", "Failed", "Suspended"]
ChildKind = Literal["ConfigMap", "Service", "Job"]


@dataclass(frozen=True)
class RunningInit:
    """An init container that runs, while all after it wait."""

    name: str
    since: datetime


@dataclass(frozen=True)
class ObservedPod:
    """One pod of a child Job; `report` is its parsed termination message.

    `reason` is the container's or the pod's reason (OOMKilled, Evicted, ErrImagePull, ...);
    `signal` the signal that ended the container's process, if one did. `lingering` names other
    containers that still run after the stage's own has ended well, `proxy` that of a service mesh.
    """

    name: str
    index: int
    phase: PodPhase
    exit_code: int | None = None
    signal: int | None = None
    reason: str = ""
    message: str = ""
    node: str = ""
    report: StageReport | None = None
    scheduled_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    disrupted: bool = False
    deleting: bool = False
    lingering: str = ""
    proxy: str = ""
    init: RunningInit | None = None


@dataclass(frozen=True)
class ObservedJob:
    """One attempt of one stage: a child Indexed Job and its pods (all that still exist).

    `generation` is that of the spec that it was made from, None if it does not tell.
    `pods_refused` is what the API server last said to the Job controller instead of creating a
    pod; it may be out of date once every index has its pod.
    """

    name: str
    stage: StageName
    attempt: int
    created_at: datetime
    completions: int
    generation: int | None = None
    condition: JobCondition | None = None
    reason: str = ""
    message: str = ""
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    finished_at: datetime | None = None
    deleting: bool = False
    pods: tuple[ObservedPod, ...] = ()
    pods_refused: str = ""


@dataclass(frozen=True)
class Refusal:
    """The API server's no to a child that was applied for an attempt.

    `generation` is that of the spec the child was made from, `count` how often in a row it was
    refused. Refusals live in the executor's memory only.
    """

    stage: StageName
    attempt: int
    kind: ChildKind
    code: int
    message: str
    generation: int
    at: datetime
    count: int = 1


@dataclass(frozen=True)
class Observed:
    """All children of one PretrainJob, and the last progress of each running stage's index.

    A child Job that is gone while pods of it still live is listed with `deleting` set.
    `stepped_at` is when the current training attempt last reported another step; None while
    that is unknown: before its first step, and while the last poll got no answer. `last_words`
    are reports of pods that are gone already.
    """

    jobs: tuple[ObservedJob, ...] = ()
    services: tuple[str, ...] = ()
    config_maps: tuple[str, ...] = ()
    progress: tuple[StageProgress, ...] = ()
    stepped_at: datetime | None = None
    last_words: tuple[StageReport, ...] = ()
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True)
class ChildRef:
    """A child to delete, with everything it owns."""

    kind: ChildKind
    name: str


@dataclass(frozen=True)
class Event:
    """An event to post once the status is written."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


Manifest = dict[str, Any]
"""A Kubernetes object as a plain dict."""


@dataclass(frozen=True)
class Settings:
    """What the plan needs to know of its surroundings; the same plan serves both backends.

    `default_storage_uri` replaces a spec.storage that was left out. `python` is the interpreter
    in the containers. `rendezvous_port` and `progress_port` are fixed on a pod network and
    chosen anew per attempt where pods share one: with `shared_network` (the local backend),
    and for a job that asks for the host's network.
    """

    operator_image: str = "pretrain-operator/operator:0.1.0"
    preprocess_image: str = "pretrain-operator/preprocess:0.1.0"
    train_image: str = "pretrain-operator/train:0.1.0"
    image_pull_policy: str = "IfNotPresent"
    default_storage_uri: str = ""
    default_storage_endpoint_url: str | None = None
    default_storage_credentials_secret: str | None = None
    python: str = "python"
    rendezvous_port: int = 29400
    progress_port: int = 9400
    shared_network: bool = False
    labels: dict[str, str] = field(default_factory=dict)

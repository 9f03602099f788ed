"""The cluster's part in a local run: keeps children and runs the pods of Indexed Jobs.

Decisions are in `job_policy`, what a pod is in `pod_process`; this is their execution. Nothing
is kept on disk: a run that is killed starts the current attempt anew, as the plan says.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import cast

from pretrain_api.reports import StageName
from pretrain_operator.children.names import ATTEMPT_LABEL, STAGE_LABEL
from pretrain_operator.observed import ChildRef, JobCondition, Manifest, ObservedJob

from pretrainctl.errors import JobFailedError
from pretrainctl.local.job_policy import JobRules, decide
from pretrainctl.local.pod import Pod, PodExit, start_pod
from pretrainctl.local.pod_process import PodContext, build_pod_process, host_aliases
from pretrainctl.local.processes import POD_MARK, WORKDIR_MARK
from pretrainctl.local.workdir import TEMPORARY_PREFIX, WorkDir

DEFAULT_GRACE_SECONDS = 30
SOCKET_PATH_LIMIT = 70
"""Longest temporary directory in which Python's multiprocessing still finds room for the names
of its sockets (at most 108 bytes with their directory, see unix(7))."""


@dataclass
class ChildJob:
    """A child Job and all pods it has had."""

    manifest: Manifest
    created_at: datetime
    rules: JobRules
    pods: list[Pod] = field(default_factory=list)
    condition: JobCondition | None = None
    reason: str = ""
    message: str = ""
    finished_at: datetime | None = None
    deleting: bool = False

    @property
    def name(self) -> str:
        """The Job's name."""
        return str(self.manifest["metadata"]["name"])

    @property
    def active_pods(self) -> list[Pod]:
        """Pods whose processes still run."""
        return [pod for pod in self.pods if pod.active]

    def observed(self) -> ObservedJob:
        """What the plan sees of it."""
        labels = self.manifest["metadata"]["labels"]
        active = len(self.active_pods)
        succeeded = sum(pod.exit_code == 0 for pod in self.pods)
        return ObservedJob(
            name=self.name,
            stage=cast("StageName", labels[STAGE_LABEL]),
            attempt=int(labels[ATTEMPT_LABEL]),
            created_at=self.created_at,
            completions=self.rules.completions,
            condition=self.condition,
            reason=self.reason,
            message=self.message,
            active=active,
            succeeded=succeeded,
            failed=len(self.pods) - active - succeeded,
            finished_at=self.finished_at,
            deleting=self.deleting,
            pods=tuple(pod.observed() for pod in self.pods),
        )


class Controller:
    """Applies and deletes children, and moves their pods on whenever `sync` is called."""

    def __init__(
        self,
        workdir: WorkDir,
        *,
        caller: Mapping[str, str],
        clock: Callable[[], datetime],
        token: Callable[[], str],
        on_exit: Callable[[PodExit], None],
    ) -> None:
        """`token` gives a pod's name its random end, `caller` is the command's environment."""
        self._workdir = workdir
        self._caller = caller
        self._clock = clock
        self._token = token
        self._on_exit = on_exit
        self.jobs: dict[str, ChildJob] = {}
        self.services: dict[str, Manifest] = {}
        self.config_maps: dict[str, Manifest] = {}
        self.changes = 0
        """Counts whatever the plan may have to hear of."""
        self.last_failure: Pod | None = None
        """The pod that failed last by itself, for its log."""

    @property
    def active_pods(self) -> list[Pod]:
        """Pods of all Jobs whose processes still run."""
        return [pod for job in self.jobs.values() for pod in job.active_pods]

    def apply(self, manifest: Manifest) -> None:
        """Create a child; one that exists stays as it is."""
        name = manifest["metadata"]["name"]
        self.changes += 1
        match manifest["kind"]:
            case "ConfigMap":
                self.config_maps.setdefault(name, manifest)
            case "Service":
                self.services.setdefault(name, manifest)
            case "Job":
                rules = JobRules.of(manifest["spec"])
                self.jobs.setdefault(name, ChildJob(manifest, self._clock(), rules))

    def delete(self, child: ChildRef) -> None:
        """Delete a child; a Job stays, deleting, until its pods have ended."""
        self.changes += 1
        match child.kind:
            case "ConfigMap":
                self.config_maps.pop(child.name, None)
            case "Service":
                self.services.pop(child.name, None)
            case "Job" if child.name in self.jobs:
                self.jobs[child.name].deleting = True

    def finish(self, ended: PodExit) -> None:
        """Note the end of a pod's processes."""
        for pod in self.active_pods:
            if pod.name == ended.pod:
                pod.finish(ended.returncode, self._clock())
                self.changes += 1
                if pod.exit_code != 0 and pod.kill_at is None:
                    self.last_failure = pod

    def disrupt(self) -> None:
        """Ask all pods to end, through no fault of theirs."""
        for pod in self.active_pods:
            pod.disrupted = True
            pod.terminate(self._clock())

    def kill(self) -> None:
        """End all pods at once."""
        for pod in self.active_pods:
            pod.kill()

    def sync(self) -> datetime | None:
        """Start, end and complete what is due; when it should be called again at the latest."""
        wakes = [wake for job in list(self.jobs.values()) for wake in self._sync(job)]
        return min(wakes, default=None)

    def _sync(self, job: ChildJob) -> Iterator[datetime]:
        if job.deleting or job.condition is not None:
            yield from self._wind_up(job)
            return
        tries = [pod.as_try() for pod in job.pods]
        verdict = decide(job.rules, tries, now=self._clock(), started_at=job.created_at)
        if verdict.ends is not None:
            job.condition, job.reason, job.message = verdict.ends, verdict.reason, verdict.message
            self.changes += 1
            yield from self._wind_up(job)
            return
        for index in verdict.start:
            job.pods.append(self._start(job, index))
            self.changes += 1
        if verdict.wake_at is not None:
            yield verdict.wake_at

    def _wind_up(self, job: ChildJob) -> Iterator[datetime]:
        now = self._clock()
        for pod in job.active_pods:
            pod.terminate(now)
            if pod.kill_at is not None and pod.kill_at <= now:
                pod.kill()
            elif pod.kill_at is not None:
                yield pod.kill_at
        if job.active_pods:
            return
        if job.deleting:
            del self.jobs[job.name]
            self.changes += 1
        elif job.finished_at is None:
            job.condition = "Complete" if job.condition == "SuccessCriteriaMet" else "Failed"
            job.finished_at = now
            self.changes += 1

    def _start(self, job: ChildJob, index: int) -> Pod:
        token = self._token()
        name = f"{job.name}-{index}-{token}"
        spec = job.manifest["spec"]["template"]["spec"]
        grace = spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS)
        try:
            temporary = temporary_directory(self._workdir.temporary / token)
            return start_pod(
                build_pod_process(spec, self._context(job, name, index, temporary)),
                name=name,
                index=index,
                grace=timedelta(seconds=grace),
                log=self._workdir.log(name),
                now=self._clock(),
                on_exit=self._on_exit,
            )
        except OSError as error:
            raise JobFailedError(
                f"pod {name} cannot be started in {self._workdir.root}: {error.strerror}; "
                "put that right, then the same command goes on from here"
            ) from None

    def _context(self, job: ChildJob, name: str, index: int, temporary: Path) -> PodContext:
        return PodContext(
            name=name,
            index=index,
            namespace=job.manifest["metadata"].get("namespace", "default"),
            directory=self._workdir.pods / name,
            temporary=temporary,
            hosts=self._hosts(),
            config_maps={key: child["data"] for key, child in self.config_maps.items()},
            caller=self._caller,
            marks={WORKDIR_MARK: str(self._workdir.root), POD_MARK: name},
            local_checkpoints=self._workdir.local_checkpoints,
        )

    def _hosts(self) -> dict[str, str]:
        hosts: dict[str, str] = {}
        for job in self.jobs.values():
            subdomain = job.manifest["spec"]["template"]["spec"].get("subdomain", "")
            if subdomain in self.services:
                namespace = job.manifest["metadata"].get("namespace", "default")
                hosts |= host_aliases(job.name, job.rules.completions, subdomain, namespace)
        return hosts


def temporary_directory(place: Path) -> Path:
    """A pod's /tmp: the place itself, or a link from there where its path is too long."""
    if len(str(place)) <= SOCKET_PATH_LIMIT:
        return place
    place.symlink_to(tempfile.mkdtemp(prefix=TEMPORARY_PREFIX))
    return place.readlink()

"""The controller's children as the plan sees them, on a cluster and here alike."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from pretrain_api.reports import StageProgress
from pretrain_operator.observed import Observed

from pretrainctl.local.controller import Controller


class Observer:
    """Reads children and progress files; remembers only when training last made a step."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._step: tuple[int, int] | None = None
        self._stepped_at: datetime | None = None

    def observe(self, now: datetime) -> Observed:
        """All children with their pods, and the last progress of each index."""
        progress = tuple(self._progress())
        self._note_step(progress, now)
        return Observed(
            jobs=tuple(job.observed() for job in self._controller.jobs.values()),
            services=tuple(self._controller.services),
            config_maps=tuple(self._controller.config_maps),
            progress=progress,
            stepped_at=self._stepped_at,
        )

    def _progress(self) -> Iterator[StageProgress]:
        """The last words of a pod that ended count too, but for slices that are done."""
        for job in self._controller.jobs.values():
            latest = {pod.index: pod for pod in job.pods}
            for pod in latest.values():
                progress = pod.poll_progress()
                slice_is_done = progress and progress.stage == "preprocess" and pod.exit_code == 0
                if progress is not None and not slice_is_done:
                    yield progress

    def _note_step(self, progress: tuple[StageProgress, ...], now: datetime) -> None:
        steps = [(item.attempt, item.training.step) for item in progress if item.training]
        newest = max(steps, default=None)
        if newest is None or self._step is None or newest[0] != self._step[0]:
            self._stepped_at = None
        elif newest != self._step:
            self._stepped_at = now
        self._step = newest
